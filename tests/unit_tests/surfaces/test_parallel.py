"""N turns at once leave N turns recorded, whatever the surface: in threads and in coroutines."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import (
    AgentMemoryMiddleware,
    FaissSqliteStore,
    MemoryState,
    RAGMemory,
    create_manage_memory_tool,
)
from langchain_agentmem.consolidation import MemoryQueue
from langchain_agentmem.memories import WindowMemory
from langchain_agentmem.scopes import ROOT
from langchain_agentmem.surfaces import (
    ShortTermMiddleware,
    StoreChatMessageHistory,
    create_memory_agent,
    mem0,
    remember_node,
    submit_node,
)
from langchain_agentmem.surfaces.langmem import create_memory_store_manager
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.memories.conversations import FACT, at_once, summarizer

ANN: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "monday"}}
COUNT = 8
FACTS = {f"FACT{number:03d}" for number in range(COUNT)}
TURNS = ("memories", "ann", "rag", "turns")


@dataclass(frozen=True)
class Surface:
    """One way in: its turn, sync and async, and what it has recorded."""

    turn: Callable[[int], object]
    aturn: Callable[[int], Coroutine[Any, Any, object]]
    recorded: Callable[[], list[str]]


def fact(number: int) -> str:
    """Return what is said in a turn."""
    return f"FACT{number:03d} is so."


def said(number: int) -> dict[str, Any]:
    """Return the input of a graph."""
    return {"messages": [HumanMessage(fact(number), id=f"h{number}")]}


def texts(store: BaseStore, namespace: tuple[str, ...]) -> list[str]:
    """Return the contents of one namespace."""
    return [str(each.value["content"]) for each in store.search(namespace, limit=100)]


def graph_surface(graph: Any, recorded: Callable[[], list[str]]) -> Surface:  # noqa: ANN401 - a compiled graph
    """Return a surface that is a graph."""
    return Surface(
        lambda number: graph.invoke(said(number), ANN),
        lambda number: graph.ainvoke(said(number), ANN),
        recorded,
    )


def agent(store: BaseStore, **options: Any) -> Surface:  # noqa: ANN401 - the middleware's options
    """The middleware."""
    middleware = AgentMemoryMiddleware(RAGMemory(), **options)
    model = ScriptedChatModel(replies=lambda _: "ok")
    made = create_agent(model, [], middleware=[middleware], store=store)

    def recorded() -> list[str]:
        middleware.close()
        return texts(store, TURNS)

    return graph_surface(made, recorded)


def in_background(store: BaseStore) -> Surface:
    """The middleware that records in the background."""
    return agent(store, record="background")


def node(store: BaseStore) -> Surface:
    """The remember node."""
    builder = StateGraph(MemoryState)
    builder.add_node("remember", remember_node(RAGMemory()))
    builder.add_edge(START, "remember")
    return graph_surface(builder.compile(store=store), lambda: texts(store, TURNS))


def queue(store: BaseStore) -> Surface:
    """The submit node."""
    waiting = MemoryQueue(store=store)
    builder = StateGraph(MemoryState)
    builder.add_node("submit", submit_node(waiting))
    builder.add_edge(START, "submit")
    return graph_surface(
        builder.compile(store=store),
        lambda: [str(each.messages) for each in waiting.pending()],
    )


def whole_agent(store: BaseStore) -> Surface:
    """The agent with a memory."""
    model = ScriptedChatModel(replies=lambda _: AIMessage("ok"))
    made = create_memory_agent(RAGMemory(), model=model).compile(store=store)
    return graph_surface(made, lambda: texts(store, TURNS))


def tool(store: BaseStore) -> Surface:
    """The manage tool."""
    made = create_manage_memory_tool(("memories", "{user_id}"), store=store)
    return Surface(
        lambda number: made.invoke({"content": fact(number)}, ANN),
        lambda number: made.ainvoke({"content": fact(number)}, ANN),
        lambda: texts(store, ("memories", "ann")),
    )


def history(store: BaseStore) -> Surface:
    """The chat history."""
    made = StoreChatMessageHistory(store, session_id="s")
    return Surface(
        lambda number: made.add_messages([HumanMessage(fact(number))]),
        lambda number: made.aadd_messages([HumanMessage(fact(number))]),
        lambda: [each.text for each in made.messages],
    )


def chain(store: BaseStore, *, background: bool = False) -> Surface:
    """The chain memory."""
    pytest.importorskip("langchain_classic")
    from langchain_agentmem.surfaces.chains import ChainMemory

    memory = ChainMemory(
        memory=RAGMemory(store=store), config={"user_id": "ann"}, background=background
    )

    def recorded() -> list[str]:
        memory.close()
        return texts(store, TURNS)

    return Surface(
        lambda number: memory.save_context({"input": fact(number)}, {"response": "ok"}),
        lambda number: memory.asave_context({"input": fact(number)}, {"response": "ok"}),
        recorded,
    )


def background_chain(store: BaseStore) -> Surface:
    """The chain memory that records in the background."""
    return chain(store, background=True)


def classic_chain(store: BaseStore, shape: str, **options: Any) -> Surface:  # noqa: ANN401 - the class's options
    """A drop-in chain memory."""
    pytest.importorskip("langchain_classic")
    from langchain_agentmem.surfaces import chains

    memory = getattr(chains, shape)(store=store, session_id="s", **options)
    return Surface(
        lambda number: memory.save_context({"input": fact(number)}, {"response": "ok"}),
        lambda number: memory.asave_context({"input": fact(number)}, {"response": "ok"}),
        lambda: everything_said(store),
    )


def everything_said(store: BaseStore) -> list[str]:
    """Return the texts of the user that lie in any archive."""
    return [
        str(each.value["content"])
        for name in store.list_namespaces(limit=1000)
        if name[0] != ROOT and name[-1] in {"archive", "turns"}
        for each in store.search(name, limit=100)
    ]


def window_chain(store: BaseStore) -> Surface:
    """The chain memory of the last turns."""
    return classic_chain(store, "ConversationBufferWindowMemory", k=2)


def token_chain(store: BaseStore) -> Surface:
    """The chain memory within a number of tokens."""
    return classic_chain(store, "ConversationTokenBufferMemory", max_token_limit=30)


def summary_chain(store: BaseStore) -> Surface:
    """The chain memory with a summary and the newest turns."""
    name, model = "ConversationSummaryBufferMemory", summarizer()
    return classic_chain(store, name, llm=model, max_token_limit=30)


def vector_chain(store: BaseStore) -> Surface:
    """The chain memory of relevant turns."""
    return classic_chain(store, "VectorStoreRetrieverMemory")


def view(store: BaseStore) -> Surface:
    """An agent whose view is a short-term memory."""
    model = ScriptedChatModel(replies=lambda _: "ok")
    middleware = [ShortTermMiddleware(WindowMemory(k=2))]
    made = create_agent(model, [], middleware=middleware, store=store)
    return graph_surface(made, lambda: everything_said(store))


def mem0_names(store: BaseStore) -> Surface:
    """mem0's own names."""
    made, amade = mem0.Memory(store=store), mem0.AsyncMemory(store=store)
    return Surface(
        lambda number: made.add(fact(number), user_id="ann", infer=False),
        lambda number: amade.add(fact(number), user_id="ann", infer=False),
        lambda: [each["memory"] for each in made.get_all(user_id="ann")["results"]],
    )


