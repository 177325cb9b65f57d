"""Answering reads: items, listings and ranked searches over one snapshot of the file."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from langgraph.store.base import Item, ListNamespacesOp
from numpy.typing import NDArray

from langchain_agentmem.retrieval.fusion import bar_of_best, normalize_dense
from langchain_agentmem.retrieval.text import query_terms
from langchain_agentmem.stores import _vectors, _words
from langchain_agentmem.stores._filters import Filter
from langchain_agentmem.stores._index import MemoryIndex, id_list
from langchain_agentmem.stores._indexing import IndexSettings
from langchain_agentmem.stores._namespaces import (
    RESERVED_ROOT,
    decode,
    encode,
    is_reserved,
    matches,
    scope_condition,
)
from langchain_agentmem.stores._ops import ScoredItem, StoreSearchOp
from langchain_agentmem.stores._rows import FIELDS, ItemRow, ItemRows
from langchain_agentmem.stores._schema import contradiction
from langchain_agentmem.stores._segments import Segment, unit_numbers
from langchain_agentmem.stores._values import dump

_FROM: Final = "FROM namespaces n JOIN items i ON i.namespace_id = n.id"
_BY_IDS: Final = f"SELECT {FIELDS} {_FROM} WHERE i.id IN (SELECT value FROM json_each(?))"  # noqa: S608
_FEW: Final = (
    16  # ids that are bound one by one, which is quicker; SQLite keeps each such statement
)
_BY_FEW_IDS: Final = [
    f"SELECT {FIELDS} {_FROM} WHERE i.id IN ({','.join('?' * count)})" for count in range(_FEW + 1)
]
_NEWEST: Final = (
    "SELECT i.updated_at, i.seq, i.id FROM items i WHERE i.namespace_id = ? "
    "AND (i.expires_at IS NULL OR i.expires_at > ?) "
    "ORDER BY i.updated_at DESC, i.seq DESC LIMIT ?"
)
_MERGED: Final = 200  # namespaces looked up one by one; of more, all items are sorted
_NO_LIMIT: Final = -1
_FIRST_PAGE: Final = 32
_LAST_PAGE: Final = 1_000
_LIVE: Final = "(i.expires_at IS NULL OR i.expires_at > ?)"
_ALWAYS: Final = -1  # a time before which nothing expires


@dataclass(slots=True)
class Scores:
    """Scores of items, in no order.

    Attributes:
        items: The items' ids.
        total: What they are ranked by.
        updated: Their times of update.
        seq: Their write sequences.
        parts: What the total is made of, by name.
    """

    items: NDArray[np.int64]
    total: NDArray[np.floating]
    updated: NDArray[np.int64]
    seq: NDArray[np.int64]
    parts: dict[str, NDArray[np.floating]]

    def best(self, offset: int, limit: int) -> NDArray[np.int64]:
        """Return positions in order: by score, then newest first."""
        wanted = min(offset + limit, len(self.total))
        if wanted <= offset:
            return np.empty(0, dtype=np.int64)
        near = np.flatnonzero(self.total >= bar_of_best(self.total, wanted))
        order = np.lexsort((-self.seq[near], -self.updated[near], -self.total[near]))
        chosen: NDArray[np.int64] = near[order][offset:wanted]
        return chosen


@dataclass(slots=True)
class Hit:
    """An item to return, with its score and whether reading it may refresh its time to live."""

    item: ScoredItem
    identity: int
    has_ttl: bool


@dataclass(slots=True)
class View:
    """What a ranked search needs of a segment after its lock is released."""

    segment: Segment
    rows: Any
    vectors: _vectors.Floats | None
    items: NDArray[np.int64]
    updated: NDArray[np.int64]
    seq: NDArray[np.int64]
    lengths: NDArray[np.float32] | None = None
    lexical: NDArray[np.float32] | None = None
    similarities: NDArray[np.float32] | None = None

    @property
    def units(self) -> NDArray[np.int64]:
        """The numbers of the rows' texts in the file."""
        return unit_numbers(self.items)


