"""`agentmem bench`: measure memories on data sets and on conversations of one's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.cli._bench_options import add_options
from langchain_agentmem.cli._model import chat_model
from langchain_agentmem.errors import ConfigurationError

if TYPE_CHECKING:
    import argparse

    from langchain_core.language_models import BaseChatModel

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.evaluation.data import Dataset
    from langchain_agentmem.evaluation.runner import Runner
    from langchain_agentmem.evaluation.systems import SystemSpec
    from langchain_agentmem.evaluation.trial import Equipment

_HINT: Final = "Name another one, or leave the option out to measure without it."
_DRAFTED: Final = "questions.jsonl"


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's private type
    """Add the command's arguments."""
    parser = commands.add_parser(
        "bench",
        parents=[common],
        help="measure memories on data sets, or on your own conversations",
        description="Measure any memories on any data sets, beside the baselines: no memory, the "
        "last turns, the full context, BM25 and plain vectors. Writes a report as Markdown, JSON "
        "and one HTML page. A run that was cut off goes on where it stopped.",
    )
    add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Run, estimate or list.

    Raises:
        ConfigurationError: There is nothing to measure, or nothing to compare with.
    """
    from langchain_agentmem.evaluation import systems
    from langchain_agentmem.evaluation.benchmark import make_report
    from langchain_agentmem.evaluation.datasets import DATASETS
    from langchain_agentmem.evaluation.runner import Runner

    if args.list:
        out.say(f"memories: {', '.join(systems.SYSTEMS)}")
        out.say(f"data sets: {', '.join(DATASETS)}")
        return 0
    equipment = _equipment(args)
    specs, skipped = _systems(args, equipment)
    names = [spec.name for spec in specs]
    if args.reference not in names:
        msg = f"--reference {args.reference!r} is not measured; choose one of {names}."
        raise ConfigurationError(msg)
    datasets = [each.first(args.limit) for each in _datasets(args, equipment, out)]
    if not datasets and not args.growth:
        msg = "Nothing to measure: name --data FOLDER, --conversations FILE or --growth."
        raise ConfigurationError(msg)
    if datasets and skipped and all(spec.is_baseline for spec in specs):
        msg = f"No memory is left to measure. {' '.join(skipped)}"
        raise ConfigurationError(msg)
    runner = Runner(specs, datasets, equipment, folder=args.out / "kept", workers=args.workers)
    if args.dry_run:
        return _estimate(runner, out, args.price)
    growth = _grown(args, equipment, out)
    with _progress(runner, out) as following:
        runner.equipment = replace(runner.equipment, tick=following)
        report = make_report(
            runner,
            specs,
            datasets,
            reference=args.reference,
            growth=growth,
            skipped=skipped if datasets else [],
            date=datetime.now(UTC),
        )
    _write(report, args.out)
    return _show(report, args.out, out)


def _equipment(args: argparse.Namespace) -> Equipment:
    from langchain_agentmem.embeddings import resolve_embeddings
    from langchain_agentmem.evaluation.meter import Budget
    from langchain_agentmem.evaluation.runner import embedding_models
    from langchain_agentmem.evaluation.trial import Equipment

    return Equipment(
        embeddings=embedding_models(resolve_embeddings(args.embed)),
        model=_model(args.model, args.base_url, args.timeout),
        answerer=_model(args.answer, args.base_url, args.timeout),
        judge=_model(args.judge, args.base_url, args.timeout),
        budget=Budget(args.budget),
        seed=args.seed,
        limit=args.results,
    )


def _model(name: str | None, base_url: str | None, timeout: float) -> BaseChatModel | None:
    return chat_model(name, base_url, hint=_HINT, temperature=0, timeout=timeout) if name else None


def _systems(args: argparse.Namespace, equipment: Equipment) -> tuple[list[SystemSpec], list[str]]:
    """Return the systems to measure, baselines first, and why others are left out."""
    from langchain_agentmem.evaluation.systems import BASELINES, SYSTEMS, system

    named = args.memory or ["RAGMemory"]
    if "all" in named:
        named = [*(name for name in SYSTEMS if name not in BASELINES), *named]
    wanted = dict.fromkeys([*BASELINES, *(name for name in named if name != "all")])
    specs = list({spec.name: spec for spec in map(system, wanted)}.values())
    is_mute = equipment.model is None and not args.dry_run
    skipped = {
        spec.name: "a chat model writes this memory; name one with --model."
        for spec in specs
        if is_mute and spec.needs_model
    }
    for spec in specs:
        try:
            equipment.embeddings(spec.embed)
        except ConfigurationError as error:
            skipped[spec.name] = str(error)
    kept = [spec for spec in specs if spec.name not in skipped]
    return kept, [f"{name}: {why}" for name, why in skipped.items()]


def _datasets(args: argparse.Namespace, equipment: Equipment, out: Output) -> list[Dataset]:
    from langchain_agentmem.evaluation.datasets import DATASETS, conversations, found_in, load

    datasets = [load(name, args.data or Path()) for name in args.dataset or ()]
    if args.data and not args.dataset:
        datasets = found_in(args.data)
        if not datasets:
            msg = f"{args.data} is no folder with a data set; it has {', '.join(DATASETS)} in it."
            raise ConfigurationError(msg)
    if args.conversations:
        own = conversations(args.conversations, args.questions)
        datasets.append(_drafted(own, args, equipment, out) if args.draft else own)
    return datasets


def _drafted(own: Dataset, args: argparse.Namespace, equipment: Equipment, out: Output) -> Dataset:
    """Add questions that a model drafts, and keep them in a file that can be edited and given.

    Raises:
        ConfigurationError: There is no model to draft them.
    """
    from langchain_agentmem.evaluation.datasets.own import question_line, with_questions
    from langchain_agentmem.evaluation.drafting import draft

    model = equipment.answerer or equipment.model
    if model is None:
        msg = "--draft needs a chat model: name one with --answer or --model."
        raise ConfigurationError(msg)
    found = draft(model, own, args.draft)
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / _DRAFTED
    rows = [question_line(user, each) for user, asked in found.items() for each in asked]
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    out.note(
        f"{len(rows)} drafted questions are in {path}; read them, and give them as --questions."
    )
    return with_questions(own, found)


def _estimate(runner: Runner, out: Output, price: tuple[float, float] | None) -> int:
    """Say what the run would cost, without running it."""
    from langchain_agentmem.evaluation.benchmark import estimate
    from langchain_agentmem.evaluation.document import Table

    rows = estimate(runner, tick=out.note)
    if price:
        for each in rows:
            spent = (each["input_tokens"] * price[0], each["output_tokens"] * price[1])
            each["price"] = round(sum(spent) / 1e6, 2)
    if out.as_json:
        out.json(estimate=rows)
        return 0
    names = list(rows[0]) if rows else ["system"]
    cells = [[_plain(value) for value in each.values()] for each in rows]
    note = (
        f"{len(runner.tasks) - len(runner.todo)} of {len(runner.tasks)} conversations are known "
        "from before. Taken from the first turns of each data set, with a scripted model that "
        "replies at once and in few words: real replies are longer, and real calls take time."
    )
    out.say(Table(columns=names, rows=cells, note=note).markdown())
    return 0


def _plain(value: object) -> str:
    return f"{value:,.2f}".removesuffix(".00") if isinstance(value, int | float) else str(value)


@contextmanager
def _progress(runner: Runner, out: Output) -> Iterator[Any]:
    """Show a bar over all turns and questions that are left; yield what moves it."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("measuring"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out.progress, disable=out.as_json) as bar:
        task = bar.add_task("measuring", total=sum(each.steps for each in runner.todo))
        yield lambda done: bar.advance(task, done)


