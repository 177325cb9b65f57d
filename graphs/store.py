"""The server's store: one SQLite file, `AGENTMEM_DB` or `.agentmem/memory.sqlite`."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from langchain_agentmem import FaissSqliteStore


@asynccontextmanager
async def store() -> AsyncIterator[FaissSqliteStore]:
    """Open the file, made at its first use, and collect what has expired while it is open."""
    path = Path(os.environ.get("AGENTMEM_DB", ".agentmem/memory.sqlite"))
    await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
    async with FaissSqliteStore(path) as opened:
        opened.start_ttl_sweeper()
        yield opened
