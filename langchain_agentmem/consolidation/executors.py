"""`LocalConsolidator`: works a queue off in this process."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, runtime_checkable

from langchain_agentmem.consolidation._calls import GraphCall, calls_of, total
from langchain_agentmem.consolidation.queue import MemoryQueue
from langchain_agentmem.consolidation.records import Record
from langchain_agentmem.errors import ConflictError
from langchain_agentmem.parameters import at_least, must_be
from langchain_agentmem.steps.drivers import arun, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from langgraph.store.base import BaseStore

    from langchain_agentmem.steps.effects import Steps
    from langchain_agentmem.steps.environment import Environment

logger = logging.getLogger(__name__)

_LONGEST_SLEEP: Final = 1.0
_SHORTEST_SLEEP: Final = 0.02
_RENEWALS_PER_LEASE: Final = 3


@runtime_checkable
class _Graph(Protocol):
    """What can be run."""

    def invoke(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any graph's
        """Run it."""


class _Job:
    """A record that is being worked on; its lease is renewed from another thread or task."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.lock = threading.Lock()
        self.alock = asyncio.Lock()


class LocalConsolidator:
    """Runs a consolidation graph over a queue's batches, in this process.

    `start` works in the background: as a task of the running loop, or else in a daemon thread that
    never keeps a program alive. `run_due` works off what is due now and returns. Several scopes
    are worked on in parallel, never two batches of one scope.

    Args:
        queue: The queue.
        graph: Any graph with `messages` and `record` in and `report` out, usually that of
            `create_consolidation_graph`.
        store: The store; without it the queue's, or the one of the run that submitted.
        only: Tells which records to work on; without it, all.
        max_workers: How many scopes are worked on at once.
        drain_at_exit: Work off everything, due or not, when the program ends (at most 10 s).

    Raises:
        ConfigurationError: The queue or the graph is none, or there are no workers.

    Example:
        ```python
        with LocalConsolidator(queue, create_consolidation_graph(memory)) as consolidator:
            consolidator.start()
            ...
        ```
    """

    def __init__(
        self,
        queue: MemoryQueue,
        graph: Any,  # noqa: ANN401 - any runnable graph
        *,
        store: BaseStore | None = None,
        only: Callable[[Record], bool] | None = None,
        max_workers: int = 4,
        drain_at_exit: bool = False,
    ) -> None:
        must_be("queue", queue, MemoryQueue, "a MemoryQueue, such as MemoryQueue()")
        must_be("graph", graph, _Graph, "a graph, such as create_consolidation_graph(memory)")
        at_least("max_workers", max_workers, 1)
        self.queue = queue
        self.graph = graph
        self.store = store if store is not None else queue.store
        self._only = only or (lambda _: True)
        self.max_workers = max_workers
        self._drain_at_exit = drain_at_exit
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._jobs: dict[str, _Job] = {}
        self._due: list[Record] = []
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None
        queue.on_submit.append(self._submitted)
        atexit.register(self._at_exit)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _submitted(self, store: BaseStore) -> None:
        if self.store is None:
            self.store = store
        self._wake.set()

    def _env(self) -> Environment:
        return self.queue.environment({}, store=self.store)

    # --- working -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to work in the background; harmless twice."""
        self._stopped.clear()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._loop, daemon=True)
                self._thread.start()
            return
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._aloop())

    def run_due(self) -> int:
        """Work off everything that is due now, and return how many records that were."""
        count = 0
        while True:
            # Asked first: a job that ends meanwhile frees its scope for the next claim.
            with self._guard:
                busy = bool(self._jobs)
            begun = self._begin_due()
            if not busy and not begun:
                return count
            count += begun
            self._wait_a_little()

    async def arun_due(self) -> int:
        """Work off everything that is due now; the async twin of `run_due`."""
        return await self._arun_due(threading.Event())

    async def _arun_due(self, stopped: threading.Event) -> int:
        count, tasks = 0, set[asyncio.Task[None]]()
        while True:
            while len(tasks) < self.max_workers and not stopped.is_set():
                job = await self._aclaim()
                if job is None:
                    break
                tasks.add(asyncio.create_task(self._awork(job)))
                count += 1
            if not tasks:
                return count
            _, tasks = await asyncio.wait(
                tasks, timeout=self._renewal(), return_when=asyncio.FIRST_COMPLETED
            )
            await self._arenew()

    def _loop(self) -> None:
        while not self._stopped.is_set():
            try:
                if self.store is not None:
                    self._begin_due()
            except Exception:  # fail-open border: the worker outlives a broken store
                logger.exception("The queue could not be read; trying again.")
            self._wait_a_little()

    async def _aloop(self) -> None:
        while not self._stopped.is_set():
            try:
                if self.store is not None:
                    await self._arun_due(self._stopped)
            except Exception:  # fail-open border: as in _loop
                logger.exception("The queue could not be read; trying again.")
            await asyncio.sleep(_SHORTEST_SLEEP)

    def _wait_a_little(self) -> None:
        self._wake.wait(min(_LONGEST_SLEEP, self._renewal()))
        self._wake.clear()
        for job in self._current():
            with job.lock:
                if self._is_aging(job.record):
                    job.record = run(self._renewed(job.record), self._env())

    def _is_aging(self, record: Record) -> bool:
        """Tell whether a third of a lease has passed."""
        if record.state != "running" or record.lease_until is None:
            return False
        left = (record.lease_until - self.queue.clock()).total_seconds()
        return left < self.queue.lease_seconds - self._renewal()

    def _renewal(self) -> float:
        return self.queue.lease_seconds / _RENEWALS_PER_LEASE

    def _current(self) -> list[_Job]:
        with self._guard:
            return list(self._jobs.values())

    async def _arenew(self) -> None:
        for job in self._current():
            async with job.alock:
                if self._is_aging(job.record):
                    job.record = await arun(self._renewed(job.record), self._env())

    def _renewed(self, record: Record) -> Steps[Record]:
        try:
            return (yield from self.queue.renew_steps(record))
        except Exception as error:  # noqa: BLE001 - fail-open border: the work itself goes on
            logger.warning("The lease of %s was not renewed: %s", record.id, error)
            return record

    def _begin_due(self) -> int:
        count = 0
        while len(self._current()) < self.max_workers:
            record = run(self._claim(), self._env())
            if record is None:
                break
            job = self._take(record)
            threading.Thread(target=self._work, args=(job,), daemon=True).start()
            count += 1
        return count

    async def _aclaim(self) -> _Job | None:
        record = await arun(self._claim(), self._env())
        return self._take(record) if record else None

    def _claim(self) -> Steps[Record | None]:
        """Take the next due record of a scope that is not being worked on here.

        The queue is read again only when what it last told is used up.
        """
        busy = {job.record.scope for job in self._current()}
        free = [record for record in self._due if record.scope not in busy]
        if not free:
            self._due = list(filter(self._only, (yield from self.queue.due_steps())))
            free = [record for record in self._due if record.scope not in busy]
        for record in free:
            self._due.remove(record)
            taken = yield from self.queue.take_steps(record)
            if taken is not None:
                return taken
        return None

    def _take(self, record: Record) -> _Job:
        job = _Job(record)
        with self._guard:
            self._jobs[record.id] = job
        return job

    def _release(self, job: _Job) -> None:
        with self._guard:
            self._jobs.pop(job.record.id, None)
        self._wake.set()

    def _work(self, job: _Job) -> None:
        try:
            reports = [
                self._graph().invoke(*each.arguments, **each.named) for each in self._calls(job)
            ]
            with job.lock:
                done = self.queue.done_steps(job.record, total(reports))
                job.record = run(done, self._env())
        except Exception as error:  # noqa: BLE001 - fail-open border: kept in the record
            with job.lock:
                job.record = run(self._failed(job.record, error), self._env())
        finally:
            self._release(job)

    async def _awork(self, job: _Job) -> None:
        try:
            graph = self._graph()
            calls = self._calls(job)
            reports = [await graph.ainvoke(*each.arguments, **each.named) for each in calls]
            async with job.alock:
                done = self.queue.done_steps(job.record, total(reports))
                job.record = await arun(done, self._env())
        except Exception as error:  # noqa: BLE001 - fail-open border: kept in the record
            async with job.alock:
                job.record = await arun(self._failed(job.record, error), self._env())
        finally:
            self._release(job)

    def _failed(self, record: Record, error: Exception) -> Steps[Record]:
        logger.warning("Consolidation of %s failed: %s", record.id, type(error).__name__)
        try:
            return (yield from self.queue.failed_steps(record, error))
        except ConflictError:
            logger.warning("Record %s was erased or taken over meanwhile.", record.id)
        except Exception:  # fail-open border: the lease ends, then it is tried again
            logger.exception("The failure of record %s could not be noted.", record.id)
        return record

    def _graph(self) -> Any:  # noqa: ANN401 - any runnable graph
        if self.store is None or getattr(self.graph, "store", None) is not None:
            return self.graph
        return self.graph.copy(update={"store": self.store})

    def _calls(self, job: _Job) -> list[GraphCall]:
        return calls_of(self.graph, job.record, self.queue.max_messages_per_run)

    # --- ending ------------------------------------------------------------------------------

    def close(self, *, wait: bool = True, drain: bool = False, timeout: float = 10) -> None:
        """Stop working. What waits stays queued and keeps its due time.

        Args:
            wait: Let what is being worked on come to its end.
            drain: Work off everything that waits first, due or not.
            timeout: The longest to wait, in seconds.
        """
        self._stopped.set()
        self._wake.set()
        if self._submitted in self.queue.on_submit:
            self.queue.on_submit.remove(self._submitted)
        atexit.unregister(self._at_exit)
        until = time.monotonic() + timeout
        if drain and self.store is not None:
            run(self.queue.flush_steps(), self._env())
            self._begin_due()
        while (wait or drain) and time.monotonic() < until:
            if not self._current() and not (drain and self._begin_due()):
                break
            time.sleep(_SHORTEST_SLEEP)

    async def aclose(self, *, drain: bool = False, timeout: float = 10) -> None:  # noqa: ASYNC109 - as in close
        """Stop working; the async twin of `close`.

        What is still worked on after `timeout` is given up here; it is begun again, by whoever
        comes next, when its lease ends.
        """
        until = time.monotonic() + timeout
        self._stopped.set()
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=timeout)
            self._task.cancel()
        if drain and self.store is not None:
            await arun(self.queue.flush_steps(), self._env())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.arun_due(), max(until - time.monotonic(), 0))
        self.close(wait=False)

    def _at_exit(self) -> None:
        self.close(wait=self._drain_at_exit, drain=self._drain_at_exit)
