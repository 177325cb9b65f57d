"""What a store file holds, in numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3

    from langchain_agentmem.stores._index import MemoryIndex
    from langchain_agentmem.stores._schema import Database


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """The size of a store.

    Attributes:
        items: How many items the file has, expired ones included.
        expired: How many of them have expired and wait for a sweep.
        namespaces: How many namespaces hold an item.
        texts: How many texts are indexed by their words.
        vectors: How many of them have a vector.
        file_bytes: Size of the file; 0 in memory.
        log_bytes: Size of the write-ahead log beside it.
        free_bytes: How much of the file `vacuum` would give back.
        memory_bytes: What the index holds in this process's memory, roughly.
        schema_version: Version of the file's tables.
        index: What vectors and words depend on: `dims`, `fields`, `distance` and `embedding`;
            None if nothing was indexed yet.
    """

    items: int
    expired: int
    namespaces: int
    texts: int
    vectors: int
    file_bytes: int
    log_bytes: int
    free_bytes: int
    memory_bytes: int
    schema_version: int
    index: dict[str, Any] | None


def statistics(
    connection: sqlite3.Connection, database: Database, index: MemoryIndex | None, now: int
) -> StoreStatistics:
    """Count what a file holds.

    Args:
        connection: The snapshot that is counted.
        database: The file.
        index: Its index in memory.
        now: The time in microseconds since 1970.
    """

    def one(query: str, *values: object) -> Any:  # noqa: ANN401 - one SQLite value
        row = connection.execute(query, values).fetchone()
        return row[0] if row else None

    found = one("SELECT value FROM meta WHERE key = 'fingerprint'")
    return StoreStatistics(
        items=one("SELECT count(*) FROM items"),
        expired=one("SELECT count(*) FROM items WHERE expires_at <= ?", now),
        namespaces=one("SELECT count(DISTINCT namespace_id) FROM items"),
        texts=one("SELECT count(*) FROM units"),
        vectors=one("SELECT count(vector) FROM units"),
        file_bytes=0 if database.in_memory else _size(database.path),
        log_bytes=0 if database.in_memory else _size(f"{database.path}-wal"),
        free_bytes=one("PRAGMA freelist_count") * one("PRAGMA page_size"),
        memory_bytes=0 if index is None else index.segments.nbytes,
        schema_version=one("PRAGMA user_version"),
        index=json.loads(found) if found else None,
    )


def _size(path: str) -> int:
    file = Path(path)
    return file.stat().st_size if file.exists() else 0
