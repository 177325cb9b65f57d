"""The page on performance is written from results, and keeps what a person wrote around them."""

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def _module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    path = ROOT / "benchmarks" / "store_report.py"
    spec = importlib.util.spec_from_file_location("store_report", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _row(size: int, store: str, plain: float) -> dict[str, Any]:
    calls = ("put", "plain", "group", "user", "tag", "hybrid", "hybrid user", "put again")
    more = ("open ms", "first scoped search ms", "disk B / item")
    return {
        "size": size,
        "store": store,
        "medians": {"fill": 0.05, **dict.fromkeys(calls, plain)},
        "ratios": dict.fromkeys(calls, plain / 0.5),
        "cpu": {"fill": 0.05, **dict.fromkeys(calls, plain)},
        "recall": {"plain": 0.4 if store == "Other" else 1.0},
        "more": dict.fromkeys(more, 3.0) if store == "FaissSqliteStore" else {},
    }


def test_tables_and_plots_replace_the_former_ones_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second report leaves the text around, shows ratios and low recall, and draws each store."""
    module = _module(monkeypatch)
    page = tmp_path / "performance.md"
    page.write_text(f"# Before\n{module.BEGIN}\nold\n{module.END}\nafter\n", encoding="utf-8")
    rows = [
        _row(size, store, value)
        for size in (1_000, 10_000)
        for store, value in (("FaissSqliteStore", 0.5), ("flat scan", 0.1), ("Other", 2.5))
    ]
    for _ in range(2):
        module.write_report(page, rows)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert text.count("### 10,000 items") == 1
    assert "| Other | 20,000 | 2.5 (5.00x) | 2.5 (5.00x) **recall 0.40** |" in text
    drawing = ET.fromstring((tmp_path / "performance-plain.svg").read_text())  # noqa: S314 - our own
    lines = [each for each in drawing.iter() if each.tag.endswith("polyline")]
    assert len(lines) == 3
    assert "| 10,000 | 0.1 | 0.5 |" in text


def test_goals_say_where_they_are_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """A goal is met at the sizes whose figures reach it; one that was not measured is left out."""
    module = _module(monkeypatch)
    rows = [
        _row(size, store, value)
        for size, took in ((1_000, 0.15), (10_000, 0.5), (100_000, 0.11))
        for store, value in (("FaissSqliteStore", took), ("flat scan", 0.1), ("SqliteStore", 2.5))
    ]
    table = "\n".join(module.goal_table(rows))
    assert "5.00 times at 10,000; 1.10 times at 100,000 | met at 100,000 |" in table
    assert "0.05 ms more at 1,000 | met |" in table
    assert "*user* 0.15 ms, 25 times faster than `SqliteStore` | 0.11 ms, 5 times" in table
    assert "10,000 scopes" not in table
    assert "threads" not in table
