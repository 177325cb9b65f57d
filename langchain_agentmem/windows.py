"""What of a conversation fits a model's prompt: units of eviction, limits and views.

A *turn* is a message of the user and everything up to the next one. Old turns leave the prompt
whole; of the last turn, only closed groups of a tool-calling message and its results can leave.
The last message of the user, leading system messages and a group whose results the model has not
answered yet are *pinned*: they are always sent, whatever the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from langchain_agentmem.errors import ConfigurationError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

TokenCounter: TypeAlias = "Callable[[Sequence[BaseMessage]], int]"
Size: TypeAlias = tuple[str, float]
"""A kind (`tokens`, `messages`, `turns`, or `fraction` of the model's context) and an amount."""
Trigger: TypeAlias = int | Size | Mapping[str, float] | Sequence[Size | Mapping[str, float]]

KINDS: Final = ("tokens", "messages", "turns", "fraction")


def count_tokens(messages: Sequence[BaseMessage]) -> int:
    """Return LangChain's estimate of how many tokens a model reads in messages."""
    return count_tokens_approximately(messages)


@dataclass(frozen=True, slots=True)
class Unit:
    """Messages that stay in the prompt, or leave it, together.

    Attributes:
        messages: The messages, in order.
        turn: Number of their turn in the conversation, from 0.
        pinned: Whether they are sent whatever the budget.
    """

    messages: tuple[AnyMessage, ...]
    turn: int
    pinned: bool = False


def leading_system(messages: Sequence[AnyMessage]) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """Return the system messages that a conversation begins with, and the rest."""
    first = next((at for at, each in enumerate(messages) if each.type != "system"), len(messages))
    return list(messages[:first]), list(messages[first:])


def turns_of(messages: Iterable[AnyMessage]) -> list[list[AnyMessage]]:
    """Split messages into turns; what stands before the first one of the user is one too."""
    turns: list[list[AnyMessage]] = []
    for message in messages:
        if message.type == "human" or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def units_of(messages: Sequence[AnyMessage]) -> list[Unit]:
    """Split a conversation without its leading system messages into units, oldest first."""
    turns = turns_of(messages)
    if not turns:
        return []
    last = len(turns) - 1
    closed = [Unit(tuple(turn), number) for number, turn in enumerate(turns[:-1])]
    return [*closed, *_last_turn(turns[last], last)]


def _last_turn(turn: Sequence[AnyMessage], number: int) -> list[Unit]:
    asked = [Unit((turn[0],), number, pinned=True)] if turn[0].type == "human" else []
    groups: list[list[AnyMessage]] = []
    for message in turn[len(asked) :]:
        if message.type == "ai" or not groups:
            groups.append([])
        groups[-1].append(message)
    units = [Unit(tuple(group), number) for group in groups]
    if groups and calls_tools(groups[-1][0]):
        units[-1] = Unit(units[-1].messages, number, pinned=True)
    return [*asked, *units]


def calls_tools(message: BaseMessage) -> bool:
    """Tell whether a message asks for tools to be called."""
    return isinstance(message, AIMessage) and bool(message.tool_calls)


def is_answered(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether a conversation ends with an answer of the assistant."""
    return bool(messages) and messages[-1].type == "ai" and not calls_tools(messages[-1])


def is_whole(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether every tool call has its result and every result its call, in order."""
    waiting: set[str | None] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                return False
            waiting.discard(message.tool_call_id)
        elif isinstance(message, AIMessage):
            waiting.update(call["id"] for call in message.tool_calls)
    return not waiting


def paired(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return messages without calls that have no result, and without results that have no call.

    A turn that broke off between a call and its result leaves such a half, which no provider takes.
    """
    answered = {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}
    asked: set[str | None] = set()
    kept: list[AnyMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id in asked:
                kept.append(message)
            continue
        if isinstance(message, AIMessage) and message.tool_calls:
            calls = [call for call in message.tool_calls if call["id"] in answered]
            asked.update(call["id"] for call in calls)
            if len(calls) < len(message.tool_calls):
                text = str(message.text)
                if not calls and not text:
                    continue
                kept.append(message.model_copy(update={"tool_calls": calls, "content": text}))
                continue
        kept.append(message)
    return kept


def flat(units: Iterable[Unit]) -> list[AnyMessage]:
    """Return the messages of units, in order."""
    return [message for unit in units for message in unit.messages]


@dataclass(frozen=True, slots=True)
class Split:
    """Units that leave the prompt and units that stay.

    Attributes:
        evicted: The oldest ones that are not pinned.
        kept: The others, oldest first.
        over: Whether the pinned ones alone are more than was allowed.
    """

    evicted: list[Unit]
    kept: list[Unit]
    over: bool = False


def last_turns(units: Sequence[Unit], count: int) -> Split:
    """Keep the last turns of a conversation, and what is pinned."""
    first = max((unit.turn for unit in units), default=0) - count + 1
    return _parted(units, lambda unit: unit.turn >= first)


def newest_within(
    units: Sequence[Unit], limit: float, size: Callable[[Sequence[AnyMessage]], float]
) -> Split:
    """Keep what is pinned and then the newest units that fit beside it, without gaps.

    Args:
        units: The conversation.
        limit: The most that the kept units may measure together.
        size: Measures messages, e.g. in tokens.
    """
    used = size(flat(unit for unit in units if unit.pinned))
    over = used > limit
    oldest = len(units)
    for position in range(len(units) - 1, -1, -1):
        unit = units[position]
        if not unit.pinned:
            used += size(unit.messages)
            if used > limit:
                break
        oldest = position
    kept = set(range(oldest, len(units)))
    numbered = list(enumerate(units))
    return Split(
        [unit for at, unit in numbered if at not in kept and not unit.pinned],
        [unit for at, unit in numbered if at in kept or unit.pinned],
        over,
    )


def _parted(units: Sequence[Unit], stays: Callable[[Unit], bool]) -> Split:
    kept = [unit for unit in units if unit.pinned or stays(unit)]
    return Split([unit for unit in units if not (unit.pinned or stays(unit))], kept)


def with_questions(evicted: Sequence[Unit], units: Sequence[Unit]) -> list[Unit]:
    """Add the question of a turn of which only tool groups leave, so that it is summarized too."""
    leaving = {id(unit) for unit in evicted}
    turns = {unit.turn for unit in evicted}
    return [
        unit
        for unit in units
        if id(unit) in leaving
        or (unit.pinned and unit.turn in turns and unit.messages[0].type == "human")
    ]


@dataclass(frozen=True, slots=True)
class Measure:
    """Counts a conversation in every kind of size.

    Attributes:
        tokens: Counts the tokens of messages.
        window: Tokens of the model's context, for fractions.
    """

    tokens: TokenCounter = count_tokens
    window: int | None = None

    def of(self, messages: Sequence[AnyMessage], kind: str) -> float:
        """Return the size of messages in one kind.

        Raises:
            ConfigurationError: A fraction is asked for, but the model's context is not known.
        """
        if kind == "messages":
            return len(messages)
        if kind == "turns":
            return len(turns_of(messages))
        tokens = self.tokens(messages)
        if kind == "tokens":
            return tokens
        if not self.window:
            msg = "A fraction needs the size of the model's context: pass window=128_000 or so."
            raise ConfigurationError(msg)
        return tokens / self.window

    def exceeds(
        self, messages: Sequence[AnyMessage], trigger: Sequence[Mapping[str, float]]
    ) -> bool:
        """Tell whether messages are more than all sizes of any clause of a trigger."""
        return any(
            all(self.of(messages, kind) > amount for kind, amount in clause.items())
            for clause in trigger
        )

    def keep(self, units: Sequence[Unit], size: Size) -> Split:
        """Keep the newest units within a size, and what is pinned."""
        kind, amount = size
        if kind == "turns":
            return last_turns(units, int(amount))
        return newest_within(units, amount, lambda messages: self.of(messages, kind))


def trigger_clauses(trigger: Trigger) -> tuple[Mapping[str, float], ...]:
    """Return a trigger in its one form: clauses of which any, with all of its sizes, triggers.

    Args:
        trigger: A number of tokens; a size such as `("messages", 50)`; a mapping whose sizes must
            all be exceeded; or a list of sizes and mappings.

    Raises:
        ConfigurationError: It is none of these.
    """
    if isinstance(trigger, int) and not isinstance(trigger, bool):
        trigger = checked_size(trigger)
    if isinstance(trigger, Mapping):
        return ({checked_size(each)[0]: checked_size(each)[1] for each in trigger.items()},)
    if isinstance(trigger, tuple) and len(trigger) == 2 and isinstance(trigger[0], str):  # noqa: PLR2004 - a pair
        kind, amount = checked_size(trigger)
        return ({kind: amount},)
    if isinstance(trigger, list | tuple) and trigger:
        return tuple(clause for each in trigger for clause in trigger_clauses(each))
    msg = f"{trigger!r} is not a trigger; give ('tokens', 4000), a mapping, or a list of these."
    raise ConfigurationError(msg)


def checked_size(size: Any) -> Size:  # noqa: ANN401 - what a user passed
    """Return a size, its kind and amount checked; a bare number means tokens.

    Raises:
        ConfigurationError: The kind or the amount is wrong.
    """
    pair = ("tokens", size) if isinstance(size, int) else size
    if not isinstance(pair, tuple | list) or len(pair) != 2:  # noqa: PLR2004 - a pair
        msg = f"{size!r} is not a size; give a number of tokens, or a pair as ('messages', 20)."
        raise ConfigurationError(msg)
    kind, amount = pair
    if kind not in KINDS:
        msg = f"{kind!r} is not a kind of size; choose one of {KINDS}."
        raise ConfigurationError(msg)
    if isinstance(amount, bool) or not isinstance(amount, int | float) or amount < 0:
        msg = f"{amount!r} is not a size in {kind}; give a number of 0 or more."
        raise ConfigurationError(msg)
    return kind, amount


def context_of(model: BaseChatModel | str | None) -> int | None:
    """Return how many tokens a model reads at most, where its profile says so."""
    profile = getattr(model, "profile", None)
    found = profile.get("max_input_tokens") if isinstance(profile, Mapping) else None
    return found if isinstance(found, int) else None
