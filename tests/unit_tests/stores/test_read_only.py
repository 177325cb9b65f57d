"""Files and directories without permission to write."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig

from langchain_agentmem.errors import StorageError
from langchain_agentmem.memories import RAGMemory
from langchain_agentmem.stores import FaissSqliteStore
from tests.unit_tests.stores.conftest import Open


def _lock(path: Path, *, on: bool) -> bool:
    """Forbid writing for good: root, whom permissions do not stop, needs a file attribute."""
    if os.geteuid():
        path.chmod((0o555 if path.is_dir() else 0o444) if on else 0o755)
        return True
    chattr = shutil.which("chattr")
    return (
        chattr is not None
        and not subprocess.run(
            [chattr, "+i" if on else "-i", str(path)], check=False, capture_output=True
        ).returncode
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A directory that a test may lock."""
    path = tmp_path / "locked"
    path.mkdir()
    yield path
    for place in (path, *path.iterdir()):
        _lock(place, on=False)


def _forbid(*paths: Path) -> None:
    if not all(_lock(path, on=True) for path in paths):
        pytest.skip("Root may write everywhere here: the file system has no immutable attribute.")


def _filled(store: FaissSqliteStore) -> None:
    store.put(("a",), "1", {"text": "abc"}, ttl=5)
    store.put(("a",), "2", {"text": "xyz"})


def _read_and_fail_to_write(store: FaissSqliteStore) -> list[str]:
    """Read in every way, and return the keys that are left after writes that must fail."""
    for _ in range(2):
        assert store.search(("a",), query="abc")[0].key == "1"
        assert store.lexical_search(("a",), "xyz")[0].key == "2"
        assert store.list_namespaces() == [("a",)]
        with pytest.raises(StorageError, match=r"read-only.*permissions"):
            store.put(("a",), "3", {})
        with pytest.raises(StorageError, match="read-only"):
            store.delete(("a",), "1")
    return [hit.key for hit in store.search(("a",))]


def test_read_only_file(open_store: Open, folder: Path) -> None:
    """A file that cannot be written is read and searched; a write says why it fails."""
    path = folder / "store.db"
    writer = open_store(path)
    _filled(writer)
    writer.close()
    _forbid(path)
    assert _read_and_fail_to_write(open_store(path)) == ["2", "1"]


def test_read_only_directory(open_store: Open, folder: Path) -> None:
    """A closed store in a directory that cannot be written, so without a log, is read."""
    path = folder / "store.db"
    writer = open_store(path)
    _filled(writer)
    writer.close()
    _forbid(folder)
    assert _read_and_fail_to_write(open_store(path)) == ["2", "1"]


def test_read_only_directory_with_a_log(open_store: Open, folder: Path) -> None:
    """Changes that lie in the log of a crashed writer are not silently left out."""
    writer = open_store()
    _filled(writer)
    original = Path(writer.conn.execute("PRAGMA database_list").fetchone()[2])
    for end in ("", "-wal"):
        shutil.copy(f"{original}{end}", f"{folder / 'store.db'}{end}")
    _forbid(folder)
    reader = open_store(folder / "store.db")
    for _ in range(2):
        with pytest.raises(StorageError, match=r"store\.db-wal.*Copy both files"):
            reader.get(("a",), "1")
    _lock(folder, on=False)
    assert [item.key for item in reader.search(("a",))] == ["2", "1"]


def test_read_only_directory_while_a_writer_works(open_store: Open, folder: Path) -> None:
    """A reader without permission sees what a writer with permission commits."""
    path = folder / "store.db"
    writer = open_store(path)
    _filled(writer)
    _forbid(folder)
    reader = open_store(path)
    assert _read_and_fail_to_write(reader) == ["2", "1"]
    writer.put(("a",), "3", {"text": "new words"})
    assert reader.lexical_search(("a",), "new")[0].key == "3"


def test_new_file_in_a_read_only_directory(open_store: Open, folder: Path) -> None:
    """A store cannot be created where nothing can be written, and says so."""
    _forbid(folder)
    with pytest.raises(StorageError, match="directory exists and can be written"):
        open_store(folder / "new.db").setup()


def test_read_only_file_of_another_program(open_store: Open, folder: Path) -> None:
    """A file that cannot be written is checked like any other."""
    path = folder / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs(x)")
    other.close()
    _forbid(folder)
    with pytest.raises(StorageError, match="another program"):
        open_store(path).setup()


@pytest.mark.parametrize("locked", ["file", "folder"])
def test_memory_recalls_from_a_read_only_directory(folder: Path, locked: str) -> None:
    """Recall writes nothing, so that it works wherever the store can be read."""
    path, ann = folder / "memory.sqlite", RunnableConfig(configurable={"user_id": "ann"})
    with FaissSqliteStore(path) as writer:
        RAGMemory(store=writer).remember("I live in Bremen.", config=ann)
    _forbid(path if locked == "file" else folder)
    with FaissSqliteStore(path) as reader:
        memory = RAGMemory(store=reader)
        assert "Bremen" in memory.recall("Where do I live?", config=ann).text
        with pytest.raises(StorageError, match="read-only"):
            memory.remember("I moved.", config=ann)
