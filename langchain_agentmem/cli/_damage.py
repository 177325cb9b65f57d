"""A damaged file: what is unreadable in it, and what can still be read."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import orjson

from langchain_agentmem.errors import StorageError
from langchain_agentmem.steps.effects import Call, List, Steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langgraph.store.base import Item

    from langchain_agentmem.items import StoredMemory

Namespace = tuple[str, ...]

DAMAGE: Final = (StorageError, sqlite3.Error, ValueError)
"""What reading a damaged file raises: of SQLite, of JSON, and of text that is not UTF-8."""
RESCUE: Final = (
    "restore a backup, or save what can be read of each user with 'agentmem export' and import it "
    "into a new file"
)
_STRANGE: Final = (*DAMAGE, TypeError, AttributeError, LookupError)
"""What making a memory of JSON of another shape raises besides."""
_VALUES: Final = """
SELECT CAST(n.path AS BLOB), CAST(i.key AS BLOB), CAST(i.value AS BLOB), i.checksum
FROM items AS i LEFT JOIN namespaces AS n ON n.id = i.namespace_id
"""
_HERE: Final = "WHERE namespace_id = (SELECT id FROM namespaces WHERE path = ?) ORDER BY"
_WAYS: Final = tuple(
    f"SELECT id FROM items {through} {_HERE} {order}"  # noqa: S608 - fixed texts
    for through, order in (
        ("NOT INDEXED", "id"),
        ("NOT INDEXED", "id DESC"),
        ("INDEXED BY items_newest", "updated_at, seq"),
        ("INDEXED BY items_newest", "updated_at DESC, seq DESC"),
        ("", "key"),
    )
)
_ROW: Final = """
SELECT CAST(key AS BLOB), CAST(value AS BLOB), created_at, updated_at, checksum, expires_at
FROM items NOT INDEXED WHERE id = ?
"""


def unreadable(
    connection: sqlite3.Connection, namespace: Namespace | None = None
) -> Iterator[tuple[Namespace, str]]:
    """Yield namespace and key of every value that is not the JSON object that was written.

    The store reads such values as absent.

    Args:
        connection: To the store's file.
        namespace: Where to look, not below it; everywhere by default.

    Raises:
        sqlite3.Error: The file is so damaged that not all rows can be read.
    """
    from langchain_agentmem.stores._namespaces import decode

    for path, key, value, expected in _rows(connection, namespace):
        if not _is_sound(key, value, expected):
            yield decode(_shown(path or b"")), _shown(key)


def _rows(
    connection: sqlite3.Connection, namespace: Namespace | None
) -> Iterator[tuple[bytes, bytes, bytes, int | None]]:
    from langchain_agentmem.stores._namespaces import encode

    if namespace is None:
        return iter(connection.execute(_VALUES))
    return iter(connection.execute(f"{_VALUES} WHERE n.path = ?", (encode(namespace),)))


def _is_sound(key: bytes, value: bytes, expected: int | None) -> bool:
    from langchain_agentmem.stores._values import checksum

    try:
        is_object = isinstance(orjson.loads(value), dict)
    except orjson.JSONDecodeError:
        return False
    return is_object and expected in (None, checksum(_shown(key), value))


def readable(store: Any, namespace: Namespace) -> Steps[tuple[list[StoredMemory], int]]:  # noqa: ANN401 - the store, imported when used
    """Return the items of one namespace, and how many cannot be read.

    Args:
        store: The store that is read.
        namespace: Where to look, not below it.
    """
    skipped = yield from Call(_unsound, (store, namespace))
    if skipped is not None:
        with suppress(*_STRANGE):
            return (yield from List(namespace)), skipped
    found, skipped = yield from Call(_row_by_row, (store, namespace))
    return found, skipped


def _unsound(store: Any, namespace: Namespace) -> int | None:  # noqa: ANN401 - the store
    """Count the values of a namespace that cannot be read; None if a page of it is lost."""
    try:
        return sum(
            not _is_sound(key, value, expected)
            for _, key, value, expected in _rows(store.conn, namespace)
        )
    except sqlite3.Error:
        return None


def _row_by_row(store: Any, namespace: Namespace) -> tuple[list[StoredMemory], int]:  # noqa: ANN401 - the store
    """Return what can be read one row after the other, whichever pages are lost around it."""
    from langchain_agentmem.items import StoredMemory

    found: list[StoredMemory] = []
    identities, unreadable = _identities(store.conn, namespace)
    for identity in sorted(identities):
        try:
            item = _item(store.conn, identity, namespace)
            found += [StoredMemory.from_store(item)] if item else []
        except _STRANGE:
            unreadable += 1
    return found, unreadable


def _identities(connection: sqlite3.Connection, namespace: Namespace) -> tuple[set[int], int]:
    """Return the rows of a namespace that any way through the file leads to.

    A lost page ends a way, and everything behind it is out of reach but from the other end, or by
    an index. Where no way is whole, one row at least cannot be read.
    """
    from langchain_agentmem.stores._namespaces import encode

    identities: set[int] = set()
    whole = False
    for way in _WAYS:
        try:
            for (identity,) in connection.execute(way, (encode(namespace),)):
                identities.add(identity)
        except sqlite3.Error:
            continue
        whole = True
    return identities, 0 if whole else 1


def _item(connection: sqlite3.Connection, identity: int, namespace: Namespace) -> Item | None:
    """Read one row; None if it has expired.

    Raises:
        LookupError: It is not there, or its value is not the one that was written.
        sqlite3.Error: Its page is lost.
    """
    from langgraph.store.base import Item

    from langchain_agentmem.stores._values import from_micros, to_micros

    row = connection.execute(_ROW, (identity,)).fetchone()
    if row is None or not _is_sound(row[0], row[1], row[4]):
        raise LookupError(identity)
    if row[5] is not None and row[5] <= to_micros(datetime.now(UTC)):
        return None
    return Item(
        namespace=namespace,
        key=_shown(row[0]),
        value=orjson.loads(row[1]),
        created_at=from_micros(row[2]),
        updated_at=from_micros(row[3]),
    )


def _shown(raw: bytes) -> str:
    return raw.decode(errors="replace")
