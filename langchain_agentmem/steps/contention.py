"""Writing beside other writers: read, decide, write, and begin anew if one of them was quicker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.steps.effects import Steps

T = TypeVar("T")

ATTEMPTS: Final = 100
"""So often in a row others may be quicker before a writer gives up."""


def insist(attempt: Callable[[], Steps[T]], attempts: int = ATTEMPTS) -> Steps[T]:
    """Run the steps of an attempt until its write meets no other.

    Args:
        attempt: Makes the steps, which read anew what they decide on.
        attempts: So often at the most.

    Raises:
        ConflictError: Another writer was quicker each time.
    """
    for _ in range(attempts - 1):
        try:
            return (yield from attempt())
        except ConflictError:
            continue
    return (yield from attempt())
