"""The shapes of conversation files, each brought into the fields of our JSONL."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.errors import ConversationFormatError

if TYPE_CHECKING:
    from pathlib import Path

Reject = Callable[[str, Exception], None]

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "user": ("user", "user_id"),
    "thread": ("thread", "thread_id", "conversation_id"),
    "session": ("session",),
    "role": ("role",),
    "speaker": ("speaker", "name"),
    "content": ("content", "text", "message"),
    "time": ("time", "timestamp", "created_at", "create_time", "date", "observed_at"),
    "title": ("title",),
    "id": ("id",),
}
"""The fields of our JSONL, each with the names it is read under; the first that is there counts."""

_EXPORT: Final = "conversations.json"
_EXPECTED: Final = (
    "expected JSON lines with 'content', a list of messages with 'role' and 'content', a ChatGPT "
    "export (conversations.json) or MemoryBank's JSON"
)


@dataclass(frozen=True, slots=True)
class Record:
    """One turn as a file holds it, not yet checked.

    Attributes:
        place: Where it stands, for a message.
        fields: Its fields, under one of their `NAMES`; anything else if the file is wrong there.
        problem: Why it cannot be read, if that is known already.
    """

    place: str
    fields: Any
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A file and what messages call it.

    Attributes:
        path: Where its bytes are.
        name: What the user calls it.
    """

    path: Path
    name: str

    def __str__(self) -> str:
        """Return the name."""
        return self.name


def stated(fields: Mapping[str, Any], field: str) -> tuple[str, Any]:
    """Return the name under which a field is stated and its value, None if it is not."""
    for name in NAMES[field]:
        value = fields.get(name)
        if value is not None and value != "":
            return name, value
    return field, None


def has(fields: Mapping[str, Any], field: str) -> bool:
    """Tell whether a field is there under one of its names, be it empty."""
    return any(name in fields for name in NAMES[field])


def records(source: Source, form: str, reject: Reject) -> Iterator[Record]:
    """Yield the turns of a file.

    Args:
        source: The file.
        form: Name of its format, or `"auto"`.
        reject: Called with the reason when a line is not JSON; may raise.

    Raises:
        ConversationFormatError: The file cannot be read or has another shape.
    """
    try:
        if zipfile.is_zipfile(source.path):
            yield from _whole(source, _parsed(source, _unzipped(source)), form)
        elif form == "jsonl" or (form in ("auto", "openai") and _has_lines(source)):
            yield from _of_lines(source, reject)
        else:
            yield from _whole(source, _parsed(source, source.path.read_bytes()), form)
    except OSError as error:
        if source.path.is_dir():
            msg = f"{source} is a directory; give the files in it, e.g. {source}/*.jsonl."
        else:
            msg = f"{source} cannot be read: {error.strerror or error}."
        raise ConversationFormatError(msg) from error


def _unzipped(source: Source) -> bytes:
    with zipfile.ZipFile(source.path) as archive:
        for name in archive.namelist():
            if name.rpartition("/")[2] == _EXPORT:
                return archive.read(name)
    msg = f"{source} is a zip archive without {_EXPORT}; give the archive of a ChatGPT export."
    raise ConversationFormatError(msg)


def _has_lines(source: Source) -> bool:
    """Tell whether the first line is a JSON object that is a turn or a list of messages."""
    with source.path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
    try:
        found = json.loads(first.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict) or "mapping" in found:
        return False
    return has(found, "content") or "messages" in found or "value" in found


