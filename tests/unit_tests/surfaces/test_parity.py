"""Every call has an async twin of ours: no base class's thread around the sync one."""

import importlib
import inspect
from collections.abc import Iterator

import pytest

OURS = "langchain_agentmem"
MODULES = (
    "",
    ".consolidation",
    ".memories",
    ".prompt_optimizer",
    ".stores",
    ".surfaces",
    ".surfaces.chains",
    ".surfaces.langmem",
)


def _classes() -> Iterator[type]:
    for name in MODULES:
        if name.endswith("chains"):
            pytest.importorskip("langchain_classic")
        module = importlib.import_module(OURS + name)
        for each in getattr(module, "__all__", dir(module)):
            found = getattr(module, each)
            if inspect.isclass(found) and found.__module__.startswith(OURS):
                yield found


def _definer(cls: type, name: str) -> str:
    """Return the module that defines a method of a class; empty if there is none."""
    return next((base.__module__ for base in cls.__mro__ if name in vars(base)), "")


def test_every_call_that_can_be_awaited_has_a_twin_of_ours() -> None:
    """Where a class has `name` from us and `aname` from anywhere, both are from us."""
    compared, missing = 0, []
    for cls in set(_classes()):
        for name in dir(cls):
            twin = f"a{name}"
            if name.startswith("_") or not callable(getattr(cls, name, None)):
                continue
            if _definer(cls, name).startswith(OURS) and _definer(cls, twin):
                compared += 1
                if not _definer(cls, twin).startswith(OURS):
                    missing.append(f"{cls.__name__}.{twin}")
    assert compared > 100
    assert missing == []
