"""`MemoryQueue`: turns wait here, durably and debounced, until they are made into memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from langgraph.store.base import BaseStore

from langchain_agentmem.consolidation import _storage as storage
from langchain_agentmem.consolidation._callers import caller_config
from langchain_agentmem.consolidation._views import QueueViews, first_of_each
from langchain_agentmem.consolidation.records import Record, message_ids
from langchain_agentmem.consolidation.tickets import Ticket
from langchain_agentmem.errors import ConflictError
from langchain_agentmem.messages import to_messages
from langchain_agentmem.parameters import at_least, must_be
from langchain_agentmem.scopes import (
    NamespaceTemplate,
    Scope,
    current_scope,
    reserved,
    running,
)
from langchain_agentmem.steps import cursor
from langchain_agentmem.steps.contention import insist
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Now, Put, Resolve, Setting, Steps, Write
from langchain_agentmem.steps.environment import Clock, Environment, utc_now

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage
    from langchain_core.runnables import RunnableConfig

    from langchain_agentmem.messages import Conversation

_KEPT_DONE: Final = timedelta(days=1)
_LONGEST_ERROR: Final = 500


class MemoryQueue(QueueViews):
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

    Raises:
        ConfigurationError: The store is none, or a number is too small.

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
        must_be("store", store, (BaseStore, NoneType), "a LangGraph BaseStore, or None")
        for name, value, least in (
            ("after_seconds", after_seconds, 0),
            ("max_delay_seconds", max_delay_seconds, 0),
            ("lease_seconds", lease_seconds, 0),
            ("max_attempts", max_attempts, 1),
            ("retry_seconds", retry_seconds, 0),
            ("max_messages_per_run", max_messages_per_run, 1),
        ):
            at_least(name, value, least)
        self.store = store
        self.clock = clock or utc_now
        self.after_seconds = after_seconds
        self.max_delay_seconds = max_delay_seconds
        self.lease_seconds = lease_seconds
        self.max_attempts = max_attempts
        self.retry_seconds = retry_seconds
        self.max_messages_per_run = max_messages_per_run
        self.on_submit: list[Callable[[BaseStore], None]] = []
        self.dispatchers: list[Callable[[Record], Steps[None]]] = []

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
        return Ticket(record.scope, record.id, env)

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
        """Add messages to the waiting batch of their conversation, or open one.

        Raises:
            ConflictError: Other submitters of the conversation were quicker a hundred times.
        """
        scope = yield from Resolve(self.namespace)
        thread = yield from Setting("thread_id")
        said = to_messages(messages)
        named = list(zip(said, message_ids(said), strict=True))
        config = caller_config(caller)
        pause = self.after_seconds if after_seconds is None else after_seconds
        thread_id = None if thread is None else str(thread)
        record, is_changed = yield from insist(
            lambda: self._add(scope, thread_id, named, config, pause)
        )
        for dispatch in self.dispatchers if is_changed else ():
            yield from dispatch(record)
        return record

    def _add(
        self,
        scope: tuple[str, ...],
        thread_id: str | None,
        named: Sequence[tuple[AnyMessage, str]],
        config: Mapping[str, Any],
        pause: float,
    ) -> Steps[tuple[Record, bool]]:
        """Return the batch of a conversation, and whether any of the messages were new to it."""
        now = yield from Now()
        bucket = yield from self._bucket(scope, thread_id)
        seen = {each for record in bucket for each in record.seen}
        new = [(message, name) for message, name in named if name not in seen]
        last = bucket[-1] if bucket else None
        if last is not None and not new:
            return last, False
        if last is not None and last.state == "pending":
            record, expected = last.changed(), last.version
        else:
            number = last.number + 1 if last else 0
            record, expected = Record.opened(scope, thread_id, number, now), None
        record = record.extended([each for each, _ in new], [name for _, name in new], config)
        record = record.postponed(now, pause, self.max_delay_seconds)
        yield from storage.write(record, expected)
        return record, True

    def _bucket(self, scope: tuple[str, ...], thread: str | None) -> Steps[list[Record]]:
        found = [each for each in (yield from storage.records(scope)) if each.thread_id == thread]
        return sorted(found, key=lambda each: each.number)

    # --- working -----------------------------------------------------------------------------

    def due_steps(self, scope: tuple[str, ...] | None = None) -> Steps[list[Record]]:
        """Return what a worker may take now, the longest due first."""
        now = yield from Now()
        heads = first_of_each((yield from storage.all_records(scope)))
        due = [each for each in heads if each.claimable(now)]
        return sorted(due, key=lambda each: (each.due_at, each.number, each.id))

    def take_steps(self, record: Record) -> Steps[Record | None]:
        """Take a due record and with it its scope; None if another worker has either.

        No second record of a scope is given out while the first is being worked on. A record whose
        workers died at each of its attempts is set aside as failed.
        """
        now = yield from Now()
        if record.state == "running" and record.attempts >= self.max_attempts:
            told = f"Its worker ended {record.attempts} times without finishing it."
            lost = record.changed(state="failed", error=told, finished_at=now)
            yield from self._try(storage.write_held(lost, record.version, now))
            return None
        until = now + timedelta(seconds=self.lease_seconds)
        taken = record.changed(state="running", attempts=record.attempts + 1, lease_until=until)
        is_taken = yield from self._try(storage.take(record, taken, now, until))
        return taken if is_taken else None

    def _try(self, steps: Steps[bool]) -> Steps[bool]:
        """Write; tell whether that was done, or another worker was quicker."""
        try:
            return (yield from steps)
        except ConflictError:
            return False

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
        yield from storage.write_held(renewed, record.version, until)
        return renewed

    def done_steps(self, record: Record, report: Mapping[str, Any]) -> Steps[Record]:
        """Note that a record was consolidated; its messages are no longer kept."""
        now = yield from Now()
        done = record.changed(
            state="done", messages=(), config={}, report=report, error=None, finished_at=now
        )
        marks = [Put(*ref, None) for ref in cursor.refs(record.scope, record.id, record.seen)]
        yield from storage.write_held(done, record.version, now, marks)
        yield from self._prune(record, now)
        return done

    def failed_steps(self, record: Record, error: BaseException) -> Steps[Record]:
        """Note that an attempt failed: it is tried again after a pause, or set aside."""
        now = yield from Now()
        told = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
        if record.attempts >= self.max_attempts:
            changed = record.changed(state="failed", error=told, finished_at=now)
        else:
            pause = self.retry_seconds * 2 ** (record.attempts - 1)
            due = now + timedelta(seconds=pause)
            changed = record.changed(state="pending", error=told, due_at=due)
        yield from storage.write_held(changed, record.version, now)
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
