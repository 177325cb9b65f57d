"""Answering reads from LangGraph's PostgreSQL tables with the rules of `FaissSqliteStore`.

The server selects the rows of a scope and computes the distances of exactly those; filters are
tested here, by the same code as everywhere, after the server has left out what cannot pass.
"""

# ruff: noqa: S608 - statements are put together of constants; every value is bound

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from langgraph.store.base import GetOp, Item, ListNamespacesOp

from langchain_agentmem.retrieval.lexical import bm25, idf
from langchain_agentmem.retrieval.text import query_terms
from langchain_agentmem.stores._namespaces import RESERVED_ROOT, matches
from langchain_agentmem.stores._ops import ScoredItem, StoreSearchOp
from langchain_agentmem.stores._postgres_json import is_plain
from langchain_agentmem.stores._search import Scores, fuse
from langchain_agentmem.stores._values import to_micros

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from psycopg import Connection

    from langchain_agentmem.stores._filters import Filter
    from langchain_agentmem.stores._indexing import IndexSettings

Row = dict[str, Any]
Key = tuple[str, str]

_ITEM: Final = "s.prefix, s.key, s.value, s.created_at, s.updated_at"
_SCORES: Final = {
    "cosine": "1 - (v.embedding <=> %s::{type})",
    "inner_product": "-(v.embedding <#> %s::{type})",
    "l2": "-(v.embedding <-> %s::{type})",
}
_PAGE: Final = 500


