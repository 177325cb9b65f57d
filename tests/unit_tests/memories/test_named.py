"""Naming memories: `forget`, `history` and `undo` take a recalled memory or its key."""

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.store.base import BaseStore

from langchain_agentmem.errors import ConfigurationError, MemoryNotFoundError
from langchain_agentmem.items import MemoryItem
from tests.unit_tests.floor import Calls

ANN: Any = {"configurable": {"user_id": "ann"}}
BOB: Any = {"configurable": {"user_id": "bob"}}
HOME = ("memories", "ann")


@pytest.mark.parametrize(
    "form",
    [
        lambda hit: hit,
        lambda hit: [hit],
        lambda hit: (hit, hit.key),
        lambda hit: [hit.key],
        lambda hit: hit.key,
    ],
)
def test_forget_takes_what_recall_gave(memory: Calls, form: Callable[[Any], Any]) -> None:
    """A memory, its key, or several of either; the others stay."""
    memory.remember([("user", "My parrot is Rex."), ("user", "I like tea.")], config=ANN)
    hit = memory.recall("parrot", config=ANN).items[0]
    assert [op.key for op in memory.forget(form(hit), config=ANN)] == [hit.key]
    assert [each.text for each in memory.recall("parrot", config=ANN).items] == ["I like tea."]


def test_history_and_undo_take_a_key(memory: Calls) -> None:
    """They do what they do with the memory itself."""
    memory.remember("My parrot is Rex.", config=ANN)
    hit = memory.recall("parrot", config=ANN).items[0]
    assert memory.history(hit.key, config=ANN) == memory.history(hit, config=ANN)
    assert memory.undo(hit.key, config=ANN).key == hit.key
    assert memory.recall("parrot", config=ANN).items == []
    assert [each.event for each in memory.history(hit.key, config=ANN)] == ["ADD", "DELETE"]


@pytest.mark.parametrize("wrong", [None, 5, b"key", [None], [5]])
@pytest.mark.parametrize("name", ["forget", "history", "undo"])
def test_what_names_no_memory_is_refused(memory: Calls, name: str, wrong: Any) -> None:  # noqa: ANN401 - any wrong value
    """The message says what to give, and nothing is erased."""
    memory.remember("My parrot is Rex.", config=ANN)
    with pytest.raises(TypeError, match="Give a memory or its key"):
        getattr(memory, name)(wrong, config=ANN)
    assert len(memory.recall("parrot", config=ANN).items) == 1


def test_an_unknown_key_is_told_by_history_and_undo(memory: Calls) -> None:
    """To forget what is not there is no error: it is gone."""
    for name in ("history", "undo"):
        with pytest.raises(MemoryNotFoundError, match="'wrong'"):
            getattr(memory, name)("wrong", config=ANN)
    assert memory.forget("wrong", config=ANN) == []


def test_a_memory_of_somebody_else_is_not_forgotten(memory: Calls) -> None:
    """Neither by itself nor by its key."""
    memory.remember("My parrot is Rex.", config=BOB)
    hit = memory.recall("parrot", config=BOB).items[0]
    with pytest.raises(ConfigurationError, match="outside of the scope"):
        memory.forget([hit], config=ANN)
    assert memory.forget(hit.key, config=ANN) == []
    for name in ("history", "undo"):
        with pytest.raises(MemoryNotFoundError):
            getattr(memory, name)(hit.key, config=ANN)
    assert memory.recall("parrot", config=BOB).items


def test_a_key_that_two_memories_share_is_not_guessed(memory: Calls, store: BaseStore) -> None:
    """The recalled memory itself says which one is meant."""
    for home in (HOME, (*HOME, "rag", "turns")):
        store.put(home, "k", MemoryItem(content="x").to_value())
    with pytest.raises(ConfigurationError, match="2 memories have the key"):
        memory.undo("k", config=ANN)