def _grown(args: argparse.Namespace, equipment: Equipment, out: Output) -> list[dict[str, Any]]:
    """Measure growth, if it is asked for."""
    from langchain_agentmem.evaluation.growth import measure_growth
    from langchain_agentmem.evaluation.systems import SYSTEMS, system

    if not args.growth:
        return []
    return measure_growth(
        [system(name) for name in args.memory or SYSTEMS if name != "all"],
        equipment.embeddings,
        sizes=args.sizes,
        seconds=args.seconds,
        seed=args.seed,
        tick=out.note,
    )


def _write(report: dict[str, Any], folder: Path) -> None:
    from langchain_agentmem.evaluation.report import to_html, to_markdown

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(to_markdown(report), "utf-8")
    (folder / "report.html").write_text(to_html(report), "utf-8")
    (folder / "report.json").write_text(json.dumps(report, ensure_ascii=False, indent=1), "utf-8")


def _show(report: dict[str, Any], folder: Path, out: Output) -> int:
    """Show the tables; return 1 if anything failed."""
    from langchain_agentmem.evaluation.growth_report import growth_section
    from langchain_agentmem.evaluation.report import overview, summary_table

    failed = sum(each["failures"]["n"] for one in report["datasets"] for each in one["systems"])
    if out.as_json:
        out.json(**report)
        return 1 if failed else 0
    for dataset in report["datasets"]:
        out.say(f"\n{dataset['title']}\n\n{summary_table(dataset).markdown()}")
    for table in overview(report) if len(report["datasets"]) > 1 else ():
        out.say(f"\n{table.markdown()}")
    if report["growth"]:
        out.say("\n" + growth_section(report["growth"]).tables[0].markdown())
    for line in report["skipped"]:
        out.note(f"left out: {line}")
    if failed:
        out.note(f"{failed} failures; the report lists them, and a further run tries them again.")
    out.say(f"\nThe report: {folder / 'report.html'}, report.md, report.json")
    return 1 if failed else 0
