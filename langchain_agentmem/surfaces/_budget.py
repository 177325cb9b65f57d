"""Recall for surfaces that bound what they show by themselves."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from langchain_agentmem.memories.base import Memory

SEARCH_TOKENS: Final = 8000
"""Most tokens of the results of a search tool that an agent is given unasked."""


def without_budget(memory: Memory) -> dict[str, Any]:
    """Return the settings of a call that recalls as many memories as are asked for, however long.

    A memory's `max_tokens` is the budget of the text for a prompt; that of a short-term memory is
    its view and stays.
    """
    from langchain_agentmem.memories.short_term_base import ShortTermMemory

    has_budget = any(each.name == "max_tokens" for each in fields(memory.parameters))
    is_text = has_budget and not isinstance(memory, ShortTermMemory)
    return {"max_tokens": sys.maxsize} if is_text else {}
