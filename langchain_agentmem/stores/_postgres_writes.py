"""Writing into LangGraph's PostgreSQL tables: whole batches, current vectors, expected versions.

Beside LangGraph's own columns each vector has the number, digest and words of its text; LangGraph's
store reads and writes the same tables and leaves these columns alone.
"""

# ruff: noqa: S608 - statements are put together of constants; every value is bound

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.stores._indexing import extract
from langchain_agentmem.stores._postgres_json import written
from langchain_agentmem.stores._postgres_reads import (
    Key,
    Row,
    below,
    columns,
    live,
    text,
    vector_text,
)
from langchain_agentmem.stores._values import version_of

if TYPE_CHECKING:
    from langgraph.store.base import PutOp
    from psycopg import Connection

    from langchain_agentmem.stores._indexing import IndexSettings, Put

_LOCKS: Final = 1024
_LOCK_CLASS: Final = 0x41474D31
_GIVEN: Final = "unnest(%s::text[], %s::text[]) AS w(prefix, key)"
_SAME: Final = "s.prefix = w.prefix AND s.key = w.key"

SETUP: Final = (
    "ALTER TABLE store_vectors ADD COLUMN IF NOT EXISTS agentmem_number int, "
    "ADD COLUMN IF NOT EXISTS agentmem_digest bytea, "
    "ADD COLUMN IF NOT EXISTS agentmem_terms text[]"
)
"""What a database with vectors gets beside LangGraph's own migrations."""
FRACTIONS: Final = """
DO $$ BEGIN
    IF (SELECT data_type FROM information_schema.columns WHERE table_name = 'store'
        AND column_name = 'ttl_minutes' AND table_schema = current_schema()) = 'integer'
    THEN ALTER TABLE store ALTER COLUMN ttl_minutes TYPE double precision; END IF;
END $$
"""
"""Lets times to live be fractions of a minute."""


class StaleError(Exception):
    """Another writer has changed an item whose vectors were to be kept."""


def key_of(put: Put) -> Key:
    """Return where a put goes, as the tables have it."""
    return text(put.namespace), put.key


def stored_digests(connection: Connection[Row], keys: Sequence[Key]) -> dict[Key, list[bytes]]:
    """Return the digests of the texts that items are indexed by, in order."""
    rows = connection.execute(
        "SELECT s.prefix, s.key, array_agg(s.agentmem_digest ORDER BY s.agentmem_number) AS found "
        f"FROM store_vectors s JOIN {_GIVEN} ON {_SAME} GROUP BY s.prefix, s.key",
        columns(keys),
    ).fetchall()
    return {(row["prefix"], row["key"]): row["found"] for row in rows}


def lock(connection: Connection[Row], keys: Sequence[Key]) -> None:
    """Let other writers of these keys wait until the transaction ends."""
    connection.execute(
        "SELECT pg_advisory_xact_lock(%s, number) FROM (SELECT DISTINCT "
        "hashtext(prefix || E'\\x1f' || key) & %s AS number "
        f"FROM {_GIVEN} ORDER BY number OFFSET 0) AS numbers",
        (_LOCK_CLASS, _LOCKS - 1, *columns(keys)),
    )


def check_versions(
    connection: Connection[Row],
    expected: Mapping[tuple[tuple[str, ...], str], int | None],
    now: str,
) -> None:
    """Refuse to go on if an item is not at its expected version.

    Raises:
        ConflictError: Naming every item that differs.
    """
    rows = connection.execute(
        f"SELECT s.prefix, s.key, s.value FROM store s JOIN {_GIVEN} ON {_SAME} WHERE {live(now)}",
        columns([(text(namespace), key) for namespace, key in expected]),
    ).fetchall()
    versions = {(row["prefix"], row["key"]): version_of(row["value"]) for row in rows}
    found = {(name, key): versions.get((text(name), key)) for name, key in expected}
    conflicts = {
        ref: (expected[ref], found[ref]) for ref in expected if expected[ref] != found[ref]
    }
    if conflicts:
        raise ConflictError(conflicts)


def refresh(connection: Connection[Row], keys: Sequence[Key], now: str) -> None:
    """Start the time to live of items anew; times of update stay as they are."""
    connection.execute(
        f"UPDATE store s SET expires_at = {now} + s.ttl_minutes * interval '1 minute' "
        f"FROM {_GIVEN} WHERE {_SAME} AND s.ttl_minutes IS NOT NULL AND s.expires_at > {now}",
        columns(keys),
    )


