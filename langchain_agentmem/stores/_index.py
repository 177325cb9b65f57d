"""The segments of a store, kept equal to the file by reading what changed.

Own commits and those of other processes are treated alike: before a search, every change after the
last one seen is read from the file, in one snapshot with what the search then returns.
"""

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langchain_agentmem.retrieval.lexical import LexicalIndex
from langchain_agentmem.stores import _vectors
from langchain_agentmem.stores._filters import Filter
from langchain_agentmem.stores._indexing import IndexSettings
from langchain_agentmem.stores._namespaces import scope_condition
from langchain_agentmem.stores._rows import ItemRows
from langchain_agentmem.stores._schema import MISREAD, UNIT_BITS, contradiction
from langchain_agentmem.stores._segments import (
    NEVER,
    Row,
    Rows,
    Segment,
    SegmentCache,
    unit_numbers,
)
from langchain_agentmem.stores._values import load

_MAX_CATCH_UP = 20_000  # beyond this many changes, loading anew is cheaper than applying them
_LOAD_CHUNK = 4_096
_LARGE_SCOPE = 200_000
"""With more texts than this, building postings in memory would hold the first search up for more
than a second; the file's own word table answers instead, at once and in every process."""
_ROWS_SHARE = 16  # of the budget, for items that were read lately
_BESIDE_BYTES = 200  # of one text, beside its vector: columns, and where its item's rows are
_POSTINGS_BYTES = 300  # of one text of a message's length
_LENGTH = "length(u.terms) - length(replace(u.terms, ' ', '')) + (u.terms != '')"
_UNITS = f"JOIN units u ON u.id >= (i.id << {UNIT_BITS}) AND u.id < ((i.id + 1) << {UNIT_BITS})"
_ITEMS = "FROM namespaces n CROSS JOIN items i ON i.namespace_id = n.id"


