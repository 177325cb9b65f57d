"""Group commit: callers that write at the same time share one transaction and one sync.

There is no background thread. Whoever gets the write lock commits everything that is waiting;
the others find their work done when the lock is theirs. Each piece of work keeps its own fate: if
it fails, only its own changes are undone and only its own caller sees the error.
"""

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from langchain_agentmem.errors import StorageError
from langchain_agentmem.stores._schema import UNIT_BITS, Database, contradiction

ResultT = TypeVar("ResultT")

RETENTION = 100_000
"""How many changes the log of removed items reaches back; older readers reload."""

_LAST_CHANGE: Final = 1 << (62 - UNIT_BITS)  # an item's number leaves room for those of its texts


class Transaction:
    """What a piece of work writes with.

    Attributes:
        connection: The writing connection, inside a transaction.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        row = connection.execute("SELECT value FROM meta WHERE key = 'change'").fetchone()
        if row is None or type(row[0]) is not int or not 0 <= row[0] < _LAST_CHANGE:
            raise contradiction()
        self._before = self._change = row[0]

    @property
    def change(self) -> int:
        """How far the file's one sequence of changes has come."""
        return self._change

    def next_change(self) -> int:
        """Return the next number of the file's one sequence of changes."""
        self._change += 1
        return self._change

    def finish(self) -> None:
        """Write down how far the sequence has come, and forget removals nobody needs."""
        if self._change == self._before:
            return
        self.connection.execute("UPDATE meta SET value = ? WHERE key = 'change'", (self._change,))
        if self._change // RETENTION > self._before // RETENTION:
            horizon = self._change - RETENTION
            self.connection.execute("DELETE FROM removed WHERE change <= ?", (horizon,))
            self.connection.execute("UPDATE meta SET value = ? WHERE key = 'pruned'", (horizon,))


class _Entry:
    """One caller's work on its way to a commit."""

    __slots__ = ("done", "error", "result", "work")

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        self.work = work
        self.done = False
        self.result: Any = None
        self.error: Exception | None = None

    def fail(self, error: Exception) -> None:
        """End the work with an error, which its caller will raise."""
        self.error = error
        self.done = True


class GroupCommitter:
    """Runs pieces of work in shared transactions, in the order in which they came.

    Args:
        database: The database that is written to.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[_Entry] = deque()
        self._guard = threading.Lock()

    def run(self, work: Callable[[Transaction], ResultT]) -> ResultT:
        """Do a piece of work in a transaction and return its result once it is on disk.

        Args:
            work: Called with the open transaction, by this or another caller's thread, possibly
                more than once; what it changed is undone if it raises.

        Returns:
            What `work` returned.

        Raises:
            StorageError: If the transaction cannot be begun or committed.
        """
        entry = _Entry(work)
        with self._guard:
            self._waiting.append(entry)
        with self._database.write_lock:
            if not entry.done:
                self._commit_waiting(entry)
        if entry.error is not None:
            raise entry.error
        result: ResultT = entry.result
        return result

    def _commit_waiting(self, own: _Entry) -> None:
        with self._guard:
            entries = list(self._waiting)
            self._waiting.clear()
        try:
            while entries:
                entries = self._attempt(entries)
        except BaseException:
            with self._guard:  # an interrupt hits this thread only; the others' work stays queued
                left = [e for e in entries if not e.done and e is not own]
                self._waiting.extendleft(reversed(left))
            raise

    def _attempt(self, entries: list[_Entry]) -> list[_Entry]:
        """Commit entries together; return those that must be tried again."""
        try:
            connection = self._database.writer
            self._database.check_in_place()
            with self._database.errors():
                self._database.patiently(connection, "BEGIN IMMEDIATE")
        except StorageError as err:
            for entry in entries:
                entry.fail(err)
            return []
        try:
            with self._database.errors():
                return self._apply(connection, entries)
        except StorageError as err:
            for entry in entries:
                if not entry.done:
                    entry.fail(err)
            return []
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _apply(self, connection: sqlite3.Connection, entries: list[_Entry]) -> list[_Entry]:
        transaction = Transaction(connection)
        succeeded: list[_Entry] = []
        shared = len(entries) > 1  # what is alone is undone as a whole, and SQLite keeps no copies
        for entry in entries:
            if shared:
                connection.execute("SAVEPOINT work")
            try:
                with self._database.errors():
                    entry.result = entry.work(transaction)
                if shared:
                    connection.execute("RELEASE work")
                succeeded.append(entry)
            except Exception as err:  # noqa: BLE001 - handed to the caller whose work it is
                entry.fail(err)
                if not shared or not connection.in_transaction:  # or SQLite gave it all up
                    return [other for other in entries if not other.done]
                connection.execute("ROLLBACK TO work")
                connection.execute("RELEASE work")
        transaction.finish()
        connection.execute("COMMIT")
        for entry in succeeded:
            entry.done = True
        return []
