"""One benchmark from its parts to its report, and what it would cost."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from langchain_agentmem._version import __version__
from langchain_agentmem.embeddings import embedding_name
from langchain_agentmem.evaluation import answering
from langchain_agentmem.evaluation.data import Dataset
from langchain_agentmem.evaluation.intervals import ROUNDS
from langchain_agentmem.evaluation.meter import Budget
from langchain_agentmem.evaluation.records import Unit
from langchain_agentmem.evaluation.runner import Runner, Task, code_digest
from langchain_agentmem.evaluation.simulation import SimulatedChatModel
from langchain_agentmem.evaluation.summary import summarize
from langchain_agentmem.evaluation.systems import SystemSpec
from langchain_agentmem.evaluation.trial import Equipment, Trial

_PACKAGES: Final = ("faiss-cpu", "numpy", "langchain-core", "langgraph", "wordllama")
_TRIED_TURNS: Final = 120
_TRIED_QUESTIONS: Final = 3


def make_report(
    runner: Runner,
    specs: Sequence[SystemSpec],
    datasets: Sequence[Dataset],
    *,
    reference: str,
    growth: Iterable[Mapping[str, Any]] = (),
    skipped: Sequence[str] = (),
    date: datetime,
) -> dict[str, Any]:
    """Run everything that is not known yet and return the report as plain JSON.

    Args:
        runner: Runs the systems.
        specs: The systems, in the order of the report.
        datasets: The data sets.
        reference: The system that the others are compared with.
        growth: What `measure_growth` gave.
        skipped: What was left out, and why.
        date: When; stands in the report.
    """
    units: dict[str, list[Unit]] = {dataset.name: [] for dataset in datasets}
    for unit in runner.run():
        units[unit.dataset].append(unit)
    names = [spec.name for spec in specs]
    unranked = [spec.name for spec in specs if not spec.ranks]
    seed = runner.equipment.seed
    return {
        "datasets": [
            summarize(
                each,
                names,
                units[each.name],
                unranked=unranked,
                reference=reference,
                seed=seed,
            )
            for each in datasets
        ],
        "growth": list(growth),
        "skipped": list(skipped),
        "settings": settings(runner.equipment, specs, runner.workers, date),
    }


def settings(
    equipment: Equipment, specs: Sequence[SystemSpec], workers: int, date: datetime
) -> dict[str, str]:
    """Return everything a reader needs to run it again."""
    models = {
        "model that writes memories": equipment.model,
        "answering model": equipment.answerer,
        "judge (secondary; vague wrong answers are its control)": equipment.judge,
    }
    return {
        "date": f"{date:%Y-%m-%d}",
        "langchain-agentmem": f"{__version__}, code {code_digest()}",
        "python": platform.python_version(),
        "packages": ", ".join(f"{name} {_version(name)}" for name in _PACKAGES),
        "embedding model": embedding_name(equipment.embeddings("")) or "a function",
        "systems": "; ".join(
            f"{each.name} {dict(each.parameters) or ''}".strip() for each in specs
        ),
        "results asked for": str(equipment.limit),
        "seed": f"{equipment.seed}, bootstrap of {ROUNDS} rounds",
        "conversations at once": f"{workers}" + (" (times are longer for it)" * (workers > 1)),
        **{name: _described(model) for name, model in models.items()},
        "answer prompt (SHA-256)": answering.prompt_hash(answering.ANSWER_PROMPT),
        "judge prompt (SHA-256)": answering.prompt_hash(answering.JUDGE_PROMPT),
        **({"judge prompt": answering.JUDGE_PROMPT} if equipment.judge else {}),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _described(model: Any) -> str:  # noqa: ANN401 - any chat model, or none
    if model is None:
        return "none"
    name = next(
        (value for each in ("model_name", "model") if (value := getattr(model, each, None))),
        type(model).__name__,
    )
    return f"{name}, temperature {getattr(model, 'temperature', 'not known')}"


def estimate(
    runner: Runner, *, tick: Callable[[str], None] = lambda _: None
) -> list[dict[str, Any]]:
    """Return what the tasks that are left would cost, one entry for each system and data set.

    The first turns of each data set are written, and a few questions asked, with a scripted model
    whose replies are short; what that took is taken for all. Real replies are longer.
    """
    left: dict[tuple[str, str], list[Task]] = {}
    for task in runner.todo:
        left.setdefault((task.spec.name, task.dataset.name), []).append(task)
    found = []
    for (system, dataset), tasks in left.items():
        tick(f"{system} on {dataset}")
        found.append(_estimated(tasks, runner.equipment))
    return found


def _estimated(tasks: Sequence[Task], equipment: Equipment) -> dict[str, Any]:
    first = tasks[0]
    scope = replace(
        first.scope,
        turns=first.scope.turns[:_TRIED_TURNS],
        questions=[replace(each, asked_at=None) for each in first.scope.questions][
            :_TRIED_QUESTIONS
        ],
    )
    simulated = replace(
        equipment,
        model=SimulatedChatModel(),
        answerer=SimulatedChatModel() if equipment.answerer else None,
        judge=SimulatedChatModel() if equipment.judge else None,
        cache=None,
        budget=Budget(),
        tick=lambda _: None,
    )
    unit = Trial(first.spec, first.dataset, scope, simulated).run()
    turns = sum(len(task.scope.turns) for task in tasks)
    questions = sum(len(task.scope.questions) for task in tasks)
    a_turn, a_question = turns / max(unit.turns, 1), questions / max(len(unit.asked), 1)
    writes = [*unit.writes, *unit.consolidations]
    reads = [cost for each in unit.asked for cost in (each.cost, each.answer_cost)]
    judged = questions * (answering.JUDGE_ROUNDS + 1) if equipment.judge else 0
    return {
        "system": first.spec.name,
        "dataset": first.dataset.name,
        "turns": turns,
        "questions": questions,
        "calls": round(
            a_turn * sum(each.calls for each in writes)
            + a_question * sum(each.calls for each in reads)
            + judged
        ),
        **{
            name: round(
                a_turn * sum(getattr(each, name) for each in writes)
                + a_question * sum(getattr(each, name) for each in reads)
            )
            for name in ("input_tokens", "output_tokens")
        },
        "seconds": a_turn * sum(each.seconds or 0.0 for each in writes)
        + a_question * sum(each.seconds or 0.0 for each in reads),
    }
