"""The package as a whole: what importing it costs and which names it offers."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import langchain_agentmem

RECORDED = Path(__file__).with_name("public_api.txt")
HEAVY = ("faiss", "langchain", "langchain_core", "langgraph", "numpy", "torch", "wordllama")


def test_importing_the_package_loads_nothing_heavy() -> None:
    """A program that imports the package pays only for what it uses."""
    code = f"import sys, langchain_agentmem; print([n for n in {HEAVY} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", sorted(set(langchain_agentmem.__all__) - {"__version__"}))
def test_public_name_resolves_and_is_documented(name: str) -> None:
    """Every public name can be imported and explains itself."""
    assert inspect.getdoc(getattr(langchain_agentmem, name))


def test_public_names_are_sorted_and_typed() -> None:
    """The names of `__all__`, the lazy table and `dir()` are the same."""
    names = set(langchain_agentmem.__all__)
    assert names == {*langchain_agentmem._HOMES, "__version__"}
    assert dir(langchain_agentmem) == sorted(names)


def test_unknown_name_is_an_attribute_error() -> None:
    """A typing mistake gives Python's usual error."""
    with pytest.raises(AttributeError, match="has no attribute 'Memmory'"):
        _ = langchain_agentmem.Memmory


def _default(value: object) -> str:
    """Return a default the same way on every run: no addresses."""
    return getattr(value, "__name__", None) or repr(value)


def _signature(name: str) -> str:
    """Return a public name with its parameters and defaults on one line."""
    found = getattr(langchain_agentmem, name)
    if not callable(found) or name == "MemoryState":
        return name
    if isinstance(found, type) and issubclass(found, Exception):
        return f"{name}({found.__bases__[-1].__name__})"
    shown: list[str] = []
    for each in inspect.signature(found).parameters.values():
        if each.kind is each.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        stars = "**" if each.kind is each.VAR_KEYWORD else ""
        given = "" if each.default is each.empty else f"={_default(each.default)}"
        shown.append(f"{stars}{each.name}{given}")
    return f"{name}({', '.join(shown)})"


def test_public_api_is_as_recorded() -> None:
    """A changed name, parameter or default is a decision: UPDATE_API=1 records it anew."""
    api = "".join(f"{_signature(name)}\n" for name in sorted(langchain_agentmem.__all__))
    if os.environ.get("UPDATE_API"):
        RECORDED.write_text(api)
    assert api == RECORDED.read_text()
