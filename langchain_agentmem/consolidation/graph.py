"""The consolidation graph: from a waiting batch of turns to memory, visibly, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import make_dataclass, replace
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.messages import AnyMessage
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict

from langchain_agentmem.consolidation._calls import numbers
from langchain_agentmem.consolidation.queue import MemoryQueue
from langchain_agentmem.consolidation.records import Record
from langchain_agentmem.items import parse_timestamp, to_timestamp
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.memories.langmem import LangMem
from langchain_agentmem.memories.state import ConsolidationReport
from langchain_agentmem.parameters import described, must_be
from langchain_agentmem.steps._graph import FlowGraph
from langchain_agentmem.steps.effects import Emit, Now, Setting, Steps
from langchain_agentmem.steps.environment import DRY_RUN
from langchain_agentmem.steps.flow import as_node

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class ConsolidationState(TypedDict, total=False):
    """State of the consolidation graph.

    Attributes:
        messages: The conversation; from the queue's batch where there is a queue.
        record: The queue's record, in JSON, if this run was given one or claimed one.
        started_at: When the run began.
        spent: Model calls and tokens of `remember`.
        operations: What `remember` did.
        report: What was done.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    record: Annotated[dict[str, Any] | None, UntrackedValue]
    started_at: Annotated[str, Field(description="When the run began.")]
    spent: Annotated[dict[str, Any], Field(description="Model calls and tokens of `remember`.")]
    memory_operations: Annotated[list[dict[str, Any]], UntrackedValue]
    operations: Annotated[list[dict[str, Any]], UntrackedValue]
    usage: Annotated[dict[str, Any], UntrackedValue]
    report: Annotated[dict[str, Any], UntrackedValue]


class ConsolidationInput(TypedDict, total=False):
    """What the graph is given: a conversation, a record, or nothing."""

    messages: Annotated[
        list[AnyMessage],
        Field(description="The conversation; nothing for the background work alone."),
        add_messages,
    ]
    record: Annotated[
        dict[str, Any] | None,
        Field(description="A record of a MemoryQueue, instead of messages."),
        UntrackedValue,
    ]


class ConsolidationOutput(TypedDict, total=False):
    """What the graph returns."""

    report: Annotated[
        dict[str, Any],
        Field(description="Operations on memories, model calls by purpose, tokens, seconds."),
        UntrackedValue,
    ]


def create_consolidation_graph(
    memory: Memory | None = None,
    *,
    queue: MemoryQueue | None = None,
    **options: Any,  # noqa: ANN401 - LangMem's own
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build a graph that makes conversations into memory.

    Its nodes are `load_messages`, the memory's own `remember` and `consolidate` graphs, and
    `report`. Added as the last node of your own graph it works on the state's `messages`; run by
    a `LocalConsolidator` it works on the queue's batches. With `dry_run=True` in the context
    nothing is written, and the report shows what would be.

    Args:
        memory: The architecture that remembers. Without one, `LangMem` with `options`.
        queue: Let the graph itself take batches from a queue, as on a LangGraph server: nodes
            `claim` and `consolidate` in turn, until the bucket of the input, or without one
            everything that is due, is worked off. See `ServerConsolidator`.
        **options: Options of `LangMem`: `model, namespace, store, schemas, instructions,
            enable_inserts, enable_updates, enable_deletes, query_limit`, ...

    Returns:
        A graph without store and checkpointer; its output is `report`, a
        `ConsolidationReport.to_dict()`, or for batches from the queue its numbers.

    Raises:
        ConfigurationError: The memory, the queue or an option is wrong.

    Example:
        ```python
        graph = create_consolidation_graph(model="openai:gpt-4o-mini", store=store)
        graph.invoke({"messages": [("user", "I moved to Rome.")]}, {"configurable": ann})
        ```
    """
    must_be("memory", memory, (Memory, NoneType), "a memory, such as RAGMemory(), or None")
    must_be("queue", queue, (MemoryQueue, NoneType), "a MemoryQueue, or None")
    chosen = memory if memory is not None else LangMem(**options)
    schema = _with_dry_run(chosen.context_schema())
    if queue is None:
        return _pipeline(chosen, schema)
    from langchain_agentmem.consolidation.drain import draining

    return draining(_pipeline(chosen, schema), chosen, queue, schema)


def _with_dry_run(schema: type) -> type:
    """Return a context's schema with one more field."""
    what = "Write nothing; the report shows what would change."
    field = (DRY_RUN, bool, described(default=False, description=what))
    return make_dataclass(schema.__name__, [field], bases=(schema,), kw_only=True)


def _pipeline(chosen: Memory, schema: type) -> CompiledStateGraph[Any, Any, Any, Any]:
    from langgraph.graph import END, START, StateGraph

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        ConsolidationState,
        context_schema=schema,
        input_schema=ConsolidationInput,
        output_schema=ConsolidationOutput,
    )
    env = chosen.node_environment
    builder.add_node("load_messages", as_node(_load_messages, env))
    builder.add_node("remember", chosen.remember_graph())
    builder.add_node("collect", as_node(_collect, env))
    builder.add_node("report", as_node(_report, env))
    builder.add_edge(START, "load_messages")
    builder.add_edge("load_messages", "remember")
    builder.add_edge("remember", "collect")
    background = chosen.consolidate_graph()
    if background is None:
        builder.add_edge("collect", "report")
    else:
        builder.add_node("consolidate", background)
        builder.add_edge("collect", "consolidate")
        builder.add_edge("consolidate", "report")
    builder.add_edge("report", END)
    return FlowGraph.of(builder.compile(name="consolidate"))


def _load_messages(state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    """Take the messages of the record, if the run is about one."""
    now = yield from Now()
    update: dict[str, Any] = {"started_at": to_timestamp(now), "usage": {}}
    given = state.get("record")
    if given is None:
        return update
    return {**update, "messages": Record.from_dict(given).conversation()}


def _collect(state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    """Put what was remembered aside, before the background work reports its own."""
    yield from ()
    update: dict[str, Any] = {
        "spent": state.get("usage") or {},
        "memory_operations": [],
        "usage": {},
    }
    if "memory_operations" not in state:
        return update
    return {**update, "operations": state["memory_operations"]}


def _report(state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    """Sum up."""
    now = yield from Now()
    if "operations" not in state:
        yield from Emit("report_incomplete", {"reason": "operations before an interrupt are lost"})
    remembered = ConsolidationReport.from_dict(
        {**state["spent"], "operations": state.get("operations") or []}
    )
    background = ConsolidationReport.from_dict(
        {**(state.get("usage") or {}), "operations": state.get("memory_operations") or []}
    )
    seconds = (now - parse_timestamp(state["started_at"])).total_seconds()
    report = replace(remembered + background, seconds=seconds)
    yield from Emit("consolidated", numbers(report))
    told = report.to_dict()
    return {"report": {**told, DRY_RUN: True} if (yield from Setting(DRY_RUN)) else told}
