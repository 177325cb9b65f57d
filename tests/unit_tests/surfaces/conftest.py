"""Fixtures of the surfaces' tests: both kinds of stores, a clock, sync and async calls."""

import asyncio
import importlib.util
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import (
    FaissSqliteStore,
    create_manage_memory_tool,
    create_search_memory_tool,
)
from langchain_agentmem.embeddings import default_embeddings
from langchain_agentmem.stores import StoreIndexConfig
from tests.unit_tests.floor import Clock

CLASSIC = ["test_chains.py", "test_chains_upstream.py", "test_side_by_side.py"]
collect_ignore = [] if importlib.util.find_spec("langchain_classic") else CLASSIC
"""Classic chains are an extra."""


ANN: RunnableConfig = {"configurable": {"user_id": "ann"}}
HOME = ("memories", "ann")
TEMPLATE = ("memories", "{user_id}")

EMBEDDER = default_embeddings()
"""One for all tests: it loads once."""

Invoke = Callable[..., Any]


class Tools:
    """Both tools over one store, called as a model would call them."""

    def __init__(self, store: BaseStore, clock: Clock, invoke: Invoke) -> None:
        self.store = store
        self.clock = clock
        self.rng = random.Random(7)  # noqa: S311 - reproducible ids
        self._invoke = invoke

    def manage(self, config: Any = None, options: Any = None, **arguments: Any) -> Any:  # noqa: ANN401
        """Call the manage tool and return its message."""
        tool = create_manage_memory_tool(
            TEMPLATE,
            store=self.store,
            clock=self.clock,
            rng=self.rng,
            **(options or {}),
        )
        return self._call(tool, arguments, config)

    def search(self, config: Any = None, options: Any = None, **arguments: Any) -> Any:  # noqa: ANN401
        """Call the search tool and return its message."""
        tool = create_search_memory_tool(
            TEMPLATE, store=self.store, clock=self.clock, **(options or {})
        )
        return self._call(tool, arguments, config)

    def _call(self, tool: Any, arguments: dict[str, Any], config: Any) -> Any:  # noqa: ANN401
        call = {"name": tool.name, "args": arguments, "id": "c1", "type": "tool_call"}
        return self._invoke(tool, call, config or ANN)


def id_in(message: Any) -> str:  # noqa: ANN401 - a tool message or its text
    """Return the id that a manage tool's result names."""
    return str(getattr(message, "content", message)).split()[2]


def sync_invoke(runnable: Any, given: Any, config: Any = None, **options: Any) -> Any:  # noqa: ANN401
    """Invoke."""
    return runnable.invoke(given, config, **options)


def async_invoke(runnable: Any, given: Any, config: Any = None, **options: Any) -> Any:  # noqa: ANN401
    """Invoke through the async twin."""
    return asyncio.run(runnable.ainvoke(given, config, **options))


@pytest.fixture(params=[sync_invoke, async_invoke], ids=["sync", "async"])
def invoke(request: pytest.FixtureRequest) -> Invoke:
    """Invokes a runnable, sync or async."""
    way: Invoke = request.param
    return way


@pytest.fixture(params=["faiss", "memory", "plain"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    """Our store; LangGraph's with an index; LangGraph's without one."""
    if request.param == "faiss":
        index: StoreIndexConfig = {"dims": EMBEDDER.dims, "embed": EMBEDDER, "fields": ["content"]}
        with FaissSqliteStore(tmp_path / "memory.sqlite", index=index) as ours:
            yield ours
    elif request.param == "memory":
        embedder = DeterministicFakeEmbedding(size=16)
        yield InMemoryStore(index={"dims": 16, "embed": embedder, "fields": ["content"]})
    else:
        yield InMemoryStore()


@pytest.fixture
def tools(store: BaseStore, clock: Clock, invoke: Invoke) -> Tools:
    """Both tools, on every kind of store, sync and async."""
    return Tools(store, clock, invoke)
