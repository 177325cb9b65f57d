"""Opening and closing a store with `with` and `async with`."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class Closing(ABC):
    """A store that `setup` opens and `close` closes, both of which may block."""

    @abstractmethod
    def setup(self) -> None:
        """Open the store."""

    @abstractmethod
    def close(self) -> None:
        """Close the store."""

    async def aclose(self) -> None:
        """Do what `close` does without blocking the loop."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        """Open the store."""
        self.setup()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store."""
        self.close()

    async def __aenter__(self) -> Self:
        """Open the store without blocking the loop."""
        await asyncio.to_thread(self.setup)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store without blocking the loop."""
        await self.aclose()
