"""The upkeep of a store file: erasing, sweeping, rebuilding, backups and statistics."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from langchain_agentmem.stores._lifecycle import Closing
from langchain_agentmem.stores._namespaces import (
    check_deletable,
    decode,
    encode,
    scope_condition,
)
from langchain_agentmem.stores._ops import is_minutes
from langchain_agentmem.stores._statistics import StoreStatistics, statistics

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    from langgraph.store.base import TTLConfig

    from langchain_agentmem.stores._engine import Engine
    from langchain_agentmem.stores._schema import Database
    from langchain_agentmem.stores._sweeper import Sweeper

_DEFAULT_SWEEP_MINUTES = 5.0


class Upkeep(Closing):
    """What keeps a store's file small, sound and saved; a part of `FaissSqliteStore`."""

    ttl_config: TTLConfig | None
    _database: Database
    _sweeper: Sweeper

    @abstractmethod
    def _open(self, *, check_index: bool = True) -> Engine:
        """Return the open file."""

    @abstractmethod
    def _now(self) -> int:
        """Return the time in microseconds since 1970."""

    def close(self) -> None:
        """Stop the sweeper and close the file; harmless twice."""
        self._sweeper.stop(timeout=5)
        self._database.close()

    def all_keys(
        self, prefix: tuple[str, ...], *, exact: bool = False
    ) -> list[tuple[tuple[str, ...], str]]:
        """Return where items lie at and below a namespace, whatever their values.

        Those that have expired or that something has damaged are named too, so that they can be
        deleted, although no read returns them.

        Args:
            prefix: The namespace.
            exact: Only this very namespace, not those below it.
        """
        condition, bound = scope_condition(encode(prefix), exact=exact)
        sql = (
            "SELECT n.path, CAST(i.key AS BLOB) FROM items i "  # noqa: S608 - our own condition
            f"JOIN namespaces n ON n.id = i.namespace_id WHERE {condition} ORDER BY i.id"
        )
        self._open()
        with self._database.reader() as connection:
            rows = connection.execute(sql, bound).fetchall()
        return [(decode(path), key.decode(errors="replace")) for path, key in rows]

    def delete_namespace(self, prefix: tuple[str, ...], *, vacuum: bool = False) -> int:
        """Erase a namespace with everything below it: items, vectors, words and expiry.

        Args:
            prefix: The namespace; the empty one is refused.
            vacuum: Whether to rewrite the file afterwards, so that no text remains in free pages.

        Returns:
            How many items there were.

        Raises:
            InvalidNamespaceError: If the prefix is empty or has a label that is not acceptable.
        """
        check_deletable(prefix)
        path = encode(prefix)
        from langchain_agentmem.stores import _writes

        count = self._open().committer.run(
            lambda transaction: _writes.remove_namespace(transaction, path)
        )
        if vacuum:
            self.vacuum()
        return count

    async def adelete_namespace(self, prefix: tuple[str, ...], *, vacuum: bool = False) -> int:
        """Do what `delete_namespace` does without blocking the loop."""
        return await asyncio.to_thread(self.delete_namespace, prefix, vacuum=vacuum)

    def reindex(self) -> int:
        """Rebuild vectors and words of all items from their values, in one transaction.

        This is also how a file is taken over by another model: open it with the new `index` and
        call this first. Other writers wait until it is done; a failure changes nothing.

        Returns:
            How many items there are.
        """
        return self._open(check_index=False).reindex()

    async def areindex(self) -> int:
        """Do what `reindex` does without blocking the loop."""
        return await asyncio.to_thread(self.reindex)

    def vacuum(self) -> None:
        """Rewrite the file compactly, so that nothing erased remains readable in it or its log.

        Raises:
            StorageError: If readers kept the log in use for longer than `busy_timeout_s`.
        """
        self._open()
        self._database.vacuum()

    async def avacuum(self) -> None:
        """Do what `vacuum` does without blocking the loop."""
        await asyncio.to_thread(self.vacuum)

    def checkpoint(self) -> bool:
        """Move the log into the file and empty it, without waiting; returns whether it could."""
        self._open()
        return self._database.checkpoint()

    async def acheckpoint(self) -> bool:
        """Do what `checkpoint` does without blocking the loop."""
        return await asyncio.to_thread(self.checkpoint)

    def backup(self, path: str | Path) -> int:
        """Write a copy of the file as it is at this moment, while others read and write on.

        The copy is compact, holds nothing that was erased before, and is a store file itself: to
        restore it, open it, or put it in the place of the other while no process has that open.
        What is erased later stays in it.

        Args:
            path: A new file. It appears under this name only once it is whole and on the disk.

        Returns:
            Its size in bytes.

        Raises:
            StorageError: If the file exists, or cannot be written.
        """
        from langchain_agentmem.stores._backup import backup

        self._open()
        return backup(self._database, path)

    async def abackup(self, path: str | Path) -> int:
        """Do what `backup` does without blocking the loop."""
        return await asyncio.to_thread(self.backup, path)

    def statistics(self) -> StoreStatistics:
        """Count what the file holds and how big it and its index in memory are."""
        engine = self._open()
        with self._database.reader() as connection:
            return statistics(connection, self._database, engine.index, self._now())

    async def astatistics(self) -> StoreStatistics:
        """Do what `statistics` does without blocking the loop."""
        return await asyncio.to_thread(self.statistics)

    def check(self) -> list[str]:
        """Compare file, vectors and words with the stored values, which are the truth.

        It reads everything, so it takes as long as indexing without the embedder.

        Returns:
            What is wrong, a sentence each, without any stored text; empty if all is sound.

        Raises:
            StorageError: If the file is so damaged that it cannot be read.
        """
        from langchain_agentmem.stores._checks import check

        self._open(check_index=False)
        with self._database.apart() as connection:
            return check(connection)

    async def acheck(self) -> list[str]:
        """Do what `check` does without blocking the loop."""
        return await asyncio.to_thread(self.check)

    def sweep_ttl(self) -> int:
        """Remove expired items with their vectors and words; returns how many there were."""
        from langchain_agentmem.stores import _writes

        now = self._now()
        return self._open().committer.run(
            lambda transaction: _writes.remove_expired(transaction, now)
        )

    async def asweep_ttl(self) -> int:
        """Do what `sweep_ttl` does without blocking the loop."""
        return await asyncio.to_thread(self.sweep_ttl)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Start a daemon thread that removes expired items at an interval.

        Args:
            sweep_interval_minutes: Minutes between sweeps; the `ttl` config's, else 5.

        Returns:
            A future that is done when the thread has ended; cancelling it stops the thread.

        Raises:
            ValueError: If the interval is not positive.
        """
        if sweep_interval_minutes is not None and not is_minutes(sweep_interval_minutes):
            msg = f"sweep_interval_minutes must be positive, not {sweep_interval_minutes!r}."
            raise ValueError(msg)
        config: Any = self.ttl_config or {}
        configured = config.get("sweep_interval_minutes")
        minutes = sweep_interval_minutes or configured or _DEFAULT_SWEEP_MINUTES
        return self._sweeper.start(60 * minutes)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper thread; returns whether it has ended within `timeout` seconds."""
        return self._sweeper.stop(timeout)
