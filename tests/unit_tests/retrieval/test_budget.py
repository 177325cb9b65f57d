"""Token counts and budgets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_agentmem.retrieval.budget import count_tokens, fit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("the cat", 2),
        ("internationalization", 4),
        ("2023", 2),
        ("苹果好吃。", 5),
        ("a, b", 3),
    ],
)
def test_count_tokens_by_hand(text: str, expected: int) -> None:
    """Six letters, three digits or one other character make a token."""
    assert count_tokens(text) == expected


def test_fit_drops_the_worst_first_and_keeps_items_whole() -> None:
    """The budget of three tokens holds the first two of three items."""
    assert fit(["one two", "three", "four"], 3) == ["one two", "three"]


def test_fit_passes_over_what_could_never_fit() -> None:
    """One very long best item does not empty the recall."""
    assert fit(["a " * 50, "short"], 3) == ["short"]


@given(st.lists(st.text()), st.integers(0, 40))
def test_fit_stays_within_the_budget(items: list[str], budget: int) -> None:
    """Whatever the items, their sum fits."""
    assert sum(map(count_tokens, fit(items, budget))) <= budget
