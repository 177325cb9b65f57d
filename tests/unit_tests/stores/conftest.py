"""Fixtures of the store's tests: a scripted embedder, a clock, and one face for sync and async."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings

from langchain_agentmem.stores import FaissSqliteStore
from tests.unit_tests.floor import Clock

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


class Letters(Embeddings):
    """Counts letters: deterministic, offline, and it records every call."""

    name = "letters"

    def __init__(self, dims: int = len(LETTERS)) -> None:
        self.dims = dims
        self.documents: list[str] = []
        self.queries: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text."""
        self.documents += texts
        return [self._count(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        self.queries.append(text)
        return self._count(text)

    def _count(self, text: str) -> list[float]:
        return [float(text.lower().count(letter)) for letter in LETTERS[: self.dims]]


class Client:
    """Calls a store's methods by their sync names, through sync or async."""

    def __init__(self, store: FaissSqliteStore, *, is_async: bool) -> None:
        self.store = store
        self.is_async = is_async

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a method that runs the wanted twin to its end."""

        def call(*args: object, **kwargs: object) -> Any:  # noqa: ANN401 - any method's result
            if not self.is_async:
                return getattr(self.store, name)(*args, **kwargs)
            return asyncio.run(self._await(name, args, kwargs))

        return call

    async def _await(self, name: str, args: Iterable[object], kwargs: dict[str, object]) -> Any:  # noqa: ANN401
        return await getattr(self.store, f"a{name}")(*args, **kwargs)

    def keys(self, *args: object, **kwargs: object) -> list[str]:
        """Return the keys a search finds, in order."""
        return [item.key for item in self.search(*args, **kwargs)]


Open = Callable[..., FaissSqliteStore]


@pytest.fixture
def embedder() -> Letters:
    """An embedder that counts letters."""
    return Letters()


@pytest.fixture
def open_store(tmp_path: Path, clock: Clock, embedder: Letters) -> Iterator[Open]:
    """Opens stores on one file, indexed by `embedder`, and closes them after the test."""
    opened: list[FaissSqliteStore] = []

    def make(path: str | Path = tmp_path / "store.db", **options: Any) -> FaissSqliteStore:  # noqa: ANN401 - any option
        options.setdefault("index", {"dims": embedder.dims, "embed": embedder, "fields": ["text"]})
        store = FaissSqliteStore(path, **({"clock": clock} | options))
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Open) -> FaissSqliteStore:
    """A store with an index over the field `text`."""
    return open_store()


@pytest.fixture(params=["sync", "async"])
def client(store: FaissSqliteStore, request: pytest.FixtureRequest) -> Client:
    """The same store through its sync and through its async methods."""
    return Client(store, is_async=request.param == "async")
