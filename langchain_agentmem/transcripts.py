"""Messages as plain JSON and as lines of text, and back.

Stored messages are revived by the name of a known class, never by a constructor's path.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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
    return message  # type: ignore[return-value]


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


def pieces(text: str, size: int) -> Sequence[str]:
    """Cut a text into pieces of at most `size` characters, at the ends of sentences or words.

    Joined, the pieces are the text again.
    """
    cut: list[str] = []
    start = 0
    while len(text) - start > size:
        end = _cut_before(text, start, start + size)
        cut.append(text[start:end])
        start = end
    return [*cut, text[start:]]


def _cut_before(text: str, start: int, end: int) -> int:
    half = start + (end - start) // 2
    for marks in _BORDERS:
        found = max(text.rfind(mark, half, end) for mark in marks)
        if found >= 0:
            return found + 1
    return end
