"""What a store should do, in plain Python: a dictionary, a clock and no file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from langgraph.store.base import PutOp

from langchain_agentmem.testing import CharacterEmbeddings, ManualClock

Place = tuple[tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One item as the model keeps it.

    Attributes:
        value: Its value.
        created: When it was first put.
        updated: When it was last put.
        order: Its number in the order of writes.
        indexed: Whether queries find it.
        ttl: Minutes to live after a refreshing read.
        expires: When it expires.
    """

    value: dict[str, Any]
    created: datetime
    updated: datetime
    order: int
    indexed: bool
    ttl: float | None
    expires: datetime | None


class Model:
    """The reference.

    Args:
        clock: The clock the store has too.
        embedder: The embedder the store has too.

    Attributes:
        rows: Everything that was put and not erased, expired or not.
    """

    def __init__(self, clock: ManualClock, embedder: CharacterEmbeddings) -> None:
        self.rows: dict[Place, Entry] = {}
        self._clock = clock
        self._embedder = embedder
        self._order = 0

    def live(self) -> dict[Place, Entry]:
        """Return what reads may see."""
        now = self._clock.now
        return {p: e for p, e in self.rows.items() if e.expires is None or e.expires > now}

    def write(self, ops: Iterable[PutOp]) -> None:
        """Apply puts and deletes; of several for one key the last one counts."""
        last: dict[Place, PutOp] = {}
        for op in ops:
            last.pop((op.namespace, op.key), None)
            last[op.namespace, op.key] = op
        now = self._clock.now
        for place, op in last.items():
            former = self.live().get(place)
            self.rows.pop(place, None)
            if op.value is None:
                continue
            self._order += 1
            text = op.value.get("text")
            self.rows[place] = Entry(
                value=dict(op.value),
                created=now if former is None else former.created,
                updated=now if former is None else max(now, former.updated),
                order=self._order,
                indexed=op.index is not False and bool(text and text.strip()),
                ttl=op.ttl,
                expires=None if op.ttl is None else now + timedelta(minutes=op.ttl),
            )

    def refresh(self, place: Place) -> None:
        """Start the time to live of an item anew."""
        entry = self.live().get(place)
        if entry is not None and entry.ttl is not None:
            until = self._clock.now + timedelta(minutes=entry.ttl)
            self.rows[place] = replace(entry, expires=until)

    def scope(
        self, prefix: tuple[str, ...], filter_: Mapping[str, Any] | None = None
    ) -> list[Place]:
        """Return what lies below a prefix and passes a filter, newest update first."""
        found = [
            (entry.updated, entry.order, place)
            for place, entry in self.live().items()
            if place[0][: len(prefix)] == prefix and passes(entry.value, filter_)
        ]
        return [place for _, _, place in sorted(found, reverse=True)]

    def ranking(self, prefix: tuple[str, ...], query: str) -> dict[Place, float]:
        """Return the cosine of every item a query may find."""
        wanted = self._embedder.document_vector(query)
        return {
            place: _cosine(wanted, self._embedder.document_vector(self.rows[place].value["text"]))
            for place in self.scope(prefix)
            if self.rows[place].indexed
        }

    def holding(self, prefix: tuple[str, ...], words: set[str]) -> set[Place]:
        """Return the items a query by words finds: those that have one of them."""
        return {
            place
            for place in self.scope(prefix)
            if self.rows[place].indexed and words & set(self.rows[place].value["text"].split())
        }

    def namespaces(self) -> list[tuple[str, ...]]:
        """Return the namespaces that hold an item."""
        return sorted({namespace for namespace, _ in self.live()})

    def erase(self, prefix: tuple[str, ...]) -> int:
        """Erase a namespace with what lies below; returns how many rows that were."""
        gone = [place for place in self.rows if place[0][: len(prefix)] == prefix]
        for place in gone:
            del self.rows[place]
        return len(gone)

    def sweep(self) -> int:
        """Remove what has expired; returns how many rows that were."""
        live = self.live()
        count = len(self.rows) - len(live)
        self.rows = live
        return count


def passes(value: Mapping[str, Any], filter_: Mapping[str, Any] | None) -> bool:
    """Test a filter on the field `n`: an equal number, null, or one greater than a number."""
    if filter_ is None:
        return True
    wanted, found = filter_["n"], value.get("n")
    if isinstance(wanted, dict):
        return isinstance(found, int | float) and found > wanted["$gt"]
    return bool(found == wanted)


def _cosine(left: list[float], right: list[float]) -> float:
    size = math.hypot(*left) * math.hypot(*right)
    return sum(a * b for a, b in zip(left, right, strict=True)) / size if size else 0.0
