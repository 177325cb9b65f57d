"""How costs grow with the number of turns, as a table and as plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_agentmem.evaluation.document import Plot, Section, Table
from langchain_agentmem.evaluation.plots import Axis, lines

_METHOD: Final = (
    "One user's conversation of generated turns, with a scripted model that replies at once: what "
    "remains is the memory's own cost and the number of its calls. The cost of a turn is that of "
    "the last 200, written in pairs."
)
_MEASURES: Final = (
    ("write_ms", "ms to write a turn", "Write cost"),
    ("read_p50_ms", "ms to recall, median", "Read cost"),
    ("kilobytes", "kB of the store", "Store size"),
)


def growth_section(growth: Sequence[Mapping[str, Any]]) -> Section:
    """Return the section about growth.

    Args:
        growth: One entry a system and size, as `growth.measure_growth` gives.
    """
    rows = [
        [
            each["system"],
            f"{each['turns']:,}",
            f"{each['write_ms']:.2f}",
            f"{each['write_calls']:.2f}",
            f"{each['write_tokens']:,.0f}",
            f"{each['read_p50_ms']:.1f}",
            f"{each['read_p95_ms']:.1f}",
            f"{each['read_tokens']:,.0f}",
            f"{each['kilobytes']:,.0f}",
        ]
        for each in growth
    ]
    columns = ["system", "turns", "ms a turn", "calls a turn", "tokens a turn", "recall p50 ms"]
    columns += ["recall p95 ms", "tokens recalled", "kB"]
    stopped = [each for each in growth if each["stopped"]]
    names = ", ".join(f"{each['system']} at {each['turns']:,} turns" for each in stopped)
    text = [_METHOD, *([f"Stopped at the limit of time: {names}."] if stopped else [])]
    table = Table(columns=[*columns], rows=rows)
    return Section(title="How costs grow", text=text, tables=[table], plots=_plots(growth))


def _plots(growth: Sequence[Mapping[str, Any]]) -> list[Plot]:
    systems = dict.fromkeys(each["system"] for each in growth)
    x = Axis.over("turns (log)", [each["turns"] for each in growth], log=True)
    plots = []
    for name, label, title in _MEASURES:
        series = {
            system: [(each["turns"], each[name]) for each in growth if each["system"] == system]
            for system in systems
        }
        y = Axis.over(f"{label} (log)", [each[name] for each in growth], log=True)
        plots.append(Plot(title=title, svg=lines(series, x, y)))
    return plots
