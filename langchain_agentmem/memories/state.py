"""Graph state of memories, and what their calls return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from langchain_core.messages import AnyMessage
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from langchain_agentmem.items import MemoryOperation, StoredMemory


class MemoryState(TypedDict, total=False):
    """State for graphs that use a memory; inherit from it or use its keys in your own.

    What is recalled is untracked: it is passed on between nodes, and no checkpoint ever holds it.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    memories: Annotated[list[dict[str, Any]], UntrackedValue]
    memory_context: Annotated[str, UntrackedValue]
    memory_operations: Annotated[list[dict[str, Any]], UntrackedValue]


class RecallInput(TypedDict, total=False):
    """What a recall graph is given: a conversation, or a query of its own."""

    messages: Annotated[list[AnyMessage], add_messages]
    query: Annotated[str, UntrackedValue]
    as_of: Annotated[str, UntrackedValue]


class RecallOutput(TypedDict, total=False):
    """What a recall graph returns."""

    memories: Annotated[list[dict[str, Any]], UntrackedValue]
    memory_context: Annotated[str, UntrackedValue]


class RememberInput(TypedDict, total=False):
    """What a remember graph is given."""

    messages: Annotated[list[AnyMessage], add_messages]


class RememberOutput(TypedDict, total=False):
    """What a remember graph returns."""

    memory_operations: Annotated[list[dict[str, Any]], UntrackedValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What a memory recalled.

    Attributes:
        items: The memories, best first.
        text: The same as one block for a prompt, marked as data; empty if nothing was recalled.
        tokens: Estimated tokens of `text`.
        messages: The view of the conversation, for short-term memories.
    """

    items: list[StoredMemory] = field(default_factory=list)
    text: str = ""
    tokens: int = 0
    messages: list[AnyMessage] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationReport:
    """What a consolidation did.

    Attributes:
        operations: Everything that was changed or rejected.
        calls: Model calls by purpose.
        input_tokens: Tokens the model read.
        output_tokens: Tokens the model wrote.
    """

    operations: list[MemoryOperation] = field(default_factory=list)
    calls: Mapping[str, int] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
