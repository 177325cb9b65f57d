"""The store conformance kit over LangGraph's SQLite and PostgreSQL stores."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from langchain_agentmem.stores import open_store
from langchain_agentmem.testing import AsyncBaseStoreConformance, BaseStoreConformance
from langchain_agentmem.testing import expected_failures as tables
from tests.integration_tests.postgres import schema_uri

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from pathlib import Path

    from langgraph.store.base import BaseStore


class _Official(BaseStoreConformance):
    """What both persistent stores of LangGraph declare."""

    supports_ttl = True
    persistent = True


class _Sqlite(_Official):
    """Capabilities of LangGraph's SQLite stores."""

    dotted_filter_paths = True
    supports_vectors = hasattr(sqlite3.Connection, "enable_load_extension")
    unstable_failures = tables.SQLITE_STORE_UNSTABLE


class TestSqliteStore(_Sqlite):
    """`SqliteStore`, which is sync only."""

    @contextmanager
    def create_store(self, where: Path, **options: Any) -> Iterator[BaseStore]:  # noqa: ANN401 - passed on, or any result of a store
        """Open the file of the test's directory."""
        sqlite = pytest.importorskip("langgraph.store.sqlite")
        options.pop("clock")
        path = str(where / "store.sqlite")
        with sqlite.SqliteStore.from_conn_string(path, **options) as store:
            store.setup()
            yield store

    @property
    def expected_failures(self) -> Mapping[str, str]:
        """The shipped table."""
        return tables.SQLITE_STORE


class TestAsyncSqliteStore(_Sqlite, AsyncBaseStoreConformance):
    """`AsyncSqliteStore`, which is async only."""

    @pytest.fixture(autouse=True)
    def _report_natively(
        self, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Report failures without source lines: CPython 3.11's ast can fail on finding them."""
        monkeypatch.setattr(pytestconfig.option, "tbstyle", "native")

    @asynccontextmanager
    async def create_store(self, where: Path, **options: Any) -> AsyncIterator[BaseStore]:  # noqa: ANN401 - passed on, or any result of a store
        """Open the file of the test's directory."""
        sqlite = pytest.importorskip("langgraph.store.sqlite.aio")
        options.pop("clock")
        path = str(where / "store.sqlite")
        async with sqlite.AsyncSqliteStore.from_conn_string(path, **options) as store:
            await store.setup()
            yield store

    @property
    def expected_failures(self) -> Mapping[str, str]:
        """The shipped table."""
        return tables.ASYNC_SQLITE_STORE


class _Postgres(_Official):
    """Capabilities of LangGraph's PostgreSQL stores."""

    multi_process = True
    distance_types = ("cosine", "inner_product", "l2")
    shortest_ttl_minutes = 1
    unstable_failures = tables.POSTGRES_STORE_UNSTABLE


class TestPostgresStore(_Postgres):
    """`PostgresStore`, which is sync only."""

    @contextmanager
    def create_store(self, where: Path, **options: Any) -> Iterator[BaseStore]:  # noqa: ANN401 - passed on, or any result of a store
        """Open a schema of the test's own."""
        postgres = pytest.importorskip("langgraph.store.postgres")
        options.pop("clock")
        with postgres.PostgresStore.from_conn_string(schema_uri(where), **options) as store:
            store.setup()
            yield store

    @property
    def expected_failures(self) -> Mapping[str, str]:
        """The shipped table."""
        return tables.POSTGRES_STORE


class TestAsyncPostgresStore(_Postgres, AsyncBaseStoreConformance):
    """`AsyncPostgresStore`, which is async only."""

    @asynccontextmanager
    async def create_store(self, where: Path, **options: Any) -> AsyncIterator[BaseStore]:  # noqa: ANN401 - passed on, or any result of a store
        """Open a schema of the test's own."""
        postgres = pytest.importorskip("langgraph.store.postgres.aio")
        options.pop("clock")
        uri = schema_uri(where)
        async with postgres.AsyncPostgresStore.from_conn_string(uri, **options) as store:
            await store.setup()
            yield store

    @property
    def expected_failures(self) -> Mapping[str, str]:
        """The shipped table."""
        return tables.ASYNC_POSTGRES_STORE


class _PooledPostgres(_Official):
    """Capabilities of the store `open_store` returns for PostgreSQL."""

    multi_process = True
    distance_types = ("cosine", "inner_product", "l2")
    dotted_filter_paths = True
    filter_extensions = True
    namespace_delete = True
    lexical_search = True
    accepts_clock = True

    def create_store(self, where: Path, **options: Any) -> BaseStore:  # noqa: ANN401 - by the kit
        """Open a schema of the test's own."""
        pytest.importorskip("langgraph.store.postgres")
        return open_store(schema_uri(where), **options)

    @property
    def expected_failures(self) -> Mapping[str, str]:
        """The shipped table."""
        return tables.POOLED_POSTGRES_STORE


class TestPooledPostgresStore(_PooledPostgres):
    """`open_store("postgresql://...")` through its sync methods."""


class TestAsyncPooledPostgresStore(_PooledPostgres, AsyncBaseStoreConformance):
    """`open_store("postgresql://...")` through its async methods."""
