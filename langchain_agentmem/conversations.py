"""Reading files of conversations: our JSONL, OpenAI message lists, a ChatGPT export, MemoryBank.

**Our JSONL** has one JSON object a line, of which only `content` must be there:

```json
{"user": "ann", "thread": "t1", "session": "s1", "role": "user", "speaker": "Ann",
 "content": "I moved to Oslo.", "time": "2026-03-01T09:30:00Z", "id": "m1"}
```

A document may also have a `title`, so that another document which names it leads to it.

Names that other programs use are read too (`NAMES` in `_formats`), e.g. `timestamp` for `time` and
`thread_id` for `thread`. Other fields are ignored, and their names reported.

Every other format is brought into these fields first, so that all are checked by the same rules.
A turn without an `id` gets one made of its conversation, position, speaker and words: reading the
same conversation again, from whichever file, gives the same ids.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_core.messages import AIMessage, HumanMessage

from langchain_agentmem._formats import NAMES, Record, Source, has, records, stated
from langchain_agentmem.errors import ConversationFormatError
from langchain_agentmem.items import parse_timestamp, to_timestamp
from langchain_agentmem.messages import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_core.messages import AnyMessage

Format = Literal["auto", "jsonl", "openai", "chatgpt", "memorybank"]
FORMATS: Final = ("auto", "jsonl", "openai", "chatgpt", "memorybank")
BATCH_SIZE: Final = 200

_MOST_NAMES: Final = 20
_KNOWN: Final = frozenset(name for names in NAMES.values() for name in names)
_EXPORTED: Final = frozenset(
    {"namespace", "key", "value", "created_at", "updated_at", "history", "counters"}
)
_IDS: Final = uuid.UUID("0f6c1a52-3a0b-5c3e-9a3e-6f0d4a1c2b77")
_HUMAN: Final = frozenset({"user", "human"})
_AI: Final = frozenset({"assistant", "ai", "bot", "model"})
_SILENT: Final = frozenset({"system", "developer", "tool", "function"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTurn:
    """One turn of a file.

    Attributes:
        user: Whose conversation it is; None if the file does not say.
        thread: The conversation.
        message: What was said, with its id, speaker, time and session.
    """

    user: str | None
    thread: str
    message: AnyMessage


class ConversationFile:
    """The turns of one file, read anew by each iteration.

    Turns of the system and of tools, and turns without words, are left out and counted.

    Args:
        path: The file; a ChatGPT export may also be its zip archive.
        format: Its format; `"auto"` recognizes it by its shape.
        skip_invalid: Whether to leave out what cannot be read, with its reason in `invalid`,
            instead of raising an error at the first such turn.
        user: Whose all turns are, whatever the file says; None to follow the file.
        name: What messages call the file; its path by default.

    Attributes:
        silent: How many turns of the last iteration said nothing.
        invalid: Why turns of the last iteration were left out.
        ignored_users: Users that the last iteration found in the file and replaced by `user`.
        ignored_fields: Names of fields that the last iteration found and knows nothing about.

    Raises:
        ConversationFormatError: While iterating: the file or a turn cannot be read.

    Example:
        ```python
        for turn in ConversationFile("conversations.json"):
            print(turn.thread, turn.message.content)
        ```
    """

    def __init__(
        self,
        path: str | Path,
        *,
        format: Format = "auto",  # noqa: A002 - the word for it
        skip_invalid: bool = False,
        user: str | None = None,
        name: str | None = None,
    ) -> None:
        if format not in FORMATS:
            msg = f"format must be one of {', '.join(FORMATS)}, not {format!r}."
            raise ConversationFormatError(msg)
        self.path = Path(path)
        self.format = format
        self.silent = 0
        self.invalid: list[str] = []
        self.ignored_users: dict[str, None] = {}
        self.ignored_fields: dict[str, None] = {}
        self._source = Source(self.path, name or str(path))
        self._owner = user
        self._skips = skip_invalid

    def __iter__(self) -> Iterator[ImportedTurn]:
        """Yield the turns in the order of the file."""
        self.silent, self.invalid = 0, []
        self.ignored_users, self.ignored_fields = {}, {}
        positions: dict[tuple[str | None, str], int] = {}
        for record in records(self._source, self.format, self._reject):
            try:
                turn = _turn(record, positions, self._owner)
            except _InvalidTurnError as error:
                self._reject(f"{self._source}, {record.place}: {error}", error)
                continue
            if turn is None:
                self.silent += 1
            else:
                self._note_ignored(record.fields)
                yield turn

    def _note_ignored(self, fields: Mapping[str, Any]) -> None:
        named = _label(fields, "user")
        if self._owner is not None and named not in (None, self._owner):
            _add(self.ignored_users, str(named))
        known = _KNOWN | _EXPORTED if {"namespace", "value"} <= fields.keys() else _KNOWN
        for name in fields:
            if name not in known:
                _add(self.ignored_fields, name)

    def _reject(self, reason: str, cause: Exception) -> None:
        if not self._skips:
            raise ConversationFormatError(reason) from cause
        self.invalid.append(reason)


def batches(
    turns: Iterable[ImportedTurn], size: int = BATCH_SIZE
) -> Iterator[tuple[str | None, str, list[AnyMessage]]]:
    """Yield user, thread and up to `size` messages that follow each other in one conversation."""
    for (user, thread), run in groupby(turns, key=lambda turn: (turn.user, turn.thread)):
        while messages := [turn.message for turn in islice(run, size)]:
            yield user, thread, messages


def _add(names: dict[str, None], name: str) -> None:
    """Note a name once; of a file with very many, the first."""
    if len(names) < _MOST_NAMES:
        names[name[:60]] = None


class _InvalidTurnError(ValueError):
    """One turn cannot be read; the message says why, without the place."""


def _turn(
    record: Record, positions: dict[tuple[str | None, str], int], owner: str | None
) -> ImportedTurn | None:
    """Check a record; None if it says nothing.

    Raises:
        _InvalidTurnError: A field cannot be used.
    """
    fields = record.fields
    if record.problem:
        raise _InvalidTurnError(record.problem)
    if not isinstance(fields, Mapping):
        msg = f"expected a JSON object with 'content', found {type(fields).__name__}."
        raise _InvalidTurnError(msg)
    if "value" in fields and not has(fields, "content"):
        return None  # a record in an export that holds no words
    named = _label(fields, "user")
    user = owner or named
    thread = _label(fields, "thread") or ""
    position = positions.get((user, thread), 0)
    positions[user, thread] = position + 1
    kind, name = _speaker(fields)
    if kind is None:
        return None
    message = kind(content=_content(fields), name=name)
    text = text_of(message)
    if not text.strip():
        return None
    unnamed = (thread, str(position), name or message.type, text)
    message.id = _label(fields, "id") or str(uuid.uuid5(_IDS, "\x1f".join(unnamed)))
    told = {
        "observed_at": _time(fields),
        "session": _label(fields, "session"),
        "title": _label(fields, "title"),
    }
    message.additional_kwargs = {name: value for name, value in told.items() if value}
    return ImportedTurn(user=user, thread=thread, message=message)


def _speaker(
    fields: Mapping[str, Any],
) -> tuple[type[HumanMessage | AIMessage] | None, str | None]:
    """Return the kind of message and the speaker's name; a kind of None says nothing."""
    role, name = _label(fields, "role"), _label(fields, "speaker")
    if role is None and (name is None or name.lower() in _HUMAN | _AI | _SILENT):
        role, name = name or "user", None
    role = (role or "user").lower()
    if role in _SILENT:
        return None, None
    if role in _HUMAN:
        return HumanMessage, name
    if role in _AI:
        return AIMessage, name
    msg = f"'role' is {role[:40]!r}, but must be one of user, assistant, system, tool."
    raise _InvalidTurnError(msg)


