"""Many writers of one session: no turn is lost, and the session's record knows them all."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.store.base import BaseStore

from langchain_agentmem.memories import RAGMemory
from tests.unit_tests.floor import Clock

WRITERS = 8
TURNS = 6
ANN: Any = {"configurable": {"user_id": "ann", "thread_id": "t1"}}
HOME = ("memories", "ann", "rag")


def _text(writer: int, number: int) -> str:
    return f"writer {writer} says thing {number}"


EXPECTED = {_text(writer, number) for writer in range(WRITERS) for number in range(TURNS)}


def _assert_complete(store: BaseStore) -> None:
    """Check that every turn is stored once, and that the session and its columns are whole."""
    turns = store.search((*HOME, "turns"), limit=1000)
    assert sorted(each.value["content"] for each in turns) == sorted(EXPECTED)
    (record,) = [
        each.value["content"]
        for each in store.search((*HOME, "sessions"), limit=1000)
        if each.value["kind"] == "session"
    ]
    assert sorted(record["turns"]) == sorted(each.key for each in turns)
    assert len(record["speakers"]) == len(record["lengths"]) == len(EXPECTED)


def test_threads_remember_into_one_session(any_store: BaseStore) -> None:
    """Eight threads at once lose nothing."""
    memory = RAGMemory(store=any_store, clock=Clock())

    def write(writer: int) -> None:
        for number in range(TURNS):
            memory.remember(_text(writer, number), config=ANN)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    _assert_complete(any_store)


async def test_coroutines_remember_into_one_session(any_store: BaseStore) -> None:
    """Eight coroutines at once lose nothing."""
    memory = RAGMemory(store=any_store, clock=Clock())

    async def write(writer: int) -> None:
        for number in range(TURNS):
            await memory.aremember(_text(writer, number), config=ANN)

    await asyncio.gather(*map(write, range(WRITERS)))
    _assert_complete(any_store)


async def test_threads_and_coroutines_remember_into_one_session(any_store: BaseStore) -> None:
    """Both kinds of writers together lose nothing, and two memory objects are as one."""
    one, other = (RAGMemory(store=any_store, clock=Clock()) for _ in range(2))

    def blocking(writer: int) -> None:
        for number in range(TURNS):
            one.remember(_text(writer, number), config=ANN)

    async def awaiting(writer: int) -> None:
        for number in range(TURNS):
            await other.aremember(_text(writer, number), config=ANN)

    half = WRITERS // 2
    await asyncio.gather(
        *(asyncio.to_thread(blocking, writer) for writer in range(half)),
        *(awaiting(writer) for writer in range(half, WRITERS)),
    )
    _assert_complete(any_store)


@pytest.mark.parametrize("erased", [1, TURNS])
def test_forgetting_while_others_remember_keeps_the_session_whole(
    any_store: BaseStore, erased: int
) -> None:
    """A session's record never names an erased turn, nor loses one that was added meanwhile."""
    memory = RAGMemory(store=any_store, clock=Clock())
    first = [memory.remember(_text(99, number), config=ANN)[0].key for number in range(erased)]

    def write(writer: int) -> None:
        for number in range(TURNS):
            memory.remember(_text(writer, number), config=ANN)

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        forgetting = pool.submit(memory.forget, first, config=ANN)
        list(pool.map(write, range(WRITERS)))
        forgetting.result()
    _assert_complete(any_store)
