"""The indexed texts of one namespace prefix in memory, and the cache of such segments.

Rows loaded from the file are sorted by namespace, so that any deeper prefix is one slice of them;
rows written since follow in a tail. A changed item gets new rows, its old ones are marked dead.
Rows never change once written, so a scan may run while others append.
"""

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langchain_agentmem.retrieval.lexical import LexicalIndex
from langchain_agentmem.stores._filters import MISSING, Filter, Predicate, resolve
from langchain_agentmem.stores._namespaces import (
    MARK_BYTES,
    ancestors,
    bounds,
    covers,
    mark,
    seen_from,
)
from langchain_agentmem.stores._schema import UNIT_BITS
from langchain_agentmem.stores._values import dump
from langchain_agentmem.stores._vectors import Floats

NEVER: Final = 2**62
_MIN_CAPACITY: Final = 64
_MIN_TAIL: Final = 2_000  # below this, a tail costs less to look through than rows to sort anew


_VALUE_BYTES: Final = 300
_VALUE_FACTOR: Final = 6  # a JSON object takes about as many times its text's length
_KNOWN_BYTES: Final = 110  # of an item's entry in the map from items to rows
_SEGMENT_BYTES: Final = 3_000
_ROW_BYTES: Final = 37


@dataclass(slots=True)
class Row:
    """One item's place in a segment's columns.

    Attributes:
        item: The item's id.
        path: Its encoded namespace.
        updated: Time of the last write, in microseconds.
        seq: Its write sequence.
        expires: When it expires, in microseconds; `NEVER` for no end.
    """

    item: int
    path: str
    updated: int
    seq: int
    expires: int


@dataclass(slots=True)
class Rows:
    """The rows below a prefix as they lie in the file, one for each indexed text.

    Attributes:
        items: Their items' ids.
        updated: Times of the last write, in microseconds.
        seq: Write sequences.
        expires: When they expire, in microseconds; `NEVER` for no end.
        paths: The encoded namespaces, sorted.
        starts: The first row of each namespace.
    """

    items: NDArray[np.int64]
    updated: NDArray[np.int64]
    seq: NDArray[np.int64]
    expires: NDArray[np.int64]
    paths: list[str]
    starts: list[int]


