"""A damaged file: what is unreadable in it, and what can still be read."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Final

import orjson

from langchain_agentmem.errors import StorageError
from langchain_agentmem.steps.effects import Call, Get, List, Steps

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    keys, skipped = yield from Call(_keys, (store, namespace))
    try:
        return (yield from List(namespace)), skipped
    except _STRANGE:
        items: list[StoredMemory] = []
    for key in keys:
        try:
            (found,) = yield from Get([(namespace, key)])
        except _STRANGE:
            skipped += 1
        else:
            items += [found] if found else []
    return items, skipped


def _keys(store: Any, namespace: Namespace) -> tuple[list[str], int]:  # noqa: ANN401 - the store
    """Return the keys of a namespace that hold JSON, and how many items do not, as far as known."""
    keys: list[str] = []
    skipped = 0
    try:
        for _, key, value, expected in _rows(store.conn, namespace):
            if _is_sound(key, value, expected):
                keys.append(_shown(key))
            else:
                skipped += 1
    except sqlite3.Error:
        skipped += 1
    return keys, skipped


def _shown(raw: bytes) -> str:
    return raw.decode(errors="replace")
