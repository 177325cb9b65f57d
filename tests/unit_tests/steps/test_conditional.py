"""Conditional writes: one winner per version, on any store, from threads and from coroutines."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.store.base import BaseStore, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.steps.conditional import abatch, batch, version_of

HOME = ("m", "u")
REF = (HOME, "k")
WRITERS = 8
ROUNDS = 10

Apply = Callable[[BaseStore, Any, Any], Any]


def _put(version: int, by: int = 0) -> PutOp:
    return PutOp(HOME, "k", {"content": "x", "version": version, "by": by}, index=False)


@pytest.fixture(params=[batch, lambda *given: asyncio.run(abatch(*given))], ids=["sync", "async"])
def apply(request: pytest.FixtureRequest) -> Apply:
    """Conditional writes through both ways."""
    found: Apply = request.param
    return found


def test_the_expected_version_lets_the_write_through(any_store: BaseStore, apply: Apply) -> None:
    """A new item where none was, then a next version."""
    apply(any_store, [_put(1)], {REF: None})
    apply(any_store, [_put(2)], {REF: 1})
    item = any_store.get(*REF)
    assert item is not None
    assert item.value["version"] == 2


@pytest.mark.parametrize("expected", [None, 1, 3])
def test_another_version_stops_the_whole_batch(
    any_store: BaseStore, apply: Apply, expected: int | None
) -> None:
    """Nothing of the batch is written, and the error says what was found."""
    any_store.put(HOME, "k", {"content": "x", "version": 2}, index=False)
    other = PutOp(HOME, "other", {"content": "y"}, index=False)
    with pytest.raises(ConflictError) as caught:
        apply(any_store, [other, _put(9)], {REF: expected})
    assert caught.value.conflicts == {REF: (expected, 2)}
    assert any_store.get(HOME, "other") is None


def test_an_item_that_is_gone_is_a_conflict(any_store: BaseStore, apply: Apply) -> None:
    """Expecting a version of an item that does not exist stops the write."""
    with pytest.raises(ConflictError):
        apply(any_store, [_put(2)], {REF: 1})


def test_without_expectations_a_batch_is_plain(any_store: BaseStore, apply: Apply) -> None:
    """Nothing to expect: the store's own batch."""
    apply(any_store, [_put(5)], {})
    assert any_store.get(*REF) is not None


@pytest.mark.parametrize(
    ("value", "version"),
    [({}, 1), ({"version": 4}, 4), ({"version": "4"}, 1), ({"version": True}, 1)],
)
def test_foreign_versions_count_as_one(
    any_store: BaseStore, apply: Apply, value: dict[str, Any], version: int
) -> None:
    """Both kinds of stores read the version of a foreign value alike."""
    assert version_of(value) == version
    any_store.put(HOME, "k", value, index=False)
    apply(any_store, [_put(version + 1)], {REF: version})


def test_of_many_threads_one_wins_each_version(any_store: BaseStore) -> None:
    """Eight threads race for every version; exactly one write of each goes through."""
    barrier = threading.Barrier(WRITERS)

    def race(number: int) -> list[int]:
        won = []
        for version in range(1, ROUNDS + 1):
            barrier.wait()
            try:
                batch(any_store, [_put(version, number)], {REF: version - 1 or None})
            except ConflictError:
                continue
            won.append(version)
        return won

    with ThreadPoolExecutor(WRITERS) as pool:
        wins = [version for won in pool.map(race, range(WRITERS)) for version in won]
    assert sorted(wins) == list(range(1, ROUNDS + 1))


async def test_of_many_coroutines_one_wins_each_version(any_store: BaseStore) -> None:
    """Eight coroutines race for every version; exactly one write of each goes through."""

    async def write(version: int, number: int) -> bool:
        try:
            await abatch(any_store, [_put(version, number)], {REF: version - 1 or None})
        except ConflictError:
            return False
        return True

    for version in range(1, ROUNDS + 1):
        outcomes = await asyncio.gather(*(write(version, number) for number in range(WRITERS)))
        assert outcomes.count(True) == 1


async def test_threads_and_coroutines_share_the_locks() -> None:
    """A coroutine waits for a thread that is writing, without blocking its loop."""
    entered, leave = threading.Event(), threading.Event()

    class Slow(InMemoryStore):
        def batch(self, ops: Any) -> Any:  # noqa: ANN401 - LangGraph's signature
            if any(isinstance(op, PutOp) and op.value and op.value.get("by") == 1 for op in ops):
                entered.set()
                leave.wait(5)
            return super().batch(ops)

    store = Slow()
    thread = asyncio.create_task(asyncio.to_thread(batch, store, [_put(1, by=1)], {REF: None}))
    await asyncio.to_thread(entered.wait, 5)
    waiting = asyncio.create_task(abatch(store, [_put(1, by=2)], {REF: None}))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    leave.set()
    await thread
    with pytest.raises(ConflictError):
        await waiting


async def test_a_cancelled_wait_releases_its_locks() -> None:
    """Whoever was cancelled while waiting or writing leaves no lock behind."""
    store = InMemoryStore()
    writing = asyncio.create_task(abatch(store, [_put(1)], {REF: None}))
    await asyncio.sleep(0)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    version = None if store.get(*REF) is None else 1
    await asyncio.wait_for(abatch(store, [_put(2)], {REF: version}), 5)
    written = store.get(*REF)
    assert written is not None
    assert written.value["version"] == 2


class _OneAtATime(InMemoryStore):
    """Fails, as LangGraph's store may, where a batch begins while another thread's runs."""

    def __init__(self) -> None:
        super().__init__()
        self.busy = threading.Lock()

    def batch(self, ops: Any) -> Any:  # noqa: ANN401 - a double of any
        """Refuse to work for two threads at once."""
        if not self.busy.acquire(blocking=False):
            msg = "dictionary changed size during iteration"
            raise RuntimeError(msg)
        try:
            time.sleep(0.001)
            return super().batch(ops)
        finally:
            self.busy.release()


def test_threads_take_turns_with_the_in_memory_store() -> None:
    """A search never meets the put of another thread, which breaks LangGraph's store."""
    store = _OneAtATime()

    def work(number: int) -> None:
        batch(store, [PutOp((*HOME, str(number)), "k", {"content": "x"}, index=False)], {})
        batch(store, [SearchOp(HOME)], {})

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(work, range(WRITERS)))
    assert len(store.search(HOME, limit=100)) == WRITERS