def _of_lines(source: Source, reject: Reject) -> Iterator[Record]:
    with source.path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            place = f"line {number}"
            try:
                found = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                reject(f"{source}, {place}: {_why(error)}", error)
                continue
            if isinstance(found, dict) and "messages" in found and not has(found, "content"):
                yield from _conversation(found, place)
            else:
                yield Record(place, found)


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 (byte {error.object[error.start]:#04x}); save the file as UTF-8."
    if isinstance(error, json.JSONDecodeError):
        where = f"{error.msg.removesuffix(' at')} at column {error.colno}"
        return f"not JSON ({where}); expected one JSON object a line."
    return f"not JSON that can be read ({error})."


def _parsed(source: Source, content: bytes) -> Any:  # noqa: ANN401 - any JSON
    if not content.strip():
        msg = f"{source} is empty; {_EXPECTED}."
        raise ConversationFormatError(msg)
    try:
        return json.loads(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        why = error.msg.removesuffix(" at")
        msg = f"{source}, line {error.lineno}: not JSON ({why}); {_EXPECTED}."
        raise ConversationFormatError(msg) from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        msg = f"{source}, line {line}: {_why(error)}"
        raise ConversationFormatError(msg) from error
    except (ValueError, RecursionError) as error:
        msg = f"{source}: {_why(error)}"
        raise ConversationFormatError(msg) from error


def _whole(source: Source, data: object, form: str) -> Iterator[Record]:
    shape = _shape(data)
    if shape is None or form not in ("auto", shape):
        looks = f", but looks like {shape}" if shape else ""
        wanted = _EXPECTED if form == "auto" else f"it is not in the format {form!r}{looks}"
        msg = f"{source}, line 1: {wanted}; found {_described(data)}.{_hint(data)}"
        raise ConversationFormatError(msg)
    yield from _READERS[shape](data)


def _hint(data: object) -> str:
    """Return how a file is read that holds the memories of another package."""
    first = data[0] if isinstance(data, list) and data else data
    is_mem0 = isinstance(first, dict) and not {"memory", "results"}.isdisjoint(first)
    return " Memories of mem0: agentmem import FILE --format mem0." if is_mem0 else ""


def _described(data: object) -> str:
    if isinstance(data, dict):
        keys = ", ".join(repr(str(key)[:30]) for key in list(data)[:4])
        return f"an object with {keys or 'nothing in it'}"
    if isinstance(data, list):
        return f"a list of {_described(data[0])}" if data else "an empty list"
    return f"a single {type(data).__name__}"


def _shape(data: object) -> str | None:
    first = data[0] if isinstance(data, list) and data else data
    if not isinstance(first, dict):
        return None
    if "mapping" in first:
        return "chatgpt"
    is_turn = "role" in first or has(first, "content")
    if "messages" in first or (isinstance(data, list) and is_turn):
        return "openai"
    people = list(first.values())
    is_bank = people and all(isinstance(one, dict) and "history" in one for one in people)
    return "memorybank" if is_bank and isinstance(data, dict) else None


def _openai(data: Any) -> Iterator[Record]:  # noqa: ANN401 - any JSON of this shape
    if isinstance(data, dict):
        yield from _conversation(data, "the conversation")
    elif isinstance(data[0], dict) and "messages" in data[0]:
        for number, one in enumerate(data, 1):
            yield from _conversation(one, f"conversation {number}")
    else:
        yield from _conversation({"messages": data}, "the list")


def _conversation(found: object, place: str) -> Iterator[Record]:
    """Yield the messages of one OpenAI-style conversation."""
    if not isinstance(found, Mapping) or not isinstance(found.get("messages"), list):
        yield Record(place, found)
        return
    messages = found["messages"]
    whole = {
        "user": stated(found, "user")[1],
        "thread": stated(found, "thread")[1] or found.get("id") or _digest(messages),
        "session": stated(found, "session")[1],
    }
    for number, message in enumerate(messages, 1):
        where = f"{place}, message {number}"
        if not isinstance(message, Mapping):
            yield Record(where, message)
            continue
        shared = {name: value for name, value in whole.items() if not has(message, name)}
        calls = {"content": None} if message.get("tool_calls") else {}
        yield Record(where, {**shared, **calls, **message})


def _digest(messages: list[Any]) -> str:
    """Return a name for a conversation without one, from its first two spoken messages.

    It stays the same when the conversation grows, and when its file is moved.
    """
    spoken = [
        one
        for one in messages
        if isinstance(one, Mapping) and one.get("role") not in ("system", "developer")
    ]
    opening = json.dumps(spoken[:2], sort_keys=True, default=str)
    return hashlib.sha256(opening.encode()).hexdigest()[:16]


def _chatgpt(data: Any) -> Iterator[Record]:  # noqa: ANN401 - any JSON of this shape
    for number, one in enumerate(data if isinstance(data, list) else [data], 1):
        place = f"conversation {number}"
        if not isinstance(one, Mapping) or not isinstance(one.get("mapping"), Mapping):
            yield Record(place, one)
            continue
        thread = stated(one, "thread")[1] or one.get("id") or one.get("title")
        branch = _branch(one)
        if branch is None:
            problem = (
                "its messages form a circle: one is its own ancestor, so their order is unknown; "
                "export the conversation again."
            )
            yield Record(place, one, problem)
            continue
        for node in branch:
            message = node.get("message")
            if isinstance(message, Mapping):
                where = f"{place}, message {node.get('id')}"
                yield Record(where, _said(message, thread or f"untitled {number}"))


def _branch(conversation: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the nodes of the branch that the user sees, oldest first; None if it is a circle."""
    nodes = conversation["mapping"]
    key = conversation.get("current_node") or next(reversed(nodes), None)
    branch: dict[str, Mapping[str, Any]] = {}
    while isinstance(key, str) and isinstance(nodes.get(key), Mapping):
        if key in branch:
            return None
        branch[key] = nodes[key]
        key = nodes[key].get("parent")
    return list(branch.values())[::-1]


def _said(message: Mapping[str, Any], thread: object) -> dict[str, Any]:
    author, content = message.get("author") or {}, message.get("content") or {}
    parts = content.get("parts") if isinstance(content, Mapping) else None
    spoken = isinstance(content, Mapping) and content.get("content_type") in (
        "text",
        "multimodal_text",
    )
    return {
        "id": message.get("id"),
        "thread": thread,
        "role": (author.get("role") if isinstance(author, Mapping) else None) or "system",
        "time": message.get("create_time"),
        "content": "\n".join(map(_part, parts or [])) if spoken else None,
    }


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        return str(part.get("text") or f"[{part.get('content_type', 'attachment')}]")
    return ""


def _memorybank(data: Any) -> Iterator[Record]:  # noqa: ANN401 - any JSON of this shape
    for user, person in data.items():
        history = person["history"]
        for day, exchanges in history.items() if isinstance(history, Mapping) else ():
            for number, exchange in enumerate(exchanges, 1):
                place = f"{user}, {day}, exchange {number}"
                if not isinstance(exchange, Mapping):
                    yield Record(place, exchange)
                    continue
                common = {"user": user.strip(), "thread": "memorybank", "session": day, "time": day}
                for role, key in (("user", "query"), ("assistant", "response")):
                    if key in exchange:
                        yield Record(place, {**common, "role": role, "content": exchange[key]})


_READERS: Final[Mapping[str, Callable[[Any], Iterator[Record]]]] = {
    "openai": _openai,
    "chatgpt": _chatgpt,
    "memorybank": _memorybank,
}
