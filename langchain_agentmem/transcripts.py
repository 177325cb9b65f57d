"""Messages as plain JSON and as lines of text, and back.

Stored messages are revived by the name of a known class, never by a constructor's path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.messages import encodable, text_of

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage, BaseMessage

_ROLES: Final = {"human": "Human", "ai": "AI", "system": "System", "tool": "Tool"}
# Borders to cut at, best first; the escapes are the full-width marks of Chinese and Japanese.
_BORDERS: Final = ("\n", ".!?\u3002\uff01\uff1f", "\u3000 ,;\uff0c\uff1b\u3001")
_KNOWN: Final = ("human", "ai", "system", "tool", "function", "chat")


def message_to_json(message: BaseMessage) -> dict[str, Any]:
    """Return a message as plain JSON: the nearest known kind and its fields.

    Values that JSON does not have, such as a tool's artifact, are kept as their `str()`, and lone
    surrogates as `?`.
    """
    from langchain_core.messages import message_to_dict

    found = message_to_dict(message)
    kind = found["type"] if found["type"] in _KNOWN else _nearest(message)
    # Null and empty fields say nothing; leaving them out keeps stored conversations small.
    data = {name: value for name, value in found["data"].items() if value or value is False}
    data.pop("type", None)
    data.setdefault("content", "")
    text = json.dumps({"type": kind, "data": data}, ensure_ascii=False, default=str)
    plain: dict[str, Any] = json.loads(encodable(text))
    return plain


def message_from_json(value: Mapping[str, Any]) -> AnyMessage:
    """Return the message that `message_to_json` was given.

    Raises:
        ValueError: Its kind is not one that this package writes.
    """
    from langchain_core.messages import messages_from_dict

    if value.get("type") not in _KNOWN:
        msg = f"A stored message has the unknown kind {value.get('type')!r}; expected {_KNOWN}."
        raise ValueError(msg)
    (message,) = messages_from_dict([{"type": value["type"], "data": dict(value["data"])}])
    return message  # type: ignore[return-value]  # every message class is one of the union


def _nearest(message: BaseMessage) -> str:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    classes = {"ai": AIMessage, "system": SystemMessage, "tool": ToolMessage, "human": HumanMessage}
    return next((kind for kind, known in classes.items() if isinstance(message, known)), "human")


def said(message: BaseMessage) -> str:
    """Return what a message says, its tool calls included."""
    calls = [
        f"[calls {call['name']} {json.dumps(call['args'], ensure_ascii=False, default=str)}]"
        for call in getattr(message, "tool_calls", ())
    ]
    return encodable("\n".join(filter(None, [text_of(message), *calls])))


def speaker_label(message: BaseMessage, *, human: str = "Human", ai: str = "AI") -> str:
    """Return the role that a line of a transcript begins with."""
    role = {"human": human, "ai": ai}.get(message.type) or _ROLES.get(message.type, message.type)
    if message.type == "tool" and message.name:
        return f"{role} {' '.join(message.name.split())}"
    return role


def transcript_line(message: BaseMessage, *, human: str = "Human", ai: str = "AI") -> str:
    """Return a message as `Role: text`.

    Further lines of the text are indented, so that no text can begin a line of another speaker.
    """
    text = "\n  ".join(said(message).splitlines())
    return f"{speaker_label(message, human=human, ai=ai)}: {text}"


def transcript(messages: Iterable[BaseMessage], *, human: str = "Human", ai: str = "AI") -> str:
    """Return messages as lines of `Role: text`."""
    return "\n".join(transcript_line(each, human=human, ai=ai) for each in messages)


@dataclass(frozen=True, slots=True)
class Span:
    """A window on a text.

    Attributes:
        start: Its first character.
        end: The character behind its last one.
        fresh: The first character that the window before does not show; `start` without overlap.
    """

    start: int
    end: int
    fresh: int


def spans_within(
    text: str, limit: int, size: Callable[[str], int], *, overlap: int = 0
) -> list[Span]:
    """Cut a text into windows, at the ends of sentences or words where possible.

    What each window has that the one before does not show, joined, is the text again.

    Args:
        text: The text.
        limit: The most that a window may measure; a single character may be more.
        size: Measures a text, e.g. in tokens; a longer text is never smaller.
        overlap: About so much of the window before is shown again.
    """
    spans = [Span(0, _end_within(text, 0, limit, size), 0)]
    while (fresh := spans[-1].end) < len(text):
        start = _start_of_overlap(text, fresh, overlap, size) if overlap else fresh
        end = _end_within(text, start, limit, size)
        if end <= fresh:
            start, end = fresh, _end_within(text, fresh, limit, size)
        spans.append(Span(start, end, fresh))
    return spans


def _end_within(text: str, start: int, limit: int, size: Callable[[str], int]) -> int:
    """Return the end of the longest window from `start` that is within a limit."""
    reach = max(limit, 1)
    while size(text[start : start + reach]) <= limit:
        if start + reach >= len(text):
            return len(text)
        reach *= 2
    fits, over = start + 1, min(start + reach, len(text))
    while over - fits > 1:
        middle = (fits + over) // 2
        fits, over = (middle, over) if size(text[start:middle]) <= limit else (fits, middle)
    half = start + (fits - start) // 2
    return _border_before(text, half, fits)


def _start_of_overlap(text: str, end: int, limit: int, size: Callable[[str], int]) -> int:
    """Return the start of the longest text before `end` that is within a limit."""
    over, fits = 0, end
    while fits - over > 1:
        middle = (fits + over) // 2
        over, fits = (over, middle) if size(text[middle:end]) <= limit else (middle, fits)
    return fits


def _border_before(text: str, start: int, end: int) -> int:
    for marks in _BORDERS:
        found = max(text.rfind(mark, start, end) for mark in marks)
        if found >= 0:
            return found + 1
    return end
