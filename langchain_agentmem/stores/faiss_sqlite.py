"""`FaissSqliteStore`: a LangGraph store in one SQLite file, searched with FAISS and by words."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from langgraph.store.base import BaseStore

from langchain_agentmem.errors import ConfigurationError, IndexMismatchError, StorageError
from langchain_agentmem.stores import _indexing
from langchain_agentmem.stores._ops import StoreSearchOp, check_ttl_config
from langchain_agentmem.stores._schema import Database, check_path
from langchain_agentmem.stores._searching import Searching
from langchain_agentmem.stores._sweeper import Sweeper
from langchain_agentmem.stores._upkeep import Upkeep
from langchain_agentmem.stores._values import to_micros

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Self

    from langchain_core.embeddings import Embeddings
    from langgraph.store.base import IndexConfig, Result, TTLConfig

    from langchain_agentmem.stores._engine import Engine, Plan
    from langchain_agentmem.stores._ops import StoreIndexConfig, StoreOp
    from langchain_agentmem.stores._writes import Expected


def _utc_now() -> datetime:
    return datetime.now(UTC)


class FaissSqliteStore(Searching, Upkeep, BaseStore):
    """A LangGraph `BaseStore` in one SQLite file: no server, no key, sync and async in one class.

    SQLite is the truth: a `put` that returned survives a killed process and, with
    `synchronous="full"`, power loss. FAISS (vectors) and word postings are derived from it and kept
    in memory for the namespaces in use only. Search is exact: namespace, expiry and filter select
    the rows, then exactly those are ranked. Several threads, event loops and processes may use one
    file at once. A sync call on the thread of a running loop works, and blocks that loop.

    Without a query a search returns the newest `updated_at` first, ties by write order. The root
    `_agentmem` is reserved: only prefixes that begin with it see what lies below.

    Args:
        path: The file, or `":memory:"`. Its directory must exist. Where file or directory cannot be
            written, the store can be read and searched, and a write raises `StorageError`.
        index: `"default"` for the bundled model and hybrid search; a LangGraph `IndexConfig`, to
            which this store adds `distance_type`, `mode` and `dense_weight`; None for no index.
        ttl: LangGraph's `TTLConfig`; `omit_expired` is True unless it says otherwise.
        synchronous: `"full"` survives power loss, `"normal"` only a killed process.
        faiss_threads: How many threads may share one scan of more than 8 MB of vectors.
        busy_timeout_s: Seconds to wait for another process that writes.
        memory_budget_mb: Megabytes of vectors and words kept in memory between searches.
        clock: Returns the aware current time; every timestamp and expiry uses it.

    Raises:
        ConfigurationError: If an argument cannot be used. What is wrong with the file is raised
            by `setup`, which the first use implies.

    Example:
        ```python
        from langchain_agentmem import FaissSqliteStore

        with FaissSqliteStore(":memory:") as store:
            store.put(("users", "ada"), "1", {"text": "Ada plays the cello"})
            hits = store.search(("users", "ada"), query="Who plays cello?")
        ```
    """

    supports_ttl = True
    supports_conditional_writes = True
    search_op = StoreSearchOp

    def __init__(
        self,
        path: str | Path,
        *,
        index: IndexConfig | StoreIndexConfig | Literal["default"] | None = "default",
        ttl: TTLConfig | None = None,
        synchronous: Literal["full", "normal"] = "full",
        faiss_threads: int = 1,
        busy_timeout_s: float = 30,
        memory_budget_mb: float = 512,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        if synchronous not in ("full", "normal"):
            msg = f"synchronous must be 'full' or 'normal', not {synchronous!r}."
            raise ConfigurationError(msg)
        if faiss_threads < 1 or busy_timeout_s < 0 or memory_budget_mb < 0:
            msg = "faiss_threads must be at least 1, busy_timeout_s and memory_budget_mb 0 or more."
            raise ConfigurationError(msg)
        self.ttl_config = check_ttl_config(ttl)
        self.index_config = index
        self._settings = _indexing.resolve_index(index)
        self._clock = clock
        self._threads = faiss_threads
        self._budget = int(memory_budget_mb * 1_000_000)
        self._database = Database(
            check_path(path), synchronous=synchronous, busy_timeout_s=busy_timeout_s
        )
        self._engine: Engine | None = None
        self._opening = threading.Lock()
        self._sweeper = Sweeper(self.sweep_ttl)

    @classmethod
    def from_conn_string(
        cls,
        path: str | Path,
        *,
        index: IndexConfig | StoreIndexConfig | Literal["default"] | None = None,
        ttl: TTLConfig | None = None,
    ) -> Self:
        """Return a store to be used in `with` or `async with`; no index unless one is given.

        Args:
            path: The file, or `":memory:"`.
            index: As in the constructor, but None by default as in LangGraph's stores.
            ttl: As in the constructor.
        """
        return cls(path, index=index, ttl=ttl)

    @property
    def conn(self) -> sqlite3.Connection:
        """The writing connection, for inspection."""
        self.setup()
        return self._database.writer

    @property
    def embeddings(self) -> Embeddings | None:
        """The embedder; None without one."""
        return None if self._settings is None else self._settings.embeddings

    def setup(self) -> None:
        """Open the file and create its tables; done by the first use too, and harmless twice.

        Raises:
            StorageError: If the file cannot be opened or belongs to another program.
            SchemaVersionError: If a newer version of this package wrote it.
            CorruptStoreError: If it is damaged.
            IndexMismatchError: If it was indexed with another model, size, distance or fields.
        """
        self._open()

    def _open(self, *, check_index: bool = True) -> Engine:
        engine = self._engine
        if engine is not None:
            return engine
        from langchain_agentmem.stores._engine import Engine

        with self._opening:
            if self._engine is None:
                self._database.open()
                engine = Engine(
                    self._database,
                    self._settings,
                    clock=self._now,
                    omit_expired=(self.ttl_config or {}).get("omit_expired", True),
                    budget=self._budget,
                    threads=self._threads,
                )
                if check_index:
                    try:
                        engine.check_fingerprint()
                    except (IndexMismatchError, StorageError):
                        self._database.disconnect()
                        raise
                self._engine = engine
            return self._engine

    def batch(
        self,
        ops: Iterable[StoreOp],
        *,
        expect: Mapping[tuple[tuple[str, ...], str], int | None] | None = None,
    ) -> list[Result]:
        """Run ops as one atomic whole: its reads see the state before, then its puts apply.

        Args:
            ops: LangGraph's ops, and `StoreSearchOp`. Of several puts for one key the last wins.
            expect: For items by namespace and key, the version they must be at for anything to be
                written: their `value["version"]`, or 1 without one; None if they must not exist.

        Returns:
            One result for each op, in their order.

        Raises:
            ConflictError: If an item is at another version than expected; nothing was written.
            ValueError: If an op is not acceptable; nothing was written.
            TypeError: If a value holds something JSON does not know; nothing was written.
            StorageError: If the file cannot be read or written.
        """
        engine = self._open()
        return engine.run(self._plan(ops, expect))

    async def abatch(
        self,
        ops: Iterable[StoreOp],
        *,
        expect: Mapping[tuple[tuple[str, ...], str], int | None] | None = None,
    ) -> list[Result]:
        """Do what `batch` does; a cancelled call has written everything or nothing."""
        ops = list(ops)
        if self._engine is None:
            await asyncio.to_thread(self._open)
        engine = self._open()
        plan = self._plan(ops, expect)
        embeddings = self.embeddings
        if embeddings is None or not _indexing.is_async_native(embeddings):
            return await asyncio.to_thread(engine.run, plan)
        if plan.units:
            await asyncio.to_thread(engine.reuse, plan)
        vectors = await _indexing.aembed(embeddings, plan.documents, plan.queries)
        return await asyncio.to_thread(engine.finish, plan, *vectors)

    def _plan(self, ops: Iterable[object], expect: Expected | None) -> Plan:
        from langchain_agentmem.stores._engine import plan

        return plan(ops, expect, self._settings)

    def _now(self) -> int:
        return to_micros(self._clock())