def _content(fields: Mapping[str, Any]) -> Any:  # noqa: ANN401 - text or blocks
    if not has(fields, "content"):
        found = ", ".join(map(str, list(fields)[:6])) or "nothing"
        msg = f"'content' is missing (found: {found}); it holds what was said."
        raise _InvalidTurnError(msg)
    name, content = stated(fields, "content")
    if content is None:
        return ""
    if isinstance(content, list) and all(isinstance(block, str | Mapping) for block in content):
        for block in content:
            _real_text(name, block if isinstance(block, str) else str(block.get("text", "")))
        return content
    if not isinstance(content, str):
        msg = f"{name!r} must be a text, not {type(content).__name__}."
        raise _InvalidTurnError(msg)
    return _real_text(name, content)


def _label(fields: Mapping[str, Any], field: str) -> str | None:
    name, value = stated(fields, field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        msg = f"{name!r} must be a text, not {type(value).__name__}."
        raise _InvalidTurnError(msg)
    return _real_text(name, str(value))


def _real_text(name: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        msg = (
            f"{name!r} holds half of a surrogate pair (\\u{ord(text[error.start]):04x} at "
            f"character {error.start + 1}), which is no text; remove it."
        )
        raise _InvalidTurnError(msg) from error
    return text


def _time(fields: Mapping[str, Any]) -> str | None:
    """Return the first time that is stated; each that is must be one."""
    stated_times = [(name, fields.get(name)) for name in NAMES["time"]]
    times = [_timestamp(name, value) for name, value in stated_times if value not in (None, "")]
    return times[0] if times else None


def _timestamp(name: str, value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return a time as ISO 8601; numbers are seconds since 1970, as in a ChatGPT export."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return to_timestamp(datetime.fromtimestamp(value, UTC))
        return to_timestamp(parse_timestamp(value))
    except (ValueError, TypeError, OverflowError, OSError) as error:
        msg = (
            f"{name!r} is {str(value)[:40]!r}, but must be an ISO 8601 time such as "
            "2026-03-01T09:30:00Z, or seconds since 1970."
        )
        raise _InvalidTurnError(msg) from error
