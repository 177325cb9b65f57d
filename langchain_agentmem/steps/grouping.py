"""Which turns are summarized together in a tree of summaries: by the calendar, or your own way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, timedelta, tzinfo
from typing import TYPE_CHECKING

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.parameters import must_be

if TYPE_CHECKING:
    from langchain_agentmem.steps.tree import Leaf


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which turns of a conversation are summarized together, level by level.

    Each turn is a leaf, or several if it is too long for one. A group is a run of neighbors: a
    summary is always that of one stretch of the conversation.

    Attributes:
        levels: Levels of summaries above the leaves.
        begins: Given a leaf and the one after it, tells on how many levels, counted from the
            lowest, a new group begins between them: 0 if both belong to one group everywhere.

    Raises:
        ConfigurationError: There is no level.

    Example:
        ```python
        # One summary a topic, as some function of yours tells topics apart, and one of all.
        Grouping(2, lambda before, leaf: int(topic(before.text) != topic(leaf.text)))
        ```
    """

    levels: int
    begins: Callable[[Leaf, Leaf], int]

    def __post_init__(self) -> None:
        """Refuse a tree without summaries."""
        if self.levels < 1:
            msg = f"A Grouping needs one level of summaries or more, not {self.levels}."
            raise ConfigurationError(msg)

    def begun(self, before: Leaf | None, leaf: Leaf) -> int:
        """Return on how many levels a group begins with a leaf.

        Args:
            before: The leaf before it; None if it was forgotten: then all but the highest begin.
            leaf: The leaf.
        """
        if before is None:
            return self.levels - 1
        return min(max(self.begins(before, leaf), 0), self.levels)


def by_calendar(*, pause: timedelta = timedelta(hours=1), timezone: tzinfo = UTC) -> Grouping:
    """Group turns to sessions, sessions to days, and all days to one profile.

    Args:
        pause: A turn that comes so long after the one before begins a new session.
        timezone: Where a day begins at midnight.

    Raises:
        ConfigurationError: The pause is no positive time, or the timezone none.
    """
    must_be("pause", pause, timedelta, "a timedelta, such as timedelta(hours=1)")
    must_be("timezone", timezone, tzinfo, "a tzinfo, such as zoneinfo.ZoneInfo('Europe/Berlin')")
    if pause <= timedelta():
        msg = f"pause={pause} must be positive, e.g. timedelta(hours=1)."
        raise ConfigurationError(msg)

    def begins(before: Leaf, leaf: Leaf) -> int:
        earlier, later = before.observed_at, leaf.observed_at
        if earlier is None or later is None:
            return 0
        if earlier.astimezone(timezone).date() != later.astimezone(timezone).date():
            return 2
        return int(later - earlier >= pause)

    return Grouping(levels=3, begins=begins)
