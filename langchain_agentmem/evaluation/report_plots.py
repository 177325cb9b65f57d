"""The plots of one data set: evidence against tokens, cost against quality, recall by category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_agentmem.evaluation.document import Plot
from langchain_agentmem.evaluation.plots import Axis, bars, scatter
from langchain_agentmem.evaluation.summary import ALL

_PERCENT: Final = Axis("evidence in the prompt, %", 0, 105)


def has(system: Mapping[str, Any], group: str, name: str) -> bool:
    """Tell whether a measure of a group of questions is known of a system."""
    return name in system["measures"].get(group, {})


def category_groups(dataset: Mapping[str, Any]) -> list[str]:
    """Return the groups of questions that are categories, in their order."""
    found = dict.fromkeys(group for each in dataset["systems"] for group in each["measures"])
    return [group for group in found if group.startswith("category ")]


def named(dataset: Mapping[str, Any], group: str) -> str:
    """Return a category by its number and name."""
    number = group.removeprefix("category ")
    name = dataset["categories"].get(number, "")
    apart = " (apart)" if number in dataset["apart"] else ""
    return f"{number} {name}{apart}".replace(" ", " ").strip()


def plots_of(dataset: Mapping[str, Any]) -> list[Plot]:
    """Return the plots of a data set; none where no evidence is named."""
    systems = [each for each in dataset["systems"] if has(each, ALL, "in prompt")]
    if not systems:
        return []
    return [_against_tokens(systems), _against_cost(systems), *_by_category(dataset, systems)]


def _found(systems: Sequence[Mapping[str, Any]], x: Mapping[str, float], label: str) -> str:
    """Return the evidence in the prompt of each system over something else."""
    points = {
        each["name"]: (x[each["name"]], 100 * each["measures"][ALL]["in prompt"]["mean"])
        for each in systems
    }
    return scatter(points, Axis.over(label, list(x.values()), log=True), _PERCENT)


def _against_tokens(systems: Sequence[Mapping[str, Any]]) -> Plot:
    tokens = {each["name"]: max(each["read"]["prompt_tokens"], 1.0) for each in systems}
    return Plot(
        title="Evidence found against tokens in the prompt",
        svg=_found(systems, tokens, "tokens in the prompt (log)"),
        note="The further up and to the left, the better.",
    )


def _against_cost(systems: Sequence[Mapping[str, Any]]) -> Plot:
    """Plot quality over what a model costs, or over time where no memory asks one."""
    asks = any(each["write"]["calls"] or each["read"]["calls"] for each in systems)
    unit = "model tokens" if asks else "milliseconds"
    spent = {
        each["name"]: max(_tokens(each), 1.0) if asks else max(_milliseconds(each), 1e-3)
        for each in systems
    }
    return Plot(
        title="Cost against quality",
        svg=_found(systems, spent, f"{unit} a turn written and a question asked (log)"),
        note="What one turn and one recall take together, without the answer.",
    )


def _milliseconds(system: Mapping[str, Any]) -> float:
    write, read = system["write"], system["read"]
    a_turn = float(write["seconds"]) / max(int(write["turns"]), 1)
    return 1000 * (a_turn + float(read["seconds"]) / max(int(read["timed"]), 1))


def _tokens(system: Mapping[str, Any]) -> float:
    write, read = (
        float(part["input_tokens"] + part["output_tokens"])
        for part in (system["write"], system["read"])
    )
    turns, times = int(system["write"]["turns"]), int(system["read"]["times"])
    return write / max(turns, 1) + read / max(times, 1)


def _by_category(dataset: Mapping[str, Any], systems: Sequence[Mapping[str, Any]]) -> list[Plot]:
    name = dataset["primary"]
    groups = [
        group
        for group in category_groups(dataset)
        if any(has(each, group, name) for each in systems)
    ]
    if not groups:
        return []
    series = {
        each["name"]: [
            100 * each["measures"].get(group, {}).get(name, {}).get("mean", 0) for group in groups
        ]
        for each in systems
    }
    svg = bars([named(dataset, group) for group in groups], series, Axis(f"{name}, %", 0, 105))
    return [Plot(title=f"{name} by category", svg=svg)]