def grown(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Return an array with room for `size` rows, at least doubled if it must grow."""
    if size <= len(values):
        return values
    capacity = max(size, 2 * len(values), _MIN_CAPACITY)
    new = np.zeros((capacity, *values.shape[1:]), dtype=values.dtype)
    new[: len(values)] = values
    return new


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
        self.size = 0
        self.nbytes = 0
        self._codes = np.empty(0, dtype=np.int32)
        self._values: list[Any] = []
        self._known: dict[str, int] = {}

    def extend(self, values: Sequence[Any]) -> None:
        """Append the values of further rows."""
        end = self.size + len(values)
        self._codes = grown(self._codes, end)
        self._codes[self.size : end] = [self._code(value) for value in values]
        self.size = end

    def _code(self, value: Any) -> int:  # noqa: ANN401 - JSON
        text = "" if value is MISSING else dump(value)
        code = self._known.setdefault(text, len(self._values))
        if code == len(self._values):
            self._values.append(value)
            self.nbytes += _VALUE_BYTES + _VALUE_FACTOR * len(text)
        return code

    def mask(self, test: Predicate) -> NDArray[np.bool_]:
        """Tell for every row whether its value meets a condition."""
        verdicts = np.array([test(value) for value in self._values], dtype=np.bool_)
        result: NDArray[np.bool_] = verdicts[self._codes[: self.size]]
        return result


class Segment:
    """The rows below one prefix.

    Args:
        root: The encoded prefix.
        rows: The items' rows.
        vectors: Their vectors, of length 1 for the cosine; None without an embedder, where only
            words are searched, and where they are read from the file for each search.
        streams: Whether vectors are read from the file, because they exceed the budget.
    """

    def __init__(
        self, root: str, rows: Rows, vectors: Floats | None, *, streams: bool = False
    ) -> None:
        self.root = root
        self.size = self.body = len(rows.items)
        self.items = rows.items
        self.updated = rows.updated
        self.seq = rows.seq
        self.expires = rows.expires
        self.alive = np.ones(self.size, dtype=np.bool_)
        self.lengths: NDArray[np.float32] | None = None
        self.vectors = vectors
        self.streams = streams
        self.lexical: LexicalIndex | None = None
        self.columns: dict[str, Column] = {}
        self.multiple = bool((self.items[1:] == self.items[:-1]).any())
        self.expiring = bool((self.expires != NEVER).any())
        self.dead = 0
        self._paths = rows.paths
        self._starts = rows.starts
        self._tail: dict[str, list[int]] = {}
        self._first: dict[int, int] | None = None

    @property
    def nbytes(self) -> int:
        """The bytes held, roughly."""
        held = 0 if self.vectors is None else self.vectors.nbytes
        held += 0 if self.lexical is None else self.lexical.nbytes
        held += sum(column.nbytes for column in self.columns.values())
        known = _KNOWN_BYTES * len(self._first or ())
        rows = len(self.items) * (_ROW_BYTES + 4 * len(self.columns))
        return held + known + rows + _SEGMENT_BYTES

    @property
    def is_worn(self) -> bool:
        """Whether so much has changed that loading it anew pays."""
        limit = max(_MIN_TAIL, self.size // 2)
        changed = self.dead + self.size - self.body
        if changed <= limit:
            return False
        mixed = len({*self._paths, *self._tail}) > 1  # one namespace needs no sorting
        return mixed or self.dead > limit

    def ids(self, start: int = 0) -> NDArray[np.int64]:
        """Return the item of every row from `start` on."""
        return self.items[start : self.size]

    def upsert(self, row: Row, vectors: Floats | None, lengths: Sequence[int]) -> range:
        """Replace an item's rows.

        Args:
            row: The item.
            vectors: One vector for each of its texts.
            lengths: How many terms each of its texts has.

        Returns:
            The numbers of the new rows; empty if only the expiry changed.
        """
        old = self._rows_of(row.item)
        if old and int(self.seq[old.start]) == row.seq:
            self.expires[old.start : old.stop] = row.expires
            self.expiring |= row.expires != NEVER
            return range(0)
        self.remove(row.item)
        count = len(lengths)
        self._reserve(self.size + count)
        new = range(self.size, self.size + count)
        span = slice(new.start, new.stop)
        self.items[span] = row.item
        self.updated[span] = row.updated
        self.seq[span] = row.seq
        self.expires[span] = row.expires
        self.alive[span] = True
        if self.lengths is not None:
            self.lengths[span] = lengths
        if self.vectors is not None and vectors is not None:
            self.vectors[span] = vectors
        self.size += count
        self.multiple |= count > 1
        self.expiring |= row.expires != NEVER
        self._tail.setdefault(row.path, []).extend(new)
        if new:
            self._known()[row.item] = new.start
        return new

    def remove(self, item: int) -> None:
        """Mark an item's rows dead."""
        rows = self._rows_of(item)
        self._known().pop(item, None)
        self.alive[rows.start : rows.stop] = False
        self.dead += len(rows)
        if self.lexical is not None:
            for row in rows:
                self.lexical.remove(row)

    def remove_many(self, items: Sequence[int]) -> bool:
        """Mark the rows of those items dead that are here; tells whether the size may differ."""
        is_new = self._first is None
        here = [item for item in items if item in self._known()]
        for item in here:
            self.remove(item)
        return is_new or bool(here)

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
        starts = [(key, self.columns.setdefault(key, Column()).size) for key in dict.fromkeys(keys)]
        return [(key, start) for key, start in starts if start < self.size]

    def fill(self, key: str, start: int, values: dict[int, Any]) -> None:
        """Fill a column from the values of items; `""` is the column of whole values."""
        found = [values.get(item, MISSING) for item in self.ids(start).tolist()]
        self.columns[key].extend(found if key == "" else [resolve(value, key) for value in found])

    def _rows_of(self, item: int) -> range:
        """Return an item's living rows, which follow each other."""
        first = self._known().get(item)
        if first is None:
            return range(0)
        stop = first + 1
        while self.multiple and stop < self.size and self.items[stop] == item:
            stop += 1
        return range(first, stop)

    def _known(self) -> dict[int, int]:
        """Return the first living row of each item."""
        if self._first is None:
            backwards = range(self.size - 1, -1, -1)
            self._first = dict(zip(self.ids()[::-1].tolist(), backwards, strict=True))
        return self._first

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
        for name in ("items", "updated", "seq", "expires", "lengths", "alive", "vectors"):
            values = getattr(self, name)
            if values is not None:
                setattr(self, name, grown(values, size))


class SegmentCache:
    """The loaded segments, the least recently used ones dropped beyond a budget.

    Args:
        budget: How many bytes the segments may hold together.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.nbytes = 0
        self._segments: OrderedDict[str, Segment] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._roots: list[str] = []
        self._marks: dict[bytes, str] = {}

    def __len__(self) -> int:
        """Return how many segments are loaded."""
        return len(self._segments)

    def find(self, path: str) -> Segment | None:
        """Return the smallest loaded segment that a search of `path` can use."""
        own = self._segments.get(path)
        if own is not None:  # the usual case
            self._segments.move_to_end(path)
            return own
        for root in [*reversed(ancestors(path)), ""]:
            segment = self._segments.get(root)
            if segment is None or not covers(root, path):
                continue
            if root == path or not segment.streams:
                self._segments.move_to_end(root)
                return segment
        return None

    def add(self, segment: Segment) -> None:
        """Keep a segment, in place of those below it unless it lacks their vectors."""
        for root in [] if segment.streams else self._below(segment.root):
            self.drop(self._segments[root])
        if segment.root in self._segments:
            self.drop(self._segments[segment.root])
        self._segments[segment.root] = segment
        self._marks[mark(segment.root)] = segment.root
        insort(self._roots, segment.root)
        self.measure(segment)

    def _below(self, path: str) -> list[str]:
        start = bisect_left(self._roots, path)
        below = takewhile(lambda root: root.startswith(path), islice(self._roots, start, None))
        return [root for root in below if covers(path, root)]

    def holding(self, path: str) -> list[Segment]:
        """Return the segments that hold the items of a namespace."""
        return [self._segments[root] for root in seen_from(path) if root in self._segments]

    def marked(self, places: object) -> list[Segment]:
        """Return the segments that may hold items whose namespace has these marks.

        Args:
            places: What `marks` returned for the namespace; of anything else, all are returned.
        """
        if not isinstance(places, bytes) or not places or len(places) % MARK_BYTES:
            return self.all()
        found = (places[at : at + MARK_BYTES] for at in range(0, len(places), MARK_BYTES))
        return [self._segments[self._marks[each]] for each in found if each in self._marks]

    def all(self) -> list[Segment]:
        """Return every loaded segment."""
        return list(self._segments.values())

    def measure(self, segment: Segment) -> None:
        """Note a segment's size down anew, if it is kept."""
        if self._segments.get(segment.root) is segment:
            size = segment.nbytes
            self.nbytes += size - self._sizes.get(segment.root, 0)
            self._sizes[segment.root] = size

    def drop(self, segment: Segment) -> None:
        """Forget a segment."""
        del self._segments[segment.root]
        del self._marks[mark(segment.root)]
        del self._roots[bisect_left(self._roots, segment.root)]
        self.nbytes -= self._sizes.pop(segment.root)

    def trim(self) -> None:
        """Drop the least recently used segments until the rest fits the budget."""
        while self._segments and self.nbytes > self.budget:
            self.drop(next(iter(self._segments.values())))

    def clear(self) -> None:
        """Forget all segments."""
        self._segments.clear()
        self._sizes.clear()
        self._roots.clear()
        self._marks.clear()
        self.nbytes = 0
