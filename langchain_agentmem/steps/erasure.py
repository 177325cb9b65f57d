"""Keeping what is still being written from coming back after its scope was erased.

A write that waits for a model may end after `forget`. Each erasure of a whole scope therefore
counts up one number of that scope, in a record without any text, not even the scope's name.
Whoever remembers reads it before its work and writes only if it is still the same.
"""

from __future__ import annotations

import hashlib
from typing import Final

from langchain_agentmem.items import MemoryItem
from langchain_agentmem.scopes import reserved
from langchain_agentmem.steps.contention import insist
from langchain_agentmem.steps.cursor import HOME, RUN
from langchain_agentmem.steps.effects import Get, Guard, Put, Ref, Setting, Steps, Write

_KEY: Final = "count"
_SOURCE_GONE: Final = -1


def guard(scope: tuple[str, ...], erasures: int | None = None) -> Steps[int]:
    """From now on, refuse what this call writes once its scope is erased.

    A background run whose record was erased before it came here writes nothing at all.

    Args:
        scope: The scope's namespace.
        erasures: What an earlier step of the same work was returned; None at its beginning.

    Returns:
        How often the scope was erased before the work began.
    """
    if erasures is None:
        erasures = yield from _erasures(scope)
    yield from Guard(ref(scope), erasures or None)
    return erasures


def _erasures(scope: tuple[str, ...]) -> Steps[int]:
    run, home = (yield from Setting(RUN)), (yield from Setting(HOME))
    source: list[Ref] = [(reserved("queue", home), str(run))] if run and home else []
    count, *record = yield from Get([ref(scope), *source])
    if record == [None]:
        return _SOURCE_GONE
    return count.item.version if count else 0


def advance(scope: tuple[str, ...]) -> Steps[None]:
    """Count one more erasure of a scope, so that work that has begun writes nothing more.

    Raises:
        ConflictError: Other erasures of the scope were quicker a hundred times in a row.
    """
    home, key = ref(scope)

    def count_up() -> Steps[None]:
        (count,) = yield from Get([(home, key)])
        version = count.item.version if count else 0
        item = MemoryItem(content={}, kind="erasures", version=version + 1)
        yield from Write([Put(home, key, item.to_value())], {(home, key): version or None})

    yield from insist(count_up)


def ref(scope: tuple[str, ...]) -> Ref:
    """Return where the number of a scope's erasures lies."""
    digest = hashlib.sha256("\x1f".join(scope).encode()).hexdigest()
    return reserved("erased", (digest,)), _KEY
