"""Where the file is: after a change of directory, or when somebody took it away."""

import os
import sqlite3
from pathlib import Path

import pytest

from langchain_agentmem.errors import StorageError
from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.stores._schema import translate


def test_a_change_of_directory_makes_no_second_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that were opened later went to another file, which they made."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    with FaissSqliteStore("memory.sqlite", index=None) as store:
        store.put(("a",), "k", {"n": 1})
        monkeypatch.chdir(there)
        assert store.get(("a",), "k") is not None
        store.put(("a",), "l", {"n": 2})
        store.backup("copy.sqlite")
        assert store.check() == []
    assert [path.name for path in there.iterdir()] == ["copy.sqlite"]
    with FaissSqliteStore(here / "memory.sqlite", index=None) as store:
        assert len(store.search(("a",))) == 2


@pytest.mark.skipif(os.name == "nt", reason="Windows does not remove an open file")
@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_write_to_a_removed_file_is_refused(tmp_path: Path, *, is_replaced: bool) -> None:
    """It was acknowledged, and gone when the process ended."""
    path, other = tmp_path / "memory.sqlite", tmp_path / "other.sqlite"
    with FaissSqliteStore(other, index=None) as store:
        store.put(("a",), "other", {"n": 1})
    with FaissSqliteStore(path, index=None) as store:
        store.put(("a",), "k", {"n": 1})
        if is_replaced:
            other.replace(path)
        else:
            path.unlink()
        with pytest.raises(StorageError, match="was removed or replaced"):
            store.put(("a",), "lost", {"n": 2})
        with pytest.raises(StorageError, match="was removed or replaced"):
            store.delete(("a",), "k")


def test_a_full_disk_is_named_whichever_file_cannot_grow() -> None:
    """SQLite calls it an I/O error where its shared memory does not fit."""
    error = sqlite3.OperationalError("disk I/O error")
    assert "disk is full" not in str(translate(error, "m.sqlite", 1))
    error.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"
    assert "disk is full" in str(translate(error, "m.sqlite", 1))
