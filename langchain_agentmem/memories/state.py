"""Graph state of memories, and what their calls return."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Self

from langchain_core.messages import AnyMessage
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict

from langchain_agentmem.items import MemoryOperation, StoredMemory, to_timestamp
from langchain_agentmem.messages import to_messages

if TYPE_CHECKING:
    from langchain_agentmem.messages import Conversation


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

    messages: Annotated[
        list[AnyMessage],
        Field(description="The conversation; its last user message is the question."),
        add_messages,
    ]
    query: Annotated[
        str, Field(description="A question of its own, instead of that message."), UntrackedValue
    ]
    as_of: Annotated[
        str,
        Field(description="Recall what was known and held then: 2026-05-01T00:00:00+00:00."),
        UntrackedValue,
    ]


class RecallState(TypedDict, total=False):
    """State of a recall graph; nothing of it but the conversation enters a checkpoint."""

    messages: Annotated[list[AnyMessage], add_messages]
    query: Annotated[str, UntrackedValue]
    limit: Annotated[int | None, UntrackedValue]
    as_of: Annotated[str | None, UntrackedValue]
    memories: Annotated[list[dict[str, Any]], UntrackedValue]
    memory_context: Annotated[str, UntrackedValue]
    tokens: Annotated[int, UntrackedValue]


def recall_input(query: Conversation, limit: int | None, as_of: datetime | None) -> dict[str, Any]:
    """Return the state that a call of `recall` begins with.

    Raises:
        TypeError: `limit` is no integer, or `as_of` no datetime.
        ValueError: `limit` is negative, or `as_of` has no time zone.
    """
    if limit is not None and not isinstance(limit, int):
        msg = f"limit must be an integer, such as 3, not {limit!r} ({type(limit).__name__})."
        raise TypeError(msg)
    if limit is not None and (isinstance(limit, bool) or limit < 0):
        msg = f"limit must be 0 or more, not {limit!r}."
        raise ValueError(msg)
    state: dict[str, Any] = {"messages": to_messages(query), "limit": limit}
    if isinstance(query, str):
        state["query"] = query
    if as_of is None:
        return state
    if not isinstance(as_of, datetime):
        msg = (
            "as_of must be an aware datetime, such as datetime(2026, 1, 1, tzinfo=UTC), "
            f"not {as_of!r} ({type(as_of).__name__})."
        )
        raise TypeError(msg)
    state["as_of"] = to_timestamp(as_of)
    return state


class RecallOutput(TypedDict, total=False):
    """What a recall graph returns."""

    memories: Annotated[
        list[dict[str, Any]], Field(description="What was recalled, best first."), UntrackedValue
    ]
    memory_context: Annotated[
        str,
        Field(description="The same as one block for a prompt, marked as data."),
        UntrackedValue,
    ]


class RememberInput(TypedDict, total=False):
    """What a remember graph is given."""

    messages: Annotated[list[AnyMessage], Field(description="The turns to remember."), add_messages]


class RememberOutput(TypedDict, total=False):
    """What a remember graph returns."""

    usage: Annotated[
        dict[str, Any],
        Field(description="Model calls by purpose, and tokens; missing without a call."),
        UntrackedValue,
    ]
    memory_operations: Annotated[
        list[dict[str, Any]],
        Field(description="What was done with each memory, applied or rejected, and why."),
        UntrackedValue,
    ]


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
    """What a consolidation did, or, in a dry run, would do: its operations are only proposed.

    Attributes:
        operations: Everything that was changed or rejected.
        calls: Model calls by purpose.
        input_tokens: Tokens the model read.
        output_tokens: Tokens the model wrote.
        seconds: How long it took.
    """

    operations: list[MemoryOperation] = field(default_factory=list)
    calls: Mapping[str, int] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0

    @property
    def added(self) -> int:
        """How many memories are new."""
        return len(self._applied("ADD"))

    @property
    def updated(self) -> int:
        """How many memories were changed under their key."""
        return len(self._applied("UPDATE", "LINK"))

    @property
    def superseded(self) -> int:
        """How many memories were closed by a successor."""
        return sum(_status(op) == "superseded" for op in self._applied("DELETE"))

    @property
    def archived(self) -> int:
        """How many memories were closed without a successor."""
        return sum(_status(op) == "archived" for op in self._applied("DELETE"))

    @property
    def noop(self) -> int:
        """How many proposals changed nothing because everything was known."""
        return sum(op.event == "NOOP" and op.status != "rejected" for op in self.operations)

    @property
    def rejected(self) -> list[str]:
        """Why proposals were rejected, one reason each."""
        return [op.reason or "" for op in self.operations if op.status == "rejected"]

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Self) -> Self:
        """Return the report of both together."""
        return replace(
            self,
            operations=[*self.operations, *other.operations],
            calls=dict(Counter(self.calls) + Counter(other.calls)),
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
        )

    def _applied(self, *events: str) -> list[MemoryOperation]:
        return [op for op in self.operations if op.event in events and op.status != "rejected"]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, the form reports have in graph state."""
        return {
            "operations": [op.to_dict() for op in self.operations],
            "calls": dict(self.calls),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "seconds": self.seconds,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        operations = [MemoryOperation.from_dict(op) for op in data.get("operations", [])]
        known = ("calls", "input_tokens", "output_tokens", "seconds")
        given = {name: data[name] for name in known if name in data}
        return cls(operations=operations, **given)


def _status(op: MemoryOperation) -> str | None:
    return op.after.status if op.after else None
