"""Looking at what was changed in a memory, and taking it back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from langchain_agentmem.errors import ConfigurationError, MemoryNotFoundError
from langchain_agentmem.items import MemoryOperation, StoredMemory
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.drivers import arun, run

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from langchain_agentmem.steps.effects import Ref, Steps
    from langchain_agentmem.steps.environment import Environment

T = TypeVar("T")
One: TypeAlias = "StoredMemory | str"
"""How a memory is named: as it was recalled, or by its key."""


class MemoryChanges(ABC):
    """The part of `Memory` that is about single memories' pasts: each call has an async twin."""

    @abstractmethod
    def environment(self, config: RunnableConfig | None = None, context: Any = None) -> Environment:  # noqa: ANN401 - any context type is allowed by LangGraph
        """Return what a call's steps run with."""

    @abstractmethod
    def scope(self) -> Steps[tuple[str, ...]]:
        """Return the namespace of this call."""

    def history(
        self,
        memory: One,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
    ) -> list[journal.JournalEntry]:
        """Return every change of one memory, oldest first, each with its cause.

        Args:
            memory: A memory as `recall` gives it, or its key.
            config: The call's config; its `configurable` names the scope.
            context: The runtime context, which wins over the config.

        Raises:
            ConfigurationError: The memory does not belong to the scope of the call, or several
                have this key.
            MemoryNotFoundError: There is no such memory.
            TypeError: It is neither a memory nor a key.
        """
        return run(self._own(memory, journal.history), self.environment(config, context))

    async def ahistory(
        self,
        memory: One,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
    ) -> list[journal.JournalEntry]:
        """Return every change of one memory; the async twin of `history`."""
        return await arun(self._own(memory, journal.history), self.environment(config, context))

    def undo(
        self,
        memory: One,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
    ) -> MemoryOperation:
        """Take the last change of one memory back; arguments and errors are those of `history`.

        Returns:
            The change that was made, as the journal has it from now on.
        """
        return run(self._own(memory, journal.undo), self.environment(config, context))

    async def aundo(
        self,
        memory: One,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
    ) -> MemoryOperation:
        """Take the last change of one memory back; the async twin of `undo`."""
        return await arun(self._own(memory, journal.undo), self.environment(config, context))

    def _own(self, memory: One, then: Callable[[tuple[str, ...], str], Steps[T]]) -> Steps[T]:
        if not isinstance(memory, StoredMemory | str):
            raise _neither(memory, "recall(...).items[0]")
        scope = yield from self.scope()
        if isinstance(memory, StoredMemory):
            return (yield from then(*place_of(memory, scope)))
        homes = dict.fromkeys([*(yield from journal.homes(scope)), scope])
        found = [each for each in (yield from journal.read([(h, memory) for h in homes])) if each]
        if not found:
            msg = f"There is no memory with the key {memory!r} in {scope}; recall shows the keys."
            raise MemoryNotFoundError(msg)
        if len(found) > 1:
            msg = (
                f"{len(found)} memories have the key {memory!r}, in "
                f"{[each.namespace for each in found]}; give the recalled memory itself."
            )
            raise ConfigurationError(msg)
        return (yield from then(found[0].namespace, found[0].key))


def place_of(memory: StoredMemory, scope: tuple[str, ...]) -> Ref:
    """Return where a recalled memory lies.

    Raises:
        ConfigurationError: That is outside of the scope.
    """
    if memory.namespace[: len(scope)] != scope:
        msg = f"Memory {memory.key!r} lies in {memory.namespace}, outside of the scope {scope}."
        raise ConfigurationError(msg)
    return memory.namespace, memory.key


def named(selector: One | Iterable[One]) -> tuple[list[StoredMemory], list[str]]:
    """Return the recalled memories and the keys of a selector of `forget`.

    Raises:
        TypeError: It is, or holds, something else.
    """
    many = [selector] if isinstance(selector, StoredMemory | str) else selector
    if isinstance(many, bytes | Mapping) or not isinstance(many, Iterable):
        raise _neither(many, "recall(...).items, {'field': value} or EVERYTHING")
    given: Sequence[object] = list(many)
    for each in given:
        if not isinstance(each, StoredMemory | str):
            raise _neither(each, "recall(...).items")
    return (
        [each for each in given if isinstance(each, StoredMemory)],
        [each for each in given if isinstance(each, str)],
    )


def _neither(given: object, example: str) -> TypeError:
    msg = f"Give a memory or its key, such as {example}, not {given!r} ({type(given).__name__})."
    return TypeError(msg)
