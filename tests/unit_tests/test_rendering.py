"""How numbers and memories read."""

import pytest

from langchain_agentmem.rendering import counted


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 turns"), (1, "1 turn"), (2, "2 turns"), (1200, "1,200 turns")]
)
def test_a_number_agrees_with_its_noun(number: int, words: str) -> None:
    """One is the singular, all others the plural."""
    assert counted(number, "turn") == words


def test_a_noun_may_have_a_plural_of_its_own() -> None:
    """Not every plural ends in an s alone."""
    assert counted(2, "memory", "memories") == "2 memories"
