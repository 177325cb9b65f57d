"""What the tests of steps and memories share: a clock, stores, and steps driven both ways."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from langgraph.store.base import BaseStore

from langchain_agentmem.memories import Memory
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.testing import ManualClock

T = TypeVar("T")
START = datetime(2026, 3, 1, 10, tzinfo=UTC)


class Clock(ManualClock):
    """A clock that starts at `START` and stands still until it is moved."""

    def __init__(self) -> None:
        super().__init__(START)

    def move(self, seconds: float = 0, **by: float) -> None:
        """Let time pass, or run backwards."""
        self.now += timedelta(seconds=seconds, **by)


class Drive(Protocol):
    """Carries steps out, in one of both ways."""

    def __call__(self, steps: Steps[T], env: Environment) -> T:
        """Return what the steps return."""


def blocking(steps: Steps[T], env: Environment) -> T:
    """Carry steps out with blocking calls."""
    return run(steps, env)


def awaiting(steps: Steps[T], env: Environment) -> T:
    """Carry steps out with `await`, in a loop of their own."""
    return asyncio.run(arun(steps, env))


class Calls:
    """A memory's public calls by their sync names, through sync or async."""

    def __init__(self, memory: Memory, *, is_async: bool) -> None:
        self.memory = memory
        self.is_async = is_async

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a method that runs the wanted twin to its end."""

        def call(*args: object, **kwargs: object) -> Any:  # noqa: ANN401 - any method's result
            if not self.is_async:
                return getattr(self.memory, name)(*args, **kwargs)
            return asyncio.run(getattr(self.memory, f"a{name}")(*args, **kwargs))

        return call


def everything(store: BaseStore) -> dict[tuple[tuple[str, ...], str], dict[str, Any]]:
    """Return all values of a store, own records included, but for counts of erasures."""
    found: dict[tuple[tuple[str, ...], str], dict[str, Any]] = {}
    for prefix in ((), ("_agentmem",)):
        for namespace in store.list_namespaces(prefix=prefix or None, limit=10_000):
            for item in store.search(namespace, limit=10_000):
                found[item.namespace, item.key] = item.value
    return {ref: value for ref, value in found.items() if value.get("kind") != "erasures"}
