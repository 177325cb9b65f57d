"""One body for the sync and async methods of the adapters.

An adapter's work is a generator that yields calls and receives their results. `drive` makes the
calls directly, `adrive` awaits their async twins, so that neither has logic of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from langchain_core.vectorstores import VectorStore
from langgraph.store.base import BaseStore

from langchain_agentmem.errors import ConfigurationError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A method call that exists twice: `name`, and `a` + `name` to be awaited.

    Attributes:
        target: The object.
        name: The sync method's name.
        args: Positional arguments.
        options: Keyword arguments.
    """

    target: Any
    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


Work = Generator[Call, Any, T]


def drive(work: Work[T]) -> T:
    """Run work with sync calls and return its result."""
    try:
        call = next(work)
        while True:
            try:
                result = getattr(call.target, call.name)(*call.args, **call.options)
            except Exception as err:  # noqa: BLE001 - given to the body, which may handle it
                call = work.throw(err)
            else:
                call = work.send(result)
    except StopIteration as end:
        value: T = end.value
        return value


async def adrive(work: Work[T]) -> T:
    """Run work with async calls and return its result."""
    try:
        call = next(work)
        while True:
            try:
                result = await getattr(call.target, f"a{call.name}")(*call.args, **call.options)
            except Exception as err:  # noqa: BLE001 - given to the body, which may handle it
                call = work.throw(err)
            else:
                call = work.send(result)
    except StopIteration as end:
        value: T = end.value
        return value


class Turns:
    """Lets one work go on at a time: threads wait for threads, and tasks for tasks of their loop.

    A thread does not wait for a task, which may need the loop that this very thread runs.
    """

    def __init__(self) -> None:
        self._threads = threading.RLock()
        self._tasks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    def drive(self, work: Work[T]) -> T:
        """Run work with sync calls once it is its turn."""
        with self._threads:
            return drive(work)

    async def adrive(self, work: Work[T]) -> T:
        """Run work with async calls once it is its turn."""
        async with self._tasks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            return await adrive(work)


def as_namespace(namespace: object, owner: str) -> tuple[str, ...]:
    """Return the namespace an adapter was given.

    Raises:
        ConfigurationError: If it is a string, whose letters would be labels, or empty.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Sequence) or not namespace:
        msg = f"{owner} needs a namespace of at least one label, as ('docs',); not {namespace!r}."
        raise ConfigurationError(msg)
    return tuple(namespace)


def require_store(store: object) -> BaseStore:
    """Return a LangGraph store.

    Raises:
        ConfigurationError: If it is something else, a LangChain `VectorStore` for example.
    """
    if isinstance(store, BaseStore):
        return store
    if isinstance(store, VectorStore):
        msg = (
            f"{type(store).__name__} is a LangChain VectorStore, not a LangGraph BaseStore; "
            "wrap it: VectorStoreBaseStore(vectorstore)."
        )
        raise ConfigurationError(msg)
    msg = f"A LangGraph BaseStore is needed, not {type(store).__name__}."
    raise ConfigurationError(msg)
