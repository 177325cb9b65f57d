"""The indexed texts of one namespace prefix in memory, and the cache of such segments.

Rows loaded from the file are sorted by namespace, so that any deeper prefix is one slice of them;
rows written since follow in a tail. A changed item gets new rows, its old ones are marked dead.
Rows never change once written, so a scan may run while others append.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langchain_agentmem.retrieval.lexical import LexicalIndex
from langchain_agentmem.stores._filters import MISSING, Filter, resolve
from langchain_agentmem.stores._namespaces import ancestors, bounds, covers, is_reserved
from langchain_agentmem.stores._schema import UNIT_BITS
from langchain_agentmem.stores._values import dump
from langchain_agentmem.stores._vectors import Floats

NEVER: Final = 2**62
_MIN_CAPACITY: Final = 64
_MIN_TAIL: Final = 2_000  # below this, a tail costs less to look through than rows to sort anew


@dataclass(slots=True)
class Row:
    """One item's place in a segment's columns.

    Attributes:
        item: The item's id.
        path: Its encoded namespace.
        updated: Time of the last write, in microseconds.
        seq: Its write sequence.
        expires: When it expires, in microseconds; `NEVER` for no end.
        length: How many terms the text has.
    """

    item: int
    path: str
    updated: int
    seq: int
    expires: int
    length: int = 0


def unit_numbers(items: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers in the file of rows' texts; the rows of an item follow each other."""
    places = np.arange(len(items))
    first = np.concatenate([[True], items[1:] != items[:-1]])[: len(items)]
    starts = np.maximum.accumulate(np.where(first, places, 0))
    numbers: NDArray[np.int64] = (items << UNIT_BITS) + places - starts
    return numbers


class Column:
    """One field's values over the rows of a segment, each distinct value held once."""

    def __init__(self) -> None:
        self.codes = np.empty(0, dtype=np.int32)
        self._values: list[Any] = []
        self._known: dict[str, int] = {}

    def extend(self, values: Sequence[Any]) -> None:
        """Append the values of further rows."""
        codes = [self._code(value) for value in values]
        self.codes = np.concatenate([self.codes, np.array(codes, dtype=np.int32)])

    def _code(self, value: Any) -> int:  # noqa: ANN401 - JSON
        text = "" if value is MISSING else dump(value)
        code = self._known.setdefault(text, len(self._values))
        if code == len(self._values):
            self._values.append(value)
        return code

    def mask(self, test: Any) -> NDArray[np.bool_]:  # noqa: ANN401 - a predicate
        """Tell for every row whether its value meets a condition."""
        verdicts = np.array([test(value) for value in self._values], dtype=np.bool_)
        result: NDArray[np.bool_] = verdicts[self.codes]
        return result


