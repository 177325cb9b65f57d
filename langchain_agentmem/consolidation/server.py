"""`ServerConsolidator`: lets a LangGraph server work a queue off, by background runs and crons."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import uuid
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from langchain_agentmem.consolidation import _storage as storage
from langchain_agentmem.errors import ConfigurationError, ConflictError
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Call, Emit, Now, Steps

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient

    from langchain_agentmem.consolidation.queue import MemoryQueue
    from langchain_agentmem.consolidation.records import Record

logger = logging.getLogger(__name__)

_THREADS: Final = uuid.UUID("4f1f0c52-5c0e-5d0b-8b7d-6f5c1a9e2d37")
_NOT_FOUND: Final = 404
_MARK: Final = "agentmem_consolidation"


class ServerConsolidator:
    """Has a graph of a LangGraph server work off what is submitted to a queue.

    Each conversation has a thread of its own on the server, and there at most one run that waits
    for the conversation's pause; a newer turn puts a later run in its place. A run is given only
    which conversation to work off: its messages are in the queue, so a run that is lost or rolled
    back loses nothing. The graph is one of `create_consolidation_graph(memory, queue=...)`, whose
    queue is in the same store. `schedule` adds a cron that drains whatever is due, which also finds
    what a failed server run or a submitter that ended too early has left.

    Where the server cannot be reached, an error is logged and the record is set aside as failed,
    with its messages: `queue.retry(id)` submits it anew.

    Args:
        queue: The queue.
        assistant_id: Name of the graph, made with `queue=`, or id of an assistant of it.
        client: A client of the SDK, for async or for sync calls.
        url: Where the server is, for clients made here. Inside of the server itself async code
            needs neither; sync code needs the address.

    Example:
        ```python
        queue = MemoryQueue()
        ServerConsolidator(queue)  # inside of the server: submit_node(queue) starts its runs
        ```
    """

    def __init__(
        self,
        queue: MemoryQueue,
        *,
        assistant_id: str = "consolidate",
        client: LangGraphClient | SyncLangGraphClient | None = None,
        url: str | None = None,
    ) -> None:
        from langgraph_sdk.client import SyncLangGraphClient

        self.queue = queue
        self.assistant_id = assistant_id
        self.url = url
        self._is_own = client is None
        is_sync = isinstance(client, SyncLangGraphClient)
        self._sync: Any = client if is_sync else None
        self._async: Any = None if is_sync else client
        self._by_loop: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        queue.dispatchers.append(self.dispatch)

    def close(self) -> None:
        """Start no further runs; those that wait on the server stay."""
        if self.dispatch in self.queue.dispatchers:
            self.queue.dispatchers.remove(self.dispatch)
        if self._is_own and self._sync is not None:
            self._sync.close()
            self._sync = None

    async def aclose(self) -> None:
        """Start no further runs; the async twin of `close`, for the running loop's client."""
        self.close()
        own = self._by_loop.pop(asyncio.get_running_loop(), None)
        if own is not None:
            await own.aclose()

    def dispatch(self, record: Record) -> Steps[None]:
        """Let a run wait for a record's pause, in the place of one that waits already."""
        try:
            yield from self._start(record)
        except ConfigurationError:
            raise
        except Exception as error:
            logger.exception("No run of %r was started on the server.", self.assistant_id)
            yield from Emit(
                "server_run_failed", {"record": record.id, "error": type(error).__name__}
            )
            yield from self._set_aside(record, error)

    def _start(self, record: Record) -> Steps[None]:
        thread = thread_of(record)
        waiting = yield from self._waiting(thread)
        pause = (record.due_at - (yield from Now())).total_seconds()
        yield from self._call(
            "runs",
            "create",
            thread,
            self.assistant_id,
            input={"bucket": {"scope": list(record.scope), "thread_id": record.thread_id}},
            config={"configurable": _configurable(record)},
            metadata={_MARK: record.id},
            after_seconds=max(math.ceil(pause), 0),
            multitask_strategy="enqueue",
            if_not_exists="create",
        )
        for each in waiting:
            try:
                yield from self._call("runs", "cancel", thread, each["run_id"], action="rollback")
            except Exception as error:  # noqa: BLE001 - it has just begun, or is gone already
                logger.debug("Run %s was not replaced: %s", each["run_id"], error)

    def _waiting(self, thread: str) -> Steps[list[dict[str, Any]]]:
        try:
            found = yield from self._call("runs", "list", thread, status="pending")
        except Exception as error:
            response = getattr(error, "response", None)
            if getattr(response, "status_code", None) != _NOT_FOUND:
                raise
            return []
        return list(found)

    def _set_aside(self, record: Record, error: Exception) -> Steps[None]:
        now = yield from Now()
        told = f"The server did not take it: {type(error).__name__}."
        failed = record.changed(state="failed", error=told, finished_at=now)
        try:
            yield from storage.write(failed, record.version)
        except ConflictError:
            logger.warning("Record %s was changed meanwhile and stays as it is.", record.id)

    # --- crons -------------------------------------------------------------------------------

    def schedule(self, cron: str) -> str:
        """Register a cron on the server whose run drains everything that is due.

        Args:
            cron: When, e.g. `"*/5 * * * *"`, in UTC.

        Returns:
            Id of the cron; that of an equal one, if it is registered already.
        """
        return run(self._schedule(cron), self.queue.environment({}))

    async def aschedule(self, cron: str) -> str:
        """Register a cron on the server; the async twin of `schedule`."""
        return await arun(self._schedule(cron), self.queue.environment({}))

    def _schedule(self, cron: str) -> Steps[str]:
        mark = {_MARK: self.assistant_id}
        known = yield from self._call("crons", "search", limit=1000)
        for each in known:
            if each["schedule"] == cron and mark.items() <= (each.get("metadata") or {}).items():
                return str(each["cron_id"])
        made = yield from self._call(
            "crons", "create", self.assistant_id, schedule=cron, input={}, metadata=mark
        )
        return str(made["cron_id"])

    # --- clients -----------------------------------------------------------------------------

    def _call(self, group: str, method: str, *given: Any, **named: Any) -> Steps[Any]:  # noqa: ANN401 - the SDK's
        """Call the SDK's sync client, or await its async one."""

        def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the SDK's
            return getattr(getattr(self._sync_client(), group), method)(*arguments, **options)

        async def acall(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the SDK's
            found = getattr(getattr(self._async_client(), group), method)
            return await found(*arguments, **options)

        return (yield from Call(call, given, named, afunction=acall))

    def _sync_client(self) -> Any:  # noqa: ANN401 - the SDK's
        from langgraph_sdk import get_sync_client

        if self._sync is None:
            if self.url is None:
                msg = (
                    "Sync code cannot find the server: give ServerConsolidator(url='http://...') "
                    "or a client of get_sync_client, or call the async twin (asubmit, ainvoke)."
                )
                raise ConfigurationError(msg)
            self._sync = get_sync_client(url=self.url)
        return self._sync

    def _async_client(self) -> Any:  # noqa: ANN401 - the SDK's
        from langgraph_sdk import get_client

        if self._async is not None:
            return self._async
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            self._by_loop[loop] = get_client(url=self.url)
        return self._by_loop[loop]


def thread_of(record: Record) -> str:
    """Return the id of the server's thread for a record's conversation."""
    return str(uuid.uuid5(_THREADS, json.dumps([*record.scope, record.thread_id])))


def _configurable(record: Record) -> dict[str, Any]:
    """Return the submitter's own config and context, as a run takes it."""
    found = {**record.config.get("configurable", {}), **record.config.get("context", {})}
    return {name: value for name, value in found.items() if name != "thread_id"}
