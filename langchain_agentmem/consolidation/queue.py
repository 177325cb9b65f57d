"""`MemoryQueue`: turns wait here, durably and debounced, until they are made into memory."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langgraph.store.base import BaseStore

from langchain_agentmem.consolidation.records import Record, message_ids
from langchain_agentmem.errors import ConflictError, MemoryNotFoundError
from langchain_agentmem.items import MemoryItem, parse_timestamp, to_timestamp
from langchain_agentmem.messages import to_messages
from langchain_agentmem.scopes import (
    NamespaceTemplate,
    Scope,
    current_scope,
    reserved,
    running,
)
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import (
    Get,
    List,
    Namespaces,
    Now,
    Put,
    Ref,
    Resolve,
    Setting,
    Steps,
    Write,
)
from langchain_agentmem.steps.environment import Clock, Environment, utc_now

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from langchain_agentmem.messages import Conversation

T = TypeVar("T")

QUEUE: Final = reserved("queue", ())
_LOCK: Final = "lock"
_ATTEMPTS: Final = 100
_KIND: Final = "queue"
_INTERNAL: Final = ("__", "checkpoint_")
_COUNTED: Final = ("pending", "running", "failed")
_KEPT_DONE: Final = timedelta(days=1)
_POLL_SECONDS: Final = 0.05


class MemoryQueue:
    """A durable queue of conversations that wait to be consolidated.

    Submitting costs one read and one write and no model call. Further turns of a conversation are
    added to its waiting batch and postpone it, so that a pause decides when memory is written; a
    steady talk is consolidated after `max_delay_seconds` at the latest. Records lie in the same
    store as the memories. With `FaissSqliteStore` several processes may consume one queue; with a
    store that has no conditional writes only one process may.

    Args:
        namespace: Template of the memories' namespace; resolved when turns are submitted.
        store: A LangGraph store; without it the running graph's is used.
        clock: Gives the present time.
        after_seconds: How long a pause must be before a conversation is consolidated.
        max_delay_seconds: The longest that steady talk postpones it.
        lease_seconds: After so long without a sign of life a worker counts as dead.
        max_attempts: After so many failures a batch is set aside as failed; it is never dropped.
        retry_seconds: Pause before the second attempt; doubled with each further one.
        max_messages_per_run: Longer batches are run in parts, in order.

    Example:
        ```python
        queue = MemoryQueue(store=FaissSqliteStore("memory.sqlite"))
        ticket = queue.submit("I moved to Rome.", config={"configurable": {"user_id": "ann"}})
        ticket.status()  # "pending"
        ```
    """

    def __init__(
        self,
        namespace: tuple[str, ...] | str | NamespaceTemplate = ("memories", "{user_id}"),
        *,
        store: BaseStore | None = None,
        clock: Clock | None = None,
        after_seconds: float = 30,
        max_delay_seconds: float = 600,
        lease_seconds: float = 120,
        max_attempts: int = 3,
        retry_seconds: float = 5,
        max_messages_per_run: int = 100,
    ) -> None:
        self.namespace = NamespaceTemplate(namespace)
        self.store = store
        self.clock = clock or utc_now
        self.after_seconds = after_seconds
        self.max_delay_seconds = max_delay_seconds
        self.lease_seconds = lease_seconds
        self.max_attempts = max_attempts
        self.retry_seconds = retry_seconds
        self.max_messages_per_run = max_messages_per_run
        self.on_submit: list[Callable[[BaseStore], None]] = []

    # --- submitting --------------------------------------------------------------------------

    def submit(
        self,
        messages: Conversation,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
        after_seconds: float | None = None,
    ) -> Ticket:
        """Queue a conversation; messages it has seen already are left out.

        Args:
            messages: New messages, or the whole conversation so far.
            config: The call's config; without it and a context, the running graph's.
            context: The runtime context, which wins over the config.
            after_seconds: Another pause than the queue's.

        Raises:
            ConfigurationError: The scope or the store is missing; nothing was queued.
        """
        env = self.environment(config, context)
        return self.ticket_of(run(self.submit_steps(messages, env.scope, after_seconds), env), env)

    async def asubmit(
        self,
        messages: Conversation,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
        after_seconds: float | None = None,
    ) -> Ticket:
        """Queue a conversation; the async twin of `submit`."""
        env = self.environment(config, context)
        record = await arun(self.submit_steps(messages, env.scope, after_seconds), env)
        return self.ticket_of(record, env)

    def ticket_of(self, record: Record, env: Environment) -> Ticket:
        """Tell the executors of a submitted record, and return its ticket."""
        for wake in self.on_submit:
            wake(env.the_store())
        return Ticket(self, record.scope, record.id, env)

    def environment(
        self,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
        *,
        store: BaseStore | None = None,
    ) -> Environment:
        """Return what the queue's steps run with: the store given, its own, or the run's."""
        given = config is not None or context is not None
        scope = Scope.of(config, context) if given else current_scope()
        found = store if store is not None else self.store
        if found is None:
            found = getattr(running(), "store", None)
        return Environment(store=found, scope=scope, clock=self.clock)

    def submit_steps(
        self, messages: Conversation, caller: Scope, after_seconds: float | None = None
    ) -> Steps[Record]:
        """Add messages to the waiting batch of their conversation, or open one."""
        scope = yield from Resolve(self.namespace)
        thread = yield from Setting("thread_id")
        config = caller_config(caller)
        said = to_messages(messages)
        ids = message_ids(said)
        pause = self.after_seconds if after_seconds is None else after_seconds
        for _ in range(_ATTEMPTS):
            now = yield from Now()
            bucket = yield from self._bucket(scope, None if thread is None else str(thread))
            seen = {each for record in bucket for each in record.seen}
            new = [(m, i) for m, i in zip(said, ids, strict=True) if i not in seen]
            last = bucket[-1] if bucket else None
            if last is not None and not new:
                return last
            waiting = last if last is not None and last.state == "pending" else None
            record = waiting or Record.opened(
                scope, None if thread is None else str(thread), last.number + 1 if last else 0, now
            )
            record = record.extended([m for m, _ in new], [i for _, i in new], config)
            record = record.postponed(now, pause, self.max_delay_seconds)
            expected = waiting.version if waiting else None
            if waiting:
                record = record.changed()
            try:
                yield from _write(record, expected)
            except ConflictError:
                continue
            return record
        msg = "Other submitters of the same conversation were quicker a hundred times in a row."
        raise RuntimeError(msg)

    def _bucket(self, scope: tuple[str, ...], thread: str | None) -> Steps[list[Record]]:
        found = [each for each in (yield from _records(scope)) if each.thread_id == thread]
        return sorted(found, key=lambda each: each.number)

    # --- working -----------------------------------------------------------------------------

    def due_steps(self, scope: tuple[str, ...] | None = None) -> Steps[list[Record]]:
        """Return what a worker may take now, the longest due first."""
        now = yield from Now()
        heads = _first_of_each((yield from self._all(scope)))
        due = [each for each in heads if each.claimable(now)]
        return sorted(due, key=lambda each: (each.due_at, each.number, each.id))

    def take_steps(self, record: Record) -> Steps[Record | None]:
        """Take a due record and with it its scope; None if another worker has either.

        No second record of a scope is given out while the first is being worked on.
        """
        now = yield from Now()
        home = reserved("queue", record.scope)
        (lock,) = yield from Get([(home, _LOCK)])
        held = lock.item.content if lock and isinstance(lock.item.content, dict) else {}
        if held and parse_timestamp(held["until"]) > now:
            return None
        until = now + timedelta(seconds=self.lease_seconds)
        taken = record.changed(state="running", attempts=record.attempts + 1, lease_until=until)
        expected: dict[Ref, int | None] = {
            (home, record.id): record.version,
            (home, _LOCK): held.get("version"),
        }
        puts = [_put(taken), _lock(home, until, int(held.get("version", 0)) + 1)]
        try:
            yield from Write(puts, expected)
        except ConflictError:
            return None
        return taken

    def claim_steps(self, scope: tuple[str, ...] | None = None) -> Steps[Record | None]:
        """Take the record that has been due for longest, if there is one."""
        for record in (yield from self.due_steps(scope)):
            taken = yield from self.take_steps(record)
            if taken is not None:
                return taken
        return None

    def renew_steps(self, record: Record) -> Steps[Record]:
        """Give a sign of life for a record that is still worked on."""
        until = (yield from Now()) + timedelta(seconds=self.lease_seconds)
        renewed = record.changed(lease_until=until)
        yield from _write(renewed, record.version, lock_until=until)
        return renewed

    def done_steps(self, record: Record, report: Mapping[str, Any]) -> Steps[Record]:
        """Note that a record was consolidated; its messages are no longer kept."""
        now = yield from Now()
        done = record.changed(
            state="done", messages=(), config={}, report=report, error=None, finished_at=now
        )
        yield from _write(done, record.version, lock_until=now)
        yield from self._prune(record, now)
        return done

    def failed_steps(self, record: Record, error: BaseException) -> Steps[Record]:
        """Note that an attempt failed: it is tried again after a pause, or set aside."""
        now = yield from Now()
        told = f"{type(error).__name__}: {error}"
        if record.attempts >= self.max_attempts:
            changed = record.changed(state="failed", error=told, finished_at=now)
        else:
            pause = self.retry_seconds * 2 ** (record.attempts - 1)
            due = now + timedelta(seconds=pause)
            changed = record.changed(state="pending", error=told, due_at=due)
        yield from _write(changed, record.version, lock_until=now)
        return changed

    def _prune(self, last: Record, now: datetime) -> Steps[None]:
        """Drop records that were done long ago; the last one keeps the ids of all."""
        bucket = yield from self._bucket(last.scope, last.thread_id)
        old = [
            each
            for each in bucket[:-1]
            if each.state == "done" and each.finished_at and each.finished_at < now - _KEPT_DONE
        ]
        home = reserved("queue", last.scope)
        yield from Write([Put(home, each.id, None) for each in old])

    # --- looking -----------------------------------------------------------------------------

    def _all(self, scope: tuple[str, ...] | None = None) -> Steps[list[Record]]:
        homes = yield from Namespaces(reserved("queue", scope or ()))
        found: list[Record] = []
        for home in homes:
            if scope is None or home == reserved("queue", scope):
                found += yield from _records(home[len(QUEUE) :])
        return found

    def _look(self, steps: Generator[Any, Any, T]) -> T:
        return run(steps, self.environment({}))

    def pending(self) -> list[Record]:
        """Return what waits, the soonest due first."""
        found = [each for each in self._look(self._all()) if each.state == "pending"]
        return sorted(found, key=lambda each: each.due_at)

    def failed(self) -> list[Record]:
        """Return what was given up, each with its error."""
        return [each for each in self._look(self._all()) if each.state == "failed"]

    def stats(self) -> dict[str, float]:
        """Return how many records are `pending`, `running` and `failed`, and the `oldest_age`.

        The age is that of the oldest waiting one, in seconds.
        """
        found = self._look(self._all())
        counts = {name: sum(r.state == name for r in found) for name in _COUNTED}
        ages = [self.clock() - r.first_submitted_at for r in found if r.state == "pending"]
        oldest = max(ages, default=timedelta()).total_seconds()
        return {**counts, "oldest_age": oldest}

    def ticket(self, record_id: str) -> Ticket:
        """Return the ticket of a record, also after a restart.

        Raises:
            MemoryNotFoundError: There is no such record, or it was done long ago.
        """
        record = self._look(self._find(record_id))
        return Ticket(self, record.scope, record.id, self.environment({}))

    def retry(self, record_id: str) -> None:
        """Let a failed record be tried again at once, with all its attempts.

        Raises:
            MemoryNotFoundError: There is no such record.
        """
        record = self._look(self._find(record_id))
        again = record.changed(state="pending", attempts=0, due_at=self.clock(), finished_at=None)
        self._look(_write(again, record.version))
        for wake in self.on_submit:
            wake(self.environment({}).the_store())

    def flush(self, scope: tuple[str, ...] | None = None) -> int:
        """Make everything that waits due now, and return how many records that were."""
        return self._look(self.flush_steps(scope))

    def flush_steps(self, scope: tuple[str, ...] | None = None) -> Steps[int]:
        """Make everything that waits due now."""
        now = yield from Now()
        waiting = [r for r in (yield from self._all(scope)) if r.state == "pending"]
        for record in waiting:
            yield from _write(record.changed(due_at=now), record.version)
        return len(waiting)

    def _find(self, record_id: str) -> Steps[Record]:
        for record in (yield from self._all()):
            if record.id == record_id:
                return record
        msg = f"The queue has no record {record_id!r}; what is done is kept for a day."
        raise MemoryNotFoundError(msg)


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a submitter holds: where its messages are, and in the end what became of them.

    Attributes:
        queue: The queue.
        scope: Namespace of the memory.
        id: Id of the record, good for `queue.ticket(id)` after a restart.
    """

    queue: MemoryQueue
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
        """Return `pending`, `running`, `done` or `failed`."""
        return self.record().state

    def result(self, timeout: float | None = None) -> Mapping[str, Any]:
        """Wait until the record is done, and return its report in numbers.

        Args:
            timeout: The longest to wait, in seconds; None waits for ever.

        Raises:
            TimeoutError: It was not done in time; it stays in the queue.
            RuntimeError: It failed for good.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while (report := _finished(self.record())) is None:
            if until is not None and time.monotonic() >= until:
                msg = f"Record {self.id!r} was not done within {timeout} s; it stays queued."
                raise TimeoutError(msg)
            time.sleep(_POLL_SECONDS)
        return report

    def __await__(self) -> Generator[Any, None, Mapping[str, Any]]:
        """Wait until the record is done, and return its report in numbers."""
        return self._wait().__await__()

    async def _wait(self) -> Mapping[str, Any]:
        while (report := _finished(self._read(await arun(self._get(), self._env)))) is None:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)  # the worker may be another process
        return report


def _finished(record: Record) -> Mapping[str, Any] | None:
    if record.state == "failed":
        msg = f"Record {record.id!r} failed: {record.error}. queue.retry(id) tries it again."
        raise RuntimeError(msg)
    return dict(record.report or {}) if record.state == "done" else None


def caller_config(caller: Scope) -> dict[str, Any]:
    """Return the JSON part of a call's `configurable` and context, for the later run."""
    context = caller.context
    if is_dataclass(context) and not isinstance(context, type):
        context = {each.name: getattr(context, each.name) for each in fields(context)}
    found = {
        "configurable": {
            name: value
            for name, value in caller.configurable.items()
            if not name.startswith(_INTERNAL) and _is_json(value)
        },
        "context": {
            name: value
            for name, value in (context if isinstance(context, Mapping) else {}).items()
            if _is_json(value)
        },
    }
    return {name: each for name, each in found.items() if each}


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _first_of_each(records: Sequence[Record]) -> list[Record]:
    """Return of each conversation the batch that comes next: batches are run in order."""
    open_ones = [each for each in records if each.state in {"pending", "running"}]
    first: dict[tuple[tuple[str, ...], str | None], Record] = {}
    for record in sorted(open_ones, key=lambda each: each.number):
        first.setdefault((record.scope, record.thread_id), record)
    return list(first.values())


def _records(scope: tuple[str, ...]) -> Steps[list[Record]]:
    found = yield from List(reserved("queue", scope))
    return [Record.read(each) for each in found if each.item.kind == _KIND]


def _put(record: Record) -> Put:
    item = MemoryItem(kind=_KIND, content=record.to_value(), version=record.version)
    return Put(reserved("queue", record.scope), record.id, item.to_value())


def _lock(home: tuple[str, ...], until: datetime, version: int) -> Put:
    content = {"until": to_timestamp(until), "version": version}
    return Put(home, _LOCK, MemoryItem(kind=_LOCK, content=content, version=version).to_value())


def _write(
    record: Record, expected: int | None, *, lock_until: datetime | None = None
) -> Steps[None]:
    """Write a record that still has the expected version, and with it its scope's lock."""
    home = reserved("queue", record.scope)
    puts = [_put(record)]
    if lock_until is not None:
        (lock,) = yield from Get([(home, _LOCK)])
        puts.append(_lock(home, lock_until, lock.item.version + 1 if lock else 1))
    yield from Write(puts, {(home, record.id): expected})
