"""Words of like meaning: hand-computed scores, kept vectors, odd input."""

from concurrent.futures import ThreadPoolExecutor
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from langchain_agentmem.embeddings import word_vectors
from langchain_agentmem.retrieval.context import Candidate
from langchain_agentmem.retrieval.rank import rank
from langchain_agentmem.retrieval.synonyms import WordVectors, synonym_scores

PLANE = {
    "dog": (1.0, 0.0),
    "dogs": (1.0, 0.0),
    "puppy": (0.8, 0.6),
    "boat": (0.0, 1.0),
    "hound": (0.3, -0.954),
}


class Plane:
    """An embedder of words into the plane that counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, words: list[str]) -> NDArray[np.float32]:
        """Return the vectors of the words."""
        self.asked += words
        found = [PLANE.get(word, (0.0, -1.0)) for word in words]
        return np.array(found, dtype=np.float32).reshape(len(words), 2)


def test_best_near_word_of_another_stem_counts_by_idf() -> None:
    """`puppy` is near `dog` (.8); the same stem, a far word and an empty document are worth 0."""
    documents = [["the", "puppy"], ["two", "dogs"], ["boat", "hound"], []]
    scores = synonym_scores(["dog"], documents, WordVectors(Plane()))
    assert scores == pytest.approx([1.0, 0.0, 0.0, 0.0])


def test_rarer_word_of_the_query_counts_for_more() -> None:
    """Each word of the query is weighted by how few documents hold its stem."""
    documents = [["puppy"], ["boats"], ["dog"], ["dog"]]
    embed = {"dog": [1.0, 0.0], "puppy": [1.0, 0.0], "ship": [0.0, 1.0], "boats": [0.0, 1.0]}
    vectors = WordVectors(lambda words: np.array([embed[w] for w in words], dtype=np.float32))
    scores = synonym_scores(["dog", "ship"], documents, vectors)
    common, rare = log(1 + (4 - 2 + 0.5) / (2 + 0.5)), log(1 + (4 + 0.5) / 0.5)
    assert scores == pytest.approx([common / rare, 1.0, 0.0, 0.0])


def test_a_word_is_embedded_once_and_those_without_content_never() -> None:
    """Function words, numbers and other scripts need no vector."""
    plane = Plane()
    vectors = WordVectors(plane)
    for _ in range(2):
        synonym_scores(["dog", "what"], [["the", "puppy", "2023", "狗"]], vectors)
    assert plane.asked == ["dog", "puppy"]


def test_words_beyond_the_capacity_are_met_anew_with_the_same_scores() -> None:
    """Forgetting the vectors changes no result."""
    plane = Plane()
    vectors = WordVectors(plane, capacity=1)
    first, again = (synonym_scores(["dog"], [["puppy"], ["boat"]], vectors) for _ in range(2))
    assert first.tolist() == again.tolist() == [1.0, 0.0]
    assert plane.asked.count("puppy") == 2


def test_threads_share_word_vectors() -> None:
    """Many threads with words of their own get the scores that one alone gets."""
    vectors = WordVectors(Plane(), capacity=50)

    def ask(n: int) -> tuple[float, ...]:
        said = [["puppy", *(f"word{chr(97 + n)}{chr(97 + i)}" for i in range(20))], ["boat"]]
        return tuple(map(float, synonym_scores(["dog"], said, vectors)))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(20))) == {(1.0, 0.0)}


@given(st.lists(st.text(min_size=1)), st.lists(st.lists(st.text(min_size=1), max_size=4)))
def test_any_words_are_scored(query: list[str], documents: list[list[str]]) -> None:
    """Whatever the words are, each document gets a score from 0 to 1."""
    scores = synonym_scores(query, documents, WordVectors(Plane()))
    assert scores.shape == (len(documents),)
    assert ((scores >= 0) & (scores <= 1 + 1e-6)).all()


def test_bundled_vectors_find_another_word_for_what_is_asked() -> None:
    """`physician` answers for `doctor`, which no shared word would show."""
    pool = [
        Candidate("boat", "We painted the old boat.", "1"),
        Candidate("physician", "The physician was late.", "2"),
    ]
    ranked = rank("Which doctor?", pool, {}, word_vectors=word_vectors())
    assert [one.key for one in ranked] == ["physician", "boat"]
    assert ranked[0].parts["synonyms"] > 0
    assert rank("Which doctor?", pool, {})[0].parts.get("synonyms") is None
