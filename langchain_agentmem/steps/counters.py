"""How often memories were recalled: kept apart, so that counting never changes a memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.items import StoredMemory, to_timestamp
from langchain_agentmem.scopes import reserved
from langchain_agentmem.steps.contention import insist
from langchain_agentmem.steps.effects import Emit, Get, Now, Put, Ref, Steps, Write

_ATTEMPTS: Final = 10


def count_recalled(memories: Sequence[StoredMemory]) -> Steps[None]:
    """Add one to the recalls of some memories, and note when that was.

    Counting gives up, with an event, where other readers are quicker ten times in a row.
    """
    refs = [(reserved("counters", each.namespace), each.key) for each in memories]
    now = to_timestamp((yield from Now()))
    try:
        yield from insist(lambda: _count(refs, now), _ATTEMPTS)
    except ConflictError:
        yield from Emit("recalls_not_counted", {"memories": len(refs)})


def _count(refs: Sequence[Ref], now: str) -> Steps[None]:
    puts: list[Put] = []
    expect: dict[Ref, int | None] = {}
    for (home, key), stored in zip(refs, (yield from Get(refs)), strict=True):
        old = _record(stored)
        recalled = int(old.get("recalled", 0)) + 1
        value = {**old, "recalled": recalled, "last_recalled_at": now, "version": recalled}
        puts.append(Put(home, key, value))
        expect[home, key] = recalled - 1 or None
    yield from Write(puts, expect)


def counts(memories: Sequence[StoredMemory]) -> Steps[list[dict[str, Any]]]:
    """Return `recalled` and `last_recalled_at` of each memory; empty for one never recalled."""
    refs = [(reserved("counters", each.namespace), each.key) for each in memories]
    return [_record(stored) for stored in (yield from Get(refs))]


def _record(stored: StoredMemory | None) -> dict[str, Any]:
    return stored.item.content if stored and isinstance(stored.item.content, dict) else {}
