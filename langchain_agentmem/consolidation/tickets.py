"""`Ticket`: what a submitter holds of its messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.consolidation.records import Record
from langchain_agentmem.errors import MemoryNotFoundError
from langchain_agentmem.rendering import counted
from langchain_agentmem.scopes import reserved
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Get, Steps

if TYPE_CHECKING:
    from langchain_agentmem.steps.environment import Environment

_POLL_SECONDS: Final = 0.05
WAIT_SECONDS: Final = 600.0
"""The longest that a result is waited for unless another time is given."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a submitter holds: where its messages are, and in the end what became of them.

    Attributes:
        scope: Namespace of the memory.
        id: Id of the record, good for `queue.ticket(id)` after a restart.
    """

    scope: tuple[str, ...]
    id: str
    _env: Environment

    def record(self) -> Record:
        """Return the record as it is now.

        Raises:
            MemoryNotFoundError: It was erased, or done long ago.
        """
        return self._read(run(self._get(), self._env))

    def _get(self) -> Steps[list[Any]]:
        return (yield from Get([(reserved("queue", self.scope), self.id)]))

    def _read(self, found: Sequence[Any]) -> Record:
        if found[0] is None:
            msg = f"Record {self.id!r} is gone: it was erased, or done more than a day ago."
            raise MemoryNotFoundError(msg)
        return Record.read(found[0])

    def status(self) -> str:
        """Return `pending`, `running`, `done`, `failed` or `cancelled`."""
        return self.record().state

    def result(self, timeout: float | None = WAIT_SECONDS) -> Mapping[str, Any]:
        """Wait until the record is done, and return its report in numbers.

        Args:
            timeout: The longest to wait, in seconds, by default ten minutes; None waits for ever.

        Raises:
            TimeoutError: It was not done in time; it stays in the queue.
            RuntimeError: It failed for good, or was cancelled.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while (report := _finished(record := self.record())) is None:
            if until is not None and time.monotonic() >= until:
                raise _too_late(record, timeout)
            time.sleep(_POLL_SECONDS)
        return report

    def __await__(self) -> Generator[Any, None, Mapping[str, Any]]:
        """Wait until the record is done, at most ten minutes, as `result` does."""
        return self._wait().__await__()

    async def _wait(self) -> Mapping[str, Any]:
        until = time.monotonic() + WAIT_SECONDS
        while True:
            record = self._read(await arun(self._get(), self._env))
            report = _finished(record)
            if report is not None:
                return report
            if time.monotonic() >= until:
                raise _too_late(record, WAIT_SECONDS)
            await asyncio.sleep(_POLL_SECONDS)  # the worker may be another process


def _too_late(record: Record, timeout: float | None) -> TimeoutError:
    """Return the error of a wait that took too long, with what is known of the record."""
    tries = counted(record.attempts, "attempt")
    tried = f" after {tries} ({record.error})" if record.error else ""
    return TimeoutError(
        f"Record {record.id!r} was not done within {timeout} s; it stays {record.state}{tried}. "
        "Is a worker running? LocalConsolidator(queue, graph).start() or run_due() works it off."
    )


def _finished(record: Record) -> Mapping[str, Any] | None:
    if record.state == "cancelled":
        msg = f"Record {record.id!r} was cancelled; its messages were not consolidated."
        raise RuntimeError(msg)
    if record.state == "failed":
        msg = f"Record {record.id!r} failed: {record.error}. queue.retry(id) tries it again."
        raise RuntimeError(msg)
    return dict(record.report or {}) if record.state == "done" else None
