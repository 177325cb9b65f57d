"""The report: numbers with their n, plots, and nothing loaded from anywhere."""

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET  # what is parsed is our own

import pytest

from langchain_agentmem.evaluation.growth_report import growth_section
from langchain_agentmem.evaluation.plots import Axis, bars, lines, scatter
from langchain_agentmem.evaluation.report import overview, summary_table, to_html, to_markdown
from langchain_agentmem.evaluation.systems import system
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.evaluation.small import everything, report

GROWN = {
    "system": "RAGMemory",
    "turns": 100,
    "write_ms": 1.5,
    "write_calls": 0.0,
    "write_tokens": 0.0,
    "read_p50_ms": 2.0,
    "read_p95_ms": 4.0,
    "read_tokens": 200.0,
    "kilobytes": 90.0,
    "stopped": True,
}


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """The report of three systems, answered and judged by a model that says little."""
    model = ScriptedChatModel(replies=lambda _: "CORRECT Rex")
    specs = (system("nothing"), system("full_context"), everything())
    found = report(*specs, answerer=model, judge=model)
    return {**found, "growth": [GROWN], "skipped": ["Mem0: no model"]}


def test_categories_are_named_with_number_and_n(result: dict[str, Any]) -> None:
    """A reader cannot mistake one category for another, nor a small n for a large one."""
    text = to_markdown(result)
    assert "| 1 plain | 4 |" in text
    assert "| 2 family | 2 |" in text
    assert "| 5 adversarial (apart) | 2 |" in text


def test_the_table_of_results_has_intervals_tokens_and_n(result: dict[str, Any]) -> None:
    """Each row says how sure it is, what it costs, and how many questions it is about."""
    table = summary_table(result["datasets"][0])
    assert table.columns[:2] == ["system", "R@1"]
    row = dict(zip(table.columns, table.rows[2], strict=True))
    assert row["system"] == "everything"
    assert re.fullmatch(r"33\.3 \[.*\]", row["R@1"])
    assert row["must-not"] == "2.00 a question"
    assert row["judge"] == "100.0 ± 0.0; accepts 100 of vague"
    assert (row["tokens"], row["n"]) == ("7", "6")
    assert table.rows[3][0] == "nothing, without known-wrong"
    assert "full_context has no order, so only what is in the prompt counts." in table.note
    assert table.rows[1][1] == "\N{EN DASH}"


def test_differences_are_paired_and_not_claimed_without_evidence(result: dict[str, Any]) -> None:
    """What could be chance is called so."""
    text = to_markdown(result)
    assert "Differences to nothing, on the same questions" in text
    assert "none shown" in text


def test_the_verdict_comes_first_and_claims_no_more_than_is_shown(result: dict[str, Any]) -> None:
    """The best system, its price, and who may be as good."""
    text = to_markdown(result)
    verdict = next(line for line in text.splitlines() if line.startswith("In short"))
    assert verdict.startswith("In short: everything finds most, 33.3 % at R@1")
    assert "of 6 questions, in 7 tokens each." in verdict
    assert "Not told apart from it by their intervals: nothing." in verdict


def test_the_overview_has_a_row_a_system_and_a_column_a_data_set(result: dict[str, Any]) -> None:
    """One table shows all at once; what is not ranked is not given a rank."""
    (table,) = overview(result)
    assert table.columns == ["system", "Small, R@1/3, n = 6"]
    assert table.rows[1] == ["full_context", "all 100.0; 94 tokens"]
    assert table.rows[2] == ["everything", "33.3 / 66.7; 7 tokens"]


def test_settings_hold_all_that_a_rerun_needs(result: dict[str, Any]) -> None:
    """Versions, seed, models and the hashes of the prompts are printed."""
    text = to_markdown(result)
    for part in ("answer prompt (SHA-256)", "judge prompt", "seed", "embedding model", "code "):
        assert part in text
    assert "scripted, temperature not known" in text
    assert "Left out: Mem0: no model" in text


def test_the_page_is_sound_and_loads_nothing(result: dict[str, Any]) -> None:
    """No script, image, font or style from elsewhere; each plot is whole XML."""

    class Reader(HTMLParser):
        tags: set[str] = set()  # noqa: RUF012 - a test's own

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.tags.add(tag)
            assert not {name for name, _ in attrs} & {"src", "href", "onload"}

    text = to_html(result)
    Reader().feed(text)
    assert Reader.tags.isdisjoint({"script", "link", "img", "iframe"})
    assert {"table", "svg", "figure"} <= Reader.tags
    assert "url(" not in text
    assert "@import" not in text
    plots = re.findall(r"<svg.*?</svg>", text)
    assert len(plots) == 6
    for plot in plots:
        ET.fromstring(plot)  # noqa: S314 - our own


def test_what_a_system_says_cannot_break_the_page() -> None:
    """Names and errors are data: they neither become markup nor cells."""
    found = report(system("nothing"))
    found["datasets"][0]["systems"][0]["name"] = "<b>|x</b>"
    found["datasets"][0]["systems"][0]["failures"] = {"n": 1, "first": ["a\nb|<script>"]}
    assert "<b>" not in to_html(found)
    assert "<script>" not in to_html(found)
    assert "a b\\|<script>" in to_markdown(found)


def test_growth_is_a_table_and_three_plots() -> None:
    """Write cost, read cost and size; what was stopped is said."""
    section = growth_section([GROWN])
    assert section.tables[0].rows[0][:3] == ["RAGMemory", "100", "1.50"]
    assert [plot.title for plot in section.plots] == ["Write cost", "Read cost", "Store size"]
    assert "Stopped at the limit of time: RAGMemory at 100 turns." in section.text


def test_logarithmic_axes_place_powers_evenly() -> None:
    """100 lies in the middle of 10 and 1,000, and the ends hold all values."""
    axis = Axis.over("x", [10, 900], log=True)
    assert (axis.low, axis.high) == (10, 1000)
    assert axis.place(100) == pytest.approx(0.5)
    assert axis.ticks() == [10, 100, 1000]
    assert Axis.over("x", [10], log=True).ticks() == [10, 100]


def test_linear_axes_begin_at_0_with_round_ticks() -> None:
    """The eye compares lengths from 0."""
    axis = Axis.over("y", [40, 80])
    assert axis.low == 0
    assert axis.ticks() == [0, 20, 40, 60, 80]


def test_plots_hold_a_mark_for_every_value() -> None:
    """Points, lines and bars are all drawn, with a legend each."""
    x, y = Axis("x", 1, 1000, log=True), Axis("y", 0, 100)
    assert scatter({"a": (10, 50), "b": (100, 60)}, x, y).count("<circle") == 2
    drawn = lines({"a": [(10, 5), (100, 50)], "b": [(10, 6)]}, x, y)
    assert drawn.count("<polyline") == 2
    assert drawn.count("<circle") == 3
    assert bars(["1", "2"], {"a": [1, 2], "b": [3, 4]}, y).count('fill="#') == 2 * 2 + 2
