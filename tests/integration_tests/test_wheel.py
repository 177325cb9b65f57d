"""The built wheel: what is inside, and that it works where nothing else of the project is."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONSUMER = """
from datetime import datetime

from langchain_core.runnables import RunnableConfig

from langchain_agentmem import (
    FaissSqliteStore,
    MemoryItem,
    MemoryOperation,
    NamespaceTemplate,
    RAGMemory,
    Recall,
)

store = FaissSqliteStore(":memory:")
memory = RAGMemory(store=store, namespace=("memories", "{user_id}"), limit=5)
config: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "monday"}}


def use() -> str:
    operations: list[MemoryOperation] = memory.remember("My dog is called Rex.", config=config)
    recall: Recall = memory.recall("What is my dog called?", config=config)
    first = recall.items[0]
    item: MemoryItem = first.item
    said: datetime | None = first.observed_at
    namespace: tuple[str, ...] = NamespaceTemplate(("memories", "{user_id}"))(config)
    assert operations and item and said and namespace
    return first.text


print(use())
store.close()
"""


def _call(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command and return what it prints; its complaints are the failure's message."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built with the pinned build backend."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    _call(*pip, "--wheel-dir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment with the wheel and the pinned base dependencies only."""
    folder = tmp_path_factory.mktemp("clean")
    _call(sys.executable, "-m", "venv", "env", cwd=folder)
    interpreter = folder / "env/bin/python"
    pip = (interpreter, "-m", "pip", "install", "--quiet")
    _call(*pip, "--require-hashes", "-r", ROOT / "requirements/demo.lock", cwd=folder)
    _call(*pip, "--no-deps", wheel, cwd=folder)
    return interpreter


def test_wheel_holds_the_package_alone(wheel: Path) -> None:
    """No test, data set, benchmark or development module is published; the types are."""
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "langchain_agentmem/py.typed" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"langchain_agentmem"}
    assert not [name for name in names if "test_" in name or name.endswith((".json", ".jsonl"))]
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_wheel_works_alone(python: Path, tmp_path: Path) -> None:
    """A small program runs with the wheel and its base dependencies, without the checkout."""
    (tmp_path / "consumer.py").write_text(CONSUMER)
    assert _call(python, "consumer.py", cwd=tmp_path).strip() == "My dog is called Rex."


@pytest.mark.slow
def test_command_is_installed(python: Path, tmp_path: Path) -> None:
    """The wheel brings the command `agentmem`."""
    assert "usage" in _call(python.with_name("agentmem"), "--help", cwd=tmp_path).lower()


@pytest.mark.slow
def test_consumer_type_checks(python: Path, tmp_path: Path) -> None:
    """A user's program passes a strict type checker against the installed wheel."""
    (tmp_path / "consumer.py").write_text(CONSUMER)
    mypy = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache")
    found = _call(*mypy, "--python-executable", python, "consumer.py", cwd=tmp_path)
    assert found.startswith("Success")
