"""The store files of the survival tests, and the processes that work on them."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.testing import CharacterEmbeddings

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

DIMS: Final = 16


def open_file(path: str, **options: Any) -> FaissSqliteStore:  # noqa: ANN401 - passed on
    """Return a store on a file, with vectors and words of the field `text`."""
    index: Any = {"dims": DIMS, "embed": CharacterEmbeddings(DIMS), "fields": ["text"]}
    return FaissSqliteStore(path, index=index, **options)


def processes() -> ForkServerContext:
    """Return what starts processes from one that has loaded everything and opened nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["langchain_agentmem.stores._engine", "tests.survival.writer", "tests.survival.contention"]
    )
    return context
