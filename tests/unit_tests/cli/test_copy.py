"""`agentmem copy`: from one store to another, for people and machines."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

from langchain_agentmem.cli import main
from langchain_agentmem.errors import StorageError
from langchain_agentmem.stores import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit_tests.cli.conftest import Agentmem


def test_copy_moves_everything_of_all_users(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report counts items, and the copy answers queries."""
    old, new = f"sqlite:///{tmp_path}/old.sqlite", f"sqlite:///{tmp_path}/new.sqlite"
    with open_store(old) as store:
        store.put(("users", "ada"), "1", {"text": "plays the cello"})
        store.put(("users", "bob"), "2", {"text": "rides a bicycle"})
    assert main(["copy", "--from", old, "--to", new, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["items"], report["written"], report["embedded"]) == (2, 2, 0)
    assert main(["copy", "--from", old, "--to", new]) == 0
    assert "2 items, 0 of them new or changed" in capsys.readouterr().out
    with open_store(new) as store:
        assert store.search(("users",), query="cello")[0].key == "1"


def test_copy_from_nowhere_makes_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped source is an error, not an empty store."""
    target = f"sqlite:///{tmp_path}/new.sqlite"
    assert main(["copy", "--from", f"sqlite:///{tmp_path}/typo.sqlite", "--to", target]) == 1
    assert "no store file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_copy_names_the_damaged_source_and_not_the_default_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is told of damage restores the file that is named."""

    def fail(*_: object, **__: object) -> None:
        msg = "malformed"
        raise sqlite3.DatabaseError(msg)

    monkeypatch.setattr("langchain_agentmem.stores.copying.copy_urls", fail)
    assert main(["copy", "--from", "sqlite:///old.sqlite", "--to", "sqlite:///new.sqlite"]) == 1
    assert "sqlite:///old.sqlite is damaged" in " ".join(capsys.readouterr().err.split())


def test_copy_explains_what_a_url_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A bare path is not a URL."""
    assert main(["copy", "--from", "memory.sqlite", "--to", "other.sqlite"]) == 1
    assert "sqlite:///" in capsys.readouterr().err


def test_backup_is_a_memory_file(filled: Agentmem, tmp_path: Path) -> None:
    """A backup is searched like the file, and is never written over another one."""
    target = tmp_path / "backup.sqlite"
    made = filled("backup", target, "--json").json
    assert (made["path"], made["bytes"]) == (str(target), target.stat().st_size)
    assert "Rex" in filled("search", "dog", "--user", "ann", "--db", target).out
    again = filled("backup", target)
    assert (again.status, "exists already" in again.err) == (1, True)
    assert "items" in filled("backup", tmp_path / "second.sqlite").out


def test_copy_to_a_server_that_is_not_there_says_so_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No half minute of waiting, no traceback, and no password in the message."""
    pytest.importorskip("langgraph.store.postgres")
    old = f"sqlite:///{tmp_path}/old.sqlite"
    with open_store(old) as store:
        store.put(("users", "ada"), "1", {"text": "plays the cello"})
    target = "postgresql://ann:secret@127.0.0.1:1/memory"
    assert main(["copy", "--from", old, "--to", target]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "The PostgreSQL server cannot be used" in told
    assert "check host, port" in told
    assert "secret" not in told


def test_a_server_that_comes_up_later_can_still_be_used() -> None:
    """The pool is not spent by a first try that failed."""
    pytest.importorskip("langgraph.store.postgres")
    store = open_store("postgresql://127.0.0.1:1/memory", index=None)
    for _ in range(2):
        with pytest.raises(StorageError, match="server cannot be used"):
            store.get(("users",), "1")
    store.close()
