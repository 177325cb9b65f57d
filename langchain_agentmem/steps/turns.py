"""The log of turns: what was said, word for word, with its sessions.

Two collections lie side by side: `turns` holds one item a turn, `sessions` one record a session
with the order of its turns. A session is one thread on one calendar day (UTC), one document by its
title, or what an importer says is one. Turns and their session are written together, so that recall
can look around a turn without searching.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self

from langchain_agentmem.items import (
    Cause,
    MemoryItem,
    MemoryOperation,
    StoredMemory,
    parse_timestamp,
    to_timestamp,
)
from langchain_agentmem.messages import (
    ASSISTANT,
    USER,
    check_unicode,
    session_of,
    speaker_of,
    text_of,
    time_of,
    title_of,
)
from langchain_agentmem.rendering import without_rendered
from langchain_agentmem.retrieval.context import Session
from langchain_agentmem.retrieval.text import index_text, terms
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.contention import insist
from langchain_agentmem.steps.effects import Get, List, Put, Ref, Steps, Write

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_KEYS: Final = uuid.UUID("5b1d2c0e-9a55-5a0e-8f0e-3f1b6c0d7a11")
_PARTICIPANTS: Final = "participants"
_OWN: Final = "_turn"
_COLUMNS: Final = ("turns", "speakers", "lengths")


@dataclass(frozen=True, slots=True)
class Log:
    """Where the turns of one scope and one architecture lie.

    Attributes:
        root: Namespace of the architecture in the scope.
    """

    root: tuple[str, ...]

    @property
    def turns(self) -> tuple[str, ...]:
        """Namespace of the turns."""
        return (*self.root, "turns")

    @property
    def sessions(self) -> tuple[str, ...]:
        """Namespace of the sessions' records."""
        return (*self.root, "sessions")

    @classmethod
    def holding(cls, turn: StoredMemory) -> Self:
        """Return the log that a turn lies in."""
        return cls(turn.namespace[:-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing that was said.

    Attributes:
        message_id: Id of the message, or one made from everything else here.
        thread: The conversation; empty if it has no id.
        session: Name of the session within the conversation.
        speaker: Who said it.
        content: The words, unchanged.
        observed_at: When.
        title: Of a document; what is said in a conversation has none.
    """

    message_id: str
    thread: str
    session: str
    speaker: str
    content: str
    observed_at: datetime
    title: str = ""

    @classmethod
    def of(cls, message: BaseMessage, position: int, thread: str, now: datetime) -> Self | None:
        """Read a message; None for one that says nothing.

        System messages, tool results, empty messages and our own rendered memories say nothing;
        a rendered block is taken out of what else a message says.

        Raises:
            ValueError: The text holds a lone surrogate, which no file can hold.
        """
        text, speaker = without_rendered(text_of(message)), speaker_of(message)
        if speaker is None or not text.strip():
            return None
        check_unicode(text + title_of(message))
        at = time_of(message) or now
        session = session_of(message) or title_of(message) or to_timestamp(at)[:10]
        unnamed = _name(thread, session, to_timestamp(at), str(position), speaker, text)
        return cls(
            message_id=message.id or unnamed,
            thread=thread,
            session=session,
            speaker=speaker,
            content=text,
            observed_at=at,
            title=title_of(message),
        )

    @property
    def search_text(self) -> str:
        """The indexed text: of a turn day, speaker and words; of a document title and words.

        The day and the speaker say when and by whom something was said; those of a document are
        the day of its import and the importer, which no question asks for.
        """
        if not self.title:
            return index_text(self.content, self.speaker, self.observed_at)
        if self.content.startswith(self.title):
            return self.content
        return f"{self.title}\n{self.content}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON for graph state."""
        return {
            "message_id": self.message_id,
            "thread": self.thread,
            "session": self.session,
            "speaker": self.speaker,
            "content": self.content,
            "observed_at": to_timestamp(self.observed_at),
            "title": self.title,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        return cls(**{**data, "observed_at": parse_timestamp(data["observed_at"])})


def store_turns(log: Log, turns: Sequence[Turn]) -> Steps[list[MemoryOperation]]:
    """Write turns, their sessions and the journal in one batch; known turns are left alone.

    A turn whose message was edited since becomes a new version. When another writer of the same
    session was quicker, everything is read and decided again.

    Returns:
        An `ADD`, `UPDATE` or `NOOP` for each turn.

    Raises:
        ConflictError: Other writers were quicker a hundred times in a row.
    """
    named = {_name(*log.turns, turn.thread, turn.message_id): turn for turn in turns}
    return (yield from insist(lambda: _store(log, named)))


def _store(log: Log, named: Mapping[str, Turn]) -> Steps[list[MemoryOperation]]:
    known = yield from journal.read([(log.turns, key) for key in named])
    operations = [
        _operation(log, key, turn, stored)
        for (key, turn), stored in zip(named.items(), known, strict=True)
    ]
    new = {op.key: named[op.key] for op in operations if op.event == "ADD"}
    records = yield from _changed_records(log, new)
    puts = [Put(log.sessions, key, record.to_value()) for key, record in records.items()]
    expect: dict[Ref, int | None] = {
        (log.sessions, key): record.version - 1 or None for key, record in records.items()
    }
    return (yield from journal.apply(operations, also=puts, expect=expect))


def _operation(log: Log, key: str, turn: Turn, stored: StoredMemory | None) -> MemoryOperation:
    """Return what a turn means for the store: new, edited since, or known."""
    op = MemoryOperation(
        event="NOOP",
        namespace=log.turns,
        key=key,
        before=stored.item if stored else None,
        reason="already remembered",
        cause=Cause(message_ids=(turn.message_id,), thread_id=turn.thread or None),
    )
    if stored is None:
        return replace(op, event="ADD", after=_item(log, turn), reason=None)
    title = stored.metadata.get("title", "")
    same = (stored.content, title) == (turn.content, turn.title)
    if same or stored.item.status != "active":
        return op
    kept = {name: value for name, value in stored.metadata.items() if name != "title"}
    edited = replace(
        stored.item,
        content=turn.content,
        search_text=turn.search_text,
        metadata={"title": turn.title, **kept} if turn.title else kept,
        attributed_to=turn.speaker,
        version=stored.item.version + 1,
    )
    return replace(op, event="UPDATE", after=edited, reason=None)


def _item(log: Log, turn: Turn) -> MemoryItem:
    own = {"session": _session_key(log, turn), "thread": turn.thread}
    return MemoryItem(
        kind="turn",
        memory_type="episodic",
        content=turn.content,
        search_text=turn.search_text,
        metadata={"title": turn.title, _OWN: own} if turn.title else {_OWN: own},
        observed_at=turn.observed_at,
        source_message_ids=(turn.message_id,),
        attributed_to=turn.speaker,
    )


def _changed_records(log: Log, new: Mapping[str, Turn]) -> Steps[dict[str, MemoryItem]]:
    """Return the records of sessions and participants that new turns change."""
    if not new:
        return {}
    by_session: dict[str, dict[str, Turn]] = {}
    for key, turn in new.items():
        by_session.setdefault(_session_key(log, turn), {})[key] = turn
    keys = [*by_session, _PARTICIPANTS]
    found = yield from Get([(log.sessions, key) for key in keys])
    stored = dict(zip(keys, found, strict=True))
    records = {key: _extended(stored[key], added) for key, added in by_session.items()}
    participants = _with_speakers(stored[_PARTICIPANTS], new.values())
    return {**records, _PARTICIPANTS: participants} if participants else records


def _extended(stored: StoredMemory | None, added: Mapping[str, Turn]) -> MemoryItem:
    """Return a session's record with further turns at its end."""
    first = next(iter(added.values()))
    content: dict[str, Any] = {
        "name": first.session,
        "thread": first.thread,
        "started_at": to_timestamp(first.observed_at),
        "turns": [],
        "speakers": [],
        "lengths": [],
        **record_of(stored),
    }
    content["turns"] = [*content["turns"], *added]
    content["speakers"] = [*content["speakers"], *(turn.speaker for turn in added.values())]
    lengths = (len(terms(turn.search_text)) for turn in added.values())
    content["lengths"] = [*content["lengths"], *lengths]
    return MemoryItem(
        content=content, kind="session", memory_type="episodic", version=_next_version(stored)
    )


def _with_speakers(stored: StoredMemory | None, turns: Iterable[Turn]) -> MemoryItem | None:
    """Return the participants' record with new names; None if there are none."""
    known = record_of(stored).get("speakers", [])
    new = dict.fromkeys(turn.speaker for turn in turns if turn.speaker not in (USER, ASSISTANT))
    names = [*known, *(name for name in new if name not in known)]
    if len(names) == len(known):
        return None
    return MemoryItem(
        content={"speakers": names}, kind="participants", version=_next_version(stored)
    )


def _next_version(stored: StoredMemory | None) -> int:
    return stored.item.version + 1 if stored else 1


def participants(log: Log) -> Steps[list[str]]:
    """Return the names of those who spoke, the plain user and assistant left out."""
    (stored,) = yield from Get([(log.sessions, _PARTICIPANTS)])
    return list(record_of(stored).get("speakers", []))


def read_sessions(log: Log, keys: Sequence[str]) -> Steps[list[Session]]:
    """Return the sessions under some keys, as far as there are any."""
    found = yield from Get([(log.sessions, key) for key in keys])
    return [_session(each) for each in found if each is not None]


def _session(stored: StoredMemory) -> Session:
    content = record_of(stored)
    return Session(
        key=stored.key,
        turns=tuple(content["turns"]),
        length=sum(content["lengths"]),
        started_at=parse_timestamp(content["started_at"]),
        speakers=tuple(content["speakers"]),
    )


def around(turn: StoredMemory, reach: int) -> Steps[list[Ref]]:
    """Return where the turns up to `reach` before and after a turn lie, in their order."""
    key = session_key(turn)
    for session in (yield from read_sessions(Log.holding(turn), [key] if key else [])):
        if turn.key in session.turns:
            at = session.turns.index(turn.key)
            near = session.turns[max(at - reach, 0) : at] + session.turns[at + 1 : at + 1 + reach]
            return [(turn.namespace, key) for key in near]
    return []


def drop_from_sessions(log: Log, erased: Iterable[str]) -> Steps[None]:
    """Take erased turns out of their sessions' records, and names that no turn has any more.

    When another writer of a session was quicker, everything is read and decided again.

    Raises:
        ConflictError: Other writers were quicker a hundred times in a row.
    """
    gone = set(erased)
    yield from insist(lambda: _drop(log, gone))


def _drop(log: Log, gone: set[str]) -> Steps[None]:
    stored = {each.key: each for each in (yield from List(log.sessions))}
    left = {key: _shortened(each, gone) for key, each in stored.items() if key != _PARTICIPANTS}
    if _PARTICIPANTS in stored:
        left[_PARTICIPANTS] = _only_speakers_of(left.values(), stored[_PARTICIPANTS])
    changed = {key: item for key, item in left.items() if item != stored[key].item}
    puts = [
        Put(log.sessions, key, item.to_value() if item else None) for key, item in changed.items()
    ]
    expect = {(log.sessions, key): stored[key].item.version for key in changed}
    yield from Write(puts, expect)


def _shortened(stored: StoredMemory, gone: set[str]) -> MemoryItem | None:
    """Return a session's record without some turns; None if none is left."""
    content = record_of(stored)
    rows = zip(*(content[column] for column in _COLUMNS), strict=True)
    kept = [row for row in rows if row[0] not in gone]
    if len(kept) == len(content["turns"]):
        return stored.item
    if not kept:
        return None
    columns = map(list, zip(*kept, strict=True))
    shorter = {**content, **dict(zip(_COLUMNS, columns, strict=True))}
    return replace(stored.item, content=shorter, version=stored.item.version + 1)


def _only_speakers_of(
    records: Iterable[MemoryItem | None], stored: StoredMemory
) -> MemoryItem | None:
    """Return the participants' record with those alone who speak in some sessions."""
    contents = [each.content for each in records if each and isinstance(each.content, dict)]
    heard = {name for content in contents for name in content["speakers"]}
    known = record_of(stored)["speakers"]
    names = [name for name in known if name in heard]
    if not names:
        return None
    if names == known:
        return stored.item
    version = stored.item.version + 1
    return replace(stored.item, content={"speakers": names}, version=version)


def session_key(turn: StoredMemory) -> str | None:
    """Return the key of the session a turn belongs to; None for other memories."""
    return _own(turn).get("session")


def thread_of(turn: StoredMemory) -> str | None:
    """Return the conversation a turn was said in; None if that has no id."""
    return _own(turn).get("thread") or None


def _own(turn: StoredMemory) -> Mapping[str, Any]:
    own = turn.metadata.get(_OWN)
    return own if isinstance(own, dict) else {}


def record_of(stored: StoredMemory | None) -> dict[str, Any]:
    """Return the JSON object a record holds; empty for none."""
    return stored.content if stored and isinstance(stored.content, dict) else {}


def _session_key(log: Log, turn: Turn) -> str:
    return _name(*log.sessions, turn.thread, turn.session)


def _name(*parts: str) -> str:
    return str(uuid.uuid5(_KEYS, json.dumps(parts)))
