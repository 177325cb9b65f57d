"""Backups, statistics and checks of a file, sync and async."""

import threading
from pathlib import Path
from typing import Any

import pytest

from langchain_agentmem.errors import ConfigurationError, StorageError
from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.stores._schema import SCHEMA_VERSION
from tests.unit_tests.floor import Clock
from tests.unit_tests.stores.conftest import Client, Open

SECRET = "xylophonquark"  # noqa: S105 - a word to look for


def _fill(client: Client, count: int = 5) -> None:
    for n in range(count):
        client.put(("a", str(n % 2)), str(n), {"text": f"abc number{n}", "n": n})


def test_backup_is_a_store_of_its_own(client: Client, open_store: Open, tmp_path: Path) -> None:
    """A backup holds items, times, vectors and words, and later changes do not reach it."""
    _fill(client)
    before = client.search(("a",))
    size = client.backup(tmp_path / "copy.db")
    assert size == (tmp_path / "copy.db").stat().st_size
    client.delete_namespace(("a",))
    copy = open_store(tmp_path / "copy.db")
    assert copy.search(("a",)) == before
    assert copy.check() == []
    assert [hit.key for hit in copy.search(("a",), query="number3", mode="lexical")] == ["3"]
    assert len(copy.search(("a",), query="abc", mode="dense")) == 5
    assert client.search(("a",)) == []


def test_backup_holds_nothing_that_was_erased(client: Client, tmp_path: Path) -> None:
    """Text that was erased before lies in no free page of a backup."""
    client.put(("a",), "k", {"text": SECRET})
    client.delete(("a",), "k")
    client.backup(tmp_path / "copy.db")
    assert SECRET.encode() not in (tmp_path / "copy.db").read_bytes()


def test_backup_overwrites_nothing(client: Client, tmp_path: Path) -> None:
    """An existing file, a missing directory and no path are refused and leave no half copy."""
    target = tmp_path / "copy.db"
    target.write_text("mine")
    with pytest.raises(StorageError, match="exists already"):
        client.backup(target)
    assert target.read_text() == "mine"
    with pytest.raises(StorageError, match=r"make the directory .*none first"):
        client.backup(tmp_path / "none" / "copy.db")
    with pytest.raises(ConfigurationError, match="path"):
        client.backup("")
    assert {file.name for file in tmp_path.iterdir()} >= {"copy.db"}
    assert not list(tmp_path.glob("*.partial"))


def test_backup_of_a_store_in_memory_and_of_a_file_without_permission(
    open_store: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can be read can be copied."""
    open_store(":memory:").backup(tmp_path / "empty.db")
    assert open_store(tmp_path / "empty.db").search(()) == []
    store = open_store()
    store.put(("a",), "k", {"text": "abc"})
    store.close()
    monkeypatch.setattr("os.access", lambda _path, mode: mode != 2)
    again = open_store()
    again.backup(tmp_path / "copy.db")
    monkeypatch.undo()
    assert open_store(tmp_path / "copy.db").get(("a",), "k") is not None


def test_backup_while_others_write_is_one_moment(store: FaissSqliteStore, tmp_path: Path) -> None:
    """Each batch is whole in a copy that is made between writes, and writers are not held up."""
    from langgraph.store.base import PutOp

    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            store.batch([PutOp(("a",), key, {"n": number}) for key in ("x", "y", "z")])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            path = tmp_path / f"{number}.db"
            store.backup(path)
            with FaissSqliteStore(path, index=None) as copy:
                assert len({item.value["n"] for item in copy.search(("a",))}) <= 1
    finally:
        done.set()
        writer.join()


def test_statistics_count_what_there_is(client: Client, clock: Clock) -> None:
    """Items, expired ones, namespaces, texts, vectors and sizes are those of the file."""
    _fill(client)
    client.put(("a", "1"), "later", {"text": "abc"}, ttl=1)
    client.put(("b",), "no text", {"n": 1})
    client.search((), query="abc")
    clock.move(61)
    found = client.statistics()
    assert (found.items, found.expired, found.namespaces) == (7, 1, 3)
    assert (found.texts, found.vectors) == (6, 6)
    assert min(found.file_bytes, found.log_bytes, found.memory_bytes) > 0
    assert (found.schema_version, found.index["fields"]) == (SCHEMA_VERSION, ["text"])


def test_statistics_of_a_store_without_index(open_store: Open) -> None:
    """Nothing indexed and nothing on disk are told as nothing."""
    found = open_store(":memory:", index=None).statistics()
    assert (found.items, found.file_bytes, found.memory_bytes, found.index) == (0, 0, 0, None)


DAMAGES = {
    "words lost": "INSERT INTO words(words) VALUES ('delete-all')",
    "one word too many": "INSERT INTO words(rowid, terms) VALUES (1, 'ghost')",
    "vector lost": "UPDATE units SET vector = NULL WHERE id = (SELECT min(id) FROM units)",
    "vector cut": "UPDATE units SET vector = x'00' WHERE id = (SELECT min(id) FROM units)",
    "text of another": (
        "UPDATE items SET value = replace(value, 'number2', 'number8'), checksum = NULL"
    ),
    "terms changed": "UPDATE units SET terms = replace(terms, 'number2', 'number8')",
    "units lost": "DELETE FROM units",
    "units of nobody": "INSERT INTO units VALUES (9 << 40, x'00', NULL, '')",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_check_finds_what_is_stale_and_reindex_mends_it(client: Client, damage: str) -> None:
    """Vectors and words that are not those of the values are found, named and rebuilt."""
    _fill(client)
    assert client.check() == []
    client.store.conn.execute(DAMAGES[damage])
    problems = client.check()
    assert problems
    assert all("reindex()" in problem for problem in problems)
    assert not any("number" in problem for problem in problems)
    client.reindex()
    assert client.check() == []
    assert len(client.search(("a",), query="abc", mode="lexical")) == 5


@pytest.mark.parametrize("text", ["Straße ÇA 上海 ١٢٣ 😀 x_y", "a" * 40_000, "İ ǅ ﬁ", "\x00 \x1f"])
def test_check_takes_every_script_for_sound(client: Client, text: str) -> None:
    """Words of any script and length are compared as the file keeps them."""
    client.put(("a",), "k", {"text": text})
    assert client.check() == []


def test_check_without_an_index(open_store: Open) -> None:
    """A file that was never indexed has nothing to be stale."""
    store = open_store(index=None)
    value: dict[str, Any] = {"text": "abc"}
    store.put(("a",), "k", value)
    assert store.check() == []