class Reader:
    """Reads in one transaction.

    Args:
        connection: The connection, in a transaction whose statements see one snapshot.
        settings: The store's index.
        vector_type: The type of its vectors, `"vector"` or `"halfvec"`.
        now: The SQL expression of the time at which what has expired is left out; None to see all.
    """

    def __init__(
        self,
        connection: Connection[Row],
        settings: IndexSettings | None,
        *,
        vector_type: str,
        now: str | None,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._type = vector_type
        self._live = "TRUE" if now is None else live(now)

    def get(self, op: GetOp) -> Item | None:
        """Return one item."""
        row = self._connection.execute(
            f"SELECT {_ITEM} FROM store s WHERE s.prefix = %s AND s.key = %s AND {self._live}",
            (text(op.namespace), op.key),
        ).fetchone()
        return None if row is None else Item(**_fields(row))

    def namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        """Return the namespaces that hold an item and meet the conditions, sorted."""
        conditions = op.match_conditions or ()
        shows_reserved = any(
            c.match_type == "prefix" and tuple(c.path)[:1] == (RESERVED_ROOT,) for c in conditions
        )
        rows = self._connection.execute(
            f"SELECT DISTINCT s.prefix FROM store s WHERE {self._live}"
        ).fetchall()
        names = (tuple(row["prefix"].split(".")) for row in rows)
        found = {
            name[: op.max_depth]
            for name in names
            if (shows_reserved or name[0] != RESERVED_ROOT) and matches(name, conditions)
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    def newest(self, op: StoreSearchOp, test: Filter | None) -> list[ScoredItem]:
        """Return the items of a scope that pass a filter, newest update first."""
        where, values = self._scope(op)
        sql = f"SELECT {_ITEM} FROM store s WHERE {where} ORDER BY s.updated_at DESC, s.key"
        if test is None:
            sql += " LIMIT %s OFFSET %s"
            rows = self._connection.execute(sql, [*values, op.limit, op.offset]).fetchall()
            return [ScoredItem(**_fields(row)) for row in rows]
        found: list[Row] = []
        for row in self._stream(sql, values) if op.limit else ():
            if test(row["value"]):
                found.append(row)
            if len(found) == op.offset + op.limit:
                break
        return [ScoredItem(**_fields(row)) for row in found[op.offset :]]

    def _stream(self, sql: str, values: Sequence[object]) -> Iterator[Row]:
        """Yield rows page by page from a cursor of the server."""
        with self._connection.cursor(name="agentmem") as cursor:
            cursor.itersize = _PAGE
            cursor.execute(sql, values)
            yield from cursor

    def ranked(
        self,
        op: StoreSearchOp,
        test: Filter | None,
        settings: IndexSettings,
        mode: str,
        vector: Sequence[float] | None,
    ) -> list[ScoredItem]:
        """Return one page of a ranking of a scope's items that pass a filter.

        Args:
            op: The search.
            test: Its filter.
            settings: The store's index.
            mode: How to rank.
            vector: The query's vector; None for a search by words.
        """
        terms = [] if mode == "dense" else list(dict.fromkeys(query_terms(op.query or "")))
        rows = self._candidates(op, settings, terms, vector, values=test is not None)
        if test is not None:
            rows = [row for row in rows if test(row["value"])]
        scores = fuse(
            _scores(rows, terms, settings.distance, dense=vector is not None), settings, mode
        )
        chosen = scores.best(op.offset, op.limit).tolist()
        keys = [_key(rows[scores.items[n]]) for n in chosen]
        items = self._items(keys)
        return [
            ScoredItem(
                **_fields(items[key]),
                score=float(scores.total[n]),
                parts={name: float(part[n]) for name, part in scores.parts.items()},
            )
            for key, n in zip(keys, chosen, strict=True)
        ]

    def _candidates(
        self,
        op: StoreSearchOp,
        settings: IndexSettings,
        terms: Sequence[str],
        vector: Sequence[float] | None,
        *,
        values: bool,
    ) -> list[Row]:
        """Return a row for each indexed text of a scope, the texts of an item one after another."""
        where, bound = self._scope(op)
        score, query = "NULL", list[object]()
        if vector is not None:
            score, query = _SCORES[settings.distance].format(type=self._type), [vector_text(vector)]
        value = ", s.value" if values else ""
        sql = (
            f"SELECT s.prefix, s.key, s.updated_at{value}, {score} AS score, "
            "coalesce(cardinality(v.agentmem_terms), 0) AS length, "
            "CASE WHEN v.agentmem_terms && %s::text[] THEN v.agentmem_terms END AS terms "
            "FROM store s JOIN store_vectors v ON v.prefix = s.prefix AND v.key = s.key "
            f"WHERE {where} ORDER BY s.prefix, s.key"
        )
        return self._connection.execute(sql, [*query, list(terms), *bound]).fetchall()

    def _items(self, keys: Sequence[Key]) -> dict[Key, Row]:
        """Return whole rows by their prefix and key."""
        sql = (
            f"SELECT {_ITEM} FROM store s JOIN unnest(%s::text[], %s::text[]) AS w(prefix, key) "
            "ON s.prefix = w.prefix AND s.key = w.key"
        )
        rows = self._connection.execute(sql, columns(keys)).fetchall()
        return {_key(row): row for row in rows}

    def _scope(self, op: StoreSearchOp) -> tuple[str, list[object]]:
        """Return the condition a search's rows meet, and its bound values."""
        where, values = below(op.namespace_prefix, exact=op.exact)
        needed = _needed(op.filter)
        if needed:
            where, values = f"{where} AND s.value @> %s::jsonb", [*values, json.dumps(needed)]
        return f"{where} AND {self._live}", values


def live(now: str) -> str:
    """Return the condition that rows of `store` meet which have not expired."""
    return f"(s.expires_at IS NULL OR s.expires_at > {now})"


def text(namespace: Sequence[str]) -> str:
    """Return a namespace as the tables have it; labels have no period."""
    return ".".join(namespace)


def vector_text(vector: Sequence[float]) -> str:
    """Return a vector as pgvector reads it."""
    return "[" + ",".join(map(repr, map(float, vector))) + "]"


def columns(keys: Sequence[Key]) -> tuple[list[str], list[str]]:
    """Return prefixes and keys as two arrays."""
    return [prefix for prefix, _ in keys], [key for _, key in keys]


def below(prefix: Sequence[str], *, exact: bool = False) -> tuple[str, list[object]]:
    """Return the condition that rows in or below a namespace meet, and its bound values."""
    if exact:
        return "s.prefix = %s", [text(prefix)]
    where = "(s.prefix = %s OR s.prefix LIKE %s)"
    values: list[object] = [text(prefix or (RESERVED_ROOT,)), _pattern(prefix or (RESERVED_ROOT,))]
    return (where if prefix else f"NOT {where}"), values


def _pattern(prefix: Sequence[str]) -> str:
    escaped = text(prefix).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"{escaped}.%"


def _needed(conditions: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the plain equalities of a filter, which the server can test by itself."""
    return {
        key: value
        for key, value in (conditions or {}).items()
        if isinstance(value, str | int | float)
        and is_plain(f"{key}{value}")
        and "." not in key
        and not key.startswith("$")
    }


def _fields(row: Row) -> dict[str, Any]:
    return {
        "namespace": tuple(row["prefix"].split(".")),
        "key": row["key"],
        "value": row["value"],
        "created_at": row["created_at"].astimezone(UTC),
        "updated_at": row["updated_at"].astimezone(UTC),
    }


def _key(row: Row) -> Key:
    return row["prefix"], row["key"]


def _scores(rows: Sequence[Row], terms: Sequence[str], distance: str, *, dense: bool) -> Scores:
    """Score each item by the best of its texts; `items` are the numbers of their first rows."""
    arms: dict[str, NDArray[np.floating]] = {"lexical": _words(rows, terms)}
    if dense:
        raw = np.nan_to_num(np.array([row["score"] for row in rows], dtype=np.float64))
        arms["cosine"] = np.clip(raw, -1.0, 1.0) if distance == "cosine" else raw
    keys = [_key(row) for row in rows]
    starts = np.array([n for n, key in enumerate(keys) if n == 0 or key != keys[n - 1]], dtype=int)
    if len(rows):
        arms = {name: np.maximum.reduceat(values, starts) for name, values in arms.items()}
    updated = np.array([to_micros(rows[n]["updated_at"]) for n in starts], dtype=np.int64)
    return Scores(starts, np.zeros(0), updated, np.zeros(len(starts), dtype=np.int64), arms)


def _words(rows: Sequence[Row], terms: Sequence[str]) -> NDArray[np.float64]:
    """Return the BM25 scores of texts over exactly these texts, divided by the best of them."""
    total = np.zeros(len(rows), dtype=np.float64)
    lengths = np.array([row["length"] for row in rows], dtype=np.float64)
    for term in terms:
        counts = np.array([(row["terms"] or ()).count(term) for row in rows], dtype=np.float64)
        hits = np.flatnonzero(counts)
        if hits.size:
            gain = bm25(counts[hits], lengths[hits], average_length=float(lengths.mean()))
            total[hits] += float(idf(len(rows), hits.size)) * gain
    best = total.max(initial=0.0)
    return total / best if best > 0 else total