def mode_of(op: StoreSearchOp, settings: IndexSettings | None) -> str | None:
    """Return how a search is ranked; None for newest first."""
    if not op.query or settings is None:
        return None
    mode = op.mode or settings.mode
    if settings.embeddings is None and mode != "lexical":
        msg = f"mode {mode!r} needs an embedder, but the store's index has none; use 'lexical'."
        raise ValueError(msg)
    if mode == "hybrid":
        covers = getattr(settings.embeddings, "covers", None)
        if settings.dense_weight == 0 or (covers is not None and not covers(op.query)):
            return "lexical"
    return mode


def get(
    connection: sqlite3.Connection, path: str, keys: Sequence[str], now: int | None
) -> dict[str, Hit]:
    """Return items of one namespace by key, without those that have expired or cannot be read."""
    only = "= ?" if len(keys) == 1 else "IN (SELECT value FROM json_each(?))"
    named = keys[0] if len(keys) == 1 else dump(keys)
    columns = connection.execute(
        f"SELECT {FIELDS} {_FROM} WHERE n.path = ? AND i.key {only} AND {_LIVE}",
        (path, named, _ALWAYS if now is None else now),
    )
    rows = (row for each in columns.fetchall() if (row := ItemRow.of(each)) is not None)
    return {row.key: Hit(ScoredItem.of_row(row), row.identity, row.has_ttl) for row in rows}


def plain_item(hit: Hit) -> Item:
    """Return the item of a hit without its score."""
    item = hit.item
    return Item(
        value=item.value,
        key=item.key,
        namespace=item.namespace,
        created_at=item.created_at,
        updated_at=item.updated_at,
    )


def newest(
    connection: sqlite3.Connection, op: StoreSearchOp, test: Filter | None, now: int | None
) -> list[Hit]:
    """Return the items of a scope that pass a filter, newest update first.

    In a scope with values that cannot be read, pages have no gap but may repeat an item.
    """
    last = op.offset + op.limit
    if not op.limit:
        return []
    if test is None:
        chosen = _newest_ids(connection, op, now, last)[op.offset :]
        hits = list(_hits(connection, chosen))
        if len(hits) == len(chosen):
            return hits
    ids = _newest_ids(connection, op, now, None)
    found: list[Hit] = []
    start, size = 0, max(_FIRST_PAGE, last)
    while start < len(ids) and len(found) < last:
        found += (
            hit
            for hit in _hits(connection, ids[start : start + size])
            if test is None or test(hit.item.value)
        )
        start, size = start + size, min(2 * size, _LAST_PAGE)
    return found[op.offset : last]


def _newest_ids(
    connection: sqlite3.Connection, op: StoreSearchOp, now: int | None, limit: int | None
) -> list[int]:
    """Return the items of a scope, newest update first; the file's index has them in order."""
    condition, values = scope_condition(encode(op.namespace_prefix), exact=op.exact)
    horizon = _ALWAYS if now is None else now
    places = connection.execute(
        f"SELECT n.id FROM namespaces n WHERE {condition} LIMIT ?",  # noqa: S608 - a fixed condition
        [*values, _MERGED + 1],
    ).fetchall()
    count = _NO_LIMIT if limit is None else limit
    if len(places) > _MERGED:
        rows = connection.execute(
            f"SELECT i.id {_FROM} WHERE {condition} AND {_LIVE} "
            "ORDER BY i.updated_at DESC, i.seq DESC LIMIT ?",
            [*values, horizon, count],
        )
        return [item for (item,) in rows.fetchall()]
    newest_first: list[tuple[int, int, int]] = []
    for (place,) in places:
        newest_first += connection.execute(_NEWEST, (place, horizon, count)).fetchall()
    if len(places) > 1:
        newest_first.sort(reverse=True)
    return [item for _, _, item in newest_first[:limit]]


