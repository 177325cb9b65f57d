"""Short-term memories: what of the present conversation goes into the prompt.

`BufferMemory` keeps all of it, `WindowMemory` the last turns, `TokenBufferMemory` the newest turns
within a budget. Whatever leaves the prompt was archived first and stays searchable, word for word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_agentmem.memories.short_term_base import ShortTermMemory, ShortTermParameters, Told
from langchain_agentmem.parameters import Parameters, described
from langchain_agentmem.windows import Split, last_turns, newest_within, turns_of

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage


@dataclass(frozen=True, kw_only=True)
class BufferParameters(ShortTermParameters):
    """Parameters of `BufferMemory`.

    Attributes:
        max_messages: Most messages in the view, by whole units; None for all.
    """

    max_messages: int | None = described(None, "Most messages in the view; empty for all.")


class BufferMemory(ShortTermMemory):
    """The whole conversation.

    Example:
        ```python
        memory = BufferMemory(store=FaissSqliteStore("memory.sqlite"))
        chat = {"configurable": {"user_id": "ann", "thread_id": "monday"}}
        memory.remember([("user", "I am Ann."), ("assistant", "Hello Ann!")], config=chat)
        memory.recall([("user", "Who am I?")], config=chat).messages
        ```
    """

    graph_name: ClassVar[str | None] = "buffer"
    Parameters: ClassVar[type[Parameters]] = BufferParameters

    def select(self, told: Told, params: BufferParameters) -> Split:
        """Keep everything, or the newest units within `max_messages`."""
        if params.max_messages is None:
            return Split([], list(told.units))
        return newest_within(told.units, params.max_messages - len(told.fixed), len)


@dataclass(frozen=True, kw_only=True)
class WindowParameters(ShortTermParameters):
    """Parameters of `WindowMemory`.

    Attributes:
        k: Turns in the view.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}, "reference": {"k": 5}}

    k: int = described(5, "Turns in the view.")

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        super().__post_init__()
        self.require(least={"k": 1})


class WindowMemory(ShortTermMemory):
    """The last `k` turns."""

    graph_name: ClassVar[str | None] = "window"
    Parameters: ClassVar[type[Parameters]] = WindowParameters

    def select(self, told: Told, params: WindowParameters) -> Split:
        """Keep the last turns."""
        return last_turns(told.units, params.k)

    def is_enough(self, messages: Sequence[AnyMessage], params: WindowParameters) -> bool:
        """Tell whether there is one turn more than the view shows."""
        return len(turns_of(messages)) > params.k


@dataclass(frozen=True, kw_only=True)
class TokenBufferParameters(ShortTermParameters):
    """Parameters of `TokenBufferMemory`.

    Attributes:
        max_tokens: Most tokens of the view, system messages and pinned ones included.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "default": {},
        "reference": {"max_tokens": 2000},
    }

    max_tokens: int = described(2000, "Most tokens of the view.")

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        super().__post_init__()
        self.require(least={"max_tokens": 1})


class TokenBufferMemory(ShortTermMemory):
    """The newest turns within a budget of tokens."""

    graph_name: ClassVar[str | None] = "token_buffer"
    Parameters: ClassVar[type[Parameters]] = TokenBufferParameters

    def select(self, told: Told, params: TokenBufferParameters) -> Split:
        """Keep the newest units that fit beside what stands before them."""
        room = params.max_tokens - self.token_counter(told.fixed)
        return newest_within(told.units, room, self.token_counter)
