"""The tables and the plot of the page on performance, made from a benchmark's results."""

from __future__ import annotations

import math
import os
import platform
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from store_goals import OTHER, OURS, goal_table

CALLS: Final = ("put", "plain", "group", "user", "tag")
CPU_CALLS: Final = ("plain", "group", "user", "tag", "hybrid", "hybrid user")
BEGIN: Final = "<!-- measured: begin -->"
END: Final = "<!-- measured: end -->"
COLORS: Final = (
    *("#c0392b", "#7f8c8d", "#2980b9", "#27ae60", "#8e44ad"),
    *("#d35400", "#16a085", "#b7950b", "#2c3e50"),
)
WIDTH: Final = 760
HEIGHT: Final = 400
LEFT: Final = 60
RIGHT: Final = 190
TOP: Final = 30
BOTTOM: Final = 45


def write_report(page: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Replace the measured part of a page, and the plots beside it."""
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    tables = "\n".join([_machine(), *_tables(rows), *_processor(rows), *_goals(rows)])
    page.write_text(f"{head}{BEGIN}\n{tables}\n{END}{tail}", encoding="utf-8")
    for call, title in (("user", "Search of one user's scope"), ("plain", "Search of everything")):
        plot = _plot(rows, call, f"{title}: median ms against items")
        page.with_name(f"performance-{call}.svg").write_text(plot, encoding="utf-8")


def _machine() -> str:
    """Say when and with what was measured."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    day, model = f"{datetime.now(UTC):%d %B %Y}", models[0] if models else "this machine"
    versions = f"Python {platform.python_version()} and SQLite {sqlite3.sqlite_version}"
    return f"\nMeasured on {day} with {versions} on {os.cpu_count()} cores of {model}."


def _tables(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for size in sorted({row["size"] for row in rows}):
        yield f"\n### {size:,} items\n"
        yield "| store | fill, items/s | " + " | ".join(CALLS) + " |"
        yield "|---|---|" + "---|" * len(CALLS)
        for row in rows:
            if row["size"] == size:
                fill = row["medians"].get("fill", 0)
                speed = f"{1000 / fill:,.0f}" if fill and row["store"] != "flat scan" else ""
                cells = " | ".join(_cell(row, call) for call in CALLS)
                yield f"| {row['store']} | {speed} | {cells} |"
        ours = next(row for row in rows if row["size"] == size and row["store"] == OURS)
        yield "\n" + _ours(ours)
        mixed = [
            f"{row['store']} {row['more']['8 threads, ops/s']:,.0f}"
            for row in rows
            if row["size"] == size and "8 threads, ops/s" in row["more"]
        ]
        if mixed:
            yield f"Eight threads, 80 % searches of a user, calls a second: {', '.join(mixed)}."


def _processor(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the table of processor times; what scanning all vectors takes stands beside it."""
    yield "\n### Processor time, ms\n"
    calls = " | ".join(CPU_CALLS)
    yield f"| items | flat scan | {calls} | fill, us an item | {OTHER}'s |"
    yield "|---|---|" + "---|" * (len(CPU_CALLS) + 2)
    for size in sorted({row["size"] for row in rows if row["cpu"]}):
        times = {row["store"]: row["cpu"] for row in rows if row["size"] == size and row["cpu"]}
        cells = " | ".join(f"{times[OURS][call]:.3g}" for call in CPU_CALLS)
        fills = " | ".join(_fill(times.get(store)) for store in (OURS, OTHER))
        yield f"| {size:,} | {times['flat scan']['plain']:.3g} | {cells} | {fills} |"


def _goals(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "\n### Goals\n"
    yield from goal_table(rows)


def _fill(times: dict[str, float] | None) -> str:
    """Return how many microseconds filling took for each item."""
    return "" if times is None or "fill" not in times else f"{1000 * times['fill']:.3g}"


def _cell(row: dict[str, Any], call: str) -> str:
    value = row["medians"].get(call)
    if value is None:
        return ""
    text = _number(value)
    if row["store"] != OURS:
        text += f" ({_ratio(row['ratios'][call])})"
    recall = row["recall"].get(call, 1.0)
    return text + (f" **recall {recall:.2f}**" if recall < 0.995 else "")


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1_000 else f"{value:,.0f}"


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:,.0f}x"


def _ours(row: dict[str, Any]) -> str:
    medians, more = row["medians"], row["more"]
    tasks = more.get("64 tasks, ops/s")
    return (
        f"Ours besides: hybrid {_number(medians['hybrid'])} ms over everything and "
        f"{medians['hybrid user']:.3g} ms over one user, put again {medians['put again']:.3g} ms, "
        f"open {more['open ms']:.3g} ms, first scoped search "
        f"{more['first scoped search ms']:.3g} ms, {more['disk B / item']:,.0f} bytes an item on "
        f"disk{f', 64 tasks {tasks:,.0f} operations a second' if tasks else ''}."
    )


def _plot(rows: Sequence[dict[str, Any]], call: str, title: str) -> str:
    """Return an SVG with one line a store, both axes logarithmic."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if call in row["medians"]:
            lines.setdefault(row["store"], []).append((row["size"], row["medians"][call]))
    points = [point for line in lines.values() for point in line]
    x_low, x_high = (math.log10(f(p[0] for p in points)) for f in (min, max))
    y_low = math.floor(math.log10(min(p[1] for p in points)))
    y_high = math.ceil(math.log10(max(p[1] for p in points)))

    def place(size: float, value: float) -> tuple[float, float]:
        across = (math.log10(size) - x_low) / max(x_high - x_low, 1e-9)
        up = (math.log10(value) - y_low) / max(y_high - y_low, 1)
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
        )

    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-weight="bold">{title}</text>',
    ]
    for power in range(y_low, y_high + 1):
        _, y = place(10**x_low, 10.0**power)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
        )
    for items in sorted({point[0] for point in points}):
        x, y = place(items, 10.0**y_low)
        parts.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{items:,}</text>')
    ends = sorted((place(*line[-1])[1], name) for name, line in lines.items())
    label = 0.0
    for y_end, name in ends:
        color = COLORS[list(lines).index(name) % len(COLORS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*p) for p in sorted(lines[name])))
        label = max(label + 14, y_end + 4)
        width = 3 if name == OURS else 1.5
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"/>'
        )
        parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{label:.1f}" fill="{color}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])
