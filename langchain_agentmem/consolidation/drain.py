"""A graph that takes its work from a queue: claim, consolidate, claim, ... until nothing is due.

The scope of each batch is that of whoever submitted it, as the queue's record says, and not that
of the run; so the results of a run are numbers only.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableLambda
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from langchain_agentmem.consolidation import _storage as storage
from langchain_agentmem.consolidation._calls import added_up, calls_of, total
from langchain_agentmem.consolidation._views import first_of_each
from langchain_agentmem.consolidation.records import Record
from langchain_agentmem.errors import ConflictError
from langchain_agentmem.steps._graph import FlowGraph
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Call, Emit, Now, Setting, Steps
from langchain_agentmem.steps.environment import DRY_RUN, Environment
from langchain_agentmem.steps.flow import as_node

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable, RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

    from langchain_agentmem.consolidation.queue import MemoryQueue
    from langchain_agentmem.memories.base import Memory

logger = logging.getLogger(__name__)

_END: Final = "__end__"
PAUSE: Final = 0.5
"""Seconds between two looks at a bucket that comes soon."""


Environments = Callable[["RunnableConfig"], Environment]


def _merged(
    before: Mapping[str, Any] | None, new: Mapping[str, Any] | None
) -> dict[str, dict[str, Any]]:
    return {**(before or {}), **(new or {})}


class DrainState(TypedDict, total=False):
    """State of a graph that takes its work from a queue.

    Attributes:
        messages: A conversation to consolidate at once, past the queue.
        bucket: Which conversation to work off: `scope` and `thread_id`; without it, all.
        record: The batch that is worked on.
        stage: `direct` where the input says what to consolidate, else `claimed` or `idle`.
        looked_at: Ids of the batches that a dry run has seen.
        report: What was done; of batches from the queue in numbers, over the whole run.
        progress: What became of each batch of this run, in numbers, by its id.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    bucket: Annotated[dict[str, Any] | None, UntrackedValue]
    record: Annotated[dict[str, Any] | None, UntrackedValue]
    stage: Annotated[str, UntrackedValue]
    looked_at: Annotated[list[str], UntrackedValue]
    report: Annotated[dict[str, Any], UntrackedValue]
    progress: Annotated[dict[str, dict[str, Any]], _merged]


class DrainInput(TypedDict, total=False):
    """What the graph is given: a conversation, a bucket, a claimed record, or nothing."""

    messages: Annotated[list[AnyMessage], add_messages]
    bucket: Annotated[dict[str, Any] | None, UntrackedValue]
    record: Annotated[dict[str, Any] | None, UntrackedValue]


class DrainOutput(TypedDict, total=False):
    """What the graph returns."""

    report: Annotated[dict[str, Any], UntrackedValue]
    progress: Annotated[dict[str, dict[str, Any]], _merged]


