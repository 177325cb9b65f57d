"""LangGraph's PostgreSQL store with a pool, checked ops and an exact index, in one class."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from langgraph.store.base import Op, Result, SearchOp, TTLConfig
from langgraph.store.postgres import PostgresStore
from langgraph.store.postgres.base import PostgresIndexConfig
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from langchain_agentmem.stores._lifecycle import Closing
from langchain_agentmem.stores._ops import StoreSearchOp, check_op

_MAX_CONNECTIONS = 10


class PooledPostgresStore(Closing, PostgresStore):
    """`PostgresStore` over a connection pool, for sync and async use from threads and loops.

    It connects and creates its tables at first use. Every batch is checked as a whole before any
    of it runs, with the rules of `FaissSqliteStore`. Async calls run in worker threads.

    Args:
        conninfo: A PostgreSQL connection string.
        index: LangGraph's index configuration for PostgreSQL; None for no index.
        ttl: LangGraph's TTL configuration.
        max_connections: How many connections the pool may open.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        index: PostgresIndexConfig | None = None,
        ttl: TTLConfig | None = None,
        max_connections: int = _MAX_CONNECTIONS,
    ) -> None:
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        self._pool: Any = ConnectionPool(
            conninfo, min_size=1, max_size=max_connections, kwargs=options, open=False
        )
        self._opening = threading.Lock()
        self._is_ready = False
        super().__init__(self._pool, index=index, ttl=ttl)

    def setup(self) -> None:
        """Connect and create the tables; done by the first use too, and harmless twice."""
        with self._opening:
            if not self._is_ready:
                self._pool.open(wait=True)
                PostgresStore.setup(self)
                self._is_ready = True

    @contextmanager
    def connection(self) -> Iterator[Connection[dict[str, Any]]]:
        """Give a connection of the pool, whose rows are dicts, as one transaction."""
        self.setup()
        with self._pool.connection() as connection, connection.transaction():
            yield connection

    def close(self) -> None:
        """Stop the sweeper and close the connections; harmless twice."""
        self.stop_ttl_sweeper(timeout=5)
        self._pool.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Check and run ops; their reads see the state before, then their puts apply.

        Raises:
            ValueError: If an op is not acceptable; nothing was written.
            TypeError: If a value holds something JSON does not know; nothing was written.
        """
        checked = [_plain(check_op(op)) for op in ops]
        self.setup()
        return super().batch(checked)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does without blocking the loop."""
        return await asyncio.to_thread(self.batch, list(ops))


def _plain(op: object) -> Op:
    """Return LangGraph's own op; PostgreSQL has no search modes of ours."""
    if not isinstance(op, StoreSearchOp):
        return cast("Op", op)
    conditions = None if op.filter is None else dict(op.filter)
    return SearchOp(op.namespace_prefix, conditions, op.limit, op.offset, op.query, op.refresh_ttl)
