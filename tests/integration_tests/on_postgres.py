"""A pytest plugin that gives tests PostgreSQL wherever they make an `InMemoryStore`.

`python -m pytest -p tests.integration_tests.on_postgres tests/unit_tests/memories` shows that what
runs on LangGraph's store in memory runs on PostgreSQL unchanged.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import langgraph.store.memory
import pytest

from langchain_agentmem.stores.postgres import PooledPostgresStore
from tests.integration_tests.postgres import schema_uri

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = count()
_opened: list[Any] = []


class StoreOnPostgres(PooledPostgresStore):
    """An empty store in a schema of its own, made like an `InMemoryStore`."""

    def __init__(self, *, index: Any = None) -> None:  # noqa: ANN401 - LangGraph's configuration
        where = Path(f"{os.getpid()}-{next(_numbers)}")
        exact: Any = None if index is None else {**index, "ann_index_config": {"kind": "flat"}}
        super().__init__(schema_uri(where), index=exact, max_connections=4)
        _opened.append(self)


@pytest.fixture(autouse=True)
def _close_stores() -> Iterator[None]:
    """Close the connections of a test when it is over."""
    yield
    while _opened:
        _opened.pop().close()


langgraph.store.memory.InMemoryStore = StoreOnPostgres  # type: ignore[assignment, misc]