def _rows(connection: sqlite3.Connection, items: Sequence[int]) -> dict[int, Sequence[Any]]:
    """Return the rows of items by id."""
    if len(items) <= _FEW:
        found = connection.execute(_BY_FEW_IDS[len(items)], items)
    else:
        found = connection.execute(_BY_IDS, (id_list(items),))
    rows = {row[0]: row for row in found}
    if len(rows) < len(items):
        raise contradiction()
    return rows


def _hits(connection: sqlite3.Connection, items: Sequence[int]) -> Iterator[Hit]:
    """Return items by id, in the given order, without those that cannot be read."""
    rows = _rows(connection, items)
    return (
        Hit(ScoredItem.of_row(row), row.identity, row.has_ttl)
        for item in items
        if (row := ItemRow.of(rows[item])) is not None
    )


def list_namespaces(
    connection: sqlite3.Connection, op: ListNamespacesOp, now: int | None
) -> list[tuple[str, ...]]:
    """Return the namespaces that hold an item and meet the conditions, sorted."""
    conditions = op.match_conditions or ()
    shows_reserved = any(
        c.match_type == "prefix" and tuple(c.path)[:1] == (RESERVED_ROOT,) for c in conditions
    )
    rows = connection.execute(
        "SELECT n.path FROM namespaces n WHERE EXISTS "  # noqa: S608
        f"(SELECT 1 FROM items i WHERE i.namespace_id = n.id AND {_LIVE})",
        (_ALWAYS if now is None else now,),
    )
    paths = (path for (path,) in rows if shows_reserved or not is_reserved(path))
    found = {
        namespace[: op.max_depth]
        for namespace in map(decode, paths)
        if matches(namespace, conditions)
    }
    return sorted(found)[op.offset : op.offset + op.limit]


def view(
    connection: sqlite3.Connection,
    index: MemoryIndex,
    op: StoreSearchOp,
    test: Filter | None,
    *,
    now: int | None,
    mode: str,
) -> View:
    """Select the rows of a search; for the holder of the index's lock.

    Words are scored here only from memory, so that nobody waits for a search of the file.
    """
    path = encode(op.namespace_prefix)
    segment = index.segment(connection, path, dense=mode != "lexical")
    rows = segment.select(path, exact=op.exact, now=now)
    if test is not None:
        index.fill_columns(connection, segment, test)
        passed = segment.mask(test)
        rows = (
            np.flatnonzero(passed[rows]) + rows.start
            if isinstance(rows, slice)
            else rows[passed[rows]]
        )
    seen = View(
        segment,
        rows,
        segment.vectors,
        segment.items[rows],
        segment.updated[rows],
        segment.seq[rows],
    )
    if mode != "dense" and index.answers_words(segment):
        words = index.fill_words(connection, segment)
        eligible: Any = rows
        if not isinstance(rows, slice):
            eligible = np.zeros(len(words), dtype=np.bool_)
            eligible[rows] = True
        seen.lexical = words.scores(query_terms(op.query or ""), eligible)[rows]
    elif mode != "dense":
        seen.lengths = index.fill_lengths(connection, segment)[rows]
    return seen


def find_words(connection: sqlite3.Connection, seen: View, op: StoreSearchOp) -> None:
    """Score the words of a search in the file, unless memory has answered."""
    if seen.lengths is not None:
        path, terms, units = encode(op.namespace_prefix), query_terms(op.query or ""), seen.units
        seen.lexical = _words.scores(connection, path, units, seen.lengths, terms)


def compare(
    connection: sqlite3.Connection,
    seen: View,
    index: MemoryIndex,
    vector: _vectors.Floats,
    settings: IndexSettings,
    *,
    threads: int,
) -> None:
    """Score the vectors of a search, from memory or, where that has none, from the file."""
    if seen.vectors is None:
        seen.similarities = index.similarities(connection, seen.units, vector, threads)
    else:
        seen.similarities = _vectors.similarities(
            vector, seen.vectors, seen.rows, settings.distance, threads
        )


