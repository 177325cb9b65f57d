"""The published suites: everything a LangGraph `BaseStore` should do, sync and async."""

from __future__ import annotations

from typing import ClassVar

from langchain_agentmem.testing.checks import expect_equal
from langchain_agentmem.testing.runners import AsyncRunner, Runner
from langchain_agentmem.testing.store_batches import BatchConformance
from langchain_agentmem.testing.store_concurrency import ConcurrencyConformance
from langchain_agentmem.testing.store_filter_extensions import FilterExtensionConformance
from langchain_agentmem.testing.store_filters import FilterConformance
from langchain_agentmem.testing.store_index import IndexConformance
from langchain_agentmem.testing.store_namespaces import NamespaceConformance, OrderConformance
from langchain_agentmem.testing.store_persistence import (
    LexicalConformance,
    NamespaceDeleteConformance,
    PersistenceConformance,
)
from langchain_agentmem.testing.store_texts import TextConformance
from langchain_agentmem.testing.store_ttl import TTLConformance
from langchain_agentmem.testing.store_values import ValueConformance


class BaseStoreConformance(
    FilterConformance,
    ValueConformance,
    OrderConformance,
    NamespaceConformance,
    BatchConformance,
    IndexConformance,
    TextConformance,
    TTLConformance,
    ConcurrencyConformance,
    PersistenceConformance,
    NamespaceDeleteConformance,
    LexicalConformance,
    FilterExtensionConformance,
):
    """Tests of a LangGraph `BaseStore` through its sync methods.

    Subclass it in a test module, implement `create_store`, and override the capability properties
    that differ. What the store cannot do is skipped with the reason; what it is known to do wrong
    is listed in `expected_failures` and turns the run red once it is right. A test's name begins
    with the row of the contract it checks.

    Example:
        ```python
        from contextlib import contextmanager

        from langgraph.store.memory import InMemoryStore

        from langchain_agentmem.testing import BaseStoreConformance
        from langchain_agentmem.testing.expected_failures import IN_MEMORY_STORE


        class TestInMemoryStore(BaseStoreConformance):
            def create_store(self, where, *, index=None, ttl=None, clock=None):
                return InMemoryStore(index=index)

            @property
            def expected_failures(self):
                return IN_MEMORY_STORE
        ```
    """

    def test_expected_failures_name_tests(self) -> None:
        """The tables of known failures name tests that exist, so that none goes unnoticed."""
        named = {*self.expected_failures, *self.unstable_failures}
        unknown = sorted(name for name in named if not hasattr(self, name.partition("[")[0]))
        expect_equal(unknown, [], "names in the tables of failures that are no tests")


class AsyncBaseStoreConformance(BaseStoreConformance):
    """The same tests through the async methods, on one loop in a thread of its own.

    It needs no pytest plugin. `create_store` may return an async context manager, which is then
    entered on that loop.
    """

    runner_class: ClassVar[type[Runner]] = AsyncRunner
