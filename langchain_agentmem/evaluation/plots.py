"""Small plots as inline SVG: points, lines and bars on linear or logarithmic axes."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Point: TypeAlias = tuple[float, float]

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 170, 16, 52
_COLORS: Final = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f",
    "#a6761d", "#1b9e77", "#e7298a", "#66a61e",
)  # fmt: skip
_TICKS: Final = 5


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis.

    Attributes:
        label: What it shows, with its unit.
        low: Value at its beginning.
        high: Value at its end.
        log: Whether it is logarithmic.
    """

    label: str
    low: float
    high: float
    log: bool = False

    @classmethod
    def over(cls, label: str, values: Sequence[float], *, log: bool = False) -> Axis:
        """Return an axis that holds all values, from 0 where it is linear."""
        positive = [value for value in values if value > 0] or [1.0]
        if log:
            first = math.floor(math.log10(min(positive)))
            last = max(math.ceil(math.log10(max(positive))), first + 1)
            return cls(label, 10.0**first, 10.0**last, log=True)
        return cls(label, 0.0, max([*positive, 1e-9]) * 1.05)

    def place(self, value: float) -> float:
        """Return where a value lies, 0 to 1."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        low, high = math.log10(self.low), math.log10(self.high)
        return (math.log10(max(value, self.low)) - low) / (high - low)

    def ticks(self) -> list[float]:
        """Return round values along it."""
        if self.log:
            low, high = (round(math.log10(each)) for each in (self.low, self.high))
            return [10.0**power for power in range(low, high + 1)]
        raw = (self.high - self.low) / _TICKS
        step = 10 ** math.floor(math.log10(raw))
        step *= next(each for each in (1, 2, 5, 10) if raw <= 1.1 * each * step)
        return [step * at for at in range(int(self.high / step) + 1)]


def scatter(points: Mapping[str, Point], x: Axis, y: Axis) -> str:
    """Return a plot of one named point each."""
    marks = [
        f'<circle cx="{_x(x, at):.1f}" cy="{_y(y, up):.1f}" r="6" fill="{color}"/>'
        for (at, up), color in zip(points.values(), _colors(len(points)), strict=True)
    ]
    return _svg([*_frame(x, y), *marks, *_legend(list(points))])


def lines(series: Mapping[str, Sequence[Point]], x: Axis, y: Axis) -> str:
    """Return a plot of one named line each."""
    marks = []
    for points, color in zip(series.values(), _colors(len(series)), strict=True):
        path = " ".join(f"{_x(x, at):.1f},{_y(y, up):.1f}" for at, up in points)
        marks.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        marks += [
            f'<circle cx="{_x(x, at):.1f}" cy="{_y(y, up):.1f}" r="3.5" fill="{color}"/>'
            for at, up in points
        ]
    return _svg([*_frame(x, y), *marks, *_legend(list(series))])


def bars(groups: Sequence[str], series: Mapping[str, Sequence[float]], y: Axis) -> str:
    """Return a plot of named bars side by side in each group."""
    room = (_WIDTH - _LEFT - _RIGHT) / max(len(groups), 1)
    width = 0.8 * room / max(len(series), 1)
    marks = []
    for at, (values, color) in enumerate(zip(series.values(), _colors(len(series)), strict=True)):
        for group, value in enumerate(values):
            left, top = _LEFT + room * (group + 0.1) + width * at, _y(y, value)
            size = f'width="{width:.1f}" height="{_HEIGHT - _BOTTOM - top:.1f}"'
            marks.append(f'<rect x="{left:.1f}" y="{top:.1f}" {size} fill="{color}"/>')
    names = [
        _text(_LEFT + room * (at + 0.5), _HEIGHT - _BOTTOM + 18, name, "middle")
        for at, name in enumerate(groups)
    ]
    return _svg([*_frame(None, y), *marks, *names, *_legend(list(series))])


def _x(axis: Axis, value: float) -> float:
    return _LEFT + axis.place(value) * (_WIDTH - _LEFT - _RIGHT)


def _y(axis: Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - axis.place(value) * (_HEIGHT - _TOP - _BOTTOM)


def _colors(count: int) -> list[str]:
    return [_COLORS[at % len(_COLORS)] for at in range(count)]


def _frame(x: Axis | None, y: Axis) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [_text(14, (_TOP + bottom) / 2, y.label, "middle", turned=True)]
    parts += _ticks(y, lambda value: (_LEFT, _y(y, value), right, _y(y, value)), vertical=True)
    if x is not None:
        parts.append(_text((_LEFT + right) / 2, _HEIGHT - 10, x.label, "middle"))
        parts += _ticks(x, lambda value: (_x(x, value), _TOP, _x(x, value), bottom), vertical=False)
    return parts


def _ticks(
    axis: Axis, line: Callable[[float], tuple[float, float, float, float]], *, vertical: bool
) -> list[str]:
    parts = []
    for value in axis.ticks():
        x1, y1, x2, y2 = line(value)
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        parts.append(f'<line {ends} stroke="#8883"/>')
        name = f"{value:,.0f}" if value >= 1 or value == 0 else f"{value:g}"
        parts.append(
            _text(x1 - 6, y1 + 4, name, "end") if vertical else _text(x1, y2 + 18, name, "middle")
        )
    return parts


def _legend(names: Sequence[str]) -> list[str]:
    parts = []
    for at, (name, color) in enumerate(zip(names, _colors(len(names)), strict=True)):
        left, top = _WIDTH - _RIGHT + 14, _TOP + 18 * at
        parts.append(f'<rect x="{left}" y="{top}" width="11" height="11" fill="{color}"/>')
        parts.append(_text(left + 17, top + 10, name, "start"))
    return parts


def _text(x: float, y: float, text: str, anchor: str, *, turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}'
    return f"<text {place}>{html.escape(text)}</text>"


def _svg(parts: Sequence[str]) -> str:
    style = 'font-family="system-ui, sans-serif" font-size="12" fill="currentColor"'
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {box} {style}>{"".join(parts)}</svg>'
    )
