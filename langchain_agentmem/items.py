"""The vocabulary of what is stored: `MemoryItem`, `StoredMemory`, `MemoryOperation`, `Cause`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args

if TYPE_CHECKING:
    from langgraph.store.base import Item

MemoryType = Literal["semantic", "episodic", "procedural"]
Status = Literal["active", "superseded", "archived"]
Event = Literal["ADD", "UPDATE", "DELETE", "NOOP", "LINK"]
OperationStatus = Literal["proposed", "applied", "rejected"]

_TIMES = ("observed_at", "valid_from", "valid_to", "expires_at")
RECORD_KINDS: Final = frozenset({"session", "participants", "count"})
"""Kinds of items that say where memories are, and are none themselves."""

_ALWAYS_WRITTEN = frozenset({"kind", "content", "memory_type", "status", "version"})


def to_timestamp(moment: datetime) -> str:
    """Return an aware datetime as an ISO 8601 string in UTC.

    All stored times have this one form, so that comparing the strings compares the times.

    Raises:
        ValueError: `moment` has no time zone.
    """
    if moment.tzinfo is None:
        msg = f"{moment!r} has no time zone; give an aware datetime, e.g. datetime.now(UTC)."
        raise ValueError(msg)
    return _utc_text(moment if moment.tzinfo is UTC else moment.astimezone(UTC))


@lru_cache(maxsize=4096)
def _utc_text(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


def parse_timestamp(text: str) -> datetime:
    """Read an ISO 8601 string; a string without a zone is taken as UTC.

    Raises:
        ValueError: `text` is not an ISO 8601 date or time.
    """
    return _parsed(text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Link:
    """A typed pointer from one memory to another in the same scope.

    Attributes:
        type: What the link means, e.g. `"related"` or `"mentions"`.
        target: Store key of the memory that is pointed to.
    """

    type: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """One memory, whoever wrote it: a tool, a graph node, a chain or a background job.

    An item is an immutable value. It is stored as a JSON object in a LangGraph store
    (`to_value`, `from_value`); where it lies is a `StoredMemory`.

    Attributes:
        content: What is remembered: text, or a JSON object of the schema `kind`.
        kind: Name of the content's schema; `"text"` for plain text.
        memory_type: Semantic (facts), episodic (what happened) or procedural (how to act).
        metadata: The caller's own JSON fields. Never read to decide who may see the item.
        search_text: The text to index where it is not the content itself.
        status: `active`; `superseded` by a newer item; or `archived` (taken out of sight).
        version: Counts the changes of this key, from 1.
        observed_at: When the thing was said or seen.
        valid_from: Start of the time in which the content held in the world.
        valid_to: End of that time, exclusive.
        superseded_by: Key of the item that replaced this one.
        expires_at: From this instant on the item is not shown any more.
        links: Pointers to other memories of the scope.
        source_message_ids: Messages that the content was made from.
        attributed_to: Who said it: `"user"`, `"assistant"` or a speaker's name.
    """

    content: str | dict[str, Any]
    kind: str = "text"
    memory_type: MemoryType = "semantic"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    search_text: str | None = None
    status: Status = "active"
    version: int = 1
    observed_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    superseded_by: str | None = None
    expires_at: datetime | None = None
    links: tuple[Link, ...] = ()
    source_message_ids: tuple[str, ...] = ()
    attributed_to: str | None = None

    @property
    def text(self) -> str:
        """The content as text; structured content as JSON with its own characters kept."""
        if isinstance(self.content, str):
            return self.content
        return json.dumps(self.content, ensure_ascii=False, sort_keys=True)

    @property
    def index_paths(self) -> list[str]:
        """The store paths that hold what is searchable in this item's value."""
        return ["search_text"] if self.search_text is not None else ["content"]

    def to_value(self) -> dict[str, Any]:
        """Return the JSON object to put in a store; fields that say nothing are left out.

        It shares no object with the item, so that whoever changes it changes no memory.
        """
        value: dict[str, Any] = {}
        for name in _FIELDS:
            found = getattr(self, name)
            if found or found == "" or name in _ALWAYS_WRITTEN:
                value[name] = to_timestamp(found) if isinstance(found, datetime) else found
        if self.links:
            value["links"] = [asdict(link) for link in self.links]
        if self.source_message_ids:
            value["source_message_ids"] = list(self.source_message_ids)
        if self.metadata:
            value["metadata"] = _own(dict(self.metadata))
        if not isinstance(self.content, str):
            value["content"] = _own(self.content)
        return value

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Self:
        """Read a stored JSON object: ours, both formats that LangMem writes, or any other.

        LangMem's tools write `{"content": ...}`, its store manager `{"kind", "content"}`. A value
        without `content` becomes an item whose content is the whole object, and fields that
        `MemoryItem` does not know become metadata: nothing foreign is ever left out or refused.
        """
        if "content" not in value:
            return cls(content=dict(value), kind="object")
        given: dict[str, Any] = {}
        foreign: dict[str, Any] = {}
        for name, found in value.items():
            if _USUAL.get(name) == found:
                continue
            read = _READERS.get(name)
            if read is None:
                if name not in _FIELDS:
                    foreign[name] = found
            elif (known := read(found)) is not None:
                given[name] = known
        metadata = {**foreign, **_mapping(value.get("metadata"))}
        return cls(content=_content(value), metadata=metadata, **given)

    def is_current(self, now: datetime) -> bool:
        """Tell whether the item is active, not expired and valid at `now`."""
        return self.status == "active" and self.holds_at(now)

    def holds_at(self, moment: datetime) -> bool:
        """Tell whether, whatever its status, the content held and was not expired at `moment`."""
        if self.expires_at is not None and moment >= self.expires_at:
            return False
        if self.valid_from is not None and moment < self.valid_from:
            return False
        return self.valid_to is None or moment < self.valid_to


