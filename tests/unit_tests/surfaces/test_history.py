"""`StoreChatMessageHistory`: complete, in order, idempotent, one session at a time."""

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.surfaces import StoreChatMessageHistory
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.memories.conversations import at_once

T = TypeVar("T")
Do = Callable[[Callable[[], T], Callable[[], Coroutine[Any, Any, T]]], T]


class Shouted(HumanMessage):
    """A message class of somebody else."""

    volume: int = 11


@pytest.fixture(params=["sync", "async"])
def do(request: pytest.FixtureRequest) -> Do[Any]:
    """Make every call sync, then async."""

    def call(sync: Callable[[], T], later: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return asyncio.run(later()) if request.param == "async" else sync()

    return call


@pytest.fixture(params=["faiss_sqlite", "in_memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    """Give our store and LangGraph's own."""
    if request.param == "in_memory":
        yield InMemoryStore()
        return
    with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as opened:
        yield opened


def add(do: Do[None], history: StoreChatMessageHistory, *messages: BaseMessage) -> None:
    """Add messages in one way."""
    do(lambda: history.add_messages(messages), lambda: history.aadd_messages(messages))


def read(do: Do[list[BaseMessage]], history: StoreChatMessageHistory) -> list[BaseMessage]:
    """Read the history in one way."""
    return do(lambda: history.messages, history.aget_messages)


def test_messages_come_back_in_order_with_ids(do: Do[Any], store: BaseStore) -> None:
    """Equal texts are two messages; the system message counts as well."""
    history = StoreChatMessageHistory(store, session_id="s")
    add(do, history, SystemMessage("Be kind."), HumanMessage("hi"))
    add(do, history, AIMessage("hello"), HumanMessage("hi"))
    found = read(do, history)
    assert [each.content for each in found] == ["Be kind.", "hi", "hello", "hi"]
    assert len({each.id for each in found}) == 4


def test_adding_a_known_id_again_changes_nothing(do: Do[Any], store: BaseStore) -> None:
    """A retried write is harmless."""
    history = StoreChatMessageHistory(store, session_id="s")
    for _ in range(2):
        add(do, history, HumanMessage("hi", id="1"))
    assert read(do, history) == [HumanMessage("hi", id="1")]


def test_sessions_are_apart_and_clear_keeps_others(do: Do[Any], store: BaseStore) -> None:
    """Clearing one session leaves the others alone."""
    one, two = (StoreChatMessageHistory(store, session_id=name) for name in ("1", "2"))
    add(do, one, HumanMessage("one"))
    add(do, two, HumanMessage("two"))
    do(one.clear, one.aclear)
    assert read(do, one) == []
    assert [each.content for each in read(do, two)] == ["two"]


def test_foreign_class_comes_back_as_its_nearest_known_one(do: Do[Any], store: BaseStore) -> None:
    """Content and further fields of a subclass are kept; no class is loaded by its path."""
    history = StoreChatMessageHistory(store, session_id="s")
    add(do, history, Shouted(content="HI", additional_kwargs={"mood": "good"}))
    (found,) = read(do, history)
    assert type(found) is HumanMessage
    assert (found.content, found.additional_kwargs) == ("HI", {"mood": "good"})
    assert found.model_dump()["volume"] == 11


def test_threads_lose_no_message(tmp_path: Path) -> None:
    """Four threads that add 25 messages each leave a hundred."""
    with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as store:
        history = StoreChatMessageHistory(store, session_id="s")

        def work(thread: int) -> None:
            for number in range(25):
                history.add_messages([HumanMessage(f"{thread}-{number}")])

        at_once(work, 4)
        assert len({each.content for each in history.messages}) == 100


def test_works_with_runnable_with_message_history(do: Do[Any], store: BaseStore) -> None:
    """The second turn of a session sees the first."""
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("user", "{said}")])
    model = ScriptedChatModel(replies=["Hello Ann.", "Ann."])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chain = RunnableWithMessageHistory(
            prompt | model,
            lambda session_id: StoreChatMessageHistory(store, session_id=session_id),
            input_messages_key="said",
            history_messages_key="history",
        )
    config: Any = {"configurable": {"session_id": "s"}}

    def say(said: str) -> None:
        given = {"said": said}
        do(lambda: chain.invoke(given, config), lambda: chain.ainvoke(given, config))

    say("I am Ann.")
    say("Who am I?")
    assert "I am Ann.\nHello Ann.\nWho am I?" in model.requests[1].text
