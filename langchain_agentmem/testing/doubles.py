"""Deterministic stand-ins: embedders whose vectors a test can predict, and a clock it can set."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from langchain_core.embeddings import Embeddings  # a dependency of langgraph itself

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_START: Final = datetime(2026, 1, 2, 10, 0, 0, 123456, tzinfo=UTC)


class ManualClock:
    """A clock that moves only when it is told to.

    Args:
        start: The aware time it shows first.
    """

    def __init__(self, start: datetime = _START) -> None:
        self.now = start

    def __call__(self) -> datetime:
        """Return the time it shows."""
        return self.now

    def advance(self, *, minutes: float = 0, seconds: float = 0) -> None:
        """Move the clock, backwards too if the numbers are negative."""
        self.now += timedelta(minutes=minutes, seconds=seconds)


class RecordingEmbeddings(Embeddings):
    """Base of the embedders: notes every call, from any thread.

    Attributes:
        document_calls: The lists of texts given to `embed_documents`.
        query_calls: The texts given to `embed_query`.
    """

    dims: int

    def __init__(self) -> None:
        self.document_calls: list[list[str]] = []
        self.query_calls: list[str] = []
        self._lock = threading.Lock()

    @property
    def documents(self) -> list[str]:
        """All texts embedded as documents, in order."""
        return [text for call in self.document_calls for text in call]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text."""
        with self._lock:
            self.document_calls.append(list(texts))
        return [self.document_vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        with self._lock:
            self.query_calls.append(text)
        return self.query_vector(text)

    def document_vector(self, text: str) -> list[float]:
        """Return the vector of a document, without noting a call."""
        raise NotImplementedError

    def query_vector(self, text: str) -> list[float]:
        """Return the vector of a query, without noting a call."""
        return self.document_vector(text)


class CharacterEmbeddings(RecordingEmbeddings):
    """A bag of characters: texts of the same letters have the same vector.

    Args:
        dims: Length of the vectors; a character counts in the dimension of its code modulo this.
    """

    name = "bag-of-characters"

    def __init__(self, dims: int = 64) -> None:
        super().__init__()
        self.dims = dims

    def document_vector(self, text: str) -> list[float]:
        """Count the characters of the text."""
        vector = [0.0] * self.dims
        for character in text:
            vector[ord(character) % self.dims] += 1.0
        return vector


class AsymmetricEmbeddings(CharacterEmbeddings):
    """A bag of characters whose queries mean the next character: query `"a"` finds text `"b"`.

    A store that embeds queries like documents ranks the wrong item first.
    """

    name = "asymmetric-bag-of-characters"

    def query_vector(self, text: str) -> list[float]:
        """Count the characters that follow those of the query."""
        return self.document_vector("".join(chr(ord(character) + 1) for character in text))


class TableEmbeddings(RecordingEmbeddings):
    """Vectors looked up in a table; an unknown text is an error.

    Args:
        table: The vector of each text.
    """

    name = "table"

    def __init__(self, table: Mapping[str, Sequence[float]]) -> None:
        super().__init__()
        self.table = {text: [float(x) for x in vector] for text, vector in table.items()}
        self.dims = len(next(iter(self.table.values())))

    def document_vector(self, text: str) -> list[float]:
        """Return the vector of the table.

        Raises:
            KeyError: If the table has no such text.
        """
        return list(self.table[text])
