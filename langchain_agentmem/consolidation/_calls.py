"""The graph calls that a record needs, each with the scope of its submitter and no other."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_agentmem.consolidation._callers import INTERNAL
from langchain_agentmem.memories.state import ConsolidationReport
from langchain_agentmem.steps.cursor import HOME, RUN

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from langchain_agentmem.consolidation.records import Record


class GraphCall(NamedTuple):
    """One call of a graph.

    Attributes:
        arguments: Input and config.
        named: The context, where the graph takes one.
    """

    arguments: tuple[dict[str, Any], RunnableConfig]
    named: dict[str, Any]


def calls_of(
    graph: object, record: Record, size: int, outer: RunnableConfig | None = None
) -> list[GraphCall]:
    """Return one call for each part of a record, in order.

    Args:
        graph: The graph.
        record: The record.
        size: Most messages of a part.
        outer: Config of the run that the calls belong to; nothing of its user's is handed on.
    """
    context = dict(record.config.get("context", {}))
    configurable = {
        **_internal(outer),
        **record.config.get("configurable", {}),
        **context,
        RUN: record.id,
        HOME: list(record.scope),
    }
    config: RunnableConfig = {**(outer or {}), "configurable": configurable}
    known = _context_for(graph, {**record.config.get("configurable", {}), **context})
    parts = [record.messages[at : at + size] for at in range(0, len(record.messages), size)]
    return [
        GraphCall(
            ({"record": record.changed(messages=part).to_value()}, config),
            {"context": known} if known else {},
        )
        for part in parts
    ]


def _internal(outer: RunnableConfig | None) -> dict[str, Any]:
    """Return what LangGraph itself keeps in a config, so that the steps are seen as they run."""
    given = (outer or {}).get("configurable", {})
    return {name: value for name, value in given.items() if name.startswith(INTERNAL)}


def _context_for(graph: object, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a context the graph's schema knows."""
    schema = getattr(graph, "context_schema", None)
    if is_dataclass(schema):
        names = {each.name for each in fields(schema)}
        return {name: value for name, value in context.items() if name in names}
    return dict(context) if schema is not None else {}


def total(outputs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum of the reports of a record's parts, in numbers."""
    reports = [ConsolidationReport.from_dict(each.get("report") or {}) for each in outputs]
    return numbers(reduce(operator.add, reports, ConsolidationReport()))


def numbers(report: ConsolidationReport) -> dict[str, Any]:
    """Return a report without any text of a memory: counts, reasons, calls, tokens, seconds."""
    return {
        "added": report.added,
        "updated": report.updated,
        "superseded": report.superseded,
        "archived": report.archived,
        "noop": report.noop,
        "rejected": [{"reason": reason} for reason in report.rejected],
        "calls": dict(report.calls),
        "tokens": report.tokens,
        "seconds": report.seconds,
    }


def added_up(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sum of two reports in numbers."""
    summed = dict(first)
    for name, value in second.items():
        before = summed.get(name)
        if before is None:
            summed[name] = value
        elif isinstance(value, Mapping):
            summed[name] = dict(Counter(before) + Counter(value))
        else:
            summed[name] = before + value
    return summed
