"""Measure what each surface costs over the store calls that it makes, beside the others' own.

    python benchmarks/surfaces.py [--items 1000] [--repeat 300] [--limits]

All are measured in one run on one `FaissSqliteStore` with the default embeddings and a scope of
`--items` memories. *Own* is CPU time of the process outside of the store, *store* the CPU time
inside of it, each at the lowest tenth of all calls, so that what else the machine does is left out;
*calls* is how often the store was called. *Over LangChain* is own time over that of LangChain's own
way around one bare store call: its `@tool`; for agents, a middleware with the same hooks that do
nothing, a call of the model. The agents' memory does one search and one put, so that no ranking of
a real memory is counted.

`--limits` fails if a memory tool takes more than 0.3 ms over LangChain's, or the middleware more
than 1 ms.
"""

import argparse
import asyncio
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import langmem  # type: ignore[import-untyped]  # published without annotations
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.store.base import PutOp

from langchain_agentmem import (
    AgentMemoryMiddleware,
    FaissSqliteStore,
    Memory,
    MemoryState,
    create_manage_memory_tool,
    create_search_memory_tool,
)
from langchain_agentmem.rendering import render_memories
from langchain_agentmem.steps.effects import Put, Resolve, Search, Steps, Write
from langchain_agentmem.steps.flow import Flow, Step
from langchain_agentmem.stores import StoreRetriever
from langchain_agentmem.surfaces import MemoryRetriever, StoreChatMessageHistory
from langchain_agentmem.surfaces.chains import ConversationBufferMemory
from langchain_agentmem.testing import ScriptedChatModel

ANN: Final[RunnableConfig] = {"configurable": {"user_id": "ann", "thread_id": "monday"}}
HOME: Final = ("memories", "ann")
TEMPLATE: Final = ("memories", "{user_id}")
QUESTION: Final = "thing number 7"
MODEL_CALLS: Final = 3
SHELL: Final = "LangChain @tool"
IDLE: Final = "middleware with idle hooks"
WARM_UP: Final = 20

Call = Callable[[], object]
Make = Callable[["TimedStore"], dict[str, Call]]


class TimedStore(FaissSqliteStore):
    """Adds up the CPU time that is spent inside of it."""

    spent = 0.0
    calls = 0

    def batch(self, *given: Any, **options: Any) -> Any:  # noqa: ANN401 - as the base
        """Apply a batch."""
        started = time.process_time()
        try:
            return super().batch(*given, **options)
        finally:
            self.spent += time.process_time() - started
            self.calls += 1

    async def abatch(self, *given: Any, **options: Any) -> Any:  # noqa: ANN401 - as the base
        """Apply a batch."""
        started = time.process_time()
        try:
            return await super().abatch(*given, **options)
        finally:
            self.spent += time.process_time() - started
            self.calls += 1


class Bare(Memory):
    """Recalls with one search and remembers with one put: what a surface costs, and no more."""

    architecture = "bare"
    remember_asks = False

    def recall_flow(self) -> Flow:
        """Return the step `search`."""
        return Flow(Step("search", self._search), state=MemoryState)

    def remember_flow(self) -> Flow:
        """Return the step `put`."""
        return Flow(Step("put", self._put), state=MemoryState)

    def _search(self, state: Any) -> Steps[dict[str, Any]]:  # noqa: ANN401 - a graph's state
        home = yield from Resolve(self.namespace)
        found = yield from Search(home, state["query"], limit=state["limit"])
        text = render_memories(found)
        return {"memories": [each.to_dict() for each in found], "memory_context": text}

    def _put(self, state: Any) -> Steps[dict[str, Any]]:  # noqa: ANN401 - a graph's state
        home = yield from Resolve(self.namespace)
        said = [each.text for each in state["messages"]]
        yield from Write([Put(home, said[0], {"content": said}, ["content"])])
        return {"memory_operations": []}


class Idle(AgentMiddleware[Any, Any, Any]):
    """Has the hooks of `AgentMemoryMiddleware` and does nothing in them."""

    def before_agent(self, state: Any, runtime: Any) -> None:  # noqa: ANN401 - LangChain's signature
        """Do nothing."""

    def after_agent(self, state: Any, runtime: Any) -> None:  # noqa: ANN401 - LangChain's signature
        """Do nothing."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:  # noqa: ANN401 - LangChain's signature
        """Do nothing."""
        return handler(request)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call costs, in milliseconds.

    Attributes:
        own: Outside of the store.
        store: Inside of the store.
        calls: How often the store was called.
    """

    own: float
    store: float
    calls: int


