"""Items, vectors and queries for measuring stores: made from numbers, the same in every run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

TAGS: Final = 100
GROUP_SHARE: Final = 10  # scopes of a user, to one of its group
_WORDS: Final = 25
_QUERY_WORDS: Final = 6
_VOCABULARY: Final = 20_000


class Prepared(Embeddings):
    """Looks vectors up that were made before, by the number that ends a text.

    Attributes:
        seconds: Processor time spent so far.
    """

    name = "prepared"

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.vectors = vectors
        self.dims = vectors.shape[1]
        self.seconds = 0.0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text; some stores embed queries here too."""
        started = time.thread_time()
        rows: list[list[float]] = self.vectors[[number(text) for text in texts]].tolist()
        self.seconds += time.thread_time() - started
        return rows

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        started = time.thread_time()
        row: list[float] = self.vectors[number(text)].tolist()
        self.seconds += time.thread_time() - started
        return row


def number(text: str) -> int:
    """Return the number that ends a text."""
    return int(text.rpartition("n")[2])


@dataclass(frozen=True)
class Data:
    """What every store is filled with and asked for.

    Attributes:
        size: How many items are loaded at once.
        users: How many scopes there are.
        texts: The items' texts, of about 170 bytes; those after `size` are put one by one.
        queries: The queries' texts, numbered on after all items.
        model: The embedder.
    """

    size: int
    users: int
    texts: list[str]
    queries: list[str]
    model: Prepared

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The vectors of the items that are loaded at once."""
        return self.model.vectors[: self.size]

    def query_vector(self, n: int) -> NDArray[np.float32]:
        """Return a query's vector."""
        row: NDArray[np.float32] = self.model.vectors[number(self.queries[n])]
        return row

    def user(self, n: int) -> str:
        """Return the user whose item this is."""
        return f"u{n % self.users}"

    def group(self, n: int) -> str:
        """Return the group of that user."""
        return f"g{n % (self.users // GROUP_SHARE)}"

    def namespace(self, n: int) -> tuple[str, str, str]:
        """Return the namespace of an item."""
        return ("mem", self.group(n), self.user(n))

    def nearest(self, kind: str, n: int, k: int) -> set[str]:
        """Return the texts that an exact search of everything, a group, a user or a tag returns."""
        groups = self.users // GROUP_SHARE
        step = {"plain": 1, "group": groups, "user": self.users, "tag": TAGS}[kind]
        scores = self.vectors[n % step :: step] @ self.query_vector(n)
        return {self.texts[n % step + step * row] for row in np.argsort(-scores)[:k].tolist()}


def make_data(size: int, users: int, dims: int, rounds: int) -> Data:
    """Make items whose words are as unevenly frequent as a language's, and random unit vectors."""
    rng = np.random.default_rng(1)
    extra = size + rounds
    texts = [" ".join(f"w{rank}ord" for rank in row) + f" n{n}" for n, row in _ranks(rng, extra)]
    chosen = rng.integers(0, size, rounds)
    queries = [
        " ".join(texts[row].split()[-1 - _QUERY_WORDS : -1]) + f" n{extra + n}"
        for n, row in enumerate(chosen.tolist())
    ]
    model = Prepared(_units(rng, extra + rounds, dims))
    return Data(size, users, texts, queries, model)


def _ranks(rng: np.random.Generator, count: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    for start in range(0, count, 10_000):
        block = rng.zipf(1.3, size=(min(10_000, count - start), _WORDS))
        yield from enumerate(np.minimum(block, _VOCABULARY), start)


def _units(rng: np.random.Generator, count: int, dims: int) -> NDArray[np.float32]:
    matrix = rng.standard_normal((count, dims), dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix
