"""Whether what is derived from the stored values still agrees with them."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.retrieval.text import terms
from langchain_agentmem.stores import _vectors
from langchain_agentmem.stores._indexing import IndexSettings, extract
from langchain_agentmem.stores._schema import MISREAD, UNIT_BITS
from langchain_agentmem.stores._values import load
from langchain_agentmem.stores._words import entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_agentmem.stores._indexing import Unit

_LONGEST_WORD: Final = 32_768  # FTS5 keeps no more of one
_REPAIR: Final = "run 'agentmem doctor --repair', or call reindex()"


def check(connection: sqlite3.Connection) -> list[str]:
    """Compare a file's structure, vectors and words with its values.

    Args:
        connection: A connection outside of a transaction, which may make temporary tables.

    Returns:
        What is wrong, a sentence each, without any stored text.
    """
    connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab('main', 'words', 'row')"
    )
    connection.execute("BEGIN")
    try:
        return [*_structure(connection), *_orphans(connection), *_units(connection)]
    finally:
        connection.execute("COMMIT")


def _structure(connection: sqlite3.Connection) -> Iterator[str]:
    rows = [row[0] for row in connection.execute("PRAGMA integrity_check(5)")]
    if rows != ["ok"]:
        yield f"The file's structure is damaged ({'; '.join(rows)}); restore a backup."


def _orphans(connection: sqlite3.Connection) -> Iterator[str]:
    sql = (
        "SELECT count(*) FROM units WHERE NOT EXISTS "  # noqa: S608 - a constant
        f"(SELECT 1 FROM items WHERE items.id = units.id >> {UNIT_BITS})"
    )
    (count,) = connection.execute(sql).fetchone()
    if count:
        yield f"{count} indexed texts belong to no item; {_REPAIR}."
    sql = "SELECT count(*) FROM items WHERE namespace_id NOT IN (SELECT id FROM namespaces)"
    (count,) = connection.execute(sql).fetchone()
    if count:
        yield f"{count} items lie in a namespace that is not known; restore a backup."


def _units(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield what is wrong with vectors and words, by reading all values."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'fingerprint'").fetchone()
    if row is None:
        return
    try:
        settings = _settings(json.loads(row[0]))
    except MISREAD:
        yield f"What the file was indexed with cannot be read; {_REPAIR}."
        return
    wrong: Counter[str] = Counter()
    words: Counter[str] = Counter()
    rows = connection.execute(
        "SELECT i.id, CAST(i.value AS BLOB), i.fields, n.path, i.key, i.checksum, n.scope "
        "FROM items i "
        "JOIN namespaces n ON n.id = i.namespace_id"
    )
    for item, text, fields, path, key, expected, scope in rows:
        value = load(text, path, key, expected)
        stored = connection.execute(
            "SELECT digest, vector, terms FROM units WHERE id >= ? AND id < ? ORDER BY id",
            (item << UNIT_BITS, (item + 1) << UNIT_BITS),
        ).fetchall()
        if value is None:
            wrong["have a value that cannot be read"] += 1
        try:
            for _, _, kept in stored:
                words.update({word[:_LONGEST_WORD] for word in entry(scope, kept).split()})
            if value is not None:
                index = None if fields is None else json.loads(fields)
                wrong.update(_compare(extract(value, index, settings), stored, settings))
        except MISREAD:
            wrong["have a note of what they are indexed by that cannot be read"] += 1
    for what, count in wrong.items():
        advice = "restore a backup" if "cannot be read" in what else _REPAIR
        yield f"{count} items {what}; {advice}."
    if words != _vocabulary(connection):
        yield f"The table of words is not that of the indexed texts; {_REPAIR}."


def _settings(fingerprint: Mapping[str, Any]) -> IndexSettings:
    return IndexSettings(
        dims=fingerprint["dims"],
        embeddings=None,
        fields=tuple(fingerprint["fields"]),
        distance=fingerprint["distance"],
        mode="lexical",
        dense_weight=0.0,
        name=fingerprint["embedding"],
    )


def _compare(
    units: Sequence[Unit],
    stored: list[tuple[bytes, bytes | None, str]],
    settings: IndexSettings,
) -> set[str]:
    """Return what is wrong with one item's texts."""
    if [unit.digest for unit in units] != [digest for digest, _, _ in stored]:
        return {"are not indexed by the text they hold"}
    wrong = set()
    for unit, (_, vector, kept) in zip(units, stored, strict=True):
        if settings.dims is not None and not _is_vector(vector, settings.dims):
            wrong.add("have no sound vector")
        if kept != " ".join(terms(unit.text)):
            wrong.add("are indexed by other words than theirs")
    return wrong


def _is_vector(blob: bytes | None, dims: int) -> bool:
    if blob is None:
        return False
    try:
        _vectors.decode([blob], dims)
    except (ValueError, TypeError):
        return False
    return True


def _vocabulary(connection: sqlite3.Connection) -> Counter[str]:
    """Return in how many texts the table of words has each of them."""
    return Counter(dict(connection.execute("SELECT term, doc FROM temp.vocabulary")))