def _own(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return JSON that shares no list and no object with the given one."""
    if isinstance(value, dict):
        return {name: _own(part) for name, part in value.items()}
    return [_own(part) for part in value] if isinstance(value, list) else value


def _item_of(found: Item) -> MemoryItem:
    """Read the value of a store's item; one that the store holds in memory is read once."""
    derived: dict[str, Any] | None = getattr(found, "derived", None)
    if derived is None:
        return MemoryItem.from_value(found.value)
    if "memory" not in derived:
        derived["memory"] = MemoryItem.from_value(found.value)
    item: MemoryItem = derived["memory"]
    return item


def _content(value: Mapping[str, Any]) -> str | dict[str, Any]:
    content = value["content"]
    by_langmem = "status" not in value and set(value) <= {"kind", "content"}
    if by_langmem and isinstance(content, Mapping) and set(content) == {"content"}:
        content = content["content"]
    return content if isinstance(content, str | dict) else {"content": content}


def _time(value: object) -> datetime | None:
    try:
        return parse_timestamp(str(value))
    except ValueError:
        return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _version(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _links(value: object) -> tuple[Link, ...]:
    found = value if isinstance(value, list) else []
    return tuple(
        Link(str(link["type"]), str(link["target"]))
        for link in found
        if isinstance(link, Mapping) and "type" in link and "target" in link
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _one_of(*allowed: str) -> Callable[[object], str | None]:
    return lambda value: value if isinstance(value, str) and value in allowed else None


_FIELDS: Final = tuple(each.name for each in fields(MemoryItem))
_USUAL: Final[Mapping[str, object]] = {
    "kind": "text",
    "memory_type": "semantic",
    "status": "active",
    "version": 1,
}
"""What these fields are without being given; most stored items say just that."""
_READERS: Final[Mapping[str, Callable[[object], Any]]] = {
    "kind": _text,
    "memory_type": _one_of(*get_args(MemoryType)),
    "search_text": _text,
    "status": _one_of(*get_args(Status)),
    "version": _version,
    **dict.fromkeys(_TIMES, _time),
    "superseded_by": _text,
    "links": _links,
    "source_message_ids": _texts,
    "attributed_to": _text,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMemory:
    """A `MemoryItem` together with where it lies and, after a search, how well it matched.

    Attributes:
        item: The memory itself.
        namespace: Store namespace that holds it; it names the level the memory belongs to.
        key: Store key within the namespace.
        created_at: When the key was first written.
        updated_at: When it was last written.
        score: How well it matched the query, higher is better; None without a query.
        parts: What the score was made of, ingredient by ingredient.
    """

    item: MemoryItem
    namespace: tuple[str, ...]
    key: str
    created_at: datetime | None = None
    updated_at: datetime | None = None
    score: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_store(cls, found: Item) -> Self:
        """Wrap an `Item` or `SearchItem` as a LangGraph store returns it."""
        return cls(
            item=_item_of(found),
            namespace=tuple(found.namespace),
            key=found.key,
            created_at=found.created_at,
            updated_at=found.updated_at,
            score=getattr(found, "score", None),
            parts=getattr(found, "parts", None) or {},
        )

    @property
    def content(self) -> str | dict[str, Any]:
        """What is remembered."""
        return self.item.content

    @property
    def text(self) -> str:
        """The content as text."""
        return self.item.text

    @property
    def observed_at(self) -> datetime | None:
        """When the thing was said or seen."""
        return self.item.observed_at

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The caller's own fields."""
        return self.item.metadata

    def scored(self, score: float, parts: Mapping[str, float] | None = None) -> Self:
        """Return the same memory with another score."""
        return replace(self, score=score, parts=self.parts if parts is None else parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, the form memories have in graph state."""
        return {
            "namespace": list(self.namespace),
            "key": self.key,
            "value": self.item.to_value(),
            "created_at": to_timestamp(self.created_at) if self.created_at else None,
            "updated_at": to_timestamp(self.updated_at) if self.updated_at else None,
            "score": self.score,
            "parts": dict(self.parts),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        return cls(
            item=MemoryItem.from_value(data["value"]),
            namespace=tuple(data["namespace"]),
            key=data["key"],
            created_at=parse_timestamp(data["created_at"]) if data.get("created_at") else None,
            updated_at=parse_timestamp(data["updated_at"]) if data.get("updated_at") else None,
            score=data.get("score"),
            parts=data.get("parts") or {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why an operation happened; kept in the journal.

    Attributes:
        surface: Which way in: `"memory"`, `"tool"`, `"node"`, `"import"`, `"undo"`, ...
        message_ids: Messages that led to it.
        thread_id: Conversation it happened in.
        model: Name of the model that proposed it, if one did.
        prompt_hash: SHA-256 of that model's prompt.
        note: Anything else worth telling a person who asks why.
    """

    surface: str = "memory"
    message_ids: tuple[str, ...] = ()
    thread_id: str | None = None
    model: str | None = None
    prompt_hash: str | None = None
    note: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON without the fields that say nothing."""
        found = {name: value for name in self.__slots__ if (value := getattr(self, name))}
        if self.message_ids:
            found["message_ids"] = list(self.message_ids)
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        known = {each.name: data[each.name] for each in fields(cls) if each.name in data}
        known["message_ids"] = tuple(known.get("message_ids", ()))
        return cls(**known)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOperation:
    """One change of one memory: what was proposed, and what became of it.

    | event | before | after |
    |---|---|---|
    | `ADD` | None | the new item |
    | `UPDATE`, `LINK` | the old item | the new item, version + 1 |
    | `DELETE` | the old item | the closed item (`superseded` or `archived`) |
    | `DELETE` of `forget` | None | None: nothing of it is left |
    | `NOOP` | the item as it stays, if known | None |

    Attributes:
        event: What kind of change.
        namespace: Namespace of the memory.
        key: Key of the memory.
        before: The item before the change.
        after: The item after the change.
        status: `proposed`, `applied`, or `rejected` by validation.
        reason: Why it was rejected, or why nothing had to be done.
        cause: Where the change came from.
    """

    event: Event
    namespace: tuple[str, ...]
    key: str
    before: MemoryItem | None = None
    after: MemoryItem | None = None
    status: OperationStatus = "proposed"
    reason: str | None = None
    cause: Cause = field(default_factory=Cause)

    def applied(self) -> Self:
        """Return the operation marked as applied."""
        return replace(self, status="applied")

    def rejected(self, reason: str) -> Self:
        """Return the operation marked as rejected, with the reason."""
        return replace(self, status="rejected", reason=reason)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, the form operations have in graph state and in reports."""
        return {
            "event": self.event,
            "namespace": list(self.namespace),
            "key": self.key,
            "before": self.before.to_value() if self.before else None,
            "after": self.after.to_value() if self.after else None,
            "status": self.status,
            "reason": self.reason,
            "cause": self.cause.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        before, after = data.get("before"), data.get("after")
        return cls(
            event=data["event"],
            namespace=tuple(data["namespace"]),
            key=data["key"],
            before=MemoryItem.from_value(before) if before else None,
            after=MemoryItem.from_value(after) if after else None,
            status=data.get("status", "proposed"),
            reason=data.get("reason"),
            cause=Cause.from_dict(data.get("cause") or {}),
        )
