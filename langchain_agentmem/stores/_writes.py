"""Writing items, their vectors and words: the functions that run inside a transaction."""

import json
import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.stores._groups import Transaction
from langchain_agentmem.stores._indexing import MAX_UNITS, IndexSettings, Put, Unit, extract
from langchain_agentmem.stores._namespaces import ancestors, bounds, encode
from langchain_agentmem.stores._schema import UNIT_BITS, sound_values
from langchain_agentmem.stores._values import checksum, load, version_of
from langchain_agentmem.stores._words import entry

logger = logging.getLogger(__name__)

MINUTE: Final = 60_000_000
_BY_KEY: Final = (
    "FROM items i JOIN namespaces n ON n.id = i.namespace_id WHERE n.path = ? AND i.key = ?"
)
_BY_ONE_KEY: Final = (
    "SELECT key, id, updated_at, expires_at FROM items WHERE namespace_id = ? AND key = ?"
)
_BY_KEYS: Final = (
    "SELECT key, id, updated_at, expires_at FROM items "
    "WHERE namespace_id = ? AND key IN (SELECT value FROM json_each(?))"
)

Expected = Mapping[tuple[tuple[str, ...], str], int | None]


@sound_values()
def apply_puts(
    transaction: Transaction, puts: Iterable[Put], now: int, *, omit_expired: bool
) -> None:
    """Write puts and deletes in order.

    Args:
        transaction: The open transaction.
        puts: What to write.
        now: The time of the write, in microseconds.
        omit_expired: Whether an expired item counts as absent.
    """
    ordered, rows = list(puts), _NewRows()
    places: dict[str, tuple[int, str]] = {}
    known: dict[str, dict[str, tuple[int, int, bool]]] = {}
    horizon = now if omit_expired else None
    for path, group in _by_path(ordered).items():
        places[path] = _ensure_namespace(transaction.connection, path)
        keys = [put.key for put in group]
        known[path] = _find(transaction.connection, places[path][0], keys, horizon)
    for put in ordered:  # the later of two is the newer one
        found = known[put.path].get(put.key)
        if found is not None and (put.value is None or found[2]):
            remove_items(transaction, [found[0]])
            found = None
        if put.value is not None:
            _write(transaction, put, now, found=found, place=places[put.path], rows=rows)
    rows.write(transaction.connection)


def _by_path(puts: Iterable[Put]) -> dict[str, list[Put]]:
    grouped: dict[str, list[Put]] = {}
    for put in puts:
        grouped.setdefault(put.path, []).append(put)
    return grouped


class _NewRows:
    """Rows of one batch to be inserted together, which is about twice as fast as one by one."""

    def __init__(self) -> None:
        self.items: list[tuple[object, ...]] = []
        self.units: list[tuple[int, bytes, bytes | None, str]] = []
        self.words: list[tuple[int, str]] = []

    def write(self, connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self.items
        )
        connection.executemany("INSERT INTO units VALUES (?, ?, ?, ?)", self.units)
        connection.executemany("INSERT INTO words(rowid, terms) VALUES (?, ?)", self.words)


def _find(
    connection: sqlite3.Connection, namespace: int, keys: Sequence[str], now: int | None
) -> dict[str, tuple[int, int, bool]]:
    """Return items' ids, last updates and whether they are expired, by key."""
    sql, values = _BY_ONE_KEY, [namespace, *keys]
    if len(keys) > 1:
        sql, values = _BY_KEYS, [namespace, json.dumps(keys)]
    rows = connection.execute(sql, values)
    return {
        key: (item, updated, now is not None and expires is not None and expires <= now)
        for key, item, updated, expires in rows.fetchall()
    }


