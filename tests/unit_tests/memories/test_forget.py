"""Forgetting: what may select, and what is left of the text in the file."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import ConfigurationError, StorageError
from langchain_agentmem.memories import EVERYTHING, RAGMemory, WindowMemory
from langchain_agentmem.steps.journal import UNREAD
from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.surfaces import StoreChatMessageHistory
from tests.unit_tests.floor import Calls, everything
from tests.unit_tests.memories.conftest import Make

ANN: RunnableConfig = {"configurable": {"user_id": "ann"}}
SECRET = "Xylophonquark"  # noqa: S105 - a word to look for


def _hits(folder: Path) -> list[str]:
    """Return the files that hold the secret, in any case."""
    files = [file for file in folder.iterdir() if file.is_file()]
    assert len(files) >= 3
    return [each.name for each in files if SECRET.lower().encode() in each.read_bytes().lower()]


@pytest.fixture(params=["sync", "async"])
def calls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Calls]:
    """A memory in a file, called through its sync or its async methods."""
    with FaissSqliteStore(tmp_path / "memory.sqlite", busy_timeout_s=0.2) as store:
        yield Calls(RAGMemory(store=store), is_async=request.param == "async")


def _remembered(calls: Calls) -> str:
    """Remember other things and the secret, and return the secret's key."""
    for n in range(30):
        calls.remember(f"I bought apples on day {n}.", config=ANN)
    (op,) = calls.remember(f"My code word is {SECRET}.", config=ANN)
    calls.remember("I live in Bremen.", config=ANN)
    return str(op.key)


def test_forget_with_vacuum_leaves_no_byte_of_the_text(calls: Calls, tmp_path: Path) -> None:
    """After `forget(vacuum=True)` neither the file nor its log holds the text; others are kept."""
    key = _remembered(calls)
    assert _hits(tmp_path)
    assert [op.key for op in calls.forget(key, config=ANN, vacuum=True)] == [key]
    assert _hits(tmp_path) == []
    assert "Bremen" in calls.recall("Where do I live?", config=ANN).text
    assert SECRET not in calls.recall("What is my code word?", config=ANN).text


def test_forget_empties_the_log(calls: Calls, tmp_path: Path) -> None:
    """A plain `forget` at least leaves no log in which the text could lie."""
    calls.forget(_remembered(calls), config=ANN)
    assert (tmp_path / "memory.sqlite-wal").stat().st_size == 0


def test_vacuum_that_a_reader_holds_up_is_reported(calls: Calls) -> None:
    """Forgetting never claims an empty log while another reader still needs it."""
    key = _remembered(calls)
    store = calls.memory.store
    assert isinstance(store, FaissSqliteStore)
    with store._database.reader() as reader:
        reader.execute("SELECT count(*) FROM items").fetchone()
        with pytest.raises(StorageError, match=r"log still holds.*vacuum again"):
            calls.forget(key, config=ANN, vacuum=True)
    store.vacuum()


def test_vacuum_of_a_store_without_one_erases_nothing() -> None:
    """A promise the store cannot keep is refused before anything is erased."""
    memory = RAGMemory(store=InMemoryStore())
    (op,) = memory.remember("I live in Bremen.", config=ANN)
    with pytest.raises(ConfigurationError, match=r"InMemoryStore has no vacuum\(\)"):
        memory.forget(op.key, config=ANN, vacuum=True)
    with pytest.raises(ConfigurationError, match=r"InMemoryStore has no vacuum\(\)"):
        asyncio.run(memory.aforget(op.key, config=ANN, vacuum=True))
    assert memory.recall("Where do I live?", config=ANN).items


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"metadata": {}},
        {"$and": [{}]},
        {"$or": [{"kind": "x"}, {}]},
        {"$and": [{"$and": [{"metadata": {}}]}]},
        {"nonexistent": None},
        {"nonexistent": {"$eq": None}},
        {"nonexistent": {"$exists": False}},
        {"metadata": {"nonexistent": None}},
    ],
)
def test_filter_that_selects_by_nothing_is_refused(make: Make, selector: Mapping[str, Any]) -> None:
    """What every memory passes by a mistake does not erase a scope."""
    memory = make()
    memory.remember("I live in Bremen.", config=ANN)
    with pytest.raises(ValueError, match="EVERYTHING"):
        memory.forget(selector, config=ANN)
    assert memory.recall("Where do I live?", config=ANN).items


@pytest.mark.parametrize(
    "selector",
    [
        {"content": "I live in Bremen.", "nonexistent": None},
        {"$or": [{"content": "I live in Bremen."}, {"content": "x"}]},
        {"content": {"$gte": "I"}},
    ],
)
def test_filter_with_one_real_condition_selects(
    selector: Mapping[str, Any], tmp_path: Path
) -> None:
    """Null beside a real condition is a condition."""
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        memory = RAGMemory(store=store)
        memory.remember("I live in Bremen.", config=ANN)
        assert len(memory.forget(selector, config=ANN)) == 1


def test_forget_everything_names_what_the_user_sees(make: Make, store: BaseStore) -> None:
    """Records of sessions and speakers are erased with the memories, and not counted as such."""
    memory = make()
    remembered = [memory.remember(text, config=ANN) for text in ("I live in Bremen.", "I row.")]
    erased = memory.forget(EVERYTHING, config=ANN)
    assert {op.key for op in erased} == {op.key for ops in remembered for op in ops}
    assert store.search(("memories",)) == []


def test_forget_everything_erases_every_architecture(store: BaseStore, make: Make) -> None:
    """A whole scope is one, whichever memory is asked; another user's stays."""
    bob: RunnableConfig = {"configurable": {"user_id": "bob"}}
    for config in (ANN, bob):
        make().remember("I live in Bremen.", config=config)
        WindowMemory(store=store).remember([HumanMessage("I row.", id="1")], config=config)
    store.put(("memories", "ann", "mem0", "facts"), "1", {"content": "x"})
    erased = make().forget(EVERYTHING, config=ANN)
    assert {op.namespace[2] for op in erased} == {"rag", "short_term", "mem0"}
    left = everything(store)
    assert left
    assert all("bob" in namespace for namespace, _ in left)


def test_clearing_a_history_keeps_what_other_architectures_know(
    store: BaseStore, make: Make
) -> None:
    """A session's `clear` is about the session, not about all that is known of the scope."""
    make().remember("I live in Bremen.", config=ANN)
    history = StoreChatMessageHistory(
        store, namespace=("memories", "{session_id}"), session_id="ann"
    )
    history.add_user_message("I row.")
    history.clear()
    assert history.messages == []
    assert make().recall("Where do I live?", config=ANN).items


def test_forget_erases_what_cannot_be_read(calls: Calls) -> None:
    """A damaged value is erased by its key as with its scope, and the operation says it."""
    keys = [calls.remember(text, config=ANN)[0].key for text in ("I live in Bremen.", "I row.")]
    store = calls.memory.store
    assert isinstance(store, FaissSqliteStore)
    store.conn.execute("UPDATE items SET value = replace(value, 'Bremen', 'Bremxn')")
    store.conn.execute("UPDATE items SET value = replace(value, 'I row', 'I rxw')")
    (op,) = calls.forget(keys[0], config=ANN)
    assert (op.key, op.reason) == (keys[0], UNREAD)
    assert keys[1] in {op.key for op in calls.forget(EVERYTHING, config=ANN)}
    left = [*store.all_keys(("memories",)), *store.all_keys(("_agentmem",))]
    assert [ref for ref in left if ref[0][1] != "erased"] == []
