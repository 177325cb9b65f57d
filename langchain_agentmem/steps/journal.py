"""The write path's last step: apply operations, and keep an append-only record of each.

The record of the change that made version `v` of an item lies in the journal namespace of the
item's own namespace under the key `<item key>@<v>`. So an item's whole history is read by key,
whatever the size of its scope, and doing the same change again writes the same record.

A record keeps the item *before* the change, never after: the text of a new item is not stored
twice, and every earlier text is still there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from langchain_agentmem.errors import MemoryNotFoundError
from langchain_agentmem.items import (
    RECORD_KINDS,
    Cause,
    Event,
    MemoryItem,
    MemoryOperation,
    parse_timestamp,
    to_timestamp,
)
from langchain_agentmem.scopes import ROOT, closed, journal, reserved
from langchain_agentmem.steps.effects import (
    Composite,
    Get,
    Keys,
    List,
    Namespaces,
    Now,
    Put,
    Ref,
    Setting,
    Steps,
    Write,
)

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_agentmem.items import StoredMemory
    from langchain_agentmem.steps.environment import Environment

RECORDS: Final = ("closed", "journal", "counters", "queue")
"""Kinds of records this package keeps about a namespace, outside of it."""

ERASED: Final = "the scope was erased meanwhile"
"""Why nothing is written of what was begun before an erasure."""

UNREAD: Final = "it had expired, or its value could not be read"
"""Reason of an erasure of something that no read returned."""

_ERASE_BATCH: Final = 500
_PAGE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One change in the history of one memory.

    Attributes:
        version: The version this change made.
        event: What kind of change.
        at: When it was applied.
        cause: Where it came from.
        before: The item before the change.
        after: The item after it.
    """

    version: int
    event: Event
    at: datetime
    cause: Cause
    before: MemoryItem | None
    after: MemoryItem


def apply(
    operations: Sequence[MemoryOperation],
    *,
    also: Sequence[Put] = (),
    expect: Mapping[Ref, int | None] | None = None,
) -> Steps[list[MemoryOperation]]:
    """Write operations, their journal records and other items in one batch.

    Operations that are NOOPs or already rejected are passed through and write nothing.

    Args:
        operations: Validated operations, at most one a memory.
        also: Further items to write in the same batch, e.g. an architecture's own records.
        expect: Expected versions of further items.

    Returns:
        The operations, those that were written marked as applied; in a dry run none was, and all
        are rejected where the scope was erased since the work began.

    Raises:
        ConflictError: One of the memories was changed since it was read; nothing was written.
    """
    now = yield from Now()
    operations = [_dated(op, now) for op in operations]
    writing = [op for op in operations if _writes(op)]
    puts = [put for op in writing for put in _puts(op, now)]
    expected = {ref: version for op in writing for ref, version in _expected(op).items()}
    written = yield from Write([*puts, *also], {**expected, **(expect or {})})
    if not written:
        return [op.rejected(ERASED) if _writes(op) else op for op in operations]
    if (yield from Setting("dry_run", default=False)):
        return operations
    return [op.applied() if _writes(op) else op for op in operations]


def _writes(op: MemoryOperation) -> bool:
    return op.event != "NOOP" and op.status == "proposed"


def successor(
    ref: Ref, before: MemoryItem | None, after: MemoryItem, cause: Cause
) -> MemoryOperation:
    """Return the operation that puts an item under a key, as the next version of what is there.

    Args:
        ref: Namespace and key.
        before: What is there, live or closed; None for nothing.
        after: The item to put; its version is set here.
        cause: Why.
    """
    return MemoryOperation(
        event="UPDATE" if before is not None and before.status == "active" else "ADD",
        namespace=ref[0],
        key=ref[1],
        before=before,
        after=replace(after, version=before.version + 1 if before else 1),
        cause=cause,
    )


def _dated(op: MemoryOperation, now: datetime) -> MemoryOperation:
    """Give an item that is closed without an end of validity the present as its end."""
    if op.after is None or op.after.status == "active" or op.after.valid_to is not None:
        return op
    return replace(op, after=replace(op.after, valid_to=now))


def _expected(op: MemoryOperation) -> dict[Ref, int | None]:
    """Return what must still be stored under the key: the item before, live or closed."""
    live, hidden = (op.namespace, op.key), (closed(op.namespace), op.key)
    if op.before is None:
        return {live: None, hidden: None}
    if op.before.status == "active":
        return {live: op.before.version}
    return {live: None, hidden: op.before.version}


def _puts(op: MemoryOperation, now: datetime) -> list[Put]:
    if op.after is None:
        msg = f"{op.event} of {op.key!r} has no item to write; erasure goes through erase()."
        raise ValueError(msg)
    puts = [_record(op, op.after.version, now)]
    if op.after.status == "active":
        paths, expires_at = op.after.index_paths, op.after.expires_at
        puts.append(Put(op.namespace, op.key, op.after.to_value(), paths, expires_at))
    else:
        puts.append(Put(closed(op.namespace), op.key, op.after.to_value()))
    if op.before is not None and op.before.status != op.after.status:
        if op.after.status == "active":
            puts.append(Put(closed(op.namespace), op.key, None))
        elif op.before.status == "active":
            puts.append(Put(op.namespace, op.key, None))
    return puts


