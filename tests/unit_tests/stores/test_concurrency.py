"""Many writers and readers: group commit, threads, loops, cancellation."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp

from langchain_agentmem.errors import StorageError
from langchain_agentmem.stores import FaissSqliteStore
from tests.unit_tests.floor import Clock
from tests.unit_tests.stores.conftest import Letters, Open


def test_threads_and_loops_write_at_once(open_store: Open) -> None:
    """Eight threads and eight coroutines on two loops lose nothing, through two stores."""
    stores = [open_store(), open_store()]
    count = 25

    def in_thread(name: int) -> None:
        store = stores[name % 2]
        for n in range(count):
            store.put(("w", f"t{name}"), str(n), {"text": f"text {n}"})
            store.search(("w",), query="text", limit=1)

    def on_loop(name: int) -> None:
        store = stores[name % 2]

        async def write(task: int) -> None:
            for n in range(count):
                await store.aput(("w", f"l{name}-{task}"), str(n), {"text": f"text {n}"})

        async def main() -> None:
            await asyncio.gather(*map(write, range(4)))

        asyncio.run(main())

    with ThreadPoolExecutor(10) as executor:
        jobs = [executor.submit(in_thread, n) for n in range(8)]
        jobs += [executor.submit(on_loop, n) for n in range(2)]
        for job in jobs:
            job.result()
    for store in stores:
        assert len(store.search(("w",), limit=1000)) == 16 * count
        assert len(store.search(("w",), query="text", limit=1000)) == 16 * count


def test_writers_share_a_commit(store: FaissSqliteStore) -> None:
    """Writers that wait together are committed together, each with its own fate."""
    store.setup()
    commits: list[str] = []
    store.conn.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
    errors: list[BaseException] = []

    def put(n: int) -> None:
        try:
            store.batch(
                [PutOp(("a",), str(n), {})], expect={(("a",), str(n)): 7 if n == 3 else None}
            )
        except RuntimeError as err:
            errors.append(err)

    threads = [threading.Thread(target=put, args=(n,)) for n in range(6)]
    committer = store._engine.committer if store._engine else None
    assert committer is not None
    with store._database.write_lock:
        for thread in threads:
            thread.start()
        while len(committer._waiting) < len(threads):
            pass
    for thread in threads:
        thread.join()
    assert len(commits) == 1
    assert len(errors) == 1
    assert {item.key for item in store.search(("a",))} == {"0", "1", "2", "4", "5"}


def test_failed_commit_reaches_every_caller(
    store: FaissSqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the commit itself fails, the caller is told, nothing is written, and the store goes on."""
    store.put(("a",), "k", {})

    def refuse(_: object) -> None:
        import sqlite3

        msg = "database or disk is full"
        raise sqlite3.OperationalError(msg)

    with monkeypatch.context() as patch:
        patch.setattr("langchain_agentmem.stores._groups.Transaction.finish", refuse)
        with pytest.raises(StorageError, match="disk is full"):
            store.put(("a",), "lost", {})
    store.put(("a",), "next", {})
    assert [item.key for item in store.search(("a",))] == ["next", "k"]


