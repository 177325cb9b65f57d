"""LangGraph's PostgreSQL tables with exact, filtered and hybrid search, in one class."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any, cast

from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, Result, TTLConfig
from langgraph.store.postgres import PostgresStore
from langgraph.store.postgres.base import PostgresIndexConfig
from psycopg import Connection, Error, OperationalError
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg.types.json import set_json_loads
from psycopg_pool import ConnectionPool

from langchain_agentmem.errors import ConfigurationError, StorageError
from langchain_agentmem.stores import _engine, _vectors
from langchain_agentmem.stores import _postgres_writes as writes
from langchain_agentmem.stores._indexing import embed, resolve_index
from langchain_agentmem.stores._lifecycle import Closing
from langchain_agentmem.stores._namespaces import check_deletable
from langchain_agentmem.stores._ops import StoreOp, StoreSearchOp, check_ttl_config
from langchain_agentmem.stores._postgres_json import read
from langchain_agentmem.stores._postgres_reads import Key, Reader, Row, text
from langchain_agentmem.stores._searching import Searching

_MAX_CONNECTIONS = 10
_SETUP_LOCK = 0x41474D31
_RETRY_S = 0.02
_CONNECT_S = 5


class PooledPostgresStore(Searching, Closing, PostgresStore):
    """A LangGraph store in PostgreSQL, over a pool, sync and async, with the rules of our file.

    It reads and writes the tables of LangGraph's `PostgresStore`, which it also creates at first
    use, so that both can open the same database. Search is exact: namespace, expiry and filter
    select the rows, the server computes the distances of exactly those. The words of each text lie
    beside its vector, for `lexical` and `hybrid` search. Async calls run in worker threads.

    PostgreSQL's `jsonb` knows no negative zero, and returns huge floats as integers.

    Args:
        conninfo: A PostgreSQL connection string.
        index: LangGraph's index configuration for PostgreSQL, to which this store adds `mode` and
            `dense_weight`; None for no index.
        ttl: LangGraph's TTL configuration; `omit_expired` is True unless it says otherwise.
        max_connections: How many connections the pool may open.
        clock: Returns the aware current time; the server's clock by default.

    Raises:
        ConfigurationError: If something in `index` cannot be used.
    """

    supports_conditional_writes = True
    search_op = StoreSearchOp

    def __init__(
        self,
        conninfo: str,
        *,
        index: PostgresIndexConfig | None = None,
        ttl: TTLConfig | None = None,
        max_connections: int = _MAX_CONNECTIONS,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        self._conninfo = conninfo
        self._pool: Any = ConnectionPool(
            conninfo,
            min_size=1,
            max_size=max_connections,
            kwargs=options,
            open=False,
            configure=lambda connection: set_json_loads(read, connection),
        )
        self._settings = resolve_index(cast("Any", index))
        if self._settings is not None and self._settings.embeddings is None:
            msg = (
                "An index in PostgreSQL needs a model, index['embed']; index=None does without one."
            )
            raise ConfigurationError(msg)
        self._vector_type = (index or {}).get("ann_index_config", {}).get("vector_type", "vector")
        self._clock = clock
        self._opening = threading.Lock()
        self._is_ready = False
        super().__init__(self._pool, index=index, ttl=check_ttl_config(ttl))

    def setup(self) -> None:
        """Connect and create the tables; done by the first use too, and harmless twice.

        Raises:
            StorageError: The server cannot be reached, or does not let us in.
        """
        with self._opening:
            if not self._is_ready:
                self._reach()
                self._pool.open(wait=True)
                with self._alone() as connection:
                    PostgresStore.setup(self)
                    connection.execute(writes.FRACTIONS)
                    if self._settings is not None:
                        connection.execute(writes.SETUP)
                self._is_ready = True

    def _reach(self) -> None:
        """Try one connection: a pool would wait for long, not say why, and stay closed."""
        try:
            given: dict[str, Any] = conninfo_to_dict(self._conninfo)
            Connection.connect(**{"connect_timeout": _CONNECT_S, **given}).close()
        except Error as error:
            said = " ".join(str(error).split())
            msg = (
                "The PostgreSQL server cannot be used; check host, port, user, password and "
                f"database of the URL, and that the server runs ({said})."
            )
            raise StorageError(msg) from error

    @contextmanager
    def _alone(self) -> Iterator[Connection[Row]]:
        """Let one process at a time create tables.

        A process that waited inside of the server would hold up the creation of an index.
        """
        with self._pool.connection() as connection:
            sql = "SELECT pg_try_advisory_lock(%s) AS got"
            while not connection.execute(sql, (_SETUP_LOCK,)).fetchone()["got"]:
                time.sleep(_RETRY_S)
            try:
                yield connection
            finally:
                connection.execute("SELECT pg_advisory_unlock(%s)", (_SETUP_LOCK,))

    @contextmanager
    def connection(self) -> Iterator[Connection[Row]]:
        """Give a connection of the pool, whose rows are dicts, as one transaction.

        Raises:
            StorageError: The store is closed, or the server has gone or cannot do it now.
        """
        self.setup()
        try:
            with ExitStack() as stack:
                yield self._begun(stack)
        except Error as error:
            said = " ".join(str(error).split())
            msg = f"PostgreSQL cannot do this ({said}); what was being written is not."
            raise StorageError(msg) from error

    def _begun(self, stack: ExitStack) -> Connection[Row]:
        """Begin a transaction; on another connection if the first one has died while it was idle.

        Nothing has been done then, and all that died with it leave the pool.
        """
        try:
            with ExitStack() as first:
                connection: Connection[Row] = first.enter_context(self._pool.connection())
                first.enter_context(connection.transaction())
                stack.push(first.pop_all())
                return connection
        except OperationalError:
            if self._pool.closed:
                raise
        self._pool.check()
        connection = stack.enter_context(self._pool.connection())
        stack.enter_context(connection.transaction())
        return connection

    def delete_namespace(self, prefix: tuple[str, ...]) -> int:
        """Erase a namespace with everything below it, and return how many items there were.

        Raises:
            InvalidNamespaceError: If the prefix is empty or has a label that is not acceptable.
        """
        check_deletable(prefix)
        with self.connection() as connection:
            return writes.delete_below(connection, prefix)

    async def adelete_namespace(self, prefix: tuple[str, ...]) -> int:
        """Do what `delete_namespace` does without blocking the loop."""
        return await asyncio.to_thread(self.delete_namespace, prefix)

    def sweep_ttl(self) -> int:
        """Remove expired items with their vectors; returns how many there were."""
        with self.connection() as connection:
            return writes.sweep(connection, self._now())

    async def asweep_ttl(self) -> int:
        """Do what `sweep_ttl` does without blocking the loop."""
        return await asyncio.to_thread(self.sweep_ttl)

    def _now(self) -> str:
        """Return the time as an SQL expression."""
        if self._clock is None:
            return "clock_timestamp()"
        return f"'{self._clock().astimezone(UTC).isoformat()}'::timestamptz"

    def close(self) -> None:
        """Stop the sweeper and close the connections; harmless twice."""
        self.stop_ttl_sweeper(timeout=5)
        self._pool.close()

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
        """
        plan = _engine.plan(ops, expect, self._settings)
        self.setup()
        kept = self._unchanged(plan)
        try:
            return self._run(plan, kept)
        except writes.StaleError:
            return self._run(plan, set())

    async def abatch(
        self,
        ops: Iterable[StoreOp],
        *,
        expect: Mapping[tuple[tuple[str, ...], str], int | None] | None = None,
    ) -> list[Result]:
        """Do what `batch` does without blocking the loop."""
        return await asyncio.to_thread(self.batch, list(ops), expect=expect)

    def _unchanged(self, plan: _engine.Plan) -> set[Key]:
        """Return the puts whose texts are indexed already, so that nothing must be embedded."""
        puts = [put for put in plan.puts if put.units]
        if not puts:
            return set()
        with self.connection() as connection:
            stored = writes.stored_digests(connection, [writes.key_of(put) for put in puts])
        return {
            writes.key_of(put)
            for put in puts
            if stored.get(writes.key_of(put)) == [unit.digest for unit in put.units]
        }

    def _run(self, plan: _engine.Plan, kept: set[Key]) -> list[Result]:
        units = [u for put in plan.puts if writes.key_of(put) not in kept for u in put.units]
        documents = list(dict.fromkeys(unit.text for unit in units))
        vectors, queries = self._embed(documents, plan.queries)
        _engine.analyze(units)
        results: list[Any] = [None] * len(plan.ops)
        refreshed = self._read(plan, queries, results)
        if plan.puts or plan.expected or refreshed:
            self._write(plan, refreshed, vectors)
        return results

    def _embed(
        self, documents: list[str], queries: list[str]
    ) -> tuple[dict[str, Sequence[float]], dict[str, Sequence[float]]]:
        """Return the vectors of texts and queries, checked as a whole."""
        settings = self._settings
        if settings is None or settings.embeddings is None or settings.dims is None:
            return {}, {}
        found = embed(settings.embeddings, documents, queries)
        for vectors, texts in zip(found, (documents, queries), strict=True):
            _engine.check_count(vectors, texts)
            _vectors.as_matrix(vectors, settings.dims)
        return dict(zip(documents, found[0], strict=True)), dict(
            zip(queries, found[1], strict=True)
        )

    def _read(
        self, plan: _engine.Plan, queries: Mapping[str, Sequence[float]], results: list[Any]
    ) -> list[Key]:
        """Answer the reads of a batch from one snapshot; returns the items to refresh."""
        if all(isinstance(op, PutOp) for op in plan.ops):
            return []
        refreshed: dict[Key, None] = {}
        now = self._now() if (self.ttl_config or {}).get("omit_expired", True) else None
        with self.connection() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            reader = Reader(connection, self._settings, vector_type=self._vector_type, now=now)
            for position, op in enumerate(plan.ops):
                if isinstance(op, PutOp):
                    continue
                if isinstance(op, ListNamespacesOp):
                    results[position] = reader.namespaces(op)
                    continue
                if isinstance(op, GetOp):
                    results[position] = reader.get(op)
                    items = [] if results[position] is None else [results[position]]
                else:
                    items = results[position] = self._search(reader, plan, position, queries)
                if op.refresh_ttl:
                    refreshed.update(
                        dict.fromkeys((text(item.namespace), item.key) for item in items)
                    )
        return list(refreshed)

    def _search(
        self,
        reader: Reader,
        plan: _engine.Plan,
        position: int,
        queries: Mapping[str, Sequence[float]],
    ) -> list[Any]:
        op, test = cast("StoreSearchOp", plan.ops[position]), plan.filters[position]
        mode = plan.modes.get(position)
        if mode is None or self._settings is None:
            return list(reader.newest(op, test))
        vector = None if mode == "lexical" else queries[str(op.query)]
        return list(reader.ranked(op, test, self._settings, mode, vector))

    def _write(
        self,
        plan: _engine.Plan,
        refreshed: Sequence[Key],
        vectors: Mapping[str, Sequence[float]],
    ) -> None:
        expected = plan.expected or {}
        keys = [writes.key_of(put) for put in plan.puts]
        names: dict[Key, list[str]] = {}
        if self._settings is not None:
            last = {(text(op.namespace), op.key): op for op in plan.ops if isinstance(op, PutOp)}
            names = {key: list(writes.field_names(last[key], self._settings)) for key in keys}
        now = self._now()
        with self.connection() as connection:
            writes.lock(connection, [*keys, *((text(name), key) for name, key in expected)])
            if expected:
                writes.check_versions(connection, expected, now)
            if refreshed:
                writes.refresh(connection, refreshed, now)
            writes.apply(connection, plan.puts, names, vectors, now)
