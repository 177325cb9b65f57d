"""Remembering each message of a conversation once, whatever is run again.

A claim a message is kept under the package's own root, beside the memory's counters: a turn that
is resumed, replayed from an old checkpoint or handed over twice is remembered once. Forgetting a
whole scope takes its claims along.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage

from langchain_agentmem.items import MemoryItem
from langchain_agentmem.scopes import reserved
from langchain_agentmem.steps.effects import Get, NewId, Put, Setting, Steps, Write

if TYPE_CHECKING:
    from langchain_agentmem.memories.base import Memory

_KEYS: Final = uuid.UUID("7d0c9d0a-52f5-5f0e-9d3f-6d5d7f1f5a0e")


def record(
    memory: Memory,
    messages: Sequence[AnyMessage],
    hand_over: Callable[[list[AnyMessage]], Steps[object]] | None = None,
) -> Steps[int]:
    """Remember those messages that were not remembered before.

    Args:
        memory: The memory.
        messages: The messages.
        hand_over: Takes the new messages, e.g. puts them into a queue; by default the memory
            remembers them at once.

    Returns:
        How many messages were new.
    """
    scope = yield from memory.scope()
    home = reserved("counters", (*scope, memory.architecture, "recorded"))
    thread = str((yield from Setting("thread_id", "")))
    claims = [_claim(thread, position, each) for position, each in enumerate(messages)]
    known = yield from Get([(home, claim) for claim in claims])
    new = [
        (each if each.id else each.model_copy(update={"id": claim}), claim)
        for each, claim, found in zip(messages, claims, known, strict=True)
        if found is None
    ]
    if not new:
        return 0
    said = [each for each, _ in new]
    if hand_over is None:
        yield from memory.remembering({"messages": said})
    else:
        yield from hand_over(said)
    value = MemoryItem(content={}, kind="claim").to_value()
    yield from Write([Put(home, claim, value) for _, claim in new])
    return len(new)


def new_messages(
    messages: Sequence[AnyMessage], last: str | None, own_tools: set[str], thread: str
) -> list[AnyMessage]:
    """Return the messages after the last remembered one, without what memory tools did.

    A message without an id gets one from its place in the whole conversation and its text.

    Args:
        messages: The whole conversation.
        last: Id of the last remembered message.
        own_tools: Names of the memory tools: their calls and results are no news to the memory.
        thread: Id of the conversation.
    """
    messages = [
        each if each.id else each.model_copy(update={"id": _claim(thread, position, each)})
        for position, each in enumerate(messages)
    ]
    ids = [each.id for each in messages]
    start = ids.index(last) + 1 if last in ids else 0
    dropped: set[str | None] = set()
    kept: list[AnyMessage] = []
    for message in messages[start:]:
        if isinstance(message, AIMessage) and message.tool_calls:
            own = [call for call in message.tool_calls if call["name"] in own_tools]
            dropped.update(call["id"] for call in own)
            others = [call for call in message.tool_calls if call not in own]
            if own and not others and not message.text:
                continue
            kept.append(message.model_copy(update={"tool_calls": others}) if own else message)
        elif not (isinstance(message, ToolMessage) and message.tool_call_id in dropped):
            kept.append(message)
    return [each for each in kept if each.type != "system"]


def _claim(thread: str, position: int, message: AnyMessage) -> str:
    named = message.id or f"{position}\x1f{message.type}\x1f{message.text}"
    return str(uuid.uuid5(_KEYS, f"{thread}\x1f{named}"))


def with_new_ids(
    messages: Sequence[BaseMessage], *, replace: bool = False
) -> Steps[list[AnyMessage]]:
    """Return messages of which each has an id; with `replace`, a new one in any case."""
    named: list[AnyMessage] = []
    for message in messages:
        update = {} if message.id and not replace else {"id": (yield from NewId())}
        named.append(message.model_copy(update=update))  # type: ignore[arg-type]  # a message as it was given
    return named
