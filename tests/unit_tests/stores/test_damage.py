"""A row that something else has damaged, and paths that no file can have."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from langchain_agentmem.errors import ConfigurationError, CorruptStoreError, StorageError
from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.stores.copying import copy_store
from tests.unit_tests.stores.conftest import Client, Open

DAMAGE = {
    "utf8": b'{"text": "abc \xff\xfe geheim"}',
    "json": b'{"text": "abc geheim',
    "number": b"5",
    "long": b'{"text": 12345678901234567890 geheim',
}


def _damaged(store: FaissSqliteStore, how: str) -> None:
    for n in range(6):
        store.put(("a",), str(n), {"text": "abc", "n": n})
    store.conn.execute("UPDATE items SET value = CAST(? AS TEXT) WHERE key = '3'", (DAMAGE[how],))


@pytest.mark.parametrize("how", DAMAGE)
def test_row_that_cannot_be_read_hides_no_other(
    client: Client, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Lists, filters and searches return the other rows, and the log names place, not content."""
    _damaged(client.store, how)
    assert client.keys(("a",)) == ["5", "4", "2", "1", "0"]
    assert client.keys(("a",), filter={"n": {"$gte": 0}}) == ["5", "4", "2", "1", "0"]
    assert client.get(("a",), "3") is None
    for mode in ("dense", "lexical", "hybrid"):
        assert sorted(client.keys(("a",), query="abc", mode=mode)) == ["0", "1", "2", "4", "5"]
        found = client.keys(("a",), query="abc", mode=mode, filter={"n": {"$lt": 9}})
        assert sorted(found) == ["0", "1", "2", "4", "5"]
    assert "'3' in ('a',)" in caplog.text
    assert "geheim" not in caplog.text


def test_page_is_filled_past_a_row_that_cannot_be_read(client: Client) -> None:
    """A page that leaves a row out is not shorter, which would read as the end of the scope."""
    _damaged(client.store, "utf8")
    assert client.keys(("a",), limit=3) == ["5", "4", "2"]
    assert client.keys(("a",), query="abc", limit=3) == ["5", "4", "2"]


def test_reindex_counts_rows_that_cannot_be_read(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """The rest is indexed anew; how many were left out is logged."""
    _damaged(client.store, "utf8")
    with caplog.at_level(logging.WARNING):
        assert client.reindex() == 5
    assert "1 items whose value cannot be read" in caplog.text
    assert len(client.keys(("a",), query="abc")) == 5


def test_row_that_cannot_be_read_can_be_replaced_and_deleted(client: Client) -> None:
    """A put heals the row, a delete removes it."""
    _damaged(client.store, "json")
    client.put(("a",), "3", {"text": "abc"})
    assert client.keys(("a",), limit=1) == ["3"]
    _damaged(client.store, "json")
    client.delete(("a",), "3")
    assert client.store.conn.execute("SELECT count(*) FROM items").fetchone() == (5,)


def test_copy_leaves_out_what_cannot_be_read(open_store: Open, tmp_path: Path) -> None:
    """A copy of a damaged file holds everything else."""
    source, target = open_store(), open_store(tmp_path / "copy.db")
    _damaged(source, "utf8")
    copy_store(source, target)
    assert len(target.search(("a",))) == 5


def test_big_integers_are_read_exactly(open_store: Open) -> None:
    """What JSON holds exactly comes back so, whatever reads it."""
    store = open_store()
    store.put(("a",), "1", {"n": 2**70, "text": json.dumps({"ü": 1})})
    assert store.search(("a",))[0].value["n"] == 2**70


@pytest.mark.parametrize(
    "path", [None, 5, "", " ", Path(), b"x.db", "bad\udc80.db", "nul\0.db", "n" * 300, "ü" * 150]
)
def test_path_that_no_file_can_have_is_refused(
    path: Any,  # noqa: ANN401 - what a user may give
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message says what to give, and nothing is created."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="give"):
        FaissSqliteStore(path)
    assert list(tmp_path.iterdir()) == []


def test_path_that_is_too_long_as_a_whole_is_refused(tmp_path: Path) -> None:
    """A path the system cannot look up raises this package's error."""
    with pytest.raises(StorageError, match="choose another path"):
        FaissSqliteStore(tmp_path.joinpath(*["d" * 200] * 30) / "m.db", index=None).setup()


@pytest.mark.parametrize("value", ["{", "{}", "5"])
def test_unreadable_index_configuration_says_so(open_store: Open, value: str) -> None:
    """A file whose note of its index is damaged raises CorruptStoreError."""
    store = open_store()
    store.setup()
    store.conn.execute("UPDATE meta SET value = ? WHERE key = 'fingerprint'", (value,))
    store.close()
    with pytest.raises(CorruptStoreError, match="agentmem doctor"):
        open_store().setup()
