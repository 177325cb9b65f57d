"""What model calls that another package makes report of their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from langchain_core.outputs import LLMResult


class Tokens(NamedTuple):
    """Tokens of model calls.

    Attributes:
        read: What the model was shown.
        written: What it replied.
    """

    read: int
    written: int


def tokens_of(response: LLMResult) -> Tokens:
    """Return the tokens that a callback's `response` reports; zero where it reports none."""
    read = written = 0
    for generation in (each for many in response.generations for each in many):
        usage = getattr(getattr(generation, "message", None), "usage_metadata", None) or {}
        read += usage.get("input_tokens", 0)
        written += usage.get("output_tokens", 0)
    return Tokens(read, written)
