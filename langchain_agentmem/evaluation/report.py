"""The report of a run: what to read first, then every figure with its n, its costs and its limits.

Everything is made from the report's plain JSON, so that a kept JSON file gives the same pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from langchain_agentmem.evaluation.document import Section, Table, markdown, page
from langchain_agentmem.evaluation.growth_report import growth_section
from langchain_agentmem.evaluation.report_plots import category_groups, has, named, plots_of
from langchain_agentmem.evaluation.summary import ALL, SOUND

Report = Mapping[str, Any]

TITLE: Final = "Which memory do these conversations need?"
_NO: Final = "–"  # noqa: RUF001 - the dash of an empty cell
_GIVEN: Final = (
    "Each system was given the same conversations in the order of time, and then the questions. "
    "It never saw the right answers, the evidence or the kind of a question."
)
_MEASURED: Final = (
    "R@k is the share of the turns that hold the answer (the evidence) among the first k results; "
    "all@k is how often every one of them is there; MRR is one divided by the rank of the first. "
    "In prompt is the share of the evidence in everything that was recalled, and the tokens beside "
    "it are what a prompt pays for that: recalling everything finds everything."
)
_WRITING: Final = (
    "Times are of one call of remember. Background work (consolidation) runs after each session; "
    "its calls and tokens are among those shown. Bytes are those of the store's file, its index "
    "included, or of the words and vectors that a baseline keeps."
)
_INTERVALS: Final = (
    "The brackets are 95 % bootstrap intervals over conversations and the questions in them. A "
    "difference is only called one where its interval leaves out 0."
)


def to_markdown(report: Report) -> str:
    """Return the report as Markdown."""
    return markdown(TITLE, sections(report))


def to_html(report: Report) -> str:
    """Return the report as one self-contained HTML page with plots."""
    return page(TITLE, sections(report))


def sections(report: Report) -> list[Section]:
    """Return the parts of the report."""
    reading = (_GIVEN, _MEASURED, _INTERVALS)
    parts = [Section(title="How to read this", text=reading, tables=overview(report))]
    for dataset in report["datasets"]:
        parts += [_results(dataset), _costs(dataset)]
    if report.get("growth"):
        parts.append(growth_section(report["growth"]))
    return [*parts, _settings(report)]


def overview(report: Report) -> list[Table]:
    """Return one table over all data sets: recall at their cutoffs, and tokens; none without."""
    datasets = [
        each
        for each in report["datasets"]
        if any(has(system, ALL, each["primary"]) for system in each["systems"])
    ]
    if not datasets:
        return []
    return [
        Table(
            columns=["system", *(_head(each) for each in datasets)],
            rows=[
                [system["name"], *(_recall(each, each["systems"][at]) for each in datasets)]
                for at, system in enumerate(datasets[0]["systems"])
            ],
            title="Recall in percent, and tokens of the recalled text",
        )
    ]


def _head(dataset: Mapping[str, Any]) -> str:
    n = _n(dataset["systems"][0], ALL)
    return f"{dataset['title']}, R@{'/'.join(map(str, dataset['cutoffs']))}, n = {n}"


def _recall(dataset: Mapping[str, Any], system: Mapping[str, Any]) -> str:
    tokens = f"{system['read']['prompt_tokens']:,.0f} tokens"
    if not has(system, ALL, dataset["primary"]):
        return f"all {_cell(system, ALL, 'in prompt')}; {tokens}"
    shares = " / ".join(_cell(system, ALL, f"R@{k}") for k in dataset["cutoffs"])
    return f"{shares}; {tokens}"


def _results(dataset: Mapping[str, Any]) -> Section:
    size = (
        f"{dataset['conversations']} conversations, {dataset['turns']:,} turns, "
        f"{dataset['questions']:,} questions. Source: {dataset['source'] or 'your own'}; "
        f"license: {dataset['license'] or 'your own'}."
    )
    text = [*_verdict(dataset), size, *dataset["notes"]]
    tables = [summary_table(dataset)]
    if len(dataset["systems"]) > 1 and any(each["differences"] for each in dataset["systems"]):
        tables.append(_differences(dataset))
    tables += _categories(dataset)
    return Section(title=dataset["title"], text=text, tables=tables, plots=plots_of(dataset))


def _verdict(dataset: Mapping[str, Any]) -> list[str]:
    """Return in one paragraph what a reader in a hurry should know; nothing without evidence."""
    name = dataset["primary"]
    ranked = [each for each in dataset["systems"] if has(each, ALL, name)]
    if not ranked:
        return []
    best = max(ranked, key=lambda each: float(each["measures"][ALL][name]["mean"]))
    figure, reference = best["measures"][ALL][name], dataset["reference"]
    text = f"In short: {best['name']} finds most, {_cell(best, ALL, name)} % at {name}"
    text += f" of {figure['n']:,} questions, in {best['read']['prompt_tokens']:,.0f} tokens each."
    if (difference := best["differences"].get(name)) is not None:
        shown = "a difference beyond chance" if difference["shown"] else "which may be chance"
        text += f" That is {100 * difference['mean']:+.1f} points to {reference}, {shown}."
    rivals = [each["name"] for each in ranked if _overlaps(each, best, name)]
    if rivals:
        text += f" Not told apart from it by their intervals: {', '.join(rivals)}."
    return [text]


def _overlaps(system: Mapping[str, Any], best: Mapping[str, Any], name: str) -> bool:
    """Tell whether a system's interval reaches into that of the best."""
    high, low = (each["measures"][ALL][name] for each in (system, best))
    return system is not best and bool(high["high"] >= low["low"])


