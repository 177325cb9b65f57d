"""Items that searches keep in memory: never older than the snapshot, never another's to change."""

import copy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_agentmem.items import StoredMemory
from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.stores import _records as records
from langchain_agentmem.stores._ops import ScoredItem
from langchain_agentmem.stores._rows import ItemRow, ItemRows
from tests.unit_tests.stores.conftest import Client, Letters, Open

HOME = ("a",)


def _kept(store: FaissSqliteStore) -> ItemRows:
    engine = store._engine
    assert engine is not None
    assert engine.index is not None
    return engine.index.rows


def test_changed_item_is_read_anew(client: Client) -> None:
    """A search after a put returns what the put wrote, the value and its time."""
    client.put(HOME, "k", {"text": "abc", "n": 1})
    before = client.search(HOME, query="abc")[0]
    client.put(HOME, "k", {"text": "abc", "n": 2})
    after = client.search(HOME, query="abc")[0]
    assert (before.value["n"], after.value["n"]) == (1, 2)
    assert StoredMemory.from_store(after).content == {"text": "abc", "n": 2}


def test_change_of_another_process_is_read_anew(tmp_path: Path, embedder: Letters) -> None:
    """Two stores on one file see each other's puts and deletes in every search."""
    index: Any = {"dims": 36, "embed": embedder, "fields": ["text"]}
    one, two = (FaissSqliteStore(tmp_path / "s.sqlite", index=index) for _ in range(2))
    with one, two:
        for n in range(3):
            one.put(HOME, "k", {"text": "abc", "n": n})
            assert [hit.value["n"] for hit in two.search(HOME, query="abc")] == [n]
        one.delete(HOME, "k")
        assert two.search(HOME, query="abc") == []


def test_times_that_a_copy_sets_are_read_anew(open_store: Open, embedder: Letters) -> None:
    """A search between the two steps of a copy does not keep the time of the first."""
    store = open_store(index={"dims": 36, "embed": embedder, "fields": ["text"]})
    store.put(HOME, "k", {"text": "abc"})
    put = store.search(HOME, query="abc")[0]
    long_ago = put.created_at - timedelta(days=9)
    (record,) = next(iter(records.read(store)))
    records.stamp(store, [replace(record, created_at=long_ago)])
    found = store.search(HOME, query="abc")[0]
    assert (found.created_at, found.updated_at) == (long_ago, put.updated_at)


def test_changing_a_result_changes_no_other(client: Client) -> None:
    """Every result has a value of its own, though the item is read from the file once."""
    client.put(HOME, "k", {"text": "abc", "tags": ["x"]})
    first = client.search(HOME, query="abc")[0]
    first.value["tags"].append("mine")
    first.value["text"] = "changed"
    again = client.search(HOME, query="abc")[0]
    assert again.value == {"text": "abc", "tags": ["x"]}


def test_changing_a_memory_that_was_recalled_changes_no_other(client: Client) -> None:
    """What a graph does with a memory's JSON stays in the graph."""
    client.put(
        HOME, "k", {"content": {"text": "abc"}, "text": "abc", "metadata": {"own": {"n": 1}}}
    )
    for _ in range(2):
        memory = StoredMemory.from_store(client.search(HOME, query="abc")[0])
        told = memory.to_dict()
        assert told["value"]["metadata"]["own"] == {"n": 1}
        assert told["value"]["content"] == {"text": "abc"}
        told["value"]["metadata"]["own"]["n"] = 2
        told["value"]["content"]["text"] = "changed"


def test_results_are_items_as_before(client: Client) -> None:
    """A result is compared, copied and shown as LangGraph's own are."""
    client.put(HOME, "k", {"text": "abc"})
    hit = client.search(HOME, query="abc")[0]
    assert hit == client.search(HOME, query="abc")[0]
    assert copy.deepcopy(hit).value == {"text": "abc"}
    assert hit.dict()["value"] == {"text": "abc"}
    assert "abc" in repr(hit)


def test_result_in_a_checkpoint_comes_back_as_a_result(client: Client) -> None:
    """A node may keep what it found in its state: it is the same after an interrupt."""
    client.put(HOME, "k", {"text": "abc"})
    found = [*client.search(HOME, query="abc"), *client.search(HOME)]
    serde = JsonPlusSerializer(allowed_msgpack_modules=[ScoredItem])
    restored = serde.loads_typed(serde.dumps_typed(found))
    assert restored == found
    assert [(type(each), each.score) for each in restored] == [
        (ScoredItem, each.score) for each in found
    ]
    assert "abc" in repr(restored[0])


def test_removed_item_is_not_kept(open_store: Open, embedder: Letters) -> None:
    """The text of a deleted item leaves memory with the next search."""
    store = open_store(index={"dims": 36, "embed": embedder, "fields": ["text"]})
    for key in ("k", "l"):
        store.put(HOME, key, {"text": "abc"})
    found = store.search(HOME, query="abc")
    assert len(_kept(store)) == len(found) == 2
    store.delete(HOME, "k")
    store.search(HOME, query="abc")
    assert len(_kept(store)) == 1


@pytest.mark.parametrize("budget", [0, 20_000, 1_000_000])
def test_rows_stay_within_their_budget(budget: int) -> None:
    """However many are read, no more is held than allowed."""
    rows = ItemRows(budget)
    for n in range(100):
        rows.keep(n, ItemRow((n, "a", f"k{n}", b'{"text": "abc"}', 0, 0, None, None)))
        assert rows.nbytes <= budget
    assert (len(rows) > 0) == (budget > 0)
