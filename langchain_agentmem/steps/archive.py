"""The archive of a conversation: every message, word for word, in one order.

One searchable item a message lies in `archive`; its key follows from the conversation and the
message's id, so that archiving a message again changes nothing. The order is kept apart, under
the package's own root: pointers by number, and a count that every writer must find unchanged.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation
from langchain_agentmem.messages import speaker_of, time_of
from langchain_agentmem.rendering import without_rendered
from langchain_agentmem.retrieval.text import index_text
from langchain_agentmem.scopes import reserved
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.contention import insist
from langchain_agentmem.steps.effects import Get, Now, Put, Ref, Steps, Write
from langchain_agentmem.transcripts import message_from_json, message_to_json, said

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_core.messages import AnyMessage

    from langchain_agentmem.items import StoredMemory

_KEYS: Final = uuid.UUID("0d6a3c55-6a0e-5d0b-9a53-8c1c6e5d5b10")
_SEPARATOR: Final = "\x1f"
_OWN: Final = "_message"
_COUNT: Final = "count"
_MAX_ATTEMPTS: Final = 200
_CHUNK: Final = 64
_PAGE: Final = 1000
SUMMARY_MARK: Final = "agentmem_summary"
"""Marks, in `additional_kwargs`, the message that shows a summary to the model."""


@dataclass(frozen=True, slots=True)
class Archive:
    """Where the messages of one conversation lie.

    Attributes:
        root: Namespace of the architecture in the conversation's scope.
        collection: Name of the messages' collection.
    """

    root: tuple[str, ...]
    collection: str = "archive"

    @property
    def home(self) -> tuple[str, ...]:
        """Namespace of the messages."""
        return (*self.root, self.collection)

    @property
    def order(self) -> tuple[str, ...]:
        """Namespace of the order's pointers and count."""
        return reserved("counters", (*self.root, "order"))

    def key(self, message_id: str) -> str:
        """Return the key of a message."""
        return _name(*self.home, message_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """One message of the archive.

    Attributes:
        number: Its place in the order, from 0.
        message: The message, with an id.
        stored: The stored item.
    """

    number: int
    message: AnyMessage
    stored: StoredMemory


def append(archive: Archive, messages: Sequence[AnyMessage]) -> Steps[list[MemoryOperation]]:
    """Archive messages in one batch; known ones are left alone, edited ones get a new version.

    Rendered memories and summaries, which are no part of what was said, are passed over.

    Returns:
        An `ADD`, `UPDATE` or `NOOP` for each message.

    Raises:
        ConflictError: Other writers were quicker many times in a row.
    """
    real = [said for each in messages if (said := _without_ours(each)) is not None]
    return (yield from insist(lambda: _append(archive, real), _MAX_ATTEMPTS))


def _append(archive: Archive, messages: Sequence[AnyMessage]) -> Steps[list[MemoryOperation]]:
    named = yield from with_ids(archive, messages)
    by_key = {archive.key(str(each.id)): each for each in named}
    places = [(archive.order, _COUNT), *((archive.home, key) for key in by_key)]
    head, *known = yield from journal.read(places)
    count, version = _counted(head)
    now = yield from Now()
    numbers = iter(range(count, count + len(by_key)))
    operations = [
        _operation(archive, key, message, stored, numbers, now=now)
        for (key, message), stored in zip(by_key.items(), known, strict=True)
    ]
    added = [op.key for op in operations if op.event == "ADD"]
    puts, expect = _ordering(archive, added, count, version)
    return (yield from journal.apply(operations, also=puts, expect=expect))


def with_ids(archive: Archive, messages: Sequence[AnyMessage]) -> Steps[list[AnyMessage]]:
    """Return messages of which each has an id.

    A missing one is made from the conversation, the message's place in it and its content. The
    place counts from the conversation's beginning if the messages repeat what is archived there,
    and else from its present end. So a conversation can be given again, grown or not; only one
    whose later turn repeats its very beginning word for word needs messages with ids.
    """
    if all(each.id for each in messages):
        return list(messages)
    count, _ = yield from _count(archive)
    from_start = [
        (archive.home, archive.key(_made_id(archive, position, each)))
        for position, each in enumerate(messages[:count])
        if not each.id
    ]
    repeated = from_start and all((yield from Get(from_start)))
    start = 0 if repeated else count
    return [
        each
        if each.id
        else each.model_copy(update={"id": _made_id(archive, start + position, each)})
        for position, each in enumerate(messages)
    ]


def size(archive: Archive) -> Steps[int]:
    """Return how many messages were ever archived."""
    count, _ = yield from _count(archive)
    return count


def number_of(archive: Archive, message_id: str | None) -> Steps[int | None]:
    """Return a message's place in the order; None for a message that is not archived."""
    if message_id is None:
        return None
    (stored,) = yield from Get([(archive.home, archive.key(message_id))])
    return number_in(stored) if stored else None


def backwards(
    archive: Archive, *, before: int, down_to: int, chunk: int = _CHUNK
) -> Iterator[Steps[list[Archived]]]:
    """Read the archive from its end in chunks; each is in the order of the conversation.

    Args:
        archive: Where.
        before: Begin at the message before this number.
        down_to: The lowest number to read.
        chunk: How many to read at a time.
    """
    end = before
    while end > down_to:
        start = max(end - chunk, down_to)
        yield _read(archive, range(start, end))
        end = start


def load(archive: Archive, *, before: int, down_to: int = 0) -> Steps[list[Archived]]:
    """Return the messages numbered from `down_to` to just before `before`."""
    found: list[Archived] = []
    for part in backwards(archive, before=before, down_to=down_to, chunk=_PAGE):
        found = [*(yield from part), *found]
    return found


def expire(archive: Archive, messages: Iterable[Archived], at: datetime) -> Steps[None]:
    """Let messages that have no end yet expire; the store may then collect them."""
    due = [each.stored for each in messages if each.stored.item.expires_at is None]
    puts = []
    for stored in due:
        item = replace(stored.item, expires_at=at)
        puts.append(Put(archive.home, stored.key, item.to_value(), item.index_paths, at))
    yield from Write(puts)


def drop(archive: Archive, keys: Iterable[str]) -> Steps[list[int]]:
    """Take erased messages out of the order; return what their numbers were."""
    gone = set(keys)
    count = (yield from size(archive)) if gone else 0
    dropped: list[int] = []
    for start in range(0, count, _PAGE):
        numbers = range(start, min(start + _PAGE, count))
        pointers = yield from Get([(archive.order, str(number)) for number in numbers])
        targets = zip(numbers, map(_target, pointers), strict=True)
        dropped += [number for number, key in targets if key in gone]
    yield from Write([Put(archive.order, str(number), None) for number in dropped])
    return dropped


def message_of(stored: StoredMemory) -> AnyMessage:
    """Return the message that an item of the archive holds."""
    own = stored.metadata[_OWN]
    value = own["message"]
    data = value["data"]
    if "content" not in data:
        data = {**data, "content": stored.text}
    return message_from_json({"type": value["type"], "data": data})


def last_question(archive: Archive, end: int) -> Steps[list[Archived]]:
    """Return the last message of the user before a number; empty if there is none."""
    for part in backwards(archive, before=end, down_to=0, chunk=16):
        asked = [each for each in (yield from part) if each.message.type == "human"]
        if asked:
            return asked[-1:]
    return []


def role_of(item: MemoryItem) -> str:
    """Return the role of the message that an item holds, such as `"human"`."""
    own = item.metadata.get(_OWN)
    return str(own["role"]) if isinstance(own, Mapping) else ""


def is_message(stored: StoredMemory) -> bool:
    """Tell whether an item is one of an archive."""
    return stored.item.kind == "message" and isinstance(stored.metadata.get(_OWN), Mapping)


def _without_ours(message: AnyMessage) -> AnyMessage | None:
    """Return a message without what this package put into the prompt; None if nothing is left."""
    if SUMMARY_MARK in message.additional_kwargs:
        return None
    if not isinstance(message.content, str):
        return message
    text = without_rendered(message.content)
    if text == message.content:
        return message
    return message.model_copy(update={"content": text}) if text.strip() else None


def _read(archive: Archive, numbers: range) -> Steps[list[Archived]]:
    pointers = yield from Get([(archive.order, str(number)) for number in numbers])
    keys = [(archive.home, key) for key in map(_target, pointers) if key]
    now = yield from Now()
    found = yield from Get(keys)
    return [
        Archived(number=number_in(each), message=message_of(each), stored=each)
        for each in found
        if each is not None and each.item.is_current(now)
    ]


def _target(pointer: StoredMemory | None) -> str | None:
    if pointer is None or not isinstance(pointer.content, dict):
        return None
    return str(pointer.content["key"])


def number_in(stored: StoredMemory) -> int:
    """Return the place in the order of an archived message."""
    return int(stored.metadata[_OWN]["number"])


def _count(archive: Archive) -> Steps[tuple[int, int]]:
    (stored,) = yield from Get([(archive.order, _COUNT)])
    return _counted(stored)


def _counted(stored: StoredMemory | None) -> tuple[int, int]:
    if stored is None or not isinstance(stored.content, dict):
        return 0, 0
    return int(stored.content["count"]), stored.item.version


def _ordering(
    archive: Archive, added: Sequence[str], count: int, version: int
) -> tuple[list[Put], dict[Ref, int | None]]:
    """Return the puts that add keys to the order, and the version of the count they rely on."""
    if not added:
        return [], {}
    head = MemoryItem(content={"count": count + len(added)}, kind="count", version=version + 1)
    pointers = [
        Put(archive.order, str(count + place), MemoryItem(content={"key": key}).to_value())
        for place, key in enumerate(added)
    ]
    puts = [Put(archive.order, _COUNT, head.to_value()), *pointers]
    return puts, {(archive.order, _COUNT): version or None}


def _operation(
    archive: Archive,
    key: str,
    message: AnyMessage,
    stored: StoredMemory | None,
    numbers: Iterator[int],
    *,
    now: datetime,
) -> MemoryOperation:
    op = MemoryOperation(
        event="NOOP",
        namespace=archive.home,
        key=key,
        before=stored.item if stored else None,
        reason="already archived",
        cause=Cause(message_ids=(str(message.id),)),
    )
    if stored is None:
        return replace(op, event="ADD", after=_item(message, next(numbers), now), reason=None)
    if stored.item.status != "active" or _is_unchanged(message, stored):
        return op
    item = _item(message, number_in(stored), stored.observed_at or now)
    if message_of(stored) == message_of(replace(stored, item=item)):
        return op
    item = replace(item, version=stored.item.version + 1, expires_at=stored.item.expires_at)
    return replace(op, event="UPDATE", after=item, reason=None)


def _is_unchanged(message: AnyMessage, stored: StoredMemory) -> bool:
    """Tell, without making an item, whether a message is word for word the archived one."""
    value, text = _value(message)
    return bool(text == stored.text and stored.metadata[_OWN]["message"] == value)


def _value(message: AnyMessage) -> tuple[dict[str, Any], str]:
    """Return a message as JSON, its text left out where that is what it says; and what it says."""
    value, text = message_to_json(message), said(message)
    if message.content == text:
        del value["data"]["content"]
    return value, text


def _item(message: AnyMessage, number: int, now: datetime) -> MemoryItem:
    value, text = _value(message)
    own: dict[str, Any] = {"number": number, "role": message.type, "message": value}
    at = time_of(message) or now
    speaker = speaker_of(message)
    return MemoryItem(
        kind="message",
        memory_type="episodic",
        content=text,
        search_text=index_text(text, speaker or message.type, at),
        metadata={_OWN: own},
        observed_at=at,
        source_message_ids=(str(message.id),),
        attributed_to=speaker,
    )


def _made_id(archive: Archive, position: int, message: AnyMessage) -> str:
    return _name(*archive.home, str(position), message.type, said(message))


def _name(*parts: str) -> str:
    return str(uuid.uuid5(_KEYS, _SEPARATOR.join(parts)))