def summary_table(dataset: Mapping[str, Any]) -> Table:
    """Return the table of one data set that the README shows."""
    cutoffs = dataset["cutoffs"]
    wanted = [f"R@{k}" for k in cutoffs] + [f"all@{cutoffs[-1]}", "MRR", "in prompt"]
    wanted += ["must-not", "clean", "F1", "BLEU-1", "EM"]
    names = [name for name in wanted if any(has(each, ALL, name) for each in dataset["systems"])]
    judged = any(has(each, ALL, "judge 1") for each in dataset["systems"])
    groups = [ALL] + [SOUND] * any(SOUND in each["measures"] for each in dataset["systems"])
    columns = ["system", *names, *(["judge"] if judged else []), "tokens", "n"]
    rows = [
        [
            each["name"] if group == ALL else f"{each['name']}, {SOUND}",
            *(_cell(each, group, name, interval=name == dataset["primary"]) for name in names),
            *([_judge(each, group)] if judged else []),
            f"{each['read']['prompt_tokens']:,.0f}",
            _n(each, group),
        ]
        for group in groups
        for each in dataset["systems"]
    ]
    apart = f" Category {', '.join(dataset['apart'])} is apart." if dataset["apart"] else ""
    return Table(
        columns=columns,
        rows=rows,
        title="Results",
        note=f"Shares in percent; tokens are those of the recalled text, on average.{apart}"
        + _unranked(dataset),
    )


def _unranked(dataset: Mapping[str, Any]) -> str:
    """Return what to know about systems that recall everything, where there are some."""
    primary = dataset["primary"]
    if not any(has(each, ALL, primary) for each in dataset["systems"]):
        return ""
    parts = []
    for each in dataset["systems"]:
        if not has(each, ALL, primary) and has(each, ALL, "in prompt"):
            share = 100 * each["read"]["results"] * dataset["questions"] / each["read"]["turns"]
            cut = f"; {share:.0f} % of the turns fit" if share < 99.5 else ""  # noqa: PLR2004 - rounds to 100
            parts.append(
                f" {each['name']} has no order, so only what is in the prompt counts{cut}."
            )
    return "".join(parts)


def _cell(system: Mapping[str, Any], group: str, name: str, *, interval: bool = False) -> str:
    figure = system["measures"].get(group, {}).get(name)
    if figure is None:
        return _NO
    if name == "must-not":
        return f"{figure['mean']:.2f} a question"
    if name == "MRR":
        return f"{figure['mean']:.3f}"
    text = f"{100 * figure['mean']:.1f}"
    if interval:
        text += f" [{100 * figure['low']:.1f}, {100 * figure['high']:.1f}]"
    return text


def _n(system: Mapping[str, Any], group: str) -> str:
    figures = system["measures"].get(group, {})
    return f"{max((each['n'] for each in figures.values()), default=0):,}"


def _judge(system: Mapping[str, Any], group: str) -> str:
    figures = system["measures"].get(group, {})
    rounds = [
        100 * each["mean"]
        for name, each in figures.items()
        if name.startswith("judge ") and name[6:].isdecimal()
    ]
    if not rounds:
        return _NO
    vague = figures.get("judge accepts vague")
    control = f"; accepts {100 * vague['mean']:.0f} of vague" if vague else ""
    mean = sum(rounds) / len(rounds)
    return f"{mean:.1f} ± {(max(rounds) - min(rounds)) / 2:.1f}{control}"


