"""From raw results to the figures of a report: means, intervals, differences, costs, failures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from langchain_agentmem.evaluation import measures
from langchain_agentmem.evaluation.answering import refuses
from langchain_agentmem.evaluation.data import Dataset, Question
from langchain_agentmem.evaluation.intervals import bootstrap
from langchain_agentmem.evaluation.records import Asked, Cost, Unit

Figures: TypeAlias = dict[str, float]
"""What one question gives, by the name of the measure; what cannot be measured is not in it."""

ALL: Final = "all"
SOUND: Final = "without known-wrong"
_MOST_FAILURES: Final = 50


@dataclass(frozen=True, slots=True)
class _Row:
    """One question with what every system made of it."""

    scope: str
    question: Question
    asked: Sequence[Asked]
    figures: Sequence[Figures]


def figures(question: Question, asked: Asked, cutoffs: Sequence[int], *, answered: bool) -> Figures:
    """Return everything that can be measured about one question; a failed one counts as wrong.

    Args:
        question: What was asked.
        asked: What became of it.
        cutoffs: The k of recall@k; none for a system whose results have no order.
        answered: Whether a model was to answer the questions.
    """
    found: Figures = {}
    results = asked.results
    if question.evidence:
        for k in cutoffs:
            found[f"R@{k}"] = measures.evidence_recall(results, question.evidence, k)
        for k in cutoffs:
            found[f"all@{k}"] = measures.all_evidence(results, question.evidence, k)
        if cutoffs:
            found["MRR"] = measures.reciprocal_rank(results, question.evidence)
        found["in prompt"] = measures.evidence_recall(results, question.evidence, len(results))
    if question.forbidden:
        count = measures.violations(results, question.forbidden)
        found["must-not"] = float(count)
        found["clean"] = float(not count and asked.error is None)
    if answered:
        found |= _answer_figures(question, asked)
    return found


def _answer_figures(question: Question, asked: Asked) -> Figures:
    said = asked.answer or ""
    found: Figures = {"refused": float(refuses(said))}
    for name, measure in (
        ("F1", measures.token_f1),
        ("BLEU-1", measures.bleu_1),
        ("EM", measures.exact_match),
    ):
        if question.answers:
            found[name] = max(measure(said, gold) for gold in question.answers)
    for at, verdict in enumerate(asked.verdicts):
        found[f"judge {at + 1}"] = float(verdict)
    if asked.control is not None:
        found["judge accepts vague"] = float(asked.control)
    return found


def summarize(
    dataset: Dataset,
    systems: Sequence[str],
    units: Sequence[Unit],
    *,
    unranked: Collection[str] = (),
    reference: str,
    seed: int,
) -> dict[str, Any]:
    """Return the figures of one data set as plain JSON.

    Args:
        dataset: The data set.
        systems: Names of the systems, in the order of the report.
        units: The results of this data set: one for each system and conversation.
        unranked: The systems whose results have no order.
        reference: The system that the others are compared with.
        seed: Of the bootstrap.
    """
    by_place = {(unit.system, unit.scope): unit for unit in units}
    cutoffs = [() if name in unranked else dataset.cutoffs for name in systems]
    rows = _rows(dataset, systems, by_place, cutoffs)
    groups = _groups(dataset, rows)
    base = systems.index(reference) if reference in systems else 0
    columns = _measured(groups, len(systems), base, seed)
    return {
        "name": dataset.name,
        "title": dataset.title,
        "source": dataset.source,
        "license": dataset.license,
        "notes": list(dataset.notes),
        "conversations": len(dataset.scopes),
        "turns": dataset.turns,
        "questions": dataset.questions,
        "cutoffs": list(dataset.cutoffs),
        "primary": f"R@{dataset.primary}",
        "categories": dict(dataset.categories),
        "apart": sorted(dataset.apart),
        "reference": systems[base],
        "drafted": sum(row.question.drafted for row in rows),
        "systems": [
            {
                "name": name,
                **column,
                **_costs(dataset, [by_place[name, each.name] for each in dataset.scopes]),
            }
            for name, column in zip(systems, columns, strict=True)
        ],
    }


def _rows(
    dataset: Dataset,
    systems: Sequence[str],
    by_place: Mapping[tuple[str, str], Unit],
    cutoffs: Sequence[Sequence[int]],
) -> list[_Row]:
    rows = []
    answered = any(each.answer is not None for unit in by_place.values() for each in unit.asked)
    for scope in dataset.scopes:
        for at, question in enumerate(scope.questions):
            asked = [by_place[name, scope.name].asked[at] for name in systems]
            found = [
                figures(question, each, ks, answered=answered)
                for each, ks in zip(asked, cutoffs, strict=True)
            ]
            rows.append(_Row(scope.name, question, asked, found))
    return rows


def _groups(dataset: Dataset, rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    """Return the questions of each group: all, without the known-wrong, each category."""
    counted = [row for row in rows if row.question.category not in dataset.apart]
    groups = {ALL: counted}
    if any(row.question.doubtful for row in counted):
        groups[SOUND] = [row for row in counted if not row.question.doubtful]
    for category in sorted({row.question.category for row in rows} - {""}):
        groups[f"category {category}"] = [row for row in rows if row.question.category == category]
    return groups


def _measured(
    groups: Mapping[str, Sequence[_Row]], systems: int, base: int, seed: int
) -> list[dict[str, Any]]:
    """Return for each system its measures in every group and its differences to the reference."""
    found: list[dict[str, Any]] = [
        {"measures": {group: {} for group in groups}, "differences": {}} for _ in range(systems)
    ]
    for group, rows in groups.items():
        for kept, columns in _columns(rows, systems).items():
            values = np.array([[rows[i].figures[at][name] for at, name in columns] for i in kept])
            pairs = [
                (columns.index((at, name)), columns.index((base, name)))
                for at, name in columns
                if at != base and (base, name) in columns
            ]
            scopes = [rows[i].scope for i in kept]
            alone, paired = bootstrap(values, scopes, seed=seed, pairs=pairs)
            for (at, name), interval in zip(columns, alone, strict=True):
                found[at]["measures"][group][name] = {**asdict(interval), "n": len(kept)}
            for (column, _), interval in zip(pairs, paired, strict=True):
                at, name = columns[column]
                if group == ALL:
                    shown = {"shown": interval.excludes_zero, "n": len(kept)}
                    found[at]["differences"][name] = {**asdict(interval), **shown}
    return found


def _columns(rows: Sequence[_Row], systems: int) -> dict[tuple[int, ...], list[tuple[int, str]]]:
    """Return the measures of all systems by the rows that have them."""
    columns: dict[tuple[int, ...], list[tuple[int, str]]] = {}
    for at in range(systems):
        for name in dict.fromkeys(name for row in rows for name in row.figures[at]):
            kept = tuple(i for i, row in enumerate(rows) if name in row.figures[at])
            columns.setdefault(kept, []).append((at, name))
    return columns


def _costs(dataset: Dataset, units: Sequence[Unit]) -> dict[str, Any]:
    """Return what writing, reading and answering cost over all conversations."""
    writes = [cost for unit in units for cost in unit.writes]
    background = [cost for unit in units for cost in unit.consolidations]
    asked = [each for unit in units for each in unit.asked]
    failed = [
        *(f"{unit.scope}, writing {error}" for unit in units for error in unit.write_errors),
        *(
            f"{unit.scope}, question {at + 1}: {each.error}"
            for unit in units
            for at, each in enumerate(unit.asked)
            if each.error
        ),
    ]
    results = [len(result) for each in asked for result in each.results]
    return {
        "write": {
            **_cost(writes),
            **_used([*writes, *background]),
            "background_seconds": sum(cost.seconds or 0.0 for cost in background),
            "turns": sum(unit.turns for unit in units),
            "items": sum(unit.items for unit in units),
            "bytes": sum(unit.nbytes for unit in units),
        },
        "read": {
            **_cost([each.cost for each in asked]),
            "prompt_tokens": _mean([each.tokens for each in asked]),
            "results": _mean([len(each.results) for each in asked]),
            "turns_per_result": _mean(results),
            "turns": sum(len(each.turns) * len(each.questions) for each in dataset.scopes),
        },
        "answer": _cost([each.answer_cost for each in asked if each.answer is not None]),
        "failures": {"n": len(failed), "first": failed[:_MOST_FAILURES]},
    }


def _cost(costs: Sequence[Cost]) -> dict[str, Any]:
    seconds = [each.seconds for each in costs if each.seconds is not None]
    return {
        "times": len(costs),
        "timed": len(seconds),
        "seconds": float(sum(seconds)),
        "p50_ms": _ms(measures.percentile(seconds, 50)),
        "p95_ms": _ms(measures.percentile(seconds, 95)),
        **_used(costs),
    }


def _used(costs: Sequence[Cost]) -> dict[str, int]:
    names = ("calls", "input_tokens", "output_tokens")
    return {name: sum(getattr(each, name) for each in costs) for name in names}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
