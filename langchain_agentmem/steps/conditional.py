"""Conditional writes on any LangGraph store.

A store that has them itself (`supports_conditional_writes`) is given the expected versions. For
any other the same check is made here under an in-process lock: correct among the writers of one
process, not among several processes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, get_text_at_path
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import ConflictError

if TYPE_CHECKING:
    from langgraph.store.base import Op, Result

    from langchain_agentmem.steps.effects import Ref

_STRIPES: Final = 64
_RETRY_SECONDS: Final = 0.001

_locks: WeakKeyDictionary[BaseStore, tuple[threading.Lock, ...]] = WeakKeyDictionary()
_guards: WeakKeyDictionary[BaseStore, threading.Lock] = WeakKeyDictionary()
_creation = threading.Lock()


def batch(store: BaseStore, ops: Sequence[Op], expect: Mapping[Ref, int | None]) -> list[Result]:
    """Apply operations if the expected versions are still there.

    Raises:
        ConflictError: An item has another version; nothing was written.
    """
    if not expect:
        return _apply(store, ops)
    if _has_conditional_writes(store):
        return _wider(store).batch(list(ops), expect=expect)  # type: ignore[no-any-return]  # a store's own wider batch
    locks = _locks_of(store, expect)
    for lock in locks:
        lock.acquire()
    try:
        _check(expect, store.batch(_reads(expect)))
        return _apply(store, ops)
    finally:
        for lock in locks:
            lock.release()


async def abatch(
    store: BaseStore, ops: Sequence[Op], expect: Mapping[Ref, int | None]
) -> list[Result]:
    """Apply operations if the expected versions are still there, without blocking the loop.

    Raises:
        ConflictError: An item has another version; nothing was written.
    """
    if not expect:
        return await _aapply(store, ops)
    if _has_conditional_writes(store):
        return await _wider(store).abatch(list(ops), expect=expect)  # type: ignore[no-any-return]  # a store's own wider batch
    held: list[threading.Lock] = []
    try:
        for lock in _locks_of(store, expect):
            while not lock.acquire(blocking=False):  # noqa: ASYNC110 - other holders are threads
                await asyncio.sleep(_RETRY_SECONDS)
            held.append(lock)
        _check(expect, await store.abatch(_reads(expect)))
        return await _aapply(store, ops)
    finally:
        for lock in held:
            lock.release()


def _apply(store: BaseStore, ops: Sequence[Op]) -> list[Result]:
    with _guard(store):
        return [result for part in _parts(store, ops) for result in store.batch(part)]


async def _aapply(store: BaseStore, ops: Sequence[Op]) -> list[Result]:
    return [result for part in _parts(store, ops) for result in await store.abatch(part)]


def _guard(store: BaseStore) -> AbstractContextManager[object]:
    """Return a lock for LangGraph's `InMemoryStore`: a search fails while another thread puts."""
    if not isinstance(store, InMemoryStore):
        return nullcontext()
    with _creation:
        return _guards.setdefault(store, threading.Lock())


def _parts(store: BaseStore, ops: Sequence[Op]) -> list[list[Op]]:
    """Return the batches in which to apply operations: one, wherever the store can.

    LangGraph's `InMemoryStore` with an index fails on a batch in which two items have one text.
    """
    if not isinstance(store, InMemoryStore) or store.index_config is None:
        return [list(ops)]
    parts: list[tuple[list[Op], set[str]]] = []
    for op in ops:
        texts = _indexed_texts(op)
        fitting = (part for part in parts if part[1].isdisjoint(texts))
        part = next(fitting, None)
        if part is None:
            parts.append(part := ([], set()))
        part[0].append(op)
        part[1].update(texts)
    return [part for part, _ in parts]


def _indexed_texts(op: Op) -> set[str]:
    """Return the texts of a put that its own paths name; the steps always name them."""
    if not isinstance(op, PutOp) or not op.value or not op.index:
        return set()
    return {text for path in op.index for text in get_text_at_path(op.value, path)}


def version_of(value: Mapping[str, Any]) -> int:
    """Return the version of a stored value; values without one count as version 1."""
    version = value.get("version")
    return version if isinstance(version, int) and not isinstance(version, bool) else 1


def _has_conditional_writes(store: BaseStore) -> bool:
    return bool(getattr(store, "supports_conditional_writes", False))


def _wider(store: BaseStore) -> Any:  # noqa: ANN401 - a store whose batch also takes `expect`
    return store


def _locks_of(store: BaseStore, expect: Mapping[Ref, int | None]) -> list[threading.Lock]:
    with _creation:
        stripes = _locks.get(store)
        if stripes is None:
            stripes = tuple(threading.Lock() for _ in range(_STRIPES))
            _locks[store] = stripes
    wanted = {hash(namespace) % _STRIPES for namespace, _ in expect}
    return [stripes[number] for number in sorted(wanted)]


def _reads(expect: Mapping[Ref, int | None]) -> list[Op]:
    return [GetOp(namespace, key, refresh_ttl=False) for namespace, key in expect]


def _check(expect: Mapping[Ref, int | None], found: Sequence[Result]) -> None:
    versions = [version_of(each.value) if isinstance(each, Item) else None for each in found]
    conflicts = {
        ref: (expected, version)
        for (ref, expected), version in zip(expect.items(), versions, strict=True)
        if expected != version
    }
    if conflicts:
        raise ConflictError(conflicts)
