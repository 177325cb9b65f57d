"""One body for the sync and async methods of the adapters.

An adapter's work is a generator that yields calls and receives their results. `drive` makes the
calls directly, `adrive` awaits their async twins, so that neither has logic of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

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