def draining(
    pipeline: CompiledStateGraph[Any, Any, Any, Any],
    memory: Memory,
    queue: MemoryQueue,
    context_schema: type,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the graph around a pipeline that consolidates one batch.

    Args:
        pipeline: From `messages` or `record` to `report`.
        memory: Whose environment the nodes run in.
        queue: The queue.
        context_schema: The pipeline's.
    """
    from langgraph.graph import START, StateGraph

    def environment(config: RunnableConfig) -> Environment:
        found = memory.node_environment(config)
        return replace(found, store=queue.store or found.store, clock=queue.clock)

    drain = _Drain(queue)
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        DrainState,
        context_schema=context_schema,
        input_schema=DrainInput,
        output_schema=DrainOutput,
    )
    builder.add_node("claim", as_node(drain.claim, environment))
    builder.add_node("consolidate", _worker(pipeline, drain, environment))
    builder.add_edge(START, "claim")
    builder.add_conditional_edges("claim", _after_claim, ["consolidate", _END])
    builder.add_conditional_edges("consolidate", _after_work, ["claim", _END])
    return FlowGraph.of(builder.compile(name="consolidate"))


def _worker(
    pipeline: CompiledStateGraph[Any, Any, Any, Any], drain: _Drain, environment: Environments
) -> Runnable[Any, Any]:
    """Return the node that runs the pipeline, which is visible inside of it."""

    def work(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        call = Call(pipeline.invoke, afunction=pipeline.ainvoke)
        return run(drain.work(state, config, pipeline, call), environment(config))

    async def awork(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        call = Call(pipeline.invoke, afunction=pipeline.ainvoke)
        return await arun(drain.work(state, config, pipeline, call), environment(config))

    return RunnableLambda(work, afunc=awork, name="consolidate")


def _after_claim(state: Mapping[str, Any]) -> str:
    return _END if state["stage"] == "idle" else "consolidate"


def _after_work(state: Mapping[str, Any]) -> str:
    return _END if state["stage"] == "direct" else "claim"


class _Drain:
    """The steps over one queue."""

    def __init__(self, queue: MemoryQueue) -> None:
        self.queue = queue

    def claim(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Take the next batch that is due, if the input does not say what to consolidate."""
        bucket, stage = state.get("bucket"), state.get("stage")
        if stage is None and not bucket and (state.get("record") or state.get("messages")):
            return {"stage": "direct"}
        if (yield from Setting(DRY_RUN)):
            record = yield from self._look(bucket, state.get("looked_at") or [])
        else:
            record = yield from self._next(bucket)
        if record is None:
            return {"stage": "idle", "report": state.get("report") or {}, "progress": {}}
        yield from Emit("claimed", {"record": record.id, "messages": len(record.messages)})
        return {
            "stage": "claimed",
            "record": record.to_value(),
            "looked_at": [*(state.get("looked_at") or []), record.id],
            "progress": {record.id: _told(record, {"messages": len(record.messages)})},
        }

    def _look(self, bucket: Mapping[str, Any] | None, seen: Sequence[str]) -> Steps[Record | None]:
        """Return the next batch that is due without taking it."""
        due = yield from self.queue.due_steps()
        fresh = (each for each in due if each.id not in seen and _is_in(each, bucket))
        return next(fresh, None)

    def _next(self, bucket: Mapping[str, Any] | None) -> Steps[Record | None]:
        """Take the next batch; of a single bucket also one that comes soon."""
        if not bucket:
            return (yield from self.queue.claim_steps())
        waited = 0.0
        while waited <= self.queue.lease_seconds:
            found = yield from storage.records(tuple(bucket["scope"]))
            head = next((each for each in first_of_each(found) if _is_in(each, bucket)), None)
            now = yield from Now()
            if head is None or not (head.claimable(now) or _is_retry(head)):
                return None
            taken = (yield from self.queue.take_steps(head)) if head.claimable(now) else None
            if taken is not None:
                return taken
            yield from Call(time.sleep, (PAUSE,), afunction=asyncio.sleep)
            waited += PAUSE
        return None

    def work(
        self, state: Mapping[str, Any], config: RunnableConfig, graph: object, call: Call
    ) -> Steps[dict[str, Any]]:
        """Run the pipeline over what was claimed or given."""
        if state["stage"] == "direct":
            given = {name: state[name] for name in ("messages", "record") if state.get(name)}
            out = yield from replace(call, arguments=(given, config))
            return {"report": out["report"]}
        record = Record.from_dict(state["record"] or {})
        is_dry = bool((yield from Setting(DRY_RUN)))
        done: dict[str, Any] = {}
        try:
            outputs = []
            for each in calls_of(graph, record, self.queue.max_messages_per_run, config):
                context = {**each.named.get("context", {}), **({DRY_RUN: True} if is_dry else {})}
                named = {"context": context} if context else {}
                outputs.append((yield from replace(call, arguments=each.arguments, named=named)))
            done = total(outputs)
            record = yield from self.queue.done_steps(record, done)
        except ConflictError:
            logger.warning("Record %s was erased or taken over meanwhile.", record.id)
        except Exception as error:  # noqa: BLE001 - fail-open border: kept in the record
            logger.warning("Consolidation of %s failed: %s", record.id, type(error).__name__)
            record = yield from self.queue.failed_steps(record, error)
        report = added_up(state.get("report") or {}, done)
        return {"report": report, "progress": {record.id: _told(record, done)}}


def _is_in(record: Record, bucket: Mapping[str, Any] | None) -> bool:
    if not bucket:
        return True
    return (record.scope, record.thread_id) == (tuple(bucket["scope"]), bucket.get("thread_id"))


def _is_retry(record: Record) -> bool:
    """Tell whether a batch has failed and is tried again after a pause."""
    return record.state == "pending" and record.attempts > 0


def _told(record: Record, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the graph's state tells of a batch."""
    told = {"state": record.state, "attempts": record.attempts, "error": record.error}
    return {**{name: each for name, each in told.items() if each}, **numbers}