def costs(store: TimedStore, ways: dict[str, Call], repeat: int) -> dict[str, Cost]:
    """Return what calls cost, at the lowest tenth of their repetitions.

    They take turns, so that a busy machine slows all of them alike.
    """
    own: dict[str, list[float]] = {name: [] for name in ways}
    inside: dict[str, list[float]] = {name: [] for name in ways}
    calls: dict[str, int] = {}
    for turn in range(WARM_UP + repeat):
        for name, call in ways.items():
            store.spent, store.calls = 0.0, 0
            started = time.process_time()
            call()
            whole = time.process_time() - started
            if turn >= WARM_UP:
                own[name].append(1000 * (whole - store.spent))
                inside[name].append(1000 * store.spent)
                calls[name] = store.calls
    return {
        name: Cost(quantiles(own[name], n=10)[0], quantiles(inside[name], n=10)[0], calls[name])
        for name in ways
    }


@contextmanager
def filled(items: int) -> Iterator[TimedStore]:
    """Give a store with so many memories of one user."""
    with (
        tempfile.TemporaryDirectory() as folder,
        TimedStore(Path(folder) / "memory.sqlite") as store,
    ):
        store.batch(
            [
                PutOp(HOME, f"k{number}", {"content": f"Ann likes thing number {number}."})
                for number in range(items)
            ]
        )
        yield store


def searches(store: TimedStore) -> dict[str, Call]:
    """Return every way to search, by name."""

    @tool
    def plain(query: str) -> str:
        """Search."""
        return str(store.search(HOME, query=query, limit=10))

    theirs = langmem.create_search_memory_tool(TEMPLATE, store=store)
    ours = create_search_memory_tool(TEMPLATE, store=store)
    compact = create_search_memory_tool(TEMPLATE, store=store, format="compact")
    by_store = StoreRetriever(store=store, namespace=HOME, k=10)
    by_memory = MemoryRetriever(memory=Bare(store=store), k=10)
    given = {"query": QUESTION}
    return {
        "store.search": lambda: store.search(HOME, query=QUESTION, limit=10),
        SHELL: lambda: plain.invoke(given, ANN),
        "LangMem search_memory": lambda: theirs.invoke(given, ANN),
        "search_memory": lambda: ours.invoke(given, ANN),
        "search_memory, compact": lambda: compact.invoke(given, ANN),
        "StoreRetriever": lambda: by_store.invoke(QUESTION, ANN),
        "MemoryRetriever": lambda: by_memory.invoke(QUESTION, ANN),
    }


def writes(store: TimedStore) -> dict[str, Call]:
    """Return every way to write, by name."""
    number = count()

    @tool
    def plain(content: str) -> str:
        """Save."""
        store.put(HOME, content, {"content": content})
        return "saved"

    theirs = langmem.create_manage_memory_tool(TEMPLATE, store=store)
    ours = create_manage_memory_tool(TEMPLATE, store=store)
    allow = create_manage_memory_tool(TEMPLATE, store=store, on_duplicate="allow")
    history = StoreChatMessageHistory(store, session_id="ann")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        listed = InMemoryChatMessageHistory()

    def fact() -> str:
        return f"Ann said number {next(number)}."

    return {
        "store.put": lambda: store.put(HOME, fact(), {"content": fact()}),
        SHELL: lambda: plain.invoke({"content": fact()}, ANN),
        "LangMem manage_memory": lambda: theirs.invoke({"content": fact()}, ANN),
        "manage_memory": lambda: ours.invoke({"content": fact()}, ANN),
        "manage_memory, duplicates allowed": lambda: allow.invoke({"content": fact()}, ANN),
        "InMemoryChatMessageHistory": lambda: listed.add_user_message(fact()),
        "StoreChatMessageHistory": lambda: history.add_user_message(fact()),
    }


def awaited(store: TimedStore) -> dict[str, Call]:
    """Return the tools' async calls, by name, each with what a running event loop costs."""
    number = count()
    loop = asyncio.new_event_loop()

    async def search(query: str) -> str:
        """Search."""
        return str(await store.asearch(HOME, query=query, limit=10))

    plain = tool(search)
    manage = create_manage_memory_tool(TEMPLATE, store=store)
    their_search = langmem.create_search_memory_tool(TEMPLATE, store=store)
    their_manage = langmem.create_manage_memory_tool(TEMPLATE, store=store)
    ours = create_search_memory_tool(TEMPLATE, store=store)
    given = {"query": QUESTION}

    def fact() -> dict[str, str]:
        return {"content": f"Ann said number {next(number)}."}

    ways: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "store.asearch": lambda: store.asearch(HOME, query=QUESTION, limit=10),
        SHELL: lambda: plain.ainvoke(given, ANN),
        "LangMem search_memory": lambda: their_search.ainvoke(given, ANN),
        "search_memory": lambda: ours.ainvoke(given, ANN),
        "LangMem manage_memory": lambda: their_manage.ainvoke(fact(), ANN),
        "manage_memory": lambda: manage.ainvoke(fact(), ANN),
    }
    return {
        name: lambda make=make: loop.run_until_complete(make())  # type: ignore[misc]  # a bound name
        for name, make in ways.items()
    }