def _differences(dataset: Mapping[str, Any]) -> Table:
    names = [f"R@{k}" for k in dataset["cutoffs"]] + ["MRR", "clean", "F1"]
    others = [each for each in dataset["systems"] if each["differences"]]
    kept = [name for name in names if any(name in each["differences"] for each in others)]
    rows = [[each["name"], *(_difference(each, name) for name in kept)] for each in others]
    reference = dataset["reference"]
    return Table(
        columns=["system", *kept],
        rows=rows,
        title=f"Differences to {reference}, on the same questions",
        note="Points, with their 95 % interval; 'none shown' where it holds 0.",
    )


def _difference(system: Mapping[str, Any], name: str) -> str:
    figure = system["differences"].get(name)
    if figure is None:
        return _NO
    mean, low, high = (100 * figure[each] for each in ("mean", "low", "high"))
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]" + ("" if figure["shown"] else " none shown")


def _categories(dataset: Mapping[str, Any]) -> list[Table]:
    groups = category_groups(dataset)
    if not groups:
        return []
    answered = any(has(each, ALL, "F1") for each in dataset["systems"])
    shown = [dataset["primary"], *(["F1", "refused"] if answered else [])]
    return [
        Table(
            columns=["category", "n", *(each["name"] for each in dataset["systems"])],
            rows=[
                [
                    named(dataset, group),
                    _n(dataset["systems"][0], group),
                    *(_cell(each, group, name, interval=True) for each in dataset["systems"]),
                ]
                for group in groups
            ],
            title=f"{name} by category",
        )
        for name in shown
        if any(has(each, group, name) for each in dataset["systems"] for group in groups)
    ]


def _costs(dataset: Mapping[str, Any]) -> Section:
    columns = ["system", "calls", "tokens in", "tokens out", "p50 ms", "p95 ms"]
    write = [
        [
            each["name"],
            *_cost(each["write"]),
            f"{each['write']['background_seconds']:.1f}",
            f"{each['write']['items']:,}",
            f"{each['write']['bytes'] / 1000:,.0f}",
        ]
        for each in dataset["systems"]
    ]
    read = [
        [
            each["name"],
            *_cost(each["read"]),
            f"{each['read']['results']:.1f}",
            f"{each['read']['turns_per_result']:.2f}",
            f"{each['read']['prompt_tokens']:,.0f}",
        ]
        for each in dataset["systems"]
    ]
    tables = [
        Table(
            columns=[*columns, "background s", "items", "kB"],
            rows=write,
            title=f"Writing {dataset['turns']:,} turns",
            note=_WRITING,
        ),
        Table(
            columns=[*columns, "results", "turns a result", "tokens a question"],
            rows=read,
            title=f"Asking {dataset['questions']:,} questions",
            note="Times are of one recall, the embedding of the question included.",
        ),
    ]
    failures = _failures(dataset)
    return Section(
        title=f"{dataset['title']}: what it costs",
        text=[] if failures else ["Nothing failed."],
        tables=[*tables, *failures],
    )


def _failures(dataset: Mapping[str, Any]) -> list[Table]:
    failed = [each for each in dataset["systems"] if each["failures"]["n"]]
    if not failed:
        return []
    count = sum(each["failures"]["n"] for each in failed)
    return [
        Table(
            columns=["system", "what failed"],
            rows=[[each["name"], line] for each in failed for line in each["failures"]["first"]],
            title="Failures",
            note=f"{count} in all; each counts as wrong.",
        )
    ]


def _cost(cost: Mapping[str, Any]) -> list[str]:
    counts = [f"{cost[name]:,}" for name in ("calls", "input_tokens", "output_tokens")]
    return [*counts, *(_NO if cost[n] is None else f"{cost[n]:.1f}" for n in ("p50_ms", "p95_ms"))]


def _settings(report: Report) -> Section:
    rows = [[name, str(value)] for name, value in report["settings"].items()]
    skipped = [f"Left out: {each}" for each in report["skipped"]]
    table = Table(columns=["setting", "value"], rows=rows)
    return Section(title="How it was run", text=skipped, tables=[table])
