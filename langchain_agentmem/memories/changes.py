"""Looking at what was changed in a memory, and taking it back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.items import MemoryOperation, StoredMemory
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.drivers import arun, run

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from langchain_agentmem.steps.effects import Steps
    from langchain_agentmem.steps.environment import Environment

T = TypeVar("T")


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
        memory: StoredMemory,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
    ) -> list[journal.JournalEntry]:
        """Return every change of one memory, oldest first, each with its cause.

        Raises:
            ConfigurationError: The memory does not belong to the scope of the call.
            MemoryNotFoundError: There is no such memory.
        """
        return run(self._own(memory, journal.history), self.environment(config, context))

    async def ahistory(
        self,
        memory: StoredMemory,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
    ) -> list[journal.JournalEntry]:
        """Return every change of one memory; the async twin of `history`."""
        return await arun(self._own(memory, journal.history), self.environment(config, context))

    def undo(
        self,
        memory: StoredMemory,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
    ) -> MemoryOperation:
        """Take the last change of one memory back.

        Raises:
            ConfigurationError: The memory does not belong to the scope of the call.
            MemoryNotFoundError: There is no such memory.
        """
        return run(self._own(memory, journal.undo), self.environment(config, context))

    async def aundo(
        self,
        memory: StoredMemory,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
    ) -> MemoryOperation:
        """Take the last change of one memory back; the async twin of `undo`."""
        return await arun(self._own(memory, journal.undo), self.environment(config, context))

    def _own(
        self, memory: StoredMemory, then: Callable[[tuple[str, ...], str], Steps[T]]
    ) -> Steps[T]:
        scope = yield from self.scope()
        if memory.namespace[: len(scope)] != scope:
            msg = f"Memory {memory.key!r} lies in {memory.namespace}, outside of the scope {scope}."
            raise ConfigurationError(msg)
        return (yield from then(memory.namespace, memory.key))
