"""The words of a file: an FTS5 table that answers for scopes too large for postings in memory.

FTS5's own ranking counts over the whole table, so that one scope's words would move another
scope's scores. Here the table only says which texts of a scope hold a word; the scores are those
of `retrieval.lexical`, over exactly the rows that a search may return.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from langchain_agentmem.retrieval.lexical import bm25, idf
from langchain_agentmem.stores._schema import contradiction

_REPEATED: Final = "_r"  # no term has an underscore, and scope words go on in digits
_ENCODED: Final = "_u"
_COMMON_SHARE: Final = 0.5
_MOST_POSTINGS: Final = 50_000
_NO_LIMIT: Final = -1
_READ_CHUNK: Final = 2_000


def entry(scope: str, terms: str) -> str:
    """Return what the table holds of a text.

    Args:
        scope: The words of its namespace and all above it.
        terms: Its index terms, joined by spaces.

    Returns:
        Scope, terms, and once more, marked, those that stand in the text several times: only their
        frequency must be looked up.
    """
    if not terms.isascii():
        terms = " ".join(map(_token, terms.split()))
    seen: set[str] = set()
    repeated: set[str] = set()
    for word in terms.split():
        if word in seen:
            repeated.add(_REPEATED + word)
        else:
            seen.add(word)
    return " ".join([scope, terms, *repeated])


def _token(term: str) -> str:
    """Write a term so that SQLite, whose Unicode tables are old, takes it for one word."""
    return term if term.isascii() else _ENCODED + term.encode("utf-16-be").hex()


def scores(
    connection: sqlite3.Connection,
    path: str,
    units: NDArray[np.int64],
    lengths: NDArray[np.float32],
    terms: Iterable[str],
) -> NDArray[np.float32]:
    """Score texts by BM25; document count, frequencies and mean length are those of `units`.

    Args:
        connection: The snapshot that is searched.
        path: An encoded prefix that all the texts lie below.
        units: The texts' row numbers in the table, in any order.
        lengths: Their numbers of terms.
        terms: The query's terms; a word that stands in more than half of the texts, or in very
            many, counts only if no rarer one is found: its postings cost much and tell little.

    Returns:
        One score per text, 0 without a common term.
    """
    total = np.zeros(len(units), dtype=np.float64)
    scope = _scope_word(connection, path)
    if scope is None or not len(units):
        return total.astype(np.float32)
    order = np.argsort(units)
    ordered = units[order]

    holding = {
        term: _rows(connection, scope, _token(term), _MOST_POSTINGS + 1)
        for term in dict.fromkeys(terms)
    }
    found = {
        term: order[_places(ordered, rows)]
        for term, rows in holding.items()
        if rows.size <= _MOST_POSTINGS
    }
    rare = [term for term, rows in found.items() if 0 < rows.size <= _COMMON_SHARE * len(units)]
    if not rare:
        found = {
            term: order[_places(ordered, _rows(connection, scope, _token(term)))]
            for term in holding
        }
    average = float(lengths.mean(dtype=np.float64))
    for term in rare or found:
        rows = found[term]
        if rows.size:
            tf = np.ones(len(units), dtype=np.float64)
            repeated = _places(ordered, _rows(connection, scope, _REPEATED + _token(term)))
            tf[order[repeated]] = _frequencies(connection, ordered[repeated].tolist(), term)
            gain = bm25(tf[rows], lengths[rows], average_length=average)
            total[rows] += idf(len(units), rows.size) * gain
    return total.astype(np.float32)


def _scope_word(connection: sqlite3.Connection, path: str) -> str | None:
    """Return the word that all texts below a path hold, `""` for the whole file."""
    if not path:
        return ""
    row = connection.execute("SELECT id FROM namespaces WHERE path = ?", (path,)).fetchone()
    return None if row is None else f"_{row[0]}"


def _rows(
    connection: sqlite3.Connection, scope: str, word: str, limit: int = _NO_LIMIT
) -> NDArray[np.int64]:
    query = f'"{scope}" AND "{word}"' if scope else f'"{word}"'
    sql = "SELECT rowid FROM words WHERE words MATCH ? LIMIT ?"
    found = connection.execute(sql, (query, limit))
    return np.array([row for (row,) in found.fetchall()], dtype=np.int64)


def _places(ordered: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where rows stand in an ascending array; those that are not in it are left out."""
    places = np.searchsorted(ordered, rows)
    places[places == len(ordered)] = 0
    kept: NDArray[np.int64] = places[ordered[places] == rows]
    return kept


def _frequencies(connection: sqlite3.Connection, units: Sequence[int], term: str) -> list[int]:
    """Return how often a term stands in each of some texts."""
    counted: dict[int, int] = {}
    for start in range(0, len(units), _READ_CHUNK):
        wanted = ",".join(map(str, units[start : start + _READ_CHUNK]))
        rows = connection.execute(
            "SELECT id, terms FROM units WHERE id IN (SELECT value FROM json_each(?))",
            (f"[{wanted}]",),
        )
        counted.update((unit, text.split().count(term)) for unit, text in rows)
    if len(counted) < len(units):
        raise contradiction()
    return [counted[unit] for unit in units]
