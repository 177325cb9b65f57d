"""What turns a file of an older version of this package into one of the present version."""

import sqlite3
from collections.abc import Callable, Mapping
from typing import Final

from langchain_agentmem.stores._values import checksum


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Take a file over, in an open transaction that is committed or wholly undone.

    Args:
        connection: The writing connection.
        version: The schema version the file is to have.
    """
    try:
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        for number in range(found, version):  # nothing, if another process was quicker
            MIGRATIONS[number](connection)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _add_checksums(connection: sqlite3.Connection) -> None:
    """Version 2 notes a checksum of each key and value, so that a flipped bit is seen."""
    connection.create_function("checksum", 2, checksum, deterministic=True)
    connection.execute("ALTER TABLE items ADD COLUMN checksum INTEGER")
    connection.execute("UPDATE items SET checksum = checksum(key, CAST(value AS BLOB))")


def _add_places(connection: sqlite3.Connection) -> None:
    """Version 3 notes where a removed item lay, so that only those look for it who can hold it."""
    connection.execute("ALTER TABLE removed ADD COLUMN places BLOB")


MIGRATIONS: Final[Mapping[int, Callable[[sqlite3.Connection], None]]] = {
    1: _add_checksums,
    2: _add_places,
}
"""The step from each version to the next one."""
