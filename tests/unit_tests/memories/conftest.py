"""Fixtures of the memories' tests: every kind of store a memory may be given."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.memories import RAGMemory
from langchain_agentmem.stores import FaissSqliteStore
from tests.unit_tests.floor import Calls, Clock

INDEX: Any = {"dims": 8, "embed": DeterministicFakeEmbedding(size=8), "fields": ["content"]}
SQLITE: dict[str, Any] = {"sqlite-plain": None, "sqlite-default": "default", "sqlite-embed": INDEX}

Make = Callable[..., Calls]


@pytest.fixture(params=["memory-plain", "memory-index", *SQLITE])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[BaseStore]:
    """LangGraph's store in memory and ours in a file, each with and without an index."""
    if request.param.startswith("memory"):
        yield InMemoryStore(index=INDEX if request.param == "memory-index" else None)
        return
    path = tmp_path / "memory.sqlite"
    index = SQLITE[request.param]
    with FaissSqliteStore(path, index=index, clock=clock, synchronous="normal") as opened:
        yield opened


@pytest.fixture(params=["sync", "async"])
def make(request: pytest.FixtureRequest, store: BaseStore, clock: Clock) -> Make:
    """Makes memories on the store, called through their sync or their async methods."""

    def memory(**options: Any) -> Calls:  # noqa: ANN401 - any of the constructor's arguments
        given: dict[str, Any] = {"store": store, "clock": clock}
        made = RAGMemory(**(given | options))
        return Calls(made, is_async=request.param == "async")

    return memory


@pytest.fixture
def memory(make: Make) -> Calls:
    """A memory with the default parameters."""
    return make()
