"""The store conformance kit over our own store and LangGraph's in-memory store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.testing import AsyncBaseStoreConformance, BaseStoreConformance
from langchain_agentmem.testing.expected_failures import IN_MEMORY_STORE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class _FaissSqlite(BaseStoreConformance):
    """How our own store is opened: everything the kit knows of, and no expected failure."""

    supports_ttl = True
    accepts_clock = True
    persistent = True
    multi_process = True
    dotted_filter_paths = True
    filter_extensions = True
    distance_types = ("cosine", "inner_product", "l2")
    namespace_delete = True
    lexical_search = True

    def create_store(self, where: Path, **options: Any) -> BaseStore:  # noqa: ANN401 - passed on, or any result of a store
        """Open the file of the test's directory."""
        clock = options.pop("clock", None)
        if clock is not None:
            options["clock"] = clock
        return FaissSqliteStore(where / "store.sqlite", **options)


class TestFaissSqliteStore(_FaissSqlite):
    """Our own store through its sync methods."""


class TestAsyncFaissSqliteStore(_FaissSqlite, AsyncBaseStoreConformance):
    """Our own store through its async methods."""


class _InMemory(BaseStoreConformance):
    """How LangGraph's in-memory store is made."""

    def create_store(self, where: Path, **options: Any) -> BaseStore:  # noqa: ANN401, ARG002 - by the kit
        """Return a new store."""
        return InMemoryStore(index=options["index"])

    @property
    def expected_failures(self) -> Mapping[str, str]:
        """The shipped table."""
        return IN_MEMORY_STORE


class TestInMemoryStore(_InMemory):
    """LangGraph's in-memory store through its sync methods."""


class TestAsyncInMemoryStore(_InMemory, AsyncBaseStoreConformance):
    """LangGraph's in-memory store through its async methods."""
