"""Words of like meaning: how near each word of a question comes to the words of a turn."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from langchain_agentmem.retrieval.fusion import normalize_max
from langchain_agentmem.retrieval.lexical import idf
from langchain_agentmem.retrieval.text import is_content_word, stem

NEAR: Final = 0.4
"""Words whose vectors have a smaller cosine have nothing to do with each other."""
_WORDS_OF_TEXT: Final = 50
_ONE_THREAD: Final = 200_000  # multiplications; OpenBLAS shares more than 262,144 among threads


@dataclass(frozen=True, slots=True)
class Words:
    """What is known of some words.

    Attributes:
        vectors: A unit vector each, in the shape (words, dims); zero for a word without content.
        stems: A number each, the same for words of one stem.
    """

    vectors: NDArray[np.float32]
    stems: NDArray[np.int64]

    def __getitem__(self, rows: Sequence[int] | NDArray[np.int64]) -> "Words":
        """Return what is known of those words that stand in some rows."""
        return Words(self.vectors[rows], self.stems[rows])


class WordVectors:
    """Vectors of single words, made when a word is first met and then kept.

    Args:
        embed: Returns one unit vector for each of some words, as an array (words, dims).
        capacity: About so many words, and so many texts of the usual length, are kept; beyond, all
            are forgotten and met anew.

    Example:
        ```python
        vectors = WordVectors(lambda words: np.ones((len(words), 4), dtype=np.float32) / 2)
        (rows,), known = vectors.look_up([["cat", "dog"]])
        known[rows].vectors.shape  # (2, 4)
        ```
    """

    def __init__(
        self, embed: Callable[[list[str]], NDArray[np.float32]], capacity: int = 20_000
    ) -> None:
        self._embed = embed
        self._capacity = capacity
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._rows: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        self._texts: dict[tuple[str, ...], NDArray[np.int64]] = {}
        self._held = 0  # words of the texts
        self._known: Words | None = None

    def look_up(self, texts: Sequence[Sequence[str]]) -> tuple[list[NDArray[np.int64]], Words]:
        """Return the rows of each text's words, and what is known of the words in all rows."""
        keys = [tuple(text) for text in texts]
        with self._lock:
            if max(len(self._rows), self._held // _WORDS_OF_TEXT) > self._capacity:
                self._clear()
            new = [key for key in dict.fromkeys(keys) if key not in self._texts]
            words = [word for word in dict.fromkeys(chain(*new)) if word not in self._rows]
            if words or self._known is None:
                self._known = self._learn(words)
            for key in new:
                self._texts[key] = np.array([self._rows[word] for word in key], dtype=np.int64)
                self._held += len(key)
            return [self._texts[key] for key in keys], self._known

    def _learn(self, new: list[str]) -> Words:
        content = [is_content_word(word) for word in new]
        made = self._embed([word for word, counts in zip(new, content, strict=True) if counts])
        vectors = np.zeros((len(new), made.shape[1]), dtype=np.float32)
        vectors[np.array(content, dtype=np.bool_)] = made
        number = [self._stems.setdefault(stem(word), len(self._stems)) for word in new]
        self._rows.update(zip(new, range(len(self._rows), len(self._rows) + len(new)), strict=True))
        stems = np.array(number, dtype=np.int64)
        if self._known is None:
            return Words(vectors, stems)
        old = self._known
        return Words(np.concatenate([old.vectors, vectors]), np.concatenate([old.stems, stems]))


def synonym_scores(
    query: Iterable[str], documents: Sequence[Sequence[str]], vectors: WordVectors
) -> NDArray[np.float64]:
    """Score documents by words that mean what the query's words mean, and are others.

    Args:
        query: The words of the query.
        documents: The words of each document. Of both, those without content count for nothing.
        vectors: Vectors of the words.

    Returns:
        For each document the sum over the query's words of idf times the best cosine, of at least
        `NEAR`, to a word of another stem, divided by the maximum.
    """
    scores = np.zeros(len(documents))
    wanted = [word for word in dict.fromkeys(query) if is_content_word(word)]
    filled = [n for n, document in enumerate(documents) if document]
    if not wanted or not filled:
        return scores
    (rows, *said_rows), known = vectors.look_up([wanted, *(documents[n] for n in filled)])
    asked, met = known[rows], np.concatenate(said_rows)
    holds = np.zeros(len(known.stems), dtype=np.bool_)
    holds[met] = True
    said, column = known[np.flatnonzero(holds)], (np.cumsum(holds) - 1)[met]
    same = asked.stems[:, None] == said.stems
    cosine = _products(asked.vectors, said.vectors)
    near = np.where(same | (cosine < NEAR), 0.0, cosine)
    starts = np.cumsum([0, *(len(documents[n]) for n in filled[:-1])])
    best = np.maximum.reduceat(near[:, column], starts, axis=1)
    holding = np.maximum.reduceat(same[:, column], starts, axis=1).sum(axis=1)
    weights = np.array([idf(len(documents), int(count)) for count in holding])
    scores[filled] = normalize_max(weights @ best)
    return scores


def _products(few: NDArray[np.float32], many: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return all inner products, in parts too small for BLAS to wake other threads for.

    They take longer to wake than to multiply, and wait on another processor for more to do.
    """
    size = max(_ONE_THREAD // max(few.size, 1), 1)
    return np.concatenate(
        [few @ many[start : start + size].T for start in range(0, len(many), size)], axis=1
    )
