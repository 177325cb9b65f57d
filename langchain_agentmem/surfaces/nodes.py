"""A memory's recall and remember as nodes of the user's own graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.consolidation.nodes import submit_node
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.messages import to_messages
from langchain_agentmem.parameters import must_be
from langchain_agentmem.scopes import value_of
from langchain_agentmem.steps.flow import as_node

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from langchain_agentmem.steps.effects import Steps

__all__ = ["recall_node", "remember_node", "submit_node"]

_MEMORY: Final = "a memory, such as RAGMemory()"


def recall_node(
    memory: Memory,
    *,
    messages_key: str = "messages",
    query_key: str = "query",
    memories_key: str = "memories",
    context_key: str = "memory_context",
) -> Runnable[Any, Any]:
    """Return a node that recalls what is relevant to the state's conversation.

    With the default keys it is the memory's compiled recall graph, whose steps are visible in
    drawings and in Studio. With other keys it runs the same steps and maps the keys. Store and
    scope come from the run, as everywhere.

    Keep what is recalled out of your checkpoints: inherit your state from `MemoryState`, or
    annotate the two keys with `langgraph.channels.UntrackedValue`. LangGraph saves the whole input
    of a child graph with its parent's checkpoints: graphs of your own that run behind a recall
    need an `input_schema` without the two keys, or `compile(checkpointer=False)`.

    Args:
        memory: The memory to recall from.
        messages_key: State key of the conversation; its last user message is the question.
        query_key: State key of a question of its own, which wins over the conversation.
        memories_key: State key that receives the memories, a list of JSON objects, best first.
        context_key: State key that receives them as one text for a prompt; empty for none.

    Raises:
        ConfigurationError: The memory is none.

    Example:
        ```python
        builder = StateGraph(MemoryState)
        builder.add_node("recall", recall_node(RAGMemory()))
        ```
    """
    must_be("memory", memory, Memory, _MEMORY)
    keys = (messages_key, query_key, memories_key, context_key)
    if keys == ("messages", "query", "memories", "memory_context"):
        return memory.recall_graph()

    def recall(state: Any) -> Steps[dict[str, Any]]:  # noqa: ANN401 - states are the user's
        given = {"messages": to_messages(value_of(state, messages_key) or [])}
        query = value_of(state, query_key)
        found = yield from memory.recall_flow().drive(given | ({"query": query} if query else {}))
        return {
            memories_key: found.get("memories", []),
            context_key: found.get("memory_context", ""),
        }

    return as_node(recall, memory.node_environment)


def remember_node(
    memory: Memory,
    *,
    messages_key: str = "messages",
    operations_key: str = "memory_operations",
) -> Runnable[Any, Any]:
    """Return a node that remembers the state's conversation.

    With the default keys it is the memory's compiled remember graph, whose steps are visible in
    drawings and in Studio. With other keys it runs the same steps and maps the keys.

    Args:
        memory: The memory to write to.
        messages_key: State key of the conversation; what is already remembered is left alone.
        operations_key: State key that receives what was done, a list of JSON objects.

    Raises:
        ConfigurationError: The memory is none.
    """
    must_be("memory", memory, Memory, _MEMORY)
    if (messages_key, operations_key) == ("messages", "memory_operations"):
        return memory.remember_graph()

    def remember(state: Any) -> Steps[dict[str, Any]]:  # noqa: ANN401 - states are the user's
        given = {"messages": to_messages(value_of(state, messages_key) or [])}
        done = yield from memory.remembering(given)
        return {operations_key: done.get("memory_operations", [])}

    return as_node(remember, memory.node_environment)
