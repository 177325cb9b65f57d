"""Looking into a queue and mending it: what waits, what failed, retry, cancel, flush."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from langchain_agentmem.consolidation import _storage as storage
from langchain_agentmem.consolidation.records import Record
from langchain_agentmem.consolidation.tickets import Ticket
from langchain_agentmem.errors import ConflictError, MemoryNotFoundError
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Now, Steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from langgraph.store.base import BaseStore

    from langchain_agentmem.steps.environment import Clock, Environment

T = TypeVar("T")

_COUNTED: Final = ("pending", "running", "failed")
_CANCELLABLE: Final = ("pending", "failed")


class QueueViews(ABC):
    """The part of `MemoryQueue` for people: each call has an async twin."""

    clock: Clock
    on_submit: list[Callable[[BaseStore], None]]
    dispatchers: list[Callable[[Record], Steps[None]]]

    @abstractmethod
    def environment(self, config: None = None) -> Environment:
        """Return what the queue's steps run with."""

    def _look(self, steps: Steps[T]) -> T:
        return run(steps, self.environment())

    async def _alook(self, steps: Steps[T]) -> T:
        return await arun(steps, self.environment())

    def pending(self) -> list[Record]:
        """Return what waits, the soonest due first."""
        return self._look(self._in_state("pending"))

    async def apending(self) -> list[Record]:
        """Return what waits; the async twin of `pending`."""
        return await self._alook(self._in_state("pending"))

    def failed(self) -> list[Record]:
        """Return what was given up, each with its error: the dead letters."""
        return self._look(self._in_state("failed"))

    async def afailed(self) -> list[Record]:
        """Return what was given up; the async twin of `failed`."""
        return await self._alook(self._in_state("failed"))

    def records(self) -> list[Record]:
        """Return every record there is, what was done within the last day too, the oldest first."""
        return self._look(self._in_state())

    async def arecords(self) -> list[Record]:
        """Return every record there is; the async twin of `records`."""
        return await self._alook(self._in_state())

    def _in_state(self, state: str | None = None) -> Steps[list[Record]]:
        found = yield from storage.all_records()
        kept = [each for each in found if state in (None, each.state)]
        return sorted(kept, key=lambda each: (each.due_at, each.number, each.id))

    def stats(self) -> dict[str, float]:
        """Return how many records are `pending`, `running` and `failed`, and the `oldest_age`.

        The age is that of the oldest waiting one, in seconds.
        """
        return self._look(self._counted())

    async def astats(self) -> dict[str, float]:
        """Return how many records there are; the async twin of `stats`."""
        return await self._alook(self._counted())

    def _counted(self) -> Steps[dict[str, float]]:
        now = yield from Now()
        found = yield from storage.all_records()
        counts = {name: sum(each.state == name for each in found) for name in _COUNTED}
        ages = [now - each.first_submitted_at for each in found if each.state == "pending"]
        return {**counts, "oldest_age": max(ages, default=timedelta()).total_seconds()}

    def ticket(self, record_id: str) -> Ticket:
        """Return the ticket of a record, also after a restart.

        Raises:
            MemoryNotFoundError: There is no such record, or it was done long ago.
        """
        record = self._look(self.find_steps(record_id))
        return Ticket(record.scope, record.id, self.environment())

    async def aticket(self, record_id: str) -> Ticket:
        """Return the ticket of a record; the async twin of `ticket`."""
        record = await self._alook(self.find_steps(record_id))
        return Ticket(record.scope, record.id, self.environment())

    def retry(self, record_id: str) -> None:
        """Let a failed record be tried again at once, with all its attempts.

        Raises:
            MemoryNotFoundError: There is no such record.
        """
        self._look(self.retry_steps(record_id))
        self._wake()

    async def aretry(self, record_id: str) -> None:
        """Let a failed record be tried again; the async twin of `retry`."""
        await self._alook(self.retry_steps(record_id))
        self._wake()

    def _wake(self) -> None:
        store = self.environment().the_store()
        for wake in self.on_submit:
            wake(store)

    def retry_steps(self, record_id: str) -> Steps[None]:
        """Let a record be tried again at once."""
        record = yield from self.find_steps(record_id)
        now = yield from Now()
        again = record.changed(state="pending", attempts=0, due_at=now, finished_at=None)
        yield from storage.write(again, record.version)
        for dispatch in self.dispatchers:
            yield from dispatch(again)

    def cancel(self, record_id: str) -> bool:
        """Take back what waits or was given up: its messages are dropped and never consolidated.

        Returns:
            False if it is being worked on, was done, or was cancelled before.

        Raises:
            MemoryNotFoundError: There is no such record.
        """
        return self._look(self.cancel_steps(record_id))

    async def acancel(self, record_id: str) -> bool:
        """Take back what waits or was given up; the async twin of `cancel`."""
        return await self._alook(self.cancel_steps(record_id))

    def cancel_steps(self, record_id: str) -> Steps[bool]:
        """Take back what waits or was given up."""
        record = yield from self.find_steps(record_id)
        if record.state not in _CANCELLABLE:
            return False
        now = yield from Now()
        dropped = record.changed(state="cancelled", messages=(), config={}, finished_at=now)
        try:
            yield from storage.write(dropped, record.version)
        except ConflictError:
            return False
        return True

    def flush(self, scope: tuple[str, ...] | None = None) -> int:
        """Make everything that waits due now, and return how many records that were."""
        return self._look(self.flush_steps(scope))

    async def aflush(self, scope: tuple[str, ...] | None = None) -> int:
        """Make everything that waits due now; the async twin of `flush`."""
        return await self._alook(self.flush_steps(scope))

    def flush_steps(self, scope: tuple[str, ...] | None = None) -> Steps[int]:
        """Make everything that waits due now; what others change meanwhile is left to them."""
        now = yield from Now()
        waiting = [r for r in (yield from storage.all_records(scope)) if r.state == "pending"]
        flushed = 0
        for record in waiting:
            try:
                yield from storage.write(record.changed(due_at=now), record.version)
            except ConflictError:
                continue
            flushed += 1
        return flushed

    def find_steps(self, record_id: str) -> Steps[Record]:
        """Return a record by its id.

        Raises:
            MemoryNotFoundError: There is no such record, or it was done long ago.
        """
        for record in (yield from storage.all_records()):
            if record.id == record_id:
                return record
        msg = f"The queue has no record {record_id!r}; what is done is kept for a day."
        raise MemoryNotFoundError(msg)


def first_of_each(records: Sequence[Record]) -> list[Record]:
    """Return of each conversation the batch that comes next: batches are run in order."""
    open_ones = [each for each in records if each.state in {"pending", "running"}]
    first: dict[tuple[tuple[str, ...], str | None], Record] = {}
    for record in sorted(open_ones, key=lambda each: each.number):
        first.setdefault((record.scope, record.thread_id), record)
    return list(first.values())