def _record(op: MemoryOperation, version: int, now: datetime) -> Put:
    value = {
        "event": op.event,
        "at": to_timestamp(now),
        "cause": op.cause.to_dict(),
        "before": op.before.to_value() if op.before else None,
    }
    return Put(journal(op.namespace), _record_key(op.key, version), value)


def _record_key(key: str, version: int) -> str:
    return f"{key}@{version}"


def read(refs: Sequence[Ref]) -> Steps[list[StoredMemory | None]]:
    """Read memories by key, live or closed."""
    found = yield from Get([*refs, *((closed(namespace), key) for namespace, key in refs)])
    live, hidden = found[: len(refs)], found[len(refs) :]
    return [
        one or (replace(other, namespace=ref[0]) if other else None)
        for ref, one, other in zip(refs, live, hidden, strict=True)
    ]


def homes(prefix: tuple[str, ...]) -> Steps[list[tuple[str, ...]]]:
    """Return the namespaces at and below a prefix that hold memories, live or closed."""
    live = yield from Namespaces(prefix)
    hidden = yield from Namespaces(closed(prefix))
    return list(dict.fromkeys([*live, *map(_home_of_memories, hidden)]))


def history(namespace: tuple[str, ...], key: str) -> Steps[list[JournalEntry]]:
    """Return every change of one memory, oldest first.

    Raises:
        MemoryNotFoundError: There is no such memory, live or closed.
    """
    (current,) = yield from read([(namespace, key)])
    if current is None:
        msg = f"There is no memory {key!r} in {namespace}; search for it, or check the scope."
        raise MemoryNotFoundError(msg)
    after = current.item
    entries: list[JournalEntry] = []
    for version, record in (yield from _records(namespace, key, after.version)):
        entry = _entry(version, record, after)
        entries.append(entry)
        if entry.before is not None:
            after = entry.before
    return entries[::-1]


def _records(
    namespace: tuple[str, ...], key: str, newest: int
) -> Steps[list[tuple[int, Mapping[str, object]]]]:
    """Return the records of a memory by version, newest first.

    They are read by key, page after page, until a page has none: other code may have put any
    number as an item's version.
    """
    records: list[tuple[int, Mapping[str, object]]] = []
    while newest > 0:
        versions = range(newest, max(newest - _PAGE, 0), -1)
        refs = [(journal(namespace), _record_key(key, version)) for version in versions]
        page = [
            (version, found.item.content)
            for version, found in zip(versions, (yield from Get(refs)), strict=True)
            if found is not None and isinstance(found.item.content, dict)
        ]
        records += page
        newest = versions[-1] - 1 if page else 0
    return records


def _entry(version: int, record: Mapping[str, object], after: MemoryItem) -> JournalEntry:
    before = record.get("before")
    cause = record.get("cause")
    return JournalEntry(
        version=version,
        event=record["event"],  # type: ignore[arg-type]  # written by `_record`
        at=parse_timestamp(str(record["at"])),
        cause=Cause.from_dict(cause if isinstance(cause, Mapping) else {}),
        before=MemoryItem.from_value(before) if isinstance(before, Mapping) else None,
        after=after,
    )


def as_it_was(memory: StoredMemory, at: datetime) -> Steps[StoredMemory]:
    """Return a memory as its last version by then, by the times at which changes were applied.

    Its first version stays its first: a turn that was imported today may have been said long ago.
    That it was closed since is still told; its validity says until when it held.
    """
    item = memory.item
    for _, record in (yield from _records(memory.namespace, memory.key, item.version)):
        before = record.get("before")
        if parse_timestamp(str(record["at"])) <= at or not isinstance(before, Mapping):
            break
        previous = MemoryItem.from_value(before)
        item = item if previous.content == item.content else previous
    return replace(memory, item=item, updated_at=at)


def undo(namespace: tuple[str, ...], key: str) -> Steps[MemoryOperation]:
    """Take the last change of one memory back; that is itself a change and can be undone.

    An added memory is archived, a changed one gets its earlier content, a closed one is live
    again under its key.

    Returns:
        The applied operation.

    Raises:
        MemoryNotFoundError: There is no such memory, live or closed, or its last change was made
            by other code and is not recorded.
    """
    entries = yield from history(namespace, key)
    if not entries or entries[-1].version != entries[-1].after.version:
        msg = f"There is no recorded change of {key!r} in {namespace} to undo; other code put it."
        raise MemoryNotFoundError(msg)
    return (yield from _revert(namespace, key, entries[-1]))


def _revert(namespace: tuple[str, ...], key: str, last: JournalEntry) -> Steps[MemoryOperation]:
    current = last.after
    cause = Cause(surface="undo", note=f"undid {last.event} of version {last.version}")
    version = current.version + 1
    target = last.before or replace(current, status="archived")
    operation = MemoryOperation(
        event=_event_between(current, target),
        namespace=namespace,
        key=key,
        before=current,
        after=replace(target, version=version),
        cause=cause,
    )
    (applied,) = yield from apply([operation])
    return applied