def _write(
    transaction: Transaction,
    put: Put,
    now: int,
    *,
    found: tuple[int, int, bool] | None,
    place: tuple[int, str],
    rows: _NewRows,
) -> None:
    change = transaction.next_change()
    namespace, scope = place
    expires = None if put.ttl is None else now + max(1, round(put.ttl * MINUTE))
    check = checksum(put.key, (put.value or "").encode())
    if found is None:
        item = change
        rows.items.append(
            (
                *(item, namespace, put.key, put.value, put.fields, now, now),
                *(change, change, put.ttl, expires, check),
            )
        )
    else:
        item = found[0]
        transaction.connection.execute(
            "UPDATE items SET value = ?, fields = ?, updated_at = ?, seq = ?, change = ?, "
            "ttl_minutes = ?, expires_at = ?, checksum = ? WHERE id = ?",
            (
                *(put.value, put.fields, max(now, found[1]), change, change),
                *(put.ttl, expires, check, item),
            ),
        )
    if found is None or _clear_units(transaction.connection, item, scope, put.units):
        _add_units(rows, item, scope, put.units)


def _ensure_namespace(connection: sqlite3.Connection, path: str) -> tuple[int, str]:
    """Return the row and the scope words of a namespace, made with its ancestors if needed."""
    sql = "SELECT id, scope FROM namespaces WHERE path = ?"
    row = connection.execute(sql, (path,)).fetchone()
    if row is not None:
        return int(row[0]), str(row[1])
    scope, identity = "", 0
    for place in ancestors(path):
        row = connection.execute(sql, (place,)).fetchone()
        if row is None:
            cursor = connection.execute(
                "INSERT INTO namespaces(path, scope) VALUES (?, '')", (place,)
            )
            identity = int(cursor.lastrowid or 0)
            scope = f"{scope} _{identity}".strip()
            connection.execute("UPDATE namespaces SET scope = ? WHERE id = ?", (scope, identity))
        else:
            identity, scope = int(row[0]), str(row[1])
    return identity, scope


@sound_values()
def replace_all_units(
    connection: sqlite3.Connection, items: Iterable[tuple[int, str, list[Unit]]]
) -> None:
    """Make the vectors and words of a file those of the given items, with their scope words."""
    connection.execute("INSERT INTO words(words) VALUES ('delete-all')")
    connection.execute("DELETE FROM units")
    rows = _NewRows()
    for item, scope, units in items:
        _add_units(rows, item, scope, units)
    rows.write(connection)


def _add_units(rows: _NewRows, item: int, scope: str, units: Sequence[Unit]) -> None:
    """Note an item's texts down for insertion."""
    for number, unit in enumerate(units, item << UNIT_BITS):
        rows.units.append((number, unit.digest, unit.vector, unit.terms))
        rows.words.append((number, entry(scope, unit.terms)))


def _clear_units(
    connection: sqlite3.Connection, item: int, scope: str, units: Sequence[Unit]
) -> bool:
    """Remove an item's texts unless they are the given ones; tells whether they were removed."""
    first = item << UNIT_BITS
    stored = connection.execute(
        "SELECT digest FROM units WHERE id >= ? AND id < ? ORDER BY id", (first, first + MAX_UNITS)
    ).fetchall()
    if [digest for (digest,) in stored] == [unit.digest for unit in units]:
        return False
    _remove_units(connection, item, scope)
    return True


def _remove_units(connection: sqlite3.Connection, item: int, scope: str) -> None:
    first = item << UNIT_BITS
    span = (first, first + MAX_UNITS)
    rows = connection.execute("SELECT id, terms FROM units WHERE id >= ? AND id < ?", span)
    connection.executemany(  # a contentless word table must be told what it forgets
        "INSERT INTO words(words, rowid, terms) VALUES ('delete', ?, ?)",
        [(unit, entry(scope, terms)) for unit, terms in rows.fetchall()],
    )
    connection.execute("DELETE FROM units WHERE id >= ? AND id < ?", span)


def remove_items(transaction: Transaction, items: Iterable[int]) -> int:
    """Remove items with all that belongs to them; returns how many there were."""
    connection, count = transaction.connection, 0
    for item in items:
        scope = connection.execute(
            "SELECT n.scope FROM items i JOIN namespaces n ON n.id = i.namespace_id WHERE i.id = ?",
            (item,),
        ).fetchone()
        if scope is not None:
            _remove_units(connection, item, scope[0])
            connection.execute("DELETE FROM items WHERE id = ?", (item,))
            connection.execute(
                "INSERT INTO removed VALUES (?, ?)", (transaction.next_change(), item)
            )
            count += 1
    return count