def manager(store: BaseStore) -> Surface:
    """LangMem's store manager."""

    def reply(messages: list[BaseMessage]) -> str:
        said = FACT.findall(messages[-1].text)[-1]
        return json.dumps({"memories": [{"action": "create", "content": f"{said} is so."}]})

    model = ScriptedChatModel(replies=reply)
    made = create_memory_store_manager(model, namespace=("memories", "ann"), store=store)
    return Surface(
        lambda number: made.invoke(said(number)),
        lambda number: made.ainvoke(said(number)),
        lambda: texts(store, ("memories", "ann")),
    )


SURFACES = (
    agent,
    in_background,
    node,
    queue,
    whole_agent,
    tool,
    history,
    chain,
    background_chain,
    window_chain,
    token_chain,
    summary_chain,
    vector_chain,
    view,
    mem0_names,
    manager,
)


@pytest.fixture(params=["faiss", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    """Give our store, and LangGraph's own."""
    if request.param == "memory":
        yield InMemoryStore()
    else:
        with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as ours:
            yield ours


@pytest.mark.parametrize("make", SURFACES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("later", [False, True], ids=["threads", "coroutines"])
def test_turns_at_once_are_all_recorded(store: BaseStore, make: Any, later: bool) -> None:  # noqa: ANN401 - a function of a store
    """Eight turns that meet leave eight facts, each once."""
    surface: Surface = make(store)

    async def all_at_once() -> None:
        await asyncio.gather(*(surface.aturn(number) for number in range(COUNT)))

    asyncio.run(all_at_once()) if later else at_once(surface.turn, COUNT)
    found = [name for text in surface.recorded() for name in set(FACT.findall(text))]
    assert sorted(found) == sorted(FACTS)
