"""The checks that guard the repository: shape script, linter rules, locks."""

import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("demo", "dev", "integration")


def _shape(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the shape script over a folder."""
    command = [sys.executable, str(ROOT / "scripts/check_shape.py"), "langchain_agentmem"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _module(folder: Path, text: str) -> None:
    """Write a module into a package that the script takes for ours."""
    home = folder / "langchain_agentmem"
    home.mkdir()
    (home / "part.py").write_text(f'"""A part."""\n\n{text}')


def _function(lines: int) -> str:
    """Return a documented function of so many lines, blank ones not counted."""
    body = "    x = 1\n\n" * (lines - 2)
    return f'def long() -> None:\n    """Be long."""\n{body}'


def test_shape_fails_on_a_function_of_81_lines(tmp_path: Path) -> None:
    """One line too many fails the check and is named with its place."""
    _module(tmp_path, _function(81))
    done = _shape(tmp_path)
    assert done.returncode == 1
    assert "part.py:3: long has 81 lines, more than 80" in done.stdout


def test_shape_passes_a_function_of_80_lines(tmp_path: Path) -> None:
    """The longest function that is allowed, blank lines not counted."""
    _module(tmp_path, _function(80))
    assert _shape(tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1\n" * 500, "501 lines, more than 500"),
        ("def f() -> None:\n    return\n", "f has no docstring"),
        (
            "class C:\n    '''C.'''\n    def f(self) -> None:\n        return\n",
            "f has no docstring",
        ),
        ("def f():\n    '''Do.'''\n", "f does not say what it returns"),
    ],
    ids=["long-file", "function", "method", "annotation"],
)
def test_shape_fails_on(tmp_path: Path, text: str, complaint: str) -> None:
    """Long files, public names without docstring, functions without return annotation fail."""
    _module(tmp_path, text)
    done = _shape(tmp_path)
    assert done.returncode == 1
    assert complaint in done.stdout


@pytest.mark.parametrize(
    "line",
    [
        "from typing import TypedDict",
        "from . import items",
        "import pickle",
        "from langgraph._internal import _typing",
        "print('hello')",
    ],
)
def test_lint_refuses(line: str) -> None:
    """What the conventions forbid fails the linter with the project's own settings."""
    pytest.importorskip("ruff", reason="The lowest dependencies are tested without the linter.")
    settings = ("--config", str(ROOT / "pyproject.toml"), "--stdin-filename", "package/x.py")
    command = [sys.executable, "-m", "ruff", "check", *settings, "-"]
    text = f'"""A part."""\n\n{line}\n'
    done = subprocess.run(
        command, input=text, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert re.search(r"TID25[12]|T201|S403", done.stdout), done.stdout


def _pins(name: str) -> dict[str, set[str]]:
    """Return the versions of each package in a lock."""
    text = (ROOT / f"requirements/{name}.lock").read_text()
    pins: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([a-z0-9-]+)==([^ ]+)", text, re.MULTILINE):
        pins.setdefault(package, set()).add(version)
    return pins


def test_locks_agree() -> None:
    """Each lock is a part of the next, so that one environment can grow through them."""
    smaller = [_pins(name) for name in LOCKS]
    for part, whole in pairwise(smaller):
        assert part
        assert {name: whole.get(name) for name in part} == part


def test_locks_hold_every_dependency() -> None:
    """A dependency that was added without renewing the locks is noticed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[^a-z0-9-]", each)[0] for each in project["dependencies"]}
    for name in (*LOCKS, "lowest"):
        assert wanted <= set(_pins(name)), name


@pytest.mark.parametrize("name", [*LOCKS, "lowest"])
def test_locks_name_no_host_and_hash_every_package(name: str) -> None:
    """A lock works with whatever index the developer has, and only with the known files."""
    text = (ROOT / f"requirements/{name}.lock").read_text()
    assert "://" not in text
    assert "--index" not in text
    blocks = re.split(r"^(?=[a-z0-9-]+==)", text, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in block for block in blocks)


def test_no_dependency_pulls_torch() -> None:
    """Nothing of the base or of any extra brings torch."""
    assert "torch" not in _pins("integration")
