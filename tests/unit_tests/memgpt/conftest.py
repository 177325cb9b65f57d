"""An agent over both stores, run sync and async, with a scripted model and a fake clock."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.memories import MemGPT
from langchain_agentmem.testing import ScriptedChatModel
from langchain_agentmem.transcripts import said

ANN: RunnableConfig = {"configurable": {"user_id": "ann"}}
BOB: RunnableConfig = {"configurable": {"user_id": "bob"}}
ROOT = ("memories", "ann", "memgpt")


def words(messages: Sequence[BaseMessage]) -> int:
    """Count a token per word of what user, assistant and tools said."""
    return sum(len(said(each).split()) for each in messages if each.type != "system")


def call(name: str, *, heartbeat: bool = False, saying: str = "", **args: Any) -> AIMessage:  # noqa: ANN401 - a tool's own arguments
    """Return a reply that calls a tool."""
    if heartbeat:
        args["request_heartbeat"] = True
    made = {"name": name, "args": args, "id": f"call-{random.random()}", "type": "tool_call"}  # noqa: S311 - any id
    return AIMessage(saying, tool_calls=[made])


class World:
    """A store, a clock, a scripted model, and an agent made of them."""

    def __init__(self, store: BaseStore, *, later: bool) -> None:
        self.store = store
        self.later = later
        self.now = datetime(2026, 3, 1, 10, tzinfo=UTC)
        self.events: list[dict[str, Any]] = []
        self.rng = random.Random(7)  # noqa: S311 - ids

    def memory(self, script: Any = (), **given: Any) -> MemGPT:  # noqa: ANN401 - replies of any kind
        """Return a memory whose model follows a script."""
        self.model = ScriptedChatModel(replies=script)
        defaults: dict[str, Any] = {"token_counter": words, "rng": self.rng}
        return MemGPT(
            **{
                "model": self.model,
                "store": self.store,
                "clock": lambda: self.now,
                **defaults,
                **given,
            }
        )

    def tick(self, **by: float) -> None:
        """Let time pass."""
        self.now += timedelta(**by)

    def turn(
        self,
        memory: MemGPT,
        text: str | Sequence[AnyMessage],
        config: RunnableConfig = ANN,
        **given: Any,  # noqa: ANN401 - of `agent_graph`
    ) -> dict[str, Any]:
        """Run one turn of the agent and return its state; events are kept."""
        said = [HumanMessage(text)] if isinstance(text, str) else list(text)
        graph = memory.agent_graph(**given)
        states: list[dict[str, Any]] = []

        def take(mode: str, chunk: Any) -> None:  # noqa: ANN401 - as LangGraph streams it
            (self.events if mode == "custom" else states).append(chunk)

        modes: Any = ["custom", "values"]
        if self.later:

            async def run() -> None:
                async for mode, chunk in graph.astream(
                    {"messages": said}, config, stream_mode=modes
                ):
                    take(mode, chunk)

            asyncio.run(run())
        else:
            for mode, chunk in graph.stream({"messages": said}, config, stream_mode=modes):
                take(mode, chunk)
        return states[-1]

    def do(self, memory: MemGPT, name: str, *args: Any, **given: Any) -> Any:  # noqa: ANN401 - any method
        """Call a method of a memory, or its async twin."""
        given = {"config": ANN, **given}
        if self.later:
            return asyncio.run(getattr(memory, f"a{name}")(*args, **given))
        return getattr(memory, name)(*args, **given)

    def named(self, event: str) -> list[dict[str, Any]]:
        """Return the events of one name."""
        return [each for each in self.events if each["event"] == event]

    def block(self, label: str, root: tuple[str, ...] = ROOT) -> str | None:
        """Return the stored text of a block; None if nothing was written to it."""
        item = self.store.get((*root, "core"), label)
        return None if item is None else str(item.value["content"])

    def texts(self, *collection: str) -> list[str]:
        """Return the texts of a collection, sorted."""
        found = self.store.search((*ROOT, *collection), limit=1000)
        return sorted(str(each.value["content"]) for each in found)


def results(state: dict[str, Any]) -> list[str]:
    """Return the texts of a turn's tool results."""
    return [str(each.content) for each in state["messages"] if each.type == "tool"]


@pytest.fixture(params=["sqlite-sync", "sqlite-async", "memory-sync", "memory-async"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """Give every combination of store and way to call."""
    kind, _, way = request.param.partition("-")
    if kind == "memory":
        yield World(InMemoryStore(), later=way == "async")
        return
    with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as store:
        yield World(store, later=way == "async")