def _event_between(before: MemoryItem, after: MemoryItem) -> Event:
    if after.status != "active":
        return "DELETE"
    return "UPDATE" if before.status == "active" else "ADD"


def erase(refs: Sequence[Ref], *, cause: Cause) -> Steps[list[MemoryOperation]]:
    """Erase memories everywhere: live, closed, counters, and every journal record.

    Journals are looked through whole, so that records of an item that other code has overwritten
    or deleted since are found too.

    Returns:
        One applied `DELETE` without before and after for each memory that existed.
    """
    found = dict(zip(refs, (yield from read(refs)), strict=True))
    records: list[tuple[Ref, Ref]] = []
    hidden: dict[Ref, None] = {}
    for namespace in dict.fromkeys(namespace for namespace, _ in refs):
        for home in (namespace, closed(namespace)):
            hidden |= {(namespace, key): None for _, key in (yield from Keys(home, exact=True))}
        for _, name in (yield from _lying(journal(namespace), exact=True)):
            ref = (namespace, name.rpartition("@")[0])
            if ref in found:
                records.append((ref, (journal(namespace), name)))
    existing = [ref for ref, one in found.items() if one is not None or ref in hidden]
    places = [
        (home, key)
        for namespace, key in dict.fromkeys([*existing, *(ref for ref, _ in records)])
        for home in (namespace, closed(namespace), reserved("counters", namespace))
    ]
    yield from Write([Put(*place, None) for place in [*places, *(place for _, place in records)]])
    return [
        _erasure(ref, cause, readable=found[ref] is not None)
        for ref in existing
        if _is_memory(found[ref])
    ]


def _erasure(ref: Ref, cause: Cause, *, readable: bool = True) -> MemoryOperation:
    reason = None if readable else UNREAD
    return MemoryOperation(
        event="DELETE",
        namespace=ref[0],
        key=ref[1],
        cause=cause,
        status="applied",
        reason=reason,
    )


def _is_memory(found: StoredMemory | None) -> bool:
    """Tell whether an item is a memory, and no record of where memories are."""
    return found is None or found.item.kind not in RECORD_KINDS


def below(prefix: tuple[str, ...], *, exact: bool = False) -> Steps[dict[Ref, StoredMemory | None]]:
    """Return everything that lies in a namespace and below it, this package's records included.

    Args:
        prefix: The namespace.
        exact: Only this very namespace, not those below it.

    Returns:
        The items by place; None for one that has expired or cannot be read.
    """
    lying: dict[Ref, StoredMemory | None] = {}
    for root in (prefix, *(reserved(record, prefix) for record in RECORDS)):
        lying.update((yield from _lying(root, exact=exact)))
    return lying


def _lying(root: tuple[str, ...], *, exact: bool) -> Steps[dict[Ref, StoredMemory | None]]:
    lying: dict[Ref, StoredMemory | None] = dict.fromkeys((yield from Keys(root, exact=exact)))
    for name in [root] if exact else (yield from Namespaces(root)):
        lying.update({(name, each.key): each for each in (yield from List(name))})
    return lying


def erase_below(
    prefix: tuple[str, ...], *, exact: bool = False, cause: Cause
) -> Steps[list[MemoryOperation]]:
    """Erase all memories of a namespace and of those below it, with everything kept about them.

    Args:
        prefix: The namespace.
        exact: Only this very namespace, not those below it.
        cause: Why, for the returned operations.

    Returns:
        One applied `DELETE` for each memory, live or closed, that existed, with a reason if it
        could not be read; records such as those of sessions are erased too, and not named.
    """
    lying = yield from below(prefix, exact=exact)
    yield from _DeleteAll(list(lying))
    erased: dict[Ref, MemoryOperation] = {}
    for (name, key), found in lying.items():
        home = _home_of_memories(name)
        if home and _is_memory(found):
            erased[home, key] = _erasure((home, key), cause, readable=found is not None)
    return list(erased.values())


def _home_of_memories(name: tuple[str, ...]) -> tuple[str, ...]:
    """Return the live namespace whose memories lie in `name`; empty where records lie."""
    if name[0] != ROOT:
        return name
    return name[2:] if name[1] == "closed" else ()


@dataclass(frozen=True, slots=True)
class _DeleteAll(Composite[None]):
    """Any number of items deleted: all or none in our own file, batch by batch elsewhere.

    Attributes:
        refs: Which.
    """

    refs: Sequence[Ref]

    def steps(self, env: Environment) -> Steps[None]:
        """Delete in one batch, or in batches that every store takes."""
        whole = callable(getattr(env.the_store(), "all_keys", None))
        size = len(self.refs) if whole else _ERASE_BATCH
        for start in range(0, len(self.refs), size or 1):
            yield from Write([Put(*ref, None) for ref in self.refs[start : start + size]])
