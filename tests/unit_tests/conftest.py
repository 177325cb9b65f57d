"""Fixtures of the tests of steps and memories: both kinds of stores, both drivers, a clock."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.stores import FaissSqliteStore
from tests.unit_tests.floor import Clock, Drive, awaiting, blocking


@pytest.fixture
def clock() -> Clock:
    """A clock under the test's control."""
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[BaseStore]:
    """LangGraph's own store in memory, and ours in a file; neither with an index."""
    if request.param == "memory":
        yield InMemoryStore()
        return
    path = tmp_path / "any.sqlite"
    with FaissSqliteStore(path, index=None, clock=clock, synchronous="normal") as store:
        yield store


@pytest.fixture
def env(any_store: BaseStore, clock: Clock) -> Environment:
    """What steps run with."""
    return Environment(store=any_store, clock=clock)


@pytest.fixture(params=[blocking, awaiting], ids=["sync", "async"])
def drive(request: pytest.FixtureRequest) -> Drive:
    """Carries steps out, with blocking calls or with `await`."""
    driver: Drive = request.param
    return driver
