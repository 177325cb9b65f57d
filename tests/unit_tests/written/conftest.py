"""One memory over both stores, called sync and async."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from tests.unit_tests.floor import Clock
from tests.unit_tests.scripted import STORES, Calls, Scripted, Table, make_store, watch

ANN: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "t1"}}
BOB: RunnableConfig = {"configurable": {"user_id": "bob", "thread_id": "t2"}}


class World:
    """A store, a clock, an embedder, a scripted model, and a way to call."""

    def __init__(self, kind: str, folder: Path, *, is_async: bool) -> None:
        self.embed = Table()
        self.kind = kind
        self.folder = folder
        self.clock = Clock()
        self.model = Scripted()
        self.is_async = is_async
        self.store: BaseStore = make_store(kind, folder, self.embed)
        self.events: list[dict[str, Any]] = []

    def make(self, factory: Callable[..., Any], **given: Any) -> Calls:  # noqa: ANN401 - a double of any
        """Return a memory ready to be called."""
        given = {"model": self.model, "store": self.store, **given}
        memory = factory(clock=self.clock, rng=random.Random(7), **given)  # noqa: S311 - ids
        watch(memory, self.events)
        self.memory = memory
        return Calls(memory, is_async=self.is_async)

    def live(self, *namespace: str) -> list[str]:
        """Return the texts of a namespace, sorted."""
        found = self.store.search(namespace, limit=5000)
        return sorted(str(one.value["content"]) for one in found if one.namespace == namespace)

    def named(self, event: str) -> list[dict[str, Any]]:
        """Return the events of one name."""
        return [each for each in self.events if each["event"] == event]


@pytest.fixture(params=[f"{kind}-{mode}" for kind in STORES for mode in ("sync", "async")])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """Give every combination of store and way to call."""
    kind, mode = request.param.split("-")
    return World(kind, tmp_path, is_async=mode == "async")