class MemoryIndex:
    """Segments over the indexed texts of a file.

    Hold `lock` from `catch_up` until the rows of a search are selected.

    Args:
        settings: The store's index.
        budget: How many bytes the segments may hold.
    """

    def __init__(self, settings: IndexSettings, budget: int) -> None:
        self.lock = threading.RLock()
        self.segments = SegmentCache(budget)
        self.rows = ItemRows(budget // _ROWS_SHARE)
        self._settings = settings
        self._seen = -1
        self._epoch = -1
        self._grown: set[Segment] = set()

    def catch_up(self, connection: sqlite3.Connection) -> None:
        """Apply every change between the last call and the connection's snapshot."""
        meta = dict(connection.execute("SELECT key, value FROM meta WHERE key != 'fingerprint'"))
        change, before = int(meta["change"]), self._seen
        if change == before and meta["epoch"] == self._epoch:
            return
        far = change - before > _MAX_CATCH_UP or before < int(meta["pruned"])
        if change < before or far or meta["epoch"] != self._epoch:
            self.segments.clear()
            self.rows.clear()
        if len(self.segments):
            try:
                self._apply(connection, before)
            except MISREAD:  # they must not be left half changed
                self.segments.clear()
                raise
        else:
            self.rows.clear()
        self._seen, self._epoch = change, meta["epoch"]

    def segment(self, connection: sqlite3.Connection, path: str, *, dense: bool) -> Segment:
        """Return a segment that holds everything a search of `path` sees, loading it if needed.

        Args:
            connection: The snapshot that is searched.
            path: The encoded prefix.
            dense: Whether the search needs vectors.
        """
        segment = self.segments.find(path)
        if segment is not None and (
            segment.is_worn or (dense and segment.vectors is None and not segment.streams)
        ):
            self.segments.drop(segment)
            segment = None
        if segment is None:
            segment = self._load(connection, path, dense=dense)
            self.segments.add(segment)
        return segment

    def trim(self) -> None:
        """Drop what exceeds the budget."""
        for segment in self._grown:
            self.segments.measure(segment)
        self._grown.clear()
        self.segments.trim()

    def answers_words(self, segment: Segment) -> bool:
        """Tell whether a segment's words are searched in memory rather than in the file."""
        if segment.lexical is not None:
            return True
        postings = segment.size * _POSTINGS_BYTES
        return (
            segment.size <= _LARGE_SCOPE
            and not segment.streams
            and segment.nbytes + postings <= self.segments.budget
        )

    def fill_words(self, connection: sqlite3.Connection, segment: Segment) -> LexicalIndex:
        """Return a segment's lexical index, built at first use."""
        if segment.lexical is not None:
            return segment.lexical
        condition, values = scope_condition(segment.root)
        sql = f"SELECT u.id, u.terms {_ITEMS} CROSS {_UNITS} WHERE {condition}"
        terms = dict(connection.execute(sql, values).fetchall())
        documents: list[Sequence[str]] = [()] * segment.size
        alive = np.flatnonzero(segment.alive[: segment.size])
        units = unit_numbers(segment.items[alive])
        if not terms.keys() >= set(units.tolist()):
            raise contradiction()
        for row, unit in zip(alive.tolist(), units.tolist(), strict=True):
            documents[row] = terms[unit].split()
        index = LexicalIndex()
        index.add_many(documents)
        for row in np.flatnonzero(~segment.alive[: segment.size]).tolist():
            index.remove(row)
        segment.lexical = index
        self._grown.add(segment)
        return index

    def fill_lengths(self, connection: sqlite3.Connection, segment: Segment) -> NDArray[np.float32]:
        """Return how many terms each row's text has, read from the file at first use."""
        if segment.lengths is None:
            condition, values = scope_condition(segment.root)
            sql = f"SELECT u.id, {_LENGTH} {_ITEMS} CROSS {_UNITS} WHERE {condition}"
            cursor = connection.execute(sql, values)
            blocks = [np.empty((0, 2), dtype=np.int64)]
            while rows := cursor.fetchmany(_LOAD_CHUNK):
                blocks.append(np.array(rows, dtype=np.int64))
            units, counts = np.concatenate(blocks).T
            order = np.argsort(units)
            alive = np.flatnonzero(segment.alive[: segment.size])
            places = np.searchsorted(units[order], unit_numbers(segment.items[alive]))
            segment.lengths = np.zeros(len(segment.items), dtype=np.float32)
            segment.lengths[alive] = counts[order[places]]
            self._grown.add(segment)
        return segment.lengths

    def fill_columns(
        self, connection: sqlite3.Connection, segment: Segment, condition: Filter
    ) -> None:
        """Fill the columns of a segment that a filter needs."""
        missing = segment.unfilled(condition)
        if not missing:
            return
        self._grown.add(segment)
        first = min(start for _, start in missing)
        values = read_values(connection, set(segment.ids(first).tolist()))
        for key, start in missing:
            segment.fill(key, start, values)

    def _load(self, connection: sqlite3.Connection, path: str, *, dense: bool) -> Segment:
        dense = dense and self._settings.dims is not None
        streams = dense and not self._fits(connection, path)
        condition, values = scope_condition(path)
        vector = "u.vector" if dense and not streams else "NULL"
        cursor = connection.execute(
            f"SELECT {vector}, n.id, i.id, i.updated_at, i.seq, ifnull(i.expires_at, {NEVER}) "
            f"{_ITEMS} CROSS {_UNITS} WHERE {condition} ORDER BY n.path",
            values,
        )
        blocks: list[NDArray[np.int64]] = [np.empty((5, 0), dtype=np.int64)]
        matrices: list[_vectors.Floats] = []
        while rows := cursor.fetchmany(_LOAD_CHUNK):
            blobs, *columns = zip(*rows, strict=True)
            blocks.append(np.array(columns, dtype=np.int64))
            if dense and not streams:
                matrices.append(self.matrix(blobs))
        places, *table = np.concatenate(blocks, axis=1)
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        paths = _paths(connection, places[starts].tolist())
        items, updated, seq, expires = (column.copy() for column in table)
        found = Rows(items, updated, seq, expires, paths, starts.tolist())
        if streams or not dense:
            return Segment(path, found, None, streams=streams)
        return Segment(path, found, np.concatenate(matrices) if matrices else self.matrix([]))

    def _fits(self, connection: sqlite3.Connection, path: str) -> bool:
        """Tell whether a scope can be held with its vectors; each item is taken to have one."""
        condition, values = scope_condition(path)
        sql = f"SELECT count(*) {_ITEMS} WHERE {condition}"
        count = int(connection.execute(sql, values).fetchone()[0])
        return count * (4 * (self._settings.dims or 0) + _BESIDE_BYTES) <= self.segments.budget

    def matrix(self, blobs: Sequence[bytes]) -> _vectors.Floats:
        """Return stored vectors as rows, of length 1 for the cosine."""
        matrix = _vectors.decode(blobs, self._settings.dims or 0)
        return _vectors.normalize(matrix) if self._settings.distance == "cosine" else matrix

    def similarities(
        self,
        connection: sqlite3.Connection,
        units: NDArray[np.int64],
        query: _vectors.Floats,
        threads: int,
    ) -> _vectors.Floats:
        """Score texts by vectors that are read from the file, a few thousand at a time.

        Args:
            connection: The snapshot that is searched.
            units: The texts' row numbers in the table, in any order.
            query: A vector of shape `(dims,)`; of length 1 for the cosine.
            threads: How many threads may share a large scan.
        """
        scores = np.empty(len(units), dtype=np.float32)
        order = np.argsort(units)
        for start in range(0, len(order), _LOAD_CHUNK):
            part = order[start : start + _LOAD_CHUNK]
            rows = connection.execute(_VECTORS, (id_list(units[part].tolist()),))
            matrix = self.matrix([vector for (vector,) in rows])
            scores[part] = _vectors.similarities(
                query, matrix, slice(0, len(matrix)), self._settings.distance, threads
            )
        return scores

    def _apply(self, connection: sqlite3.Connection, after: int) -> None:
        gone: dict[Segment, list[int]] = {}
        removed = connection.execute("SELECT item, places FROM removed WHERE change > ?", (after,))
        for item, places in removed:
            self.rows.drop(item)
            for segment in self.segments.marked(places):
                gone.setdefault(segment, []).append(item)
        for segment, items in gone.items():
            if segment.remove_many(items):
                self._grown.add(segment)
        sql = f"SELECT i.id, n.path, i.updated_at, i.seq, i.expires_at {_CHANGED}"
        for item, path, updated, seq, expires in connection.execute(sql, (after,)).fetchall():
            holders = self.segments.holding(path)
            if holders:
                row = Row(item, path, updated, seq, NEVER if expires is None else expires)
                self._upsert(connection, row, holders)

    def _upsert(
        self, connection: sqlite3.Connection, row: Row, segments: Iterable[Segment]
    ) -> None:
        units = connection.execute(
            "SELECT vector, terms FROM units WHERE id >= ? AND id < ? ORDER BY id",
            (row.item << UNIT_BITS, (row.item + 1) << UNIT_BITS),
        ).fetchall()
        embedded = self._settings.dims is not None
        matrix = self.matrix([vector for vector, _ in units]) if embedded else None
        lengths = [len(terms.split()) for _, terms in units]
        for segment in segments:
            self._grown.add(segment)
            new = segment.upsert(row, matrix, lengths)
            if segment.lexical is not None and new:
                segment.lexical.add_many(terms.split() for _, terms in units)


_CHANGED = (
    "FROM items i JOIN namespaces n ON n.id = i.namespace_id WHERE i.change > ? ORDER BY i.change"
)


_VECTORS = "SELECT vector FROM units WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"


def _paths(connection: sqlite3.Connection, places: Sequence[int]) -> list[str]:
    """Return the paths of namespaces by id."""
    sql = "SELECT id, path FROM namespaces WHERE id IN (SELECT value FROM json_each(?))"
    found = dict(connection.execute(sql, (id_list(places),)).fetchall())
    return [found[place] for place in places]


def read_values(connection: sqlite3.Connection, items: Iterable[int]) -> dict[int, Any]:
    """Return the values of items by id, without those that cannot be read."""
    sql = (
        "SELECT i.id, CAST(i.value AS BLOB), n.path, i.key, i.checksum FROM items i "
        "JOIN namespaces n ON n.id = i.namespace_id "
        "WHERE i.id IN (SELECT value FROM json_each(?))"
    )
    rows = connection.execute(sql, (id_list(items),))
    found = ((item, load(text, path, key, check)) for item, text, path, key, check in rows)
    return {item: value for item, value in found if value is not None}


def id_list(items: Iterable[int]) -> str:
    """Return ids as JSON text, to be bound where `json_each` reads them."""
    return "[" + ",".join(map(str, items)) + "]"
