"""Flows: the graph and the direct drive are the same steps, in the same order."""

from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict

from langchain_agentmem.memories import MemoryState, RAGMemory
from langchain_agentmem.scopes import Scope
from langchain_agentmem.steps.drivers import run
from langchain_agentmem.steps.effects import Now, Put, Setting, Steps, Write
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.steps.flow import END, Flow, Step
from tests.unit_tests.floor import Clock, Drive, everything

Graph = CompiledStateGraph[Any, Any, Any, Any]


class State(TypedDict, total=False):
    """State of the flow under test."""

    count: Annotated[int, UntrackedValue]
    trail: Annotated[list[str], UntrackedValue]


class Context(TypedDict, total=False):
    """Context of the flow under test."""

    until: int


def _count(state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    """Count up and note the time in the store."""
    count = state.get("count", 0) + 1
    now = yield from Now()
    yield from Write([Put(("log",), str(count), {"content": now.isoformat()})])
    return {"count": count, "trail": [*state.get("trail", []), "count"]}


def _close(state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    """Say for whom it was counted."""
    who = yield from Setting("user_id", "nobody")
    return {"trail": [*state["trail"], f"close for {who}"]}


def _again(state: Mapping[str, Any]) -> str:
    """Name the step after `count`."""
    return "count" if state["count"] < 3 else "close"


def _flow() -> Flow:
    """Return a flow with a loop."""
    return Flow(
        Step("count", _count, route=_again, to=("count", "close")),
        Step("close", _close),
        state=State,
    )


def _graph(flow: Flow, store: InMemoryStore) -> Graph:
    """Return the flow as a graph on a store."""

    def environment(config: RunnableConfig) -> Environment:
        return Environment(store=store, scope=Scope.of(config), clock=Clock())

    return flow.graph(
        name="counting",
        input_schema=State,
        output_schema=State,
        context_schema=Context,
        environment=environment,
    )


def test_a_route_chooses_the_next_step(drive: Drive) -> None:
    """A step is repeated as long as its route says so; then the next in order follows."""
    env = Environment(store=InMemoryStore(), clock=Clock())
    final = drive(_flow().drive({}), env)
    assert final["trail"] == ["count", "count", "count", "close for nobody"]


def test_a_route_can_end_the_flow(drive: Drive) -> None:
    """A route to the end leaves the later steps out."""
    flow = Flow(Step("count", _count, route=lambda _: END), Step("close", _close), state=State)
    env = Environment(store=InMemoryStore(), clock=Clock())
    assert drive(flow.drive({}), env)["trail"] == ["count"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_graph_and_direct_drive_are_equal(*, is_async: bool) -> None:
    """Both give the same state and leave the same store."""
    config: RunnableConfig = {"configurable": {"user_id": "ann"}}
    direct, drawn = InMemoryStore(), InMemoryStore()
    env = Environment(store=direct, scope=Scope.of(config), clock=Clock())
    driven = run(_flow().drive({}), env)
    graph = _graph(_flow(), drawn)
    out = await graph.ainvoke({}, config) if is_async else graph.invoke({}, config)
    assert out == driven
    assert everything(direct) == everything(drawn)


def test_every_step_is_a_visible_node_with_all_its_routes() -> None:
    """A drawing of the graph shows each step and each way between them."""
    drawing = _graph(_flow(), InMemoryStore()).get_graph()
    assert {"count", "close"} <= set(drawing.nodes)
    ways = {(edge.source, edge.target) for edge in drawing.edges}
    assert {("count", "count"), ("count", "close"), ("close", "__end__")} <= ways


@pytest.mark.parametrize("is_async", [False, True])
async def test_memory_graphs_as_nodes_use_the_store_of_the_user_s_graph(*, is_async: bool) -> None:
    """Recall and remember run as nodes; what is recalled never enters a checkpoint."""
    memory = RAGMemory()
    builder = StateGraph(MemoryState)
    builder.add_node("recall", memory.recall_graph())
    builder.add_node("remember", memory.remember_graph())
    builder.set_entry_point("recall")
    builder.add_edge("recall", "remember")
    saver, store = InMemorySaver(), InMemoryStore()
    graph = builder.compile(store=store, checkpointer=saver)
    ann = {"user_id": "ann"}
    for thread, text in (("t1", "My parrot is called Zanzibar."), ("t2", "the parrot?")):
        config: RunnableConfig = {"configurable": {"thread_id": thread, **ann}}
        given: Any = {"messages": [("user", text)]}
        out = await graph.ainvoke(given, config) if is_async else graph.invoke(given, config)
    assert "Zanzibar" in out["memory_context"]
    checkpoints = repr(list(saver.list({"configurable": {"thread_id": "t2"}})))
    blobs = repr({key: value for key, value in saver.blobs.items() if key[0] == "t2"})
    assert "Zanzibar" not in checkpoints + blobs
