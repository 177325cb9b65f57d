"""Submitting from a graph: `submit_node`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableLambda

from langchain_agentmem.consolidation.queue import MemoryQueue
from langchain_agentmem.parameters import must_be
from langchain_agentmem.scopes import value_of

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable, RunnableConfig


def submit_node(
    queue: MemoryQueue, *, messages_key: str = "messages", ticket_key: str | None = None
) -> Runnable[Any, Any]:
    """Return a node that queues the state's conversation; no model call, no search.

    Scope and store are those of the run. Messages the queue has seen are left out, so the whole
    conversation may be given each time.

    Args:
        queue: The queue.
        messages_key: State key of the conversation.
        ticket_key: State key that receives the record's id; None for none.

    Raises:
        ConfigurationError: The queue is none.

    Example:
        ```python
        builder.add_node("submit", submit_node(queue))
        ```
    """
    must_be("queue", queue, MemoryQueue, "a MemoryQueue, such as MemoryQueue()")

    def update(record_id: str) -> dict[str, Any]:
        return {ticket_key: record_id} if ticket_key else {}

    def submit(state: Any, config: RunnableConfig) -> dict[str, Any]:  # noqa: ANN401 - states are the user's
        del config  # the queue reads the run's scope itself; the argument keeps it available
        return update(queue.submit(value_of(state, messages_key) or []).id)

    async def asubmit(state: Any, config: RunnableConfig) -> dict[str, Any]:  # noqa: ANN401 - as above
        del config
        return update((await queue.asubmit(value_of(state, messages_key) or [])).id)

    return RunnableLambda(submit, afunc=asubmit, name="submit")
