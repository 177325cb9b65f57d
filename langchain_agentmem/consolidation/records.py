"""What a queue stores: one record a batch of pending turns, and how it changes."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from langchain_core.messages import message_to_dict, messages_from_dict

from langchain_agentmem.items import StoredMemory, parse_timestamp, to_timestamp
from langchain_agentmem.messages import text_of

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage, BaseMessage

State = Literal["pending", "running", "done", "failed", "cancelled"]

_KEYS: Final = uuid.UUID("6f3d2a90-77c1-5d4f-8a30-9f0f0a4be1c5")
_TIMES: Final = ("due_at", "first_submitted_at", "lease_until", "finished_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One batch of turns of one conversation, on its way to memory.

    Attributes:
        id: Key of the record.
        scope: Namespace of the memory, resolved when the turns were submitted.
        thread_id: The conversation; None is a conversation of its own.
        number: Position among the batches of its conversation.
        messages: The messages in LangChain's JSON form.
        seen: Ids of the messages, kept after the messages themselves are gone.
        due_at: When it is to be run.
        first_submitted_at: When its first message came.
        attempts: How often it was begun.
        state: Where it is.
        lease_until: Until when its worker may be taken to be alive.
        error: Why the last attempt failed.
        config: JSON part of the submitter's `configurable` and context.
        report: What the run did, in numbers; no text of any memory.
        finished_at: When it was done or given up.
        version: For conditional writes.
    """

    id: str
    scope: tuple[str, ...]
    thread_id: str | None
    number: int
    messages: tuple[dict[str, Any], ...] = ()
    seen: tuple[str, ...] = ()
    due_at: datetime
    first_submitted_at: datetime
    attempts: int = 0
    state: State = "pending"
    lease_until: datetime | None = None
    error: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] | None = None
    finished_at: datetime | None = None
    version: int = 1

    @classmethod
    def opened(
        cls, scope: tuple[str, ...], thread_id: str | None, number: int, now: datetime
    ) -> Self:
        """Return an empty pending record; the same bucket and number give the same id."""
        return cls(
            id=bucket_id(scope, thread_id, number),
            scope=scope,
            thread_id=thread_id,
            number=number,
            due_at=now,
            first_submitted_at=now,
        )

    @classmethod
    def read(cls, stored: StoredMemory) -> Self:
        """Read a stored record."""
        return cls.from_dict(stored.item.content if isinstance(stored.item.content, dict) else {})

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_value` returned."""
        times = {name: parse_timestamp(value[name]) for name in _TIMES if value.get(name)}
        given = {each.name: value[each.name] for each in fields(cls) if each.name in value}
        sequences = {name: tuple(value.get(name, ())) for name in ("scope", "messages", "seen")}
        return cls(**{**given, **dict.fromkeys(_TIMES), **times, **sequences})

    def to_value(self) -> dict[str, Any]:
        """Return the JSON object to store."""
        value = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in _TIMES:
            value[name] = to_timestamp(value[name]) if value[name] else None
        return value | {name: list(value[name]) for name in ("scope", "messages", "seen")}

    def changed(self, **given: Any) -> Self:  # noqa: ANN401 - any of the fields
        """Return the next version with other values."""
        return replace(self, version=self.version + 1, **given)

    def extended(
        self, messages: Sequence[BaseMessage], ids: Sequence[str], config: Mapping[str, Any]
    ) -> Self:
        """Return the record with further messages at its end, each with an id that stays."""
        named = zip(messages, ids, strict=True)
        added = tuple(
            message_to_dict(message.model_copy(update={"id": name})) for message, name in named
        )
        return replace(
            self,
            messages=self.messages + added,
            seen=self.seen + tuple(ids),
            config=dict(config) or self.config,
        )

    def postponed(self, now: datetime, after_seconds: float, max_delay_seconds: float) -> Self:
        """Return the record due after a pause, but never later than its first message allows."""
        latest = self.first_submitted_at + timedelta(seconds=max_delay_seconds)
        return replace(self, due_at=min(now + timedelta(seconds=after_seconds), latest))

    def claimable(self, now: datetime) -> bool:
        """Tell whether a worker may take the record: it is due, or its worker has died."""
        if self.state == "pending":
            return self.due_at <= now
        return self.state == "running" and self.lease_until is not None and self.lease_until <= now

    def conversation(self) -> list[AnyMessage]:
        """Return the messages."""
        return messages_from_dict(list(self.messages))  # type: ignore[return-value]  # every message class is one of the union


def bucket_id(scope: tuple[str, ...], thread_id: str | None, number: int) -> str:
    """Return the id of a conversation's batch."""
    thread = "\x00" if thread_id is None else f"t{thread_id}"
    return str(uuid.uuid5(_KEYS, "\x1f".join((*scope, thread, str(number)))))


def message_ids(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the messages' ids; for one without, a hash of its place, role and words."""
    return [
        message.id or _hashed(f"{position}\x1f{message.type}\x1f{text_of(message)}")
        for position, message in enumerate(messages)
    ]


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
