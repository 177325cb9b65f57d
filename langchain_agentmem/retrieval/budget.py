"""Keeping recalled text within a budget of tokens, without a tokenizer."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

from langchain_agentmem.retrieval.text import fold

ItemT = TypeVar("ItemT")

_TOKEN: Final = re.compile(r"[A-Za-z\u00c0-\u024f]{1,6}|\d{1,3}|\S", re.ASCII)
_MOST_LETTERS_PER_TOKEN: Final = 8  # a longer text is over its budget in any script
_LEFT_OUT: Final = "[…]"


def count_tokens(text: str) -> int:
    """Estimate how many tokens a model reads in a text.

    Args:
        text: Any text.

    Returns:
        One token per started six letters of a Latin word, per started three digits, and per other
        character that is not a space: a Chinese character counts as a whole token, as it does in
        most vocabularies, and not as the quarter of one that `len(text) / 4` makes of it.
    """
    return len(_TOKEN.findall(text))


def fit(
    items: Sequence[ItemT],
    max_tokens: int,
    *,
    text: Callable[[ItemT], str] = str,
) -> list[ItemT]:
    """Return the best items that fit a budget together, whole and in their order.

    Args:
        items: Items, best first.
        max_tokens: The most tokens their texts may have together.
        text: What of an item is counted.

    Returns:
        The items left when those too long for the whole budget are passed over and then the worst
        are dropped one by one.
    """
    kept: list[ItemT] = []
    used = 0
    for item in items:
        size = count_tokens(text(item))
        if size > max_tokens:
            continue
        used += size
        if used > max_tokens:
            break
        kept.append(item)
    return kept


def excerpt(text: str, query: Collection[str], max_tokens: int) -> str:
    """Return the part of a long text that says most about a question.

    Args:
        text: The text; one that fits is returned whole.
        query: The question's index terms.
        max_tokens: Most tokens of the excerpt, roughly.

    Returns:
        The best part, with an ellipsis in brackets where something is left out.
    """
    sample = text[: max_tokens * _MOST_LETTERS_PER_TOKEN]
    tokens = count_tokens(sample)
    if len(sample) == len(text) and tokens <= max_tokens:
        return text
    size = max(len(sample) * max_tokens // max(tokens, 1), 2)
    if size >= len(text):
        return text
    step = size // 2
    starts = range(0, max(len(text) - size, 0) + step, step)
    folded = fold(text) if len(fold(text)) == len(text) else text.lower()
    start = max(starts, key=lambda at: sum(term in folded[at : at + size] for term in query))
    start = min(start, len(text) - size)
    before = _LEFT_OUT + " " if start > 0 else ""
    after = " " + _LEFT_OUT if start + size < len(text) else ""
    return f"{before}{text[start : start + size]}{after}"