@sound_values()
def remove_expired(transaction: Transaction, now: int) -> int:
    """Remove what has expired; returns how many items that were."""
    rows = transaction.connection.execute("SELECT id FROM items WHERE expires_at <= ?", (now,))
    return remove_items(transaction, [item for (item,) in rows.fetchall()])


@sound_values()
def remove_namespace(transaction: Transaction, path: str) -> int:
    """Remove a namespace with everything below it; returns how many items that were."""
    connection = transaction.connection
    rows = connection.execute(
        "SELECT i.id FROM namespaces n JOIN items i ON i.namespace_id = n.id "
        "WHERE n.path >= ? AND n.path < ?",
        bounds(path),
    )
    count = remove_items(transaction, [item for (item,) in rows.fetchall()])
    connection.execute("DELETE FROM namespaces WHERE path >= ? AND path < ?", bounds(path))
    return count


@sound_values()
def refresh(transaction: Transaction, items: Sequence[int], now: int) -> None:
    """Start the time to live of items anew; times of update stay as they are."""
    for item in items:
        transaction.connection.execute(
            "UPDATE items SET expires_at = ? + CAST(ttl_minutes * ? AS INTEGER), change = ? "
            "WHERE id = ? AND ttl_minutes IS NOT NULL AND expires_at > ?",
            (now, MINUTE, transaction.next_change(), item, now),
        )


@sound_values()
def check_versions(connection: sqlite3.Connection, expected: Expected, now: int) -> None:
    """Refuse to go on if an item is not at its expected version.

    Raises:
        ConflictError: Naming every item that differs.
    """
    conflicts: dict[tuple[tuple[str, ...], str], tuple[int | None, int | None]] = {}
    for (namespace, key), version in expected.items():
        row = connection.execute(
            f"SELECT CAST(i.value AS BLOB), i.checksum {_BY_KEY} "
            "AND (i.expires_at IS NULL OR i.expires_at > ?)",
            (encode(namespace), key, now),
        ).fetchone()
        value = None if row is None else load(row[0], encode(namespace), key, row[1])
        found = None if value is None else version_of(value)
        if found != version:
            conflicts[tuple(namespace), key] = (version, found)
    if conflicts:
        raise ConflictError(conflicts)


def reuse_units(connection: sqlite3.Connection, puts: Iterable[Put]) -> None:
    """Give the texts of puts the vectors and terms that their items already have for them."""
    for path, group in _by_path(puts).items():
        row = connection.execute("SELECT id FROM namespaces WHERE path = ?", (path,)).fetchone()
        known = {} if row is None else _find(connection, row[0], [put.key for put in group], None)
        for put in group:
            if put.key in known:
                item = known[put.key][0]
                rows = connection.execute(
                    "SELECT digest, vector, terms FROM units WHERE id >= ? AND id < ?",
                    (item << UNIT_BITS, (item + 1) << UNIT_BITS),
                )
                stored = {digest: (vector, terms) for digest, vector, terms in rows}
                for unit in put.units:
                    if unit.digest in stored:
                        unit.vector, unit.terms = stored[unit.digest]


@sound_values()
def read_all_units(
    connection: sqlite3.Connection, settings: IndexSettings | None
) -> list[tuple[int, str, list[Unit]]]:
    """Return items with their scope words and the texts their values have under an index.

    Items whose value cannot be read are left out, and counted in a warning.
    """
    rows = connection.execute(
        "SELECT i.id, n.scope, CAST(i.value AS BLOB), i.fields, n.path, i.key, i.checksum "
        "FROM items i "
        "JOIN namespaces n ON n.id = i.namespace_id"
    )
    found: list[tuple[int, str, list[Unit]]] = []
    unread = 0
    for item, scope, text, fields, path, key, expected in rows:
        value = load(text, path, key, expected)
        if value is None:
            unread += 1
            continue
        index = None if fields is None else json.loads(fields)
        found.append((item, scope, extract(value, index, settings)))
    if unread:
        logger.warning("%d items whose value cannot be read were not indexed.", unread)
    return found
