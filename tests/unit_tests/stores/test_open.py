"""`open_store`: which store a URL names."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest

from langchain_agentmem import FaissSqliteStore, open_store
from langchain_agentmem.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from langgraph.store.base import TTLConfig


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
    assert [item.value for item in store.search(("a",))] == [{"n": 1}]
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


@pytest.mark.parametrize(
    ("url", "words"),
    [(None, "is a string such as"), ("sqlite:///a.sqlite?mode=ro", "as arguments instead")],
)
def test_url_that_would_name_another_file_is_refused(url: Any, words: str) -> None:  # noqa: ANN401 - any wrong value
    """Options after `?` are no part of a file's name."""
    with pytest.raises(ConfigurationError, match=words):
        open_store(url)


@pytest.mark.parametrize(
    ("ttl", "words"),
    [
        ({"default_tll": 5}, "default_ttl"),
        (5, "must be a dictionary"),
        ({"default_ttl": -1}, "positive number of minutes"),
        ({"default_ttl": "5"}, "positive number of minutes"),
        ({"default_ttl": 1e300}, "at most 1e9"),
        ({"sweep_interval_minutes": 0}, "positive number of minutes"),
        ({"refresh_on_read": "no"}, "True or False"),
    ],
)
def test_a_ttl_configuration_without_effect_is_refused(ttl: Any, words: str) -> None:  # noqa: ANN401 - any wrong value
    """A misspelled key would keep for ever what was to expire."""
    with pytest.raises(ConfigurationError, match=words):
        open_store("sqlite:///:memory:", index=None, ttl=ttl)


def test_every_ttl_configuration_of_langgraph_is_taken() -> None:
    """None stands for no expiry."""
    ttl: TTLConfig = {"default_ttl": None, "sweep_interval_minutes": 5, "refresh_on_read": False}
    with open_store("sqlite:///:memory:", index=None, ttl=ttl) as store:
        store.put(("a",), "k", {"n": 1})
        assert store.get(("a",), "k") is not None
        assert store.ttl_config == ttl


def test_an_index_of_another_type_is_refused() -> None:
    """Not with an `AttributeError`."""
    wrong: Any = 5
    with pytest.raises(ConfigurationError, match="index must be 'default'"):
        FaissSqliteStore(":memory:", index=wrong)


def test_a_sweeper_without_a_pause_is_refused() -> None:
    """A negative interval would sweep without end."""
    with (
        FaissSqliteStore(":memory:", index=None) as store,
        pytest.raises(ValueError, match="must be positive"),
    ):
        store.start_ttl_sweeper(-1)


def test_numbers_beyond_a_database_integer_are_the_largest_there_is() -> None:
    """Whoever asks for more than there can be gets everything."""
    with open_store("sqlite:///:memory:") as store:
        store.put(("a",), "k", {"text": "tea"})
        for query in (None, "tea"):
            assert len(store.search(("a",), query=query, limit=10**30)) == 1
            assert store.search(("a",), query=query, offset=10**30) == []
        assert store.list_namespaces(limit=10**30) == [("a",)]
        with pytest.raises(ValueError, match="at most 1e9"):
            store.put(("a",), "k", {"text": "tea"}, ttl=1e300)


def test_postgres_without_its_packages_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "langchain_agentmem.stores.postgres", None)
    with pytest.raises(ConfigurationError, match=r"langchain-agentmem\[postgres\]"):
        open_store("postgresql://host/db")


def test_an_index_of_words_alone_is_refused_for_postgres() -> None:
    """LangGraph's table of vectors needs their length."""
    pytest.importorskip("langgraph.store.postgres")
    index: Any = {"fields": ["text"]}
    with pytest.raises(ConfigurationError, match=r"index\['embed'\]"):
        open_store("postgresql://host/db", index=index)