def chains(store: TimedStore) -> dict[str, Call]:
    """Return a load and a save of a classic chain memory and of ours, by name."""
    from langchain_classic.memory import ConversationBufferMemory as Classic

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = Classic()
    ours = ConversationBufferMemory(store=store, session_id="chain", max_messages=20)

    def turn(memory: Any) -> None:  # noqa: ANN401 - two unrelated base classes
        memory.load_memory_variables({"input": "Hello"})
        memory.save_context({"input": "Hello"}, {"response": "Hi"})

    return {
        "classic ConversationBufferMemory": lambda: turn(theirs),
        "ConversationBufferMemory": lambda: turn(ours),
    }


def agents(store: TimedStore) -> dict[str, Call]:
    """Return turns of an agent with three calls of its model, by name."""

    def look(what: str) -> str:
        """Look something up."""
        return f"saw {what}"

    def answer(messages: list[BaseMessage]) -> AIMessage:
        looked = sum(each.type == "tool" for each in messages)
        if looked == MODEL_CALLS - 1:
            return AIMessage("Done.")
        call = {"name": "look", "args": {"what": "it"}, "id": f"call-{looked}"}
        return AIMessage("", tool_calls=[call])

    model = ScriptedChatModel(replies=answer)
    summarizing = SummarizationMiddleware(model, trigger=("tokens", 1_000_000))
    memory = Bare(store=store)
    middleware: dict[str, list[Any]] = {
        IDLE: [Idle()],
        "no middleware": [],
        "LangChain SummarizationMiddleware": [summarizing],
        "AgentMemoryMiddleware": [AgentMemoryMiddleware(memory)],
        "AgentMemoryMiddleware, record='off'": [AgentMemoryMiddleware(memory, record="off")],
    }
    number = count()

    def turn(agent: Any) -> object:  # noqa: ANN401 - a compiled graph
        model.requests.clear()
        return agent.invoke({"messages": [HumanMessage(f"What of {next(number)}?")]}, ANN)

    return {
        name: partial(turn, create_agent(model, [look], middleware=each))
        for name, each in middleware.items()
    }


GROUPS: Final[Sequence[tuple[str, Make, str | None, dict[str, float]]]] = (
    ("search", searches, SHELL, {"search_memory": 0.3, "search_memory, compact": 0.3}),
    ("write", writes, SHELL, {"manage_memory": 0.3, "manage_memory, duplicates allowed": 0.3}),
    ("awaited", awaited, SHELL, {"search_memory": 0.3, "manage_memory": 0.3}),
    ("turn of a chain", chains, None, {}),
    ("agent, a call of the model", agents, IDLE, {"AgentMemoryMiddleware": 1.0}),
)


def table(title: str, rows: dict[str, Cost], base: str | None) -> None:
    """Print costs as a Markdown table."""
    print(f"\n| {title} | own ms | over LangChain ms | store ms | store calls |")
    print("|---|---|---|---|---|")
    for name, each in rows.items():
        over = f"{each.own - rows[base].own:.2f}" if base else ""
        print(f"| {name} | {each.own:.2f} | {over} | {each.store:.2f} | {each.calls} |")


def per_model_call(rows: dict[str, Cost]) -> dict[str, Cost]:
    """Return the costs of one call of the model."""
    return {
        name: Cost(each.own / MODEL_CALLS, each.store / MODEL_CALLS, each.calls)
        for name, each in rows.items()
    }


def main() -> int:
    """Print the tables; return 1 if limits were asked for and not met."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=300)
    parser.add_argument("--limits", action="store_true")
    options = parser.parse_args()
    slow: list[str] = []
    for title, make, base, limits in GROUPS:
        with filled(options.items) as store:
            rows = costs(store, make(store), options.repeat)
        rows = per_model_call(rows) if make is agents else rows
        table(title, rows, base)
        slow += [
            f"{name} takes more than {limit} ms over LangChain's own way."
            for name, limit in limits.items()
            if base and rows[name].own - rows[base].own > limit
        ]
    print("\n".join(["", *slow]))
    return 1 if slow and options.limits else 0


if __name__ == "__main__":
    sys.exit(main())
