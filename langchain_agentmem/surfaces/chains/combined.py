"""Several memories as one, a memory that is only read, and constants."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from langchain_classic.base_memory import BaseMemory
from pydantic import ConfigDict, Field

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.surfaces.chains._base import StoredChainMemory


class CombinedMemory(BaseMemory):
    """Several memories that fill different inputs of one chain.

    Attributes:
        memories: The memories.

    Raises:
        ConfigurationError: Two of them fill the same input.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memories: list[BaseMemory]

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - pydantic's signature
        """Check the keys, and tell each memory those of the others."""
        super().model_post_init(context)
        times = Counter(self.memory_variables)
        double = sorted(key for key, count in times.items() if count > 1)
        if double:
            msg = f"Two memories fill {double[0]!r}; give one of them another memory_key."
            raise ConfigurationError(msg)
        for memory in self.memories:
            if isinstance(memory, StoredChainMemory):
                memory.sibling_keys = tuple(self.memory_variables)

    @property
    def memory_variables(self) -> list[str]:
        """The inputs that the memories fill."""
        return [key for memory in self.memories for key in memory.memory_variables]

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return all memories for a chain's inputs."""
        loaded = [memory.load_memory_variables(inputs) for memory in self.memories]
        return {key: value for each in loaded for key, value in each.items()}

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return all memories for a chain's inputs, loaded at the same time."""
        loads = (memory.aload_memory_variables(inputs) for memory in self.memories)
        loaded = await asyncio.gather(*loads)
        return {key: value for each in loaded for key, value in each.items()}

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Remember one turn in every memory."""
        for memory in self.memories:
            memory.save_context(inputs, outputs)

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Remember one turn in every memory, at the same time."""
        await asyncio.gather(*(each.asave_context(inputs, outputs) for each in self.memories))

    def clear(self) -> None:
        """Clear every memory."""
        for memory in self.memories:
            memory.clear()

    async def aclear(self) -> None:
        """Clear every memory, at the same time."""
        await asyncio.gather(*(memory.aclear() for memory in self.memories))


class ReadOnlySharedMemory(BaseMemory):
    """A live view of another memory that writes nothing.

    Attributes:
        memory: The memory that is shown.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memory: BaseMemory

    @property
    def memory_variables(self) -> list[str]:
        """The inputs that the memory fills."""
        return self.memory.memory_variables

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return what the memory loads."""
        return self.memory.load_memory_variables(inputs)

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return what the memory loads; the async twin of `load_memory_variables`."""
        return await self.memory.aload_memory_variables(inputs)

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Save nothing."""

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Save nothing; the async twin of `save_context`."""

    def clear(self) -> None:
        """Erase nothing."""

    async def aclear(self) -> None:
        """Erase nothing; the async twin of `clear`."""


class SimpleMemory(BaseMemory):
    """Constants for a chain's inputs.

    Attributes:
        memories: Name and value of each.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memories: dict[str, Any] = Field(default_factory=dict)

    @property
    def memory_variables(self) -> list[str]:
        """The inputs that are filled."""
        return list(self.memories)

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - BaseMemory's signature
        """Return the constants."""
        return self.memories

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - as above
        """Return the constants; the async twin of `load_memory_variables`."""
        return self.memories

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Save nothing."""

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Save nothing; the async twin of `save_context`."""

    def clear(self) -> None:
        """Erase nothing."""

    async def aclear(self) -> None:
        """Erase nothing; the async twin of `clear`."""