def score(seen: View, settings: IndexSettings, mode: str) -> Scores:
    """Rank the selected rows by the arms that were scored, and keep the best of each item."""
    arms: dict[str, NDArray[np.floating]] = {}
    if seen.lexical is not None:
        top = float(seen.lexical.max(initial=0.0))
        arms["lexical"] = seen.lexical / top if top > 0 else seen.lexical
    if seen.similarities is not None:
        arms["cosine"] = seen.similarities
    items, updated, seq = seen.items, seen.updated, seen.seq
    if seen.segment.multiple and len(items):
        starts = np.flatnonzero(np.concatenate([[True], items[1:] != items[:-1]]))
        items, updated, seq = items[starts], updated[starts], seq[starts]
        arms = {name: np.maximum.reduceat(values, starts) for name, values in arms.items()}
    return fuse(Scores(items, np.zeros(0), updated, seq, arms), settings, mode)


def fuse(scores: Scores, settings: IndexSettings, mode: str) -> Scores:
    """Add the parts of scores up in the way of a mode."""
    if mode == "dense":
        scores.total = scores.parts["cosine"]
        return scores
    scores.total = scores.parts["lexical"]
    if mode == "hybrid":
        scores.parts["dense"] = normalize_dense(scores.parts["cosine"])
        scores.total = scores.total + settings.dense_weight * scores.parts["dense"]
        return scores
    hit = np.flatnonzero(scores.total > 0)  # no common word is no lexical match
    return Scores(
        scores.items[hit],
        scores.total[hit],
        scores.updated[hit],
        scores.seq[hit],
        {name: values[hit] for name, values in scores.parts.items()},
    )


def ranked(
    connection: sqlite3.Connection, index: MemoryIndex, scores: Scores, op: StoreSearchOp
) -> list[Hit]:
    """Return one page of the ranking, read from the connection's snapshot.

    Items that cannot be read are left out, and the next ones take their place.
    """
    found, wanted = _page(connection, index, scores, op.offset, op.limit)
    if len(found) < wanted:
        found, _ = _page(connection, index, scores, 0, len(scores.total))
        return found[op.offset : op.offset + op.limit]
    return found


def _page(
    connection: sqlite3.Connection, index: MemoryIndex, scores: Scores, offset: int, limit: int
) -> tuple[list[Hit], int]:
    """Return a part of the ranking, and how many items it would have if all could be read."""
    chosen = scores.best(offset, limit)
    items, seqs = scores.items[chosen].tolist(), scores.seq[chosen].tolist()
    rows = _kept_rows(connection, index.rows, dict(zip(items, seqs, strict=True)))
    parts: list[dict[str, float]] = [{} for _ in items]
    for name, values in scores.parts.items():
        for each, value in zip(parts, values[chosen].tolist(), strict=True):
            each[name] = value
    hits = [
        Hit(ScoredItem.of_row(row, total, each), row.identity, row.has_ttl)
        for item, total, each in zip(items, scores.total[chosen].tolist(), parts, strict=True)
        if (row := rows[item]) is not None
    ]
    return hits, len(items)


def _kept_rows(
    connection: sqlite3.Connection, kept: ItemRows, seqs: Mapping[int, int]
) -> dict[int, ItemRow | None]:
    """Return the rows of items as their last writes left them, read from the file if need be.

    Args:
        connection: The snapshot.
        kept: The rows that were read lately.
        seqs: The write sequence of each item in the snapshot.
    """
    found = {item: kept.find(item, seq) for item, seq in seqs.items()}
    unread = [item for item, row in found.items() if row is None]
    columns = _rows(connection, unread) if unread else {}
    for item in unread:
        row = found[item] = ItemRow.of(columns[item])
        if row is not None:
            kept.keep(seqs[item], row)
    return found
