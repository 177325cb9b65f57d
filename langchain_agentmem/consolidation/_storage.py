"""Where a queue's records and the locks of its scopes lie, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.consolidation.records import Record
from langchain_agentmem.items import MemoryItem, parse_timestamp, to_timestamp
from langchain_agentmem.scopes import reserved
from langchain_agentmem.steps.effects import Get, List, Namespaces, Put, Ref, Steps, Write

if TYPE_CHECKING:
    from datetime import datetime

QUEUE: Final = reserved("queue", ())
_KIND: Final = "queue"
_LOCK: Final = "lock"


def records(scope: tuple[str, ...]) -> Steps[list[Record]]:
    """Return the records of one scope."""
    found = yield from List(reserved("queue", scope))
    return [Record.read(each) for each in found if each.item.kind == _KIND]


def all_records(scope: tuple[str, ...] | None = None) -> Steps[list[Record]]:
    """Return the records of one scope, or of all."""
    homes = yield from Namespaces(reserved("queue", scope or ()))
    found: list[Record] = []
    for home in homes:
        if scope is None or home == reserved("queue", scope):
            found += yield from records(home[len(QUEUE) :])
    return found


def write(record: Record, expected: int | None) -> Steps[None]:
    """Write a record that still has the expected version.

    Raises:
        ConflictError: It has another one; nothing was written.
    """
    home = reserved("queue", record.scope)
    yield from Write([_put(record)], {(home, record.id): expected})


def write_held(
    record: Record, expected: int, until: datetime, also: Sequence[Put] = ()
) -> Steps[bool]:
    """Write a record that is worked on, and with it until when it keeps its scope locked.

    A lock that another record has taken meanwhile is left to it. Returns True.

    Raises:
        ConflictError: The record has another version than expected; nothing was written.
    """
    home = reserved("queue", record.scope)
    content, version = yield from _lock_of(home)
    puts = [_put(record), *also]
    expect: dict[Ref, int | None] = {(home, record.id): expected}
    if content.get("record") == record.id:
        puts.append(_lock(home, record, until, version + 1))
        expect[home, _LOCK] = version
    yield from Write(puts, expect)
    return True


def take(record: Record, taken: Record, now: datetime, until: datetime) -> Steps[bool]:
    """Write a record as taken, and lock its scope; tell whether the scope was free.

    Raises:
        ConflictError: Another worker was quicker; nothing was written.
    """
    home = reserved("queue", record.scope)
    content, version = yield from _lock_of(home)
    if content and parse_timestamp(content["until"]) > now:
        return False
    puts = [_put(taken), _lock(home, taken, until, version + 1)]
    expect: dict[Ref, int | None] = {(home, record.id): record.version}
    yield from Write(puts, {**expect, (home, _LOCK): version or None})
    return True


def _lock_of(home: tuple[str, ...]) -> Steps[tuple[dict[str, Any], int]]:
    (lock,) = yield from Get([(home, _LOCK)])
    if lock is None or not isinstance(lock.item.content, dict):
        return {}, 0
    return lock.item.content, lock.item.version


def _put(record: Record) -> Put:
    item = MemoryItem(kind=_KIND, content=record.to_value(), version=record.version)
    return Put(reserved("queue", record.scope), record.id, item.to_value())


def _lock(home: tuple[str, ...], record: Record, until: datetime, version: int) -> Put:
    content = {"until": to_timestamp(until), "record": record.id}
    return Put(home, _LOCK, MemoryItem(kind=_LOCK, content=content, version=version).to_value())
