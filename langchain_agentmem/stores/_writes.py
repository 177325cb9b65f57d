"""Writing items, their vectors and words: the functions that run inside a transaction."""

import json
import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.stores._groups import Transaction
from langchain_agentmem.stores._indexing import MAX_UNITS, IndexSettings, Put, Unit, extract
from langchain_agentmem.stores._namespaces import ancestors, bounds, encode, marks
from langchain_agentmem.stores._schema import UNIT_BITS, sound_values
from langchain_agentmem.stores._values import checksum, dump, load, version_of
from langchain_agentmem.stores._words import entry

logger = logging.getLogger(__name__)

MINUTE: Final = 60_000_000
_BY_KEY: Final = (
    "FROM items i JOIN namespaces n ON n.id = i.namespace_id WHERE n.path = ? AND i.key = ?"
)
_BY_ONE_KEY: Final = f"SELECT n.path, i.key, i.id, i.updated_at, i.expires_at {_BY_KEY}"
_BY_KEYS: Final = (
    "SELECT n.path, i.key, i.id, i.updated_at, i.expires_at FROM json_each(?) AS place "
    "CROSS JOIN namespaces n ON n.path = json_extract(place.value, '$[0]') "
    "CROSS JOIN json_each(place.value, '$[1]') AS name "
    "CROSS JOIN items i ON i.namespace_id = n.id AND i.key = name.value"
)
_BY_PATHS: Final = (
    "SELECT path, id, scope FROM namespaces WHERE path IN (SELECT value FROM json_each(?))"
)

Expected = Mapping[tuple[tuple[str, ...], str], int | None]


@dataclass(frozen=True, slots=True)
class Known:
    """What a file had under some keys.

    Attributes:
        change: How far its sequence of changes had come.
        items: Id, last update and expiry of the items there are, by path and key.
    """

    change: int
    items: Mapping[tuple[str, str], tuple[int, int, int | None]]


@sound_values()
def apply_puts(
    transaction: Transaction,
    puts: Sequence[Put],
    now: int,
    *,
    omit_expired: bool,
    known: Known | None = None,
) -> None:
    """Write puts and deletes in order.

    Args:
        transaction: The open transaction.
        puts: What to write.
        now: The time of the write, in microseconds.
        omit_expired: Whether an expired item counts as absent.
        known: What was under the puts' keys, which holds unless the file has changed since.
    """
    rows, places = _NewRows(), _ensure_namespaces(transaction.connection, puts)
    if known is None or known.change != transaction.change:
        known = find(transaction.connection, puts)
    for put in puts:  # the later of two is the newer one
        found = known.items.get((put.path, put.key))
        if found is not None:
            expired = omit_expired and found[2] is not None and found[2] <= now
            if put.value is None or expired:
                remove_items(transaction, [found[0]])
                found = None
        if put.value is not None:
            _write(transaction, put, now, found=found, place=places[put.path], rows=rows)
    rows.write(transaction.connection)


def find(connection: sqlite3.Connection, puts: Sequence[Put]) -> Known:
    """Return what the file has under the keys of puts."""
    (change,) = connection.execute("SELECT value FROM meta WHERE key = 'change'").fetchone()
    if len(puts) == 1:
        rows = connection.execute(_BY_ONE_KEY, (puts[0].path, puts[0].key))
    else:
        grouped: dict[str, list[str]] = {}
        for put in puts:
            grouped.setdefault(put.path, []).append(put.key)
        rows = connection.execute(_BY_KEYS, (dump(list(grouped.items())),))
    return Known(
        change,
        {(path, key): (item, updated, expires) for path, key, item, updated, expires in rows},
    )


class _NewRows:
    """Rows of one batch to be inserted together, which is about twice as fast as one by one."""

    def __init__(self) -> None:
        self.items: list[tuple[object, ...]] = []
        self.units: list[tuple[int, bytes, bytes | None, str]] = []
        self.words: list[tuple[int, str]] = []

    def write(self, connection: sqlite3.Connection) -> None:
        """Insert the rows, each table's in one statement."""
        connection.executemany(
            "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self.items
        )
        connection.executemany("INSERT INTO units VALUES (?, ?, ?, ?)", self.units)
        connection.executemany("INSERT INTO words(rowid, terms) VALUES (?, ?)", self.words)


def _write(
    transaction: Transaction,
    put: Put,
    now: int,
    *,
    found: tuple[int, int, int | None] | None,
    place: tuple[int, str],
    rows: _NewRows,
) -> None:
    change = transaction.next_change()
    namespace, scope = place
    expires = None if put.ttl is None else now + max(1, round(put.ttl * MINUTE))
    key, value, fields = put.key, put.value or "", put.fields
    check = checksum(key, value.encode())
    if found is None:
        item = change
        row = item, namespace, key, value, fields, now, now, change, change, put.ttl, expires, check
        rows.items.append(row)
    else:
        item = found[0]
        transaction.connection.execute(
            "UPDATE items SET value = ?, fields = ?, updated_at = ?, seq = ?, change = ?, "
            "ttl_minutes = ?, expires_at = ?, checksum = ? WHERE id = ?",
            (
                *(value, fields, max(now, found[1]), change, change),
                *(put.ttl, expires, check, item),
            ),
        )
    if found is None or _clear_units(transaction.connection, item, scope, put.units):
        _add_units(rows, item, scope, put.units)


def _ensure_namespaces(
    connection: sqlite3.Connection, puts: Iterable[Put]
) -> dict[str, tuple[int, str]]:
    """Return the rows and the scope words of the namespaces of puts, made where they are not."""
    paths = dict.fromkeys(put.path for put in puts)
    rows = connection.execute(_BY_PATHS, (dump(list(paths)),)).fetchall()
    places = {path: (identity, scope) for path, identity, scope in rows}
    for path in paths:
        if path not in places:
            places[path] = _make_namespace(connection, path)
    return places


def _make_namespace(connection: sqlite3.Connection, path: str) -> tuple[int, str]:
    """Make a namespace with its ancestors, as far as they are not there."""
    sql = "SELECT id, scope FROM namespaces WHERE path = ?"
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
        place = connection.execute(
            "SELECT n.scope, n.path FROM items i JOIN namespaces n ON n.id = i.namespace_id "
            "WHERE i.id = ?",
            (item,),
        ).fetchone()
        if place is not None:
            scope, path = place
            _remove_units(connection, item, scope)
            connection.execute("DELETE FROM items WHERE id = ?", (item,))
            connection.execute(
                "INSERT INTO removed VALUES (?, ?, ?)",
                (transaction.next_change(), item, marks(path)),
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


def reuse_units(connection: sqlite3.Connection, puts: Sequence[Put]) -> Known:
    """Give the texts of puts the vectors and terms that their items already have for them.

    Returns:
        What the file has under the keys of the puts.
    """
    known = find(connection, puts)
    for put in puts if known.items else ():
        found = known.items.get((put.path, put.key))
        if found is None or not put.units:
            continue
        rows = connection.execute(
            "SELECT digest, vector, terms FROM units WHERE id >= ? AND id < ?",
            (found[0] << UNIT_BITS, (found[0] + 1) << UNIT_BITS),
        )
        stored = {digest: (vector, terms) for digest, vector, terms in rows}
        for unit in put.units:
            if unit.digest in stored:
                unit.vector, unit.terms = stored[unit.digest]
    return known


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
