"""A consistent copy of an open store file."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_agentmem.errors import StorageError
from langchain_agentmem.stores._schema import check_path

if TYPE_CHECKING:
    from langchain_agentmem.stores._schema import Database


def backup(database: Database, target: str | Path) -> int:
    """Write a copy of a database as one snapshot of it; returns its size in bytes.

    Writers go on meanwhile. The copy is made under another name, forced to the disk, and only then
    given its own: an interrupted backup never looks like a whole one.

    Args:
        database: The open database.
        target: A new file.

    Raises:
        ConfigurationError: The target is no path.
        StorageError: It exists, or it cannot be written.
    """
    path = Path(check_path(target))
    partial = path.with_name(f"{path.name}.partial")
    if path.exists():
        msg = f"{path} exists already; name a new file, or remove it first."
        raise StorageError(msg)
    if not path.parent.is_dir():
        msg = f"The backup {path} cannot be written: make the directory {path.parent} first."
        raise StorageError(msg)
    try:
        partial.unlink(missing_ok=True)
        with database.apart() as connection:
            connection.execute("VACUUM INTO ?", (str(partial),))
        _clean(partial)
        _force(partial)
        partial.rename(path)
        _force(path.parent)
    except (OSError, StorageError, sqlite3.Error) as err:
        partial.unlink(missing_ok=True)
        msg = f"The backup {path} cannot be written ({err}); check its directory and free space."
        raise StorageError(msg) from err
    return path.stat().st_size


def _clean(path: Path) -> None:
    """Rewrite a copy without the words of erased texts, which its table keeps until then."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("INSERT INTO words(words) VALUES ('optimize')")
        connection.execute("VACUUM")


def _force(path: Path) -> None:
    """Force a file, or a directory's list of names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