def apply(
    connection: Connection[Row],
    puts: Sequence[Put],
    names: Mapping[Key, list[str]],
    vectors: Mapping[str, Sequence[float]],
    now: str,
) -> None:
    """Write puts and deletes whose keys are locked.

    Args:
        connection: A connection in a transaction.
        puts: What to write; each key once.
        names: The field of each indexed text, by key.
        vectors: The vectors of the texts; an item whose texts lack one keeps those it has.
        now: The SQL expression of the time of the write.

    Raises:
        StaleError: An item has other vectors by now than those it was to keep.
    """
    _delete(connection, [key_of(put) for put in puts if put.value is None], "TRUE")
    kept = [put for put in puts if put.value is not None]
    _delete(connection, [key_of(put) for put in kept], f"NOT {live(now)}")
    _upsert(connection, kept, now)
    if not any(put.units for put in kept) and not names:
        return
    stored = stored_digests(connection, [key_of(put) for put in kept])
    changed = [p for p in kept if stored.get(key_of(p), []) != [unit.digest for unit in p.units]]
    if any(unit.text not in vectors for put in changed for unit in put.units):
        raise StaleError
    _replace_vectors(connection, changed, names, vectors)


def _delete(connection: Connection[Row], keys: Sequence[Key], condition: str) -> None:
    if keys:
        sql = f"DELETE FROM store s USING {_GIVEN} WHERE {_SAME} AND {condition}"
        connection.execute(sql, columns(keys))


def delete_below(connection: Connection[Row], prefix: Sequence[str]) -> int:
    """Erase a namespace with what lies below it; returns how many items that were."""
    where, values = below(prefix)
    return connection.execute(f"DELETE FROM store s WHERE {where}", values).rowcount


def sweep(connection: Connection[Row], now: str) -> int:
    """Remove what has expired; returns how many items that were."""
    return connection.execute(f"DELETE FROM store s WHERE NOT {live(now)}").rowcount


def _upsert(connection: Connection[Row], puts: Sequence[Put], now: str) -> None:
    """Put items with times that follow each other, so that a later one is the newer."""
    moment = "(%(now)s + %(number)s * interval '1 microsecond')"
    sql = (
        "INSERT INTO store(prefix, key, value, created_at, updated_at, expires_at, ttl_minutes) "
        f"VALUES (%(prefix)s, %(key)s, %(value)s::jsonb, {moment}, {moment}, "
        "%(now)s + %(ttl)s::double precision * interval '1 minute', %(ttl)s) "
        "ON CONFLICT (prefix, key) DO UPDATE SET value = excluded.value, "
        "updated_at = greatest(excluded.updated_at, store.updated_at), "
        "expires_at = excluded.expires_at, ttl_minutes = excluded.ttl_minutes"
    )
    row = connection.execute(f"SELECT {now} AS now").fetchone()
    rows = [
        {
            **(row or {}),
            "number": number,
            "prefix": text(put.namespace),
            "key": put.key,
            "value": written(put.value or ""),
            "ttl": put.ttl,
        }
        for number, put in enumerate(puts)
    ]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(sql, rows)


def _replace_vectors(
    connection: Connection[Row],
    puts: Sequence[Put],
    names: Mapping[Key, list[str]],
    vectors: Mapping[str, Sequence[float]],
) -> None:
    keys = [key_of(put) for put in puts]
    connection.execute(f"DELETE FROM store_vectors s USING {_GIVEN} WHERE {_SAME}", columns(keys))
    rows = [
        (*key, name, vector_text(vectors[unit.text]), number, unit.digest, unit.terms.split())
        for key, put in zip(keys, puts, strict=True)
        for number, (name, unit) in enumerate(zip(names[key], put.units, strict=True))
    ]
    if rows:
        sql = (
            "INSERT INTO store_vectors(prefix, key, field_name, embedding, agentmem_number, "
            "agentmem_digest, agentmem_terms) VALUES (%s, %s, %s, %s, %s, %s, %s)"
        )
        with connection.cursor() as cursor:
            cursor.executemany(sql, rows)


def field_names(op: PutOp, settings: IndexSettings) -> Iterator[str]:
    """Yield the name LangGraph gives to each indexed text of a put, in their order."""
    paths: Any = settings.fields if op.index is None else (op.index or ())
    for path in dict.fromkeys(paths):
        count = len(extract(op.value or {}, [path], settings))
        yield from [path] if count == 1 else (f"{path}.{n}" for n in range(count))
