"""`open_store`: which store a URL names."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from langchain_agentmem import FaissSqliteStore, open_store
from langchain_agentmem.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


def test_sqlite_url_names_a_file(tmp_path: Path) -> None:
    """The path may be absolute and hold escaped characters; options reach the store."""
    with open_store(
        f"sqlite:///{tmp_path}/a%20b.sqlite", index=None, synchronous="normal"
    ) as store:
        store.put(("a",), "k", {"n": 1})
    assert (tmp_path / "a b.sqlite").exists()


def test_sqlite_url_may_be_in_memory() -> None:
    """`:memory:` is a path like any other, and the store is usable without `with`."""
    store = open_store("sqlite:///:memory:", index=None)
    assert isinstance(store, FaissSqliteStore)
    store.put(("a",), "k", {"n": 1})
    store.close()


def test_store_is_an_async_context_manager() -> None:
    """Async programs open it with `async with`."""

    async def use() -> int:
        async with open_store("sqlite:///:memory:", index=None) as store:
            await store.aput(("a",), "k", {"n": 1})
            return len(await store.asearch(("a",)))

    assert asyncio.run(use()) == 1


@pytest.mark.parametrize("url", ["memory.sqlite", "sqlite:///", "mysql://user:secret@host/db"])
def test_other_url_is_explained_without_its_password(url: str) -> None:
    """The error names both forms and no secret."""
    with pytest.raises(ConfigurationError, match=r"sqlite:///.*postgresql://") as error:
        open_store(url)
    assert "@host/db'" not in str(error.value)


def test_postgres_without_its_packages_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "langchain_agentmem.stores.postgres", None)
    with pytest.raises(ConfigurationError, match=r"langchain-agentmem\[postgres\]"):
        open_store("postgresql://host/db")
