"""A flow as a node: drawn with its steps, streamed, retried as a whole, never checkpointed."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy
from typing_extensions import TypedDict

from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.steps.flow import Flow, Step


class State(TypedDict, total=False):
    """What is found is not tracked."""

    found: Annotated[str, UntrackedValue]
    answer: str


class Unsteady:
    """Two steps of which the second fails the first time."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def find(self, _: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Find something."""
        yield from ()
        self.calls.append("find")
        return {"found": "treasure"}

    def use(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Use what was found, at the second try."""
        yield from ()
        self.calls.append("use")
        if self.calls.count("use") == 1:
            msg = "the line is busy"
            raise ConnectionError(msg)
        return {"answer": f"a {state['found']}"}

    def graph(self, saver: InMemorySaver | None) -> Any:  # noqa: ANN401 - a compiled graph
        """Return a parent graph with the flow as its node."""
        flow = Flow(Step("find", self.find), Step("use", self.use), state=State)
        child = flow.graph(
            name="child",
            input_schema=State,
            output_schema=State,
            context_schema=State,
            environment=lambda _: Environment(),
        )
        builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        policy = RetryPolicy(initial_interval=0.01, jitter=False)
        builder.add_node("child", child, retry_policy=policy)
        builder.add_edge(START, "child")
        builder.add_edge("child", END)
        return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("is_async", [False, True])
def test_retry_runs_the_whole_flow_again(*, is_async: bool) -> None:
    """After a failure in between nothing goes on without the untracked state of earlier steps."""
    unsteady = Unsteady()
    saver = InMemorySaver()
    graph = unsteady.graph(saver)
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}

    state = asyncio.run(graph.ainvoke({}, config)) if is_async else graph.invoke({}, config)

    assert state["answer"] == "a treasure"
    assert unsteady.calls == ["find", "use", "find", "use"]
    assert {each.config["configurable"]["checkpoint_ns"] for each in saver.list(config)} == {""}


def test_steps_stay_visible() -> None:
    """Drawings and streams of the parent show the flow's steps."""
    graph = Unsteady().graph(InMemorySaver())

    drawn = {name.split(":")[-1] for name in graph.get_graph(xray=True).nodes}
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    streamed = {
        name
        for place, update in graph.stream({}, config, subgraphs=True, stream_mode="updates")
        for name in update
        if place
    }

    assert drawn >= {"find", "use"}
    assert streamed == {"find", "use"}


def test_graph_with_a_checkpointer_of_its_own_keeps_it() -> None:
    """A server that runs the graph by itself may lend it a checkpointer."""
    unsteady = Unsteady()
    (_, child), *_ = unsteady.graph(None).get_subgraphs()
    saver = InMemorySaver()
    own = child.copy({"checkpointer": saver})
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    unsteady.calls.append("use")

    own.invoke({}, config)

    assert own.get_state(config).values["answer"] == "a treasure"


@pytest.mark.parametrize("is_async", [False, True])
def test_interrupt_between_two_steps_loses_nothing(*, is_async: bool) -> None:
    """What the first step left is never saved, so it is worked out again when the run goes on."""
    unsteady = Unsteady()
    (_, child), *_ = unsteady.graph(None).get_subgraphs()
    own = child.copy({"checkpointer": InMemorySaver()})
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    unsteady.calls.append("use")

    def run(given: dict[str, Any] | None, *before: str) -> Any:  # noqa: ANN401 - a state
        if is_async:
            return asyncio.run(own.ainvoke(given, config, interrupt_before=before))
        return own.invoke(given, config, interrupt_before=before)

    run({}, "use")
    assert own.get_state(config).next == ("use",)
    assert run(None)["answer"] == "a treasure"
    assert unsteady.calls == ["use", "find", "find", "use"]


class Counting(TypedDict, total=False):
    """What is asked and what was seen is not tracked, how far the run is is."""

    query: Annotated[str, UntrackedValue]
    seen: Annotated[str, UntrackedValue]
    count: int
    answers: list[str]


def _counting() -> Any:  # noqa: ANN401 - a compiled graph
    """Return a graph that looks and answers three times."""

    def begin(_: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        yield from ()
        return {"count": 0, "answers": []}

    def look(state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        yield from ()
        return {"seen": f"{state['query']} {state['count']}"}

    def answer(state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        yield from ()
        return {"answers": [*state["answers"], state["seen"]], "count": state["count"] + 1}

    flow = Flow(
        Step("begin", begin),
        Step("look", look),
        Step("answer", answer, lambda s: "look" if s["count"] < 3 else END, ("look", END)),
        state=Counting,
    )
    return flow.graph(
        name="counting",
        input_schema=Counting,
        output_schema=Counting,
        context_schema=Counting,
        environment=lambda _: Environment(),
    )


@pytest.mark.parametrize("step", ["look", "answer"])
def test_interrupts_in_a_loop_repeat_nothing_and_keep_the_question(step: str) -> None:
    """Stopped before every turn of a loop, a run does each turn once, with what it was given."""
    graph = _counting().copy({"checkpointer": InMemorySaver()})
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    for question in ("why", "how"):
        state = graph.invoke({"query": question}, config, interrupt_before=[step])
        stops = 0
        while graph.get_state(config).next:
            state = graph.invoke(None, config, interrupt_before=[step])
            stops += 1
        assert stops == 3
        assert state["answers"] == [f"{question} 0", f"{question} 1", f"{question} 2"]
