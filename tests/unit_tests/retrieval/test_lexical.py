"""BM25 and the postings index."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_agentmem.retrieval.lexical import LexicalIndex, bm25, idf

DOCUMENTS = st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=8)


def _index(*documents: str) -> LexicalIndex:
    """Build an index from texts split at spaces."""
    index = LexicalIndex()
    index.add_many(text.split() for text in documents)
    return index


def test_score_by_hand() -> None:
    """Two documents of 2 and 1 terms; the word stands twice in the first."""
    scores = _index("cat cat", "dog").scores(["cat"])
    expected = log(1 + 1.5 / 1.5) * 2 * 1.9 / (2 + 0.9 * (0.6 + 0.4 * 2 / 1.5))
    assert scores.tolist() == pytest.approx([expected, 0.0])
    assert scores.dtype == np.float32


def test_bm25_without_length_normalization_saturates() -> None:
    """With b = 0 the frequency 1 gives 1 and no frequency gives more than k1 + 1."""
    gain = bm25(np.array([1.0, 1e9]), np.array([5.0, 9.0]), average_length=7.0, b=0.0)
    assert gain.tolist() == pytest.approx([1.0, 1.9])


def test_idf_is_never_negative() -> None:
    """A word of every document still counts a little."""
    assert idf(10, 10) == pytest.approx(log(1 + 0.5 / 10.5))


def test_repeated_query_term_counts_once() -> None:
    """Saying a word twice in a question does not double its weight."""
    index = _index("cat", "dog")
    assert index.scores(["cat", "cat"]).tolist() == index.scores(["cat"]).tolist()


@given(DOCUMENTS, DOCUMENTS, st.lists(st.sampled_from("abcdef"), max_size=4))
def test_scores_of_a_scope_do_not_depend_on_other_scopes(
    before: list[list[str]], scope: list[list[str]], query: list[str]
) -> None:
    """Documents of another scope change neither frequencies, counts nor lengths of this one."""
    alone = LexicalIndex()
    alone.add_many(scope)
    shared = LexicalIndex()
    shared.add_many(before)
    numbers = shared.add_many(scope)
    shared.add_many(before)
    mask = np.zeros(len(shared), dtype=np.bool_)
    mask[numbers.start : numbers.stop] = True
    expected = alone.scores(query).tolist()
    for eligible in (mask, slice(numbers.start, numbers.stop)):
        scores = shared.scores(query, eligible)
        assert scores[mask].tolist() == expected
        assert not scores[~mask].any()


@given(DOCUMENTS, st.sets(st.integers(0, 7)), st.sampled_from("abcdef"))
def test_removed_documents_leave_no_trace(
    documents: list[list[str]], removed: set[int], term: str
) -> None:
    """After removal the rest scores as if the removed had never been there."""
    index = LexicalIndex()
    index.add_many(documents)
    for document in sorted(removed):
        if document < len(documents):
            index.remove(document)
    kept = [number for number in range(len(documents)) if number not in removed]
    fresh = LexicalIndex()
    fresh.add_many(documents[number] for number in kept)
    assert index.scores([term])[kept].tolist() == fresh.scores([term]).tolist()


def test_purge_erases_the_words_of_removed_documents() -> None:
    """Erasure reaches the vocabulary, and numbers stay what they were."""
    index = _index("secret", *["cat"] * 9)
    before = index.nbytes
    index.remove(0)
    index.purge()
    assert index.nbytes < before
    assert index.add(["dog"]) == 10
    assert np.flatnonzero(index.scores(["dog"])).tolist() == [10]


def test_removing_twice_is_harmless_and_an_unknown_number_is_named() -> None:
    """The error says which numbers exist."""
    index = _index("cat", "dog")
    index.remove(1)
    index.remove(1)
    with pytest.raises(IndexError, match="no document 2; it holds 0 to 1"):
        index.remove(2)


@pytest.mark.parametrize("eligible", [None, slice(0, 0), slice(5, 2), slice(0, 3, 2)])
def test_empty_and_stepped_selections_are_defined(eligible: slice | None) -> None:
    """An empty index, an empty selection and a stepped one give scores of the right length."""
    assert LexicalIndex().scores(["cat"], eligible).shape == (0,)
    assert _index("cat", "cat", "cat").scores(["cat"], eligible).shape == (3,)


def test_words_more_frequent_than_a_posting_can_count_do_not_spill() -> None:
    """A word repeated 70,000 times does not change the number of its document."""
    index = LexicalIndex()
    index.add(["cat"] * 70_000)
    index.add(["dog"])
    assert np.flatnonzero(index.scores(["cat"])).tolist() == [0]


def test_many_documents_at_once_score_like_one_by_one() -> None:
    """Adding a large batch, to an empty index and to a full one, gives the same postings."""
    rng = np.random.default_rng(4)
    documents = [[f"w{n}" for n in rng.zipf(1.5, rng.integers(0, 9))] for _ in range(1_300)]
    batches, single = LexicalIndex(), LexicalIndex()
    batches.add_many(documents[:600])
    batches.add_many(documents[600:])
    for document in documents:
        single.add(document)
    batches.remove(7)
    single.remove(7)
    assert batches.nbytes == single.nbytes
    for query in (["w1"], ["w2", "w3", "w999999999"], [f"w{n}" for n in range(40)]):
        assert batches.scores(query).tolist() == single.scores(query).tolist()
