"""Files of older versions are taken over when they are opened."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from langchain_agentmem.errors import SchemaVersionError
from langchain_agentmem.stores import _migrations
from langchain_agentmem.stores._schema import SCHEMA_VERSION
from tests.unit_tests.stores.conftest import Open


def _version_1(open_store: Open, path: Path) -> bytes:
    """Make the file that version 1 made of a few items, and return its bytes."""
    with open_store(path) as store:
        for n in range(5):
            store.put(("a", "ü"), f"ключ{n}", {"text": f"abc {n}", "n": 2**70})
        before = store.search(())
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE items DROP COLUMN checksum")
        connection.execute("ALTER TABLE removed DROP COLUMN places")
        connection.execute("PRAGMA user_version = 1")
        connection.execute("PRAGMA journal_mode = DELETE")
    assert len(before) == 5
    return path.read_bytes()


def _columns(path: Path) -> tuple[int, list[str]]:
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        tables = ("items", "removed")
        infos = (connection.execute(f"PRAGMA table_info({table})") for table in tables)
        return version, [row[1] for info in infos for row in info]


def test_file_of_version_1_is_taken_over(open_store: Open, tmp_path: Path) -> None:
    """Everything is there, is sound, is found, and can be written on."""
    path = tmp_path / "old.db"
    _version_1(open_store, path)
    store = open_store(path)
    assert [item.value["n"] for item in store.search(())] == [2**70] * 5
    assert store.check() == []
    assert len(store.search(("a",), query="abc")) == 5
    store.put(("a", "ü"), "ключ0", {"text": "new"})
    assert store.search(("a",), query="new")[0].key == "ключ0"
    store.close()
    fresh = tmp_path / "fresh.db"
    open_store(fresh).setup()
    assert _columns(path) == _columns(fresh)


def test_interrupted_migration_changes_nothing(
    open_store: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that fails leaves the file at its version, and the next opening does it all."""
    path = tmp_path / "old.db"
    _version_1(open_store, path)

    def fail(connection: sqlite3.Connection) -> None:
        _migrations._add_checksums(connection)
        msg = "interrupted"
        raise KeyboardInterrupt(msg)

    with monkeypatch.context() as patch:
        patch.setattr(_migrations, "MIGRATIONS", {1: fail})
        with pytest.raises(KeyboardInterrupt):
            open_store(path).setup()
    version, columns = _columns(path)
    assert (version, "checksum" in columns) == (1, False)
    assert len(open_store(path).search(())) == 5
    assert _columns(path)[0] == SCHEMA_VERSION


def test_two_openers_migrate_once(open_store: Open, tmp_path: Path) -> None:
    """Whoever comes second finds the work done."""
    path = tmp_path / "old.db"
    _version_1(open_store, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as second:
        assert second.execute("PRAGMA user_version").fetchone() == (1,)
        open_store(path).setup()
        second.execute("BEGIN IMMEDIATE")
        _migrations.migrate(second, SCHEMA_VERSION)
    assert open_store(path).check() == []


def test_old_file_without_permission_is_refused_untouched(
    open_store: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be written cannot be taken over; the error says what to do."""
    path = tmp_path / "old.db"
    before = _version_1(open_store, path)
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
    with pytest.raises(SchemaVersionError, match="open it once where it can be written"):
        open_store(path).setup()
    assert path.read_bytes() == before
