"""Conformance of concurrent and async use: rows S1 to S4 and their rules."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from langgraph.store.base import BaseStore, PutOp

from langchain_agentmem.testing.checks import expect_equal, expect_true, keys
from langchain_agentmem.testing.harness import StoreSuite
from langchain_agentmem.testing.runners import Runner

_NS: Final = ("concurrent",)
_WRITERS: Final = 8
_PUTS: Final = 25


class ConcurrencyConformance(StoreSuite):
    """One store serves threads, loops and the sync API."""

    def test_s1_one_object_has_both_apis(self, subject: BaseStore, runner: Runner) -> None:
        """S1: what one API writes the other reads, on the same object."""
        store = runner.raw(subject)
        store.put(_NS, "sync", {"n": 1})
        runner.run(store.aput(_NS, "async", {"n": 2}))
        expect_equal(sorted(keys(store.search(_NS))), ["async", "sync"], "keys read by search")
        found = runner.run(store.asearch(_NS))
        expect_equal(sorted(keys(found)), ["async", "sync"], "keys read by asearch")

    def test_s2_bad_op_harms_only_its_caller(self, subject: BaseStore, runner: Runner) -> None:
        """S2: a failing call beside a good one, in one tick, leaves the good one stored."""
        store = runner.raw(subject)
        runner.run(store.aput(_NS, "old", {"n": 0}))

        async def both() -> Sequence[Any]:
            calls = (
                store.aput(_NS, "before", {"n": 1}),
                store.asearch(_NS, filter={"n": {"$near": 1}}),
                store.aput(_NS, "after", {"n": 2}),
            )
            return await asyncio.gather(*calls, return_exceptions=True)

        first, second, third = runner.run(both())
        expect_equal((first, third), (None, None), "results of the good calls")
        expect_true(isinstance(second, Exception), f"bad call: expected an error, found {second}")
        found = runner.run(store.asearch(_NS))
        expect_equal(sorted(keys(found)), ["after", "before", "old"], "keys after the tick")

    def test_s3_store_serves_a_second_loop(self, subject: BaseStore, runner: Runner) -> None:
        """S3: `asyncio.run` called again and again reaches the same store."""
        store = runner.raw(subject)
        runner.run(store.aput(_NS, "0", {"n": 0}))
        for n in (1, 2):
            asyncio.run(asyncio.wait_for(store.aput(_NS, str(n), {"n": n}), 5))
        found = asyncio.run(asyncio.wait_for(store.asearch(_NS), 5))
        expect_equal(sorted(keys(found)), ["0", "1", "2"], "keys put from three loops")

    def test_s4_sync_call_works_on_the_thread_of_a_loop(
        self, subject: BaseStore, runner: Runner
    ) -> None:
        """S4: a sync tool inside an async graph may use the store."""
        store = runner.raw(subject)

        async def use() -> list[str]:
            store.put(_NS, "k", {"n": 1})
            return keys(store.search(_NS))

        expect_equal(runner.run(use()), ["k"], "keys read by sync calls inside a coroutine")

    def test_s_parallel_threads_lose_nothing(self, subject: BaseStore) -> None:
        """N writers on one store make N items."""
        start = threading.Barrier(_WRITERS)

        def write(writer: int) -> None:
            start.wait()
            for n in range(_PUTS):
                subject.put(_NS, f"{writer}-{n}", {"n": n})

        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(write, range(_WRITERS)))
        found = subject.search(_NS, limit=1000)
        expect_equal(len(found), _WRITERS * _PUTS, "items put by parallel threads")

    def test_s_parallel_coroutines_lose_nothing(self, subject: BaseStore, runner: Runner) -> None:
        """Concurrent awaits on one loop all take effect."""
        store = runner.raw(subject)

        async def write() -> None:
            await asyncio.gather(*(store.aput(_NS, str(n), {"n": n}) for n in range(50)))

        runner.run(write())
        found = runner.run(store.asearch(_NS, limit=1000))
        expect_equal(len(found), 50, "items put by concurrent awaits")

    def test_s_cancelled_put_is_whole_or_absent(self, subject: BaseStore, runner: Runner) -> None:
        """A cancelled batch is applied wholly or not at all, and the store stays usable."""
        store = runner.raw(subject)

        async def cancel() -> None:
            for n in range(10):
                ops = [PutOp((*_NS, str(n)), key, {"n": n}) for key in ("a", "b")]
                task = asyncio.ensure_future(store.abatch(ops))
                await asyncio.sleep(0.0005 * n)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

        runner.run(cancel())
        runner.run(store.aput((*_NS, "later"), "k", {"n": 1}))
        for n in range(10):
            found = runner.run(store.asearch((*_NS, str(n))))
            expect_true(len(found) in (0, 2), f"batch {n}: expected 0 or 2 items, found {found}")
        found = runner.run(store.asearch((*_NS, "later")))
        expect_equal(keys(found), ["k"], "keys put after the cancellations")

    def test_s_parallel_updates_keep_one_item(self, subject: BaseStore) -> None:
        """Writers of one key leave one item with a value one of them wrote."""
        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(lambda n: subject.put(_NS, "k", {"n": n}), range(40)))
        values = [item.value["n"] for item in subject.search(_NS)]
        expect_equal(len(values), 1, "items of one key")
        expect_true(values[0] in range(40), f"value: expected one that was put, found {values[0]}")