class Segment:
    """The rows below one prefix.

    Args:
        root: The encoded prefix.
        rows: The items' rows, sorted by path; one for each indexed text.
        vectors: Their vectors, of length 1 for the cosine; None without an embedder, and where
            only words are searched.
    """

    def __init__(self, root: str, rows: Sequence[Row], vectors: Floats | None) -> None:
        self.root = root
        self.size = self.body = len(rows)
        self.items = np.array([row.item for row in rows], dtype=np.int64)
        self.updated = np.array([row.updated for row in rows], dtype=np.int64)
        self.seq = np.array([row.seq for row in rows], dtype=np.int64)
        self.expires = np.array([row.expires for row in rows], dtype=np.int64)
        self.lengths = np.array([row.length for row in rows], dtype=np.float32)
        self.alive = np.ones(len(rows), dtype=np.bool_)
        self.vectors = vectors
        self.lexical: LexicalIndex | None = None
        self.columns: dict[str, Column] = {}
        self.multiple = bool((self.items[1:] == self.items[:-1]).any())
        self.expiring = bool((self.expires != NEVER).any())
        self.dead = 0
        self._paths: list[str] = []
        self._starts: list[int] = []
        for position, row in enumerate(rows):
            if not self._paths or self._paths[-1] != row.path:
                self._paths.append(row.path)
                self._starts.append(position)
        self._tail: dict[str, list[int]] = {}
        self._where: dict[int, list[int]] | None = None

    @property
    def nbytes(self) -> int:
        """The bytes held, roughly."""
        held = 0 if self.vectors is None else self.vectors.nbytes
        lexical = 0 if self.lexical is None else self.lexical.nbytes
        return held + lexical + len(self.items) * (37 + 8 * len(self.columns))

    @property
    def is_worn(self) -> bool:
        """Whether so much has changed that loading it anew pays."""
        mixed = len({*self._paths, *self._tail}) > 1  # one namespace needs no sorting
        changed = self.dead + (self.size - self.body if mixed else 0)
        return changed > max(_MIN_TAIL, self.size // 2)

    def ids(self, start: int = 0) -> NDArray[np.int64]:
        """Return the item of every row from `start` on."""
        return self.items[start : self.size]

    def upsert(self, row: Row, vectors: Floats | None, lengths: Sequence[int]) -> list[int]:
        """Replace an item's rows.

        Args:
            row: The item.
            vectors: One vector for each of its texts.
            lengths: How many terms each of its texts has.

        Returns:
            The numbers of the new rows; empty if only the expiry changed.
        """
        old = self._rows_of(row.item)
        if old and int(self.seq[old[0]]) == row.seq:
            self.expires[old] = row.expires
            self.expiring |= row.expires != NEVER
            return []
        self.remove(row.item)
        count = len(lengths)
        self._reserve(self.size + count)
        new = list(range(self.size, self.size + count))
        self.items[new] = row.item
        self.updated[new] = row.updated
        self.seq[new] = row.seq
        self.expires[new] = row.expires
        self.lengths[new] = lengths
        self.alive[new] = True
        if self.vectors is not None and vectors is not None:
            self.vectors[new] = vectors
        self.size += count
        self.multiple |= count > 1
        self.expiring |= row.expires != NEVER
        self._tail.setdefault(row.path, []).extend(new)
        self._index()[row.item] = new
        return new

    def remove(self, item: int) -> None:
        """Mark an item's rows dead."""
        for row in self._index().pop(item, []):
            self.alive[row] = False
            self.dead += 1
            if self.lexical is not None:
                self.lexical.remove(row)

    def select(self, path: str, *, exact: bool, now: int | None) -> "slice | NDArray[np.int64]":
        """Return the living rows a search of `path` sees, in ascending order.

        Args:
            path: The encoded prefix, `root` or below it.
            exact: Whether only this very namespace counts.
            now: Rows that expire by this time are left out; None to keep them.
        """
        if path == self.root and not exact:
            spans, tail = slice(0, self.size), []
        else:
            spans, tail = self._span(path, exact=exact), self._tail_rows(path, exact=exact)
        if not tail and not self.dead and not (self.expiring and now is not None):
            return spans
        rows = np.arange(spans.start, spans.stop)
        if tail:
            rows = np.concatenate([rows, np.array(sorted(tail), dtype=np.int64)])
        keep = self.alive[rows]
        if now is not None and self.expiring:
            keep &= self.expires[rows] > now
        return rows[keep]

    def mask(self, condition: Filter) -> NDArray[np.bool_]:
        """Tell for every row whether its value passes a filter; its columns must be filled."""
        passed = np.ones(self.size, dtype=np.bool_)
        for key, test in condition.fields:
            passed &= self.columns[key].mask(test)
        for test in condition.whole:
            passed &= self.columns[""].mask(test)
        return passed

    def unfilled(self, condition: Filter) -> list[tuple[str, int]]:
        """Return the columns a filter needs that lack rows, with the first row missing."""
        keys = [key for key, _ in condition.fields] + ([""] if condition.whole else [])
        starts = [
            (key, len(self.columns.setdefault(key, Column()).codes)) for key in dict.fromkeys(keys)
        ]
        return [(key, start) for key, start in starts if start < self.size]

    def fill(self, key: str, start: int, values: dict[int, Any]) -> None:
        """Fill a column from the values of items; `""` is the column of whole values."""
        found = [values.get(item, MISSING) for item in self.ids(start).tolist()]
        self.columns[key].extend(found if key == "" else [resolve(value, key) for value in found])

    def _rows_of(self, item: int) -> list[int]:
        return self._index().get(item, [])

    def _index(self) -> dict[int, list[int]]:
        if self._where is None:
            self._where = {}
            for row, item in enumerate(self.ids().tolist()):
                self._where.setdefault(item, []).append(row)
        return self._where

    def _span(self, path: str, *, exact: bool) -> slice:
        low, high = (path, path + "\x00") if exact else bounds(path)
        first, last = bisect_left(self._paths, low), bisect_left(self._paths, high)
        edges = [*self._starts, self.body]
        return slice(edges[first], edges[max(first, last)])

    def _tail_rows(self, path: str, *, exact: bool) -> list[int]:
        return [
            row
            for place, rows in self._tail.items()
            if (place == path if exact else place.startswith(path))
            for row in rows
        ]

    def _reserve(self, size: int) -> None:
        if size <= len(self.items):
            return
        capacity = max(size, 2 * len(self.items), _MIN_CAPACITY)
        for name in ("items", "updated", "seq", "expires", "lengths", "alive", "vectors"):
            old = getattr(self, name)
            if old is not None:
                new = np.zeros((capacity, *old.shape[1:]), dtype=old.dtype)
                new[: len(old)] = old
                setattr(self, name, new)


class SegmentCache:
    """The loaded segments, the least recently used ones dropped beyond a budget.

    Args:
        budget: How many bytes the segments may hold together.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._segments: OrderedDict[str, Segment] = OrderedDict()

    def __len__(self) -> int:
        """Return how many segments are loaded."""
        return len(self._segments)

    @property
    def nbytes(self) -> int:
        """The bytes held by all segments, roughly."""
        return sum(segment.nbytes for segment in self._segments.values())

    def find(self, path: str) -> Segment | None:
        """Return the smallest loaded segment that a search of `path` can use."""
        for root in [*reversed(ancestors(path)), ""]:
            segment = self._segments.get(root)
            if segment is not None and covers(root, path):
                self._segments.move_to_end(root)
                return segment
        return None

    def add(self, segment: Segment) -> None:
        """Keep a segment, in place of those below it."""
        for root in [root for root in self._segments if covers(segment.root, root)]:
            del self._segments[root]
        self._segments[segment.root] = segment

    def holding(self, path: str) -> list[Segment]:
        """Return the segments that hold the items of a namespace."""
        roots = ancestors(path) if is_reserved(path) else ["", *ancestors(path)]
        return [self._segments[root] for root in roots if root in self._segments]

    def all(self) -> list[Segment]:
        """Return every loaded segment."""
        return list(self._segments.values())

    def drop(self, segment: Segment) -> None:
        """Forget a segment."""
        self._segments.pop(segment.root, None)

    def trim(self) -> None:
        """Drop the least recently used segments until the rest fits the budget."""
        held = self.nbytes
        while self._segments and held > self.budget:
            _, segment = self._segments.popitem(last=False)
            held -= segment.nbytes

    def clear(self) -> None:
        """Forget all segments."""
        self._segments.clear()
