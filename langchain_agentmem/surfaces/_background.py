"""Handing turns over to a queue, with a consolidator of its own in this process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from langchain_agentmem.consolidation import (
    LocalConsolidator,
    MemoryQueue,
    create_consolidation_graph,
)

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

    from langchain_agentmem.memories.base import Memory
    from langchain_agentmem.steps.effects import Steps
    from langchain_agentmem.steps.environment import Environment


class Background:
    """Queues turns; without a queue of the user's own, works them off in this process.

    The consolidator starts with the first turn and is drained when the program ends, so that a
    script which ends right after a turn has remembered it.

    Args:
        memory: The memory.
        queue: A queue that somebody else works off.
    """

    def __init__(self, memory: Memory, queue: MemoryQueue | None = None) -> None:
        self._memory = memory
        self._owns = queue is None
        self.queue = queue or MemoryQueue(memory.namespace, store=memory.store, clock=memory.clock)
        self._consolidator: LocalConsolidator | None = None
        self._starting = threading.Lock()

    def submit(self, messages: list[AnyMessage], env: Environment) -> Steps[None]:
        """Queue the messages of a turn, and make sure that somebody works."""
        record = yield from self.queue.submit_steps(messages, env.scope)
        if self._owns:
            self._start(env)
        self.queue.ticket_of(record, env)

    def _start(self, env: Environment) -> None:
        with self._starting:
            if self._consolidator is None:
                graph = create_consolidation_graph(self._memory)
                self._consolidator = LocalConsolidator(
                    self.queue, graph, store=env.the_store(), drain_at_exit=True
                )
            self._consolidator.start()

    def close(self, timeout: float) -> None:
        """Work off what waits, at most so many seconds, and stop."""
        with self._starting:
            if self._consolidator is not None:
                self._consolidator.close(drain=True, timeout=timeout)
                self._consolidator = None