def test_interrupt_hits_only_its_own_thread(
    store: FaissSqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt during a put leaves it absent, and the store usable."""
    store.setup()

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("langchain_agentmem.stores._groups.Transaction.finish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            store.put(("a",), "lost", {})
    store.put(("a",), "next", {})
    assert [item.key for item in store.search(("a",))] == ["next"]


async def test_cancelled_put_is_whole_or_absent(store: FaissSqliteStore) -> None:
    """A cancelled await leaves a batch wholly applied or wholly absent, and the store usable."""
    for n in range(30):
        batch = [PutOp((f"c{n}",), key, {"text": key}) for key in "abc"]
        task = asyncio.create_task(store.abatch(batch))
        await asyncio.sleep(n / 10_000)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    await store.aput(("z",), "k", {"text": "a"})
    for n in range(30):
        assert len(await store.asearch((f"c{n}",))) in (0, 3)


class _Slow(Letters):
    """Blocks in `embed_documents` until told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.reached = threading.Event()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Wait, then count."""
        self.reached.set()
        assert self.go_on.wait(10)
        return super().embed_documents(texts)


def test_nobody_waits_for_an_embedding(open_store: Open) -> None:
    """While one put is being embedded, others read and write."""
    slow = _Slow()
    store = open_store(index={"dims": 36, "embed": slow, "fields": ["text"]})
    thread = threading.Thread(target=store.put, args=(("a",), "slow", {"text": "x"}))
    thread.start()
    assert slow.reached.wait(10)
    store.put(("a",), "quick", {"other": 1})
    assert [item.key for item in store.search(("a",))] == ["quick"]
    slow.go_on.set()
    thread.join()
    assert store.get(("a",), "slow") is not None


def test_index_equals_a_fresh_one_after_random_changes(open_store: Open, clock: Clock) -> None:
    """After puts, deletes and expiry in loaded scopes, searches equal those of a new store."""
    import random

    rng = random.Random(7)  # noqa: S311 - a reproducible sequence is wanted
    store = open_store(ttl={"refresh_on_read": False})
    spaces = [("a",), ("a", "b"), ("a", "c"), ("d",)]
    queries: list[dict[str, Any]] = [
        {"query": "abc"},
        {"query": "abc", "mode": "lexical"},
        {"query": "abc", "mode": "hybrid"},
        {"query": "cab", "filter": {"n": {"$lt": 3}}, "exact": True},
    ]
    for step in range(120):
        space, key = rng.choice(spaces), str(rng.randrange(8))
        texts = ["".join(rng.choices("abc ", k=5)) for _ in range(rng.randrange(3))]
        clock.move(rng.randrange(20))
        if rng.random() < 0.2:
            store.delete(space, key)
        else:
            value = {"t": texts, "n": rng.randrange(6)}
            store.put(space, key, value, index=["t[*]"], ttl=rng.choice([None, 1]))
        if step % 10 == 9:
            fresh = open_store(ttl={"refresh_on_read": False})
            for scope in [(), *spaces]:
                for options in queries:
                    found = store.search(scope, limit=50, **options)
                    expected = fresh.search(scope, limit=50, **options)
                    assert [(i.namespace, i.key) for i in found] == [
                        (i.namespace, i.key) for i in expected
                    ]
                    assert [i.score for i in found] == pytest.approx([i.score for i in expected])


PROCESS = """
import sys, time
from langchain_agentmem.stores import FaissSqliteStore
import langchain_agentmem.stores._engine
path, name, start = sys.argv[1:]
time.sleep(max(0, float(start) - time.time()))
with FaissSqliteStore(path, index={"fields": ["text"]}) as store:
    for n in range(40):
        store.put(("w", name), str(n), {"text": f"word {n}"})
        store.search(("w",), query="word", limit=1)
"""


@pytest.mark.timeout(120)
def test_processes_create_and_write_one_file(tmp_path: Path) -> None:
    """Processes that open one new file at the same moment lose nothing and see no lock."""
    path, start = str(tmp_path / "new.db"), str(time.time() + 3)
    command = [sys.executable, "-c", PROCESS, path]
    processes = [subprocess.Popen([*command, str(n), start]) for n in range(3)]
    assert [process.wait(100) for process in processes] == [0, 0, 0]
    with FaissSqliteStore(path, index={"fields": ["text"]}) as store:
        assert len(store.search(("w",), query="word", limit=1000)) == 120


async def test_nothing_blocks_the_loop(open_store: Open) -> None:
    """A hundred concurrent writes and searches make no blocking call on the event loop."""
    blockbuster = pytest.importorskip("blockbuster")
    store = open_store()
    with blockbuster.blockbuster_ctx():
        await asyncio.gather(
            *(store.aput(("a",), str(n), {"text": f"text {n}"}) for n in range(50)),
            *(store.asearch(("a",), query="text") for _ in range(50)),
        )
        assert len(await store.asearch(("a",), query="text", limit=100)) == 50
        await store.adelete(("a",), "1")
        await store.alist_namespaces()
        await store.adelete_namespace(("a",), vacuum=True)
        await store.aclose()


@pytest.mark.parametrize("before", [True, False], ids=["known", "new"])
@pytest.mark.parametrize("change", ["put", "delete", "delete_namespace", "elsewhere"])
def test_write_while_a_put_is_embedded_is_not_overlooked(
    open_store: Open,
    clock: Clock,
    embedder: Letters,
    monkeypatch: pytest.MonkeyPatch,
    *,
    before: bool,
    change: str,
) -> None:
    """What was known of an item when its text was looked at does not count if the file changed."""
    store, other, embed = open_store(), open_store(), embedder.embed_documents
    changes: dict[str, Callable[[], object]] = {
        "put": lambda: other.put(("a",), "1", {"text": "theirs"}),
        "delete": lambda: other.delete(("a",), "1"),
        "delete_namespace": lambda: other.delete_namespace(("a",)),
        "elsewhere": lambda: other.put(("b",), "1", {"text": "theirs"}),
    }

    def slowly(texts: list[str]) -> list[list[float]]:
        if "mine" in texts:
            clock.move(10)
            changes[change]()
            clock.move(10)
        return embed(texts)

    monkeypatch.setattr(embedder, "embed_documents", slowly)
    started = clock.now
    if before:
        store.put(("a",), "1", {"text": "former"})
    store.batch([PutOp(("a",), key, {"text": "mine"}) for key in ("1", "2")])
    assert [item.key for item in store.search(("a",), query="mine", mode="lexical")] == ["2", "1"]
    assert store.search(("a",), query="former theirs", mode="lexical") == []
    ages = {"put": 0 if before else 10, "elsewhere": 0 if before else 20}
    made = started + timedelta(seconds=ages.get(change, 20))
    assert [i.created_at for i in store.search(("a",), limit=9) if i.key == "1"] == [made]
    assert store.check() == []
