"""Keeping recalled text within a budget of tokens, without a tokenizer."""

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

ItemT = TypeVar("ItemT")

_PIECES: Final = re.compile(
    r"(?P<word>[A-Za-z\u00c0-\u024f]+)|(?P<digits>\d+)|(?P<other>[^\s])", re.ASCII
)
_LETTERS_PER_TOKEN: Final = 6
_DIGITS_PER_TOKEN: Final = 3


def count_tokens(text: str) -> int:
    """Estimate how many tokens a model reads in a text.

    Args:
        text: Any text.

    Returns:
        One token per started six letters of a Latin word, per started three digits, and per other
        character that is not a space: a Chinese character counts as a whole token, as it does in
        most vocabularies, and not as the quarter of one that `len(text) / 4` makes of it.
    """
    total = 0
    for match in _PIECES.finditer(text):
        size = match.end() - match.start()
        unit = {"word": _LETTERS_PER_TOKEN, "digits": _DIGITS_PER_TOKEN}.get(
            match.lastgroup or "", 1
        )
        total += -(-size // unit)
    return total


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
