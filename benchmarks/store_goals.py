"""The goals of the store's speed, and which of them a benchmark's results meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

OURS: Final = "FaissSqliteStore"
OTHER: Final = "SqliteStore"
SCAN: Final = "flat scan"
LARGE: Final = 1_000_000

Rows = Mapping[tuple[int, str], Mapping[str, Any]]
Figure = tuple[int, str, bool]
"""A size, what was measured there in words, and whether it meets the goal."""


def goal_table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table of goals, what was measured, and whether that meets them."""
    found: Rows = {(row["size"], row["store"]): row for row in rows}
    yield "| goal | measured | |"
    yield "|---|---|---|"
    for goal, figures in GOALS:
        measured = list(figures(found))
        if measured:
            text = "; ".join(f"{figure} at {size:,}" for size, figure, _ in measured)
            yield f"| {goal} | {text} | {_verdict(measured)} |"


def _verdict(measured: Sequence[Figure]) -> str:
    """Say where a goal is met."""
    met = [f"{size:,}" for size, _, is_met in measured if is_met]
    if len(met) == len(measured):
        return "met"
    return f"met at {' and '.join(met)}" if met else "not met"


def _sizes(found: Rows, *, least: int = 0, most: int = LARGE) -> Iterator[int]:
    yield from sorted(size for size, store in found if store == OURS and least <= size <= most)


def _scan(found: Rows) -> Iterator[Figure]:
    for size in _sizes(found, least=10_000):
        ratio = found[size, OURS]["cpu"]["plain"] / found[size, SCAN]["cpu"]["plain"]
        yield size, f"{ratio:.2f} times", ratio <= 1.2


def _small_scan(found: Rows) -> Iterator[Figure]:
    for size in _sizes(found, most=1_000):
        over = found[size, OURS]["cpu"]["plain"] - found[size, SCAN]["cpu"]["plain"]
        yield size, f"{over:.2f} ms more", over <= 0.10


def _scoped(call: str, most_ms: float, least: float) -> Callable[[Rows], Iterator[Figure]]:
    def figures(found: Rows) -> Iterator[Figure]:
        for size in _sizes(found, least=100_000, most=100_000):
            took = found[size, OURS]["medians"][call]
            times = found.get((size, OTHER), {"ratios": {}})["ratios"].get(call)
            ratio = "" if times is None else f", {times:,.0f} times"
            yield size, f"{took:.2g} ms{ratio}", took <= most_ms and (times or least) >= least

    return figures


def _put(found: Rows) -> Iterator[Figure]:
    for size in _sizes(found):
        if (size, OTHER) in found:
            ratio = found[size, OTHER]["ratios"]["put"]
            yield size, f"{ratio:.1f} times", ratio >= 3


def _fill(found: Rows) -> Iterator[Figure]:
    for size, least in ((10_000, 40_000), (100_000, 30_000)):
        if (size, OURS) in found:
            rate = 1000 / found[size, OURS]["cpu"]["fill"]
            other = 1000 / found[size, OTHER]["cpu"]["fill"] if (size, OTHER) in found else 0.0
            beside = f" beside {other:,.0f}" if other else ""
            yield size, f"{rate:,.0f}{beside}", rate >= max(least, other)


def _threads(found: Rows) -> Iterator[Figure]:
    for size in _sizes(found):
        pair = [
            found.get((size, s), {"more": {}})["more"].get("8 threads, ops/s")
            for s in (OURS, OTHER)
        ]
        if all(pair):
            ratio = pair[0] / pair[1]
            yield size, f"{ratio:.1f} times", ratio >= 3


def _open(found: Rows) -> Iterator[Figure]:
    for size in _sizes(found, least=100_000):
        more = found[size, OURS]["more"]
        opened, first = more["open ms"], more["open ms"] + more["first scoped search ms"]
        yield size, f"{opened:.2g} and {first:.2g} ms", opened <= 10 and first <= 50


def _disk(found: Rows) -> Iterator[Figure]:
    for size in _sizes(found):
        used = found[size, OURS]["more"]["disk B / item"]
        yield size, f"{used:,.0f}", used <= 1_500


def _hybrid(found: Rows) -> Iterator[Figure]:
    for size in _sizes(found, most=100_000):
        cpu = found[size, OURS]["cpu"]
        ratios = [cpu["hybrid"] / cpu["plain"], cpu["hybrid user"] / cpu["user"]]
        yield size, f"{ratios[0]:.2f} and {ratios[1]:.2f} times", max(ratios) <= 2


def _many_scopes(found: Rows) -> Iterator[Figure]:
    for size in _sizes(found, least=LARGE):
        user, put = (found[size, OURS]["medians"][call] for call in ("user", "put"))
        smaller = found.get((LARGE // 10, OURS))
        is_met = user < 1 and (smaller is None or put <= 1.5 * smaller["medians"]["put"])
        yield size, f"{user:.2g} ms, put {put:.2g} ms", is_met


GOALS: Final[Sequence[tuple[str, Callable[[Rows], Iterator[Figure]]]]] = (
    ("*plain* at most 1.2 times the flat scan, processor time, from 10,000 items", _scan),
    ("*plain* at 1,000 items at most 0.10 ms of processor time over the flat scan", _small_scan),
    ("*user* 0.15 ms, 25 times faster than `SqliteStore`", _scoped("user", 0.15, 25)),
    ("*group* 1 ms, 40 times faster", _scoped("group", 1.0, 40)),
    ("*tag* 0.8 ms, 200 times faster", _scoped("tag", 0.8, 200)),
    ("a durable put 3 times faster than `SqliteStore`", _put),
    ("fill 40,000 and 30,000 items a second of processor time, as `SqliteStore` or more", _fill),
    ("8 threads, 80 % searches: 3 times `SqliteStore`", _threads),
    ("open in 10 ms; with the first scoped search in 50 ms", _open),
    ("at most 1,500 bytes an item on disk", _disk),
    ("hybrid at most twice dense, processor time: everything and one user", _hybrid),
    ("a million items in 10,000 scopes: scoped search 1 ms, put as elsewhere", _many_scopes),
)
