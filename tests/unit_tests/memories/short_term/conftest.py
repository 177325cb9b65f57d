"""Fixtures of the short-term memories' tests: both kinds of stores, sync and async calls."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.stores import FaissSqliteStore
from tests.unit_tests.memories.conversations import Calls


@pytest.fixture(params=["sync", "async"])
def calls(request: pytest.FixtureRequest) -> Calls:
    """Make every call sync, then async."""
    return Calls(later=request.param == "async")


@pytest.fixture(params=["faiss_sqlite", "in_memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    """Give our store and LangGraph's own, without an index and with the present time."""
    if request.param == "in_memory":
        yield InMemoryStore()
        return
    with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as opened:
        yield opened
