"""Vectors and queries: rows V1 to V12, modes, reuse and the parts of a score."""

import math
from itertools import chain
from typing import Any

import pytest

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.retrieval.text import terms
from langchain_agentmem.stores import FaissSqliteStore, StoreSearchOp
from langchain_agentmem.stores._indexing import INDEXED_CHARACTERS
from tests.unit_tests.stores.conftest import Client, Letters, Open


def _units(store: FaissSqliteStore) -> int:
    return int(store.conn.execute("SELECT count(*) FROM units").fetchone()[0])


def test_v1_wrong_length_is_refused(open_store: Open, embedder: Letters) -> None:
    """A vector of another length raises with both lengths, and nothing is written."""
    store = open_store(index={"dims": 7, "embed": embedder, "fields": ["text"]})
    with pytest.raises(ValueError, match=r"36.*7"):
        store.put(("a",), "k", {"text": "x"})
    assert store.get(("a",), "k") is None


def test_dims_without_a_model_are_refused(open_store: Open) -> None:
    """Whoever gives them expects vectors, and would get an index of words only."""
    with pytest.raises(ConfigurationError, match=r"index\['dims'\] 3 needs index\['embed'\]"):
        open_store(index={"dims": 3})


@pytest.mark.parametrize("distance", ["cosine", "inner_product", "l2"])
def test_v2_nearest_first(open_store: Open, embedder: Letters, distance: str) -> None:
    """Under every distance the nearest item comes first and scores descend."""
    index = {"dims": 36, "embed": embedder, "fields": ["text"], "distance_type": distance}
    store = open_store(index=index)
    for key, text in {"near": "aaab", "mid": "aabb", "far": "bbbb"}.items():
        store.put(("a",), key, {"text": text})
    hits = store.search(("a",), query="aaa")
    assert [hit.key for hit in hits] == ["near", "mid", "far"]
    scores = [hit.score or 0.0 for hit in hits]
    assert scores == sorted(scores, reverse=True)
    if distance == "l2":
        assert scores == pytest.approx([-1.0, -math.sqrt(5), -5.0])


def test_v3_item_without_vector_is_not_found(client: Client) -> None:
    """An item without an indexed text is stored, but no query returns it."""
    client.put(("a",), "no", {"text": "abc"}, index=False)
    client.put(("a",), "yes", {"text": "abc"})
    assert client.keys(("a",), query="abc") == ["yes"]
    assert set(client.keys(("a",))) == {"yes", "no"}


@pytest.mark.parametrize("query", [None, ""])
def test_v4_no_query_has_no_score(client: Client, query: str | None) -> None:
    """An empty query is no query."""
    client.put(("a",), "k", {"text": "abc"})
    assert [item.score for item in client.search(("a",), query=query)] == [None]


def test_v4_no_index_ignores_the_query(open_store: Open) -> None:
    """Without an index a query is ignored."""
    store = open_store(index=None)
    store.put(("a",), "k", {"text": "abc"})
    assert [item.score for item in store.search(("a",), query="zzz")] == [None]


def test_v5_query_is_embedded_as_query(client: Client, embedder: Letters) -> None:
    """The query side of an asymmetric embedder is used for queries."""
    client.put(("a",), "k", {"text": "abc"})
    client.search(("a",), query="find")
    assert (embedder.documents, embedder.queries) == (["abc"], ["find"])


def test_v6_zero_vector_scores_zero(client: Client) -> None:
    """A zero vector, of an item or of the query, scores 0.0 under the cosine."""
    client.put(("a",), "zero", {"text": "---"})
    client.put(("a",), "some", {"text": "abc"})
    assert [item.score for item in client.search(("a",), query="???")] == [0.0, 0.0]
    assert {item.key: item.score for item in client.search(("a",), query="abc")}["zero"] == 0.0


def test_v7_pages_concatenate(client: Client) -> None:
    """Pages under a query are the slices of one ranking."""
    for n in range(30):
        client.put(("a",), str(n), {"text": "a" * (n + 1) + "b" * 15})
    pages = [client.keys(("a",), query="aab", limit=5, offset=n) for n in range(0, 35, 5)]
    assert [len(page) for page in pages] == [5, 5, 5, 5, 5, 5, 0]
    assert [*chain.from_iterable(pages)] == client.keys(("a",), query="aab", limit=30)


def test_v8_item_with_many_vectors_counts_once(client: Client) -> None:
    """An item with many texts is one hit, with the score of its best."""
    client.put(("a",), "many", {"t": [f"a{n}" for n in range(9)] + ["abc"]}, index=["t[*]"])
    client.put(("a",), "one", {"text": "ab"})
    hits = client.search(("a",), query="abc", limit=2)
    assert hits[0].score == pytest.approx(1.0)
    assert [hit.key for hit in hits] == ["many", "one"]


def test_v9_limit_is_met_in_a_small_namespace(store: FaissSqliteStore) -> None:
    """A namespace among many gives as many items as were asked for."""
    for n in range(40):
        store.put(("big", str(n % 4)), str(n), {"text": f"abc{n}"})
    assert len(store.search(("big", "1"), query="abc", limit=10)) == 10


def test_v10_equal_texts_are_embedded_once(client: Client, embedder: Letters) -> None:
    """Equal texts, in two items or in two fields, are stored and embedded once."""
    client.put(("a",), "k", {"x": "same", "y": "same"}, index=["x", "y"])
    assert embedder.documents == ["same"]
    assert client.keys(("a",), query="same") == ["k"]


def test_v11_only_the_configured_fields_are_embedded(client: Client, embedder: Letters) -> None:
    """Other fields than the configured ones stay out of the index."""
    client.put(("a",), "k", {"text": "seen", "other": "unseen"})
    assert embedder.documents == ["seen"]


@pytest.mark.parametrize("change", ["text", "index", "gone", "shrunk", "again"])
def test_v12_only_current_texts_are_indexed(store: FaissSqliteStore, change: str) -> None:
    """Whatever changes an item's texts, vectors and words of the former ones are gone."""
    store.put(("a",), "k", {"text": "old", "t": ["old", "old too"]}, index=["text", "t[*]"])
    store.search(("a",), query="old")
    if change == "text":
        store.put(("a",), "k", {"text": "new"})
    elif change == "index":
        store.put(("a",), "k", {"text": "new"}, index=False)
    elif change == "gone":
        store.put(("a",), "k", {"other": "new"})
    elif change == "shrunk":
        store.put(("a",), "k", {"t": ["new"]}, index=["t[*]"])
    else:
        store.delete(("a",), "k")
        store.put(("a",), "k", {"text": "new"})
    expected = 0 if change in ("index", "gone") else 1
    assert _units(store) == expected
    assert store.lexical_search(("a",), "old") == []
    assert len(store.lexical_search(("a",), "new")) == expected
    words = store.conn.execute("SELECT count(*) FROM words WHERE words MATCH 'old'").fetchone()
    assert words == (0,)


def test_unchanged_text_keeps_its_vector(client: Client, embedder: Letters) -> None:
    """A put whose texts are unchanged calls no embedder and stays findable."""
    client.put(("a",), "k", {"text": "abc", "n": 1})
    client.search(("a",), query="abc")
    client.put(("a",), "k", {"text": "abc", "n": 2})
    assert embedder.documents == ["abc"]
    assert [item.value["n"] for item in client.search(("a",), query="abc")] == [2]


def test_score_of_a_stored_vector_is_exact_enough(open_store: Open) -> None:
    """Two bytes a dimension cost less than 1e-5 of a cosine."""
    vectors = {f"t{n}": [math.sin(n * 7.3 + d * d) for d in range(64)] for n in range(50)}
    store = open_store(index={"dims": 64, "embed": lambda texts: [vectors[t] for t in texts]})
    store.batch([])
    for text in vectors:
        store.put(("a",), text, {"x": text}, index=["x"])
    query = vectors["t3"]
    hits = store.search(("a",), query="t3", limit=50)
    assert len(hits) == 50
    for hit in hits:
        other = vectors[hit.key]
        cosine = (
            math.sumprod(query, other)
            if hasattr(math, "sumprod")
            else sum(a * b for a, b in zip(query, other, strict=True))
        )
        assert hit.score == pytest.approx(
            cosine / math.hypot(*query) / math.hypot(*other), abs=1e-5
        )


@pytest.mark.parametrize("path", ["", "a[", "a[x]", "{a,b", 3])
def test_invalid_path_is_refused(client: Client, path: object) -> None:
    """An index path that cannot be read raises before anything is written."""
    with pytest.raises(ValueError, match="index path"):
        client.put(("a",), "k", {"a": 1}, index=[path])
    assert client.get(("a",), "k") is None


def test_ties_are_broken_by_the_later_write(client: Client) -> None:
    """Equal scores are ordered newest first."""
    for key in "abc":
        client.put(("a",), key, {"text": "same"})
    assert client.keys(("a",), query="same") == ["c", "b", "a"]
    assert client.keys(("a",), query="same", limit=1) == ["c"]


def test_hybrid_adds_its_parts(open_store: Open, embedder: Letters) -> None:
    """The hybrid score is the lexical part plus the weighted dense part."""
    index = {"dims": 36, "embed": embedder, "mode": "hybrid", "dense_weight": 0.4}
    store = open_store(index={**index, "fields": ["text"]})
    for key, text in {"1": "green tea", "2": "teal greens", "3": "coffee"}.items():
        store.put(("a",), key, {"text": text})
    hits: list[Any] = store.search(("a",), query="green tea")
    assert hits[0].key == "1"
    assert hits[0].parts == {
        "lexical": 1.0,
        "dense": 1.0,
        "cosine": pytest.approx(1.0),
    }
    for hit in hits:
        assert hit.score == pytest.approx(hit.parts["lexical"] + 0.4 * hit.parts["dense"])


def test_mode_can_be_chosen_per_search(client: Client) -> None:
    """Lexical mode finds shared words only; dense mode ranks everything."""
    client.put(("a",), "1", {"text": "walking the dog"})
    client.put(("a",), "2", {"text": "god"})
    assert client.keys(("a",), query="dog", mode="lexical") == ["1"]
    assert client.keys(("a",), query="dog", mode="dense") == ["2", "1"]
    with pytest.raises(ValueError, match="mode"):
        client.search(("a",), query="dog", mode="magic")


def test_lexical_search_takes_plain_text(client: Client) -> None:
    """Syntax characters are literal, punctuation finds nothing, accents and case do not matter."""
    client.put(("a",), "1", {"text": "Das Café, naïve"})
    client.put(("a",), "2", {"text": "我喜欢大提琴"})
    assert [i.key for i in client.lexical_search(("a",), 'CAFE AND "x OR NEAR(')] == ["1"]
    assert client.lexical_search(("a",), '"*()') == []
    assert client.lexical_search(("a",), "") == []
    assert [i.key for i in client.lexical_search(("a",), "提琴")] == ["2"]


def test_words_without_an_embedder(open_store: Open) -> None:
    """An index of fields alone answers queries by words."""
    store = open_store(index={"fields": ["text"]})
    store.put(("a",), "1", {"text": "went home"})
    store.put(("a",), "2", {"text": "stayed"})
    assert [hit.key for hit in store.search(("a",), query="going")] == ["1"]
    with pytest.raises(ValueError, match="embedder"):
        store.search(("a",), query="x", mode="dense")


def test_lexical_search_needs_an_index(open_store: Open) -> None:
    """Without an index the error says how to get one."""
    with pytest.raises(ConfigurationError, match="index="):
        open_store(index=None).lexical_search(("a",), "x")


def test_idf_does_not_cross_scopes(store: FaissSqliteStore) -> None:
    """What another scope holds does not move a scope's lexical scores."""
    store.put(("u", "1"), "a", {"text": "tea tea cup"})
    store.put(("u", "1"), "b", {"text": "cup"})
    before = [(i.key, i.score) for i in store.lexical_search(("u", "1"), "tea cup")]
    for n in range(20):
        store.put(("u", "2"), str(n), {"text": "tea"})
    store.search(("u",), query="tea")
    assert [(i.key, i.score) for i in store.lexical_search(("u", "1"), "tea cup")] == before


def test_exact_looks_at_one_namespace_only(client: Client) -> None:
    """`exact` leaves the subtree out, with and without a query, loaded or just written."""
    client.put(("u",), "top", {"text": "x"})
    client.put(("u", "deep"), "below", {"text": "x"})
    assert client.keys(("u",), query="x", exact=True) == ["top"]
    assert client.keys(("u",), exact=True) == ["top"]
    client.put(("u",), "later", {"text": "x"})
    assert client.keys(("u",), query="x", exact=True) == ["later", "top"]


def test_several_scopes_in_one_batch(client: Client) -> None:
    """A batch of searches answers each for its own scope."""
    client.put(("u", "1"), "a", {"text": "x"})
    client.put(("u", "2"), "b", {"text": "x"})
    ops = [StoreSearchOp(("u", n), query="x", mode=m) for n in "12" for m in ("dense", "lexical")]
    assert [[i.key for i in hits] for hits in client.batch(ops)] == [["a"], ["a"], ["b"], ["b"]]


def test_reserved_root_is_out_of_sight(client: Client) -> None:
    """`_agentmem` shows only to prefixes that begin with it."""
    client.put(("_agentmem", "x"), "hidden", {"text": "word"})
    client.put(("u",), "seen", {"text": "word"})
    for options in ({}, {"query": "word"}, {"query": "word", "mode": "lexical"}):
        assert client.keys((), **options) == ["seen"]
        assert client.keys(("_agentmem",), **options) == ["hidden"]
    assert client.list_namespaces() == [("u",)]
    assert client.list_namespaces(suffix=("x",)) == []
    assert client.list_namespaces(prefix=("_agentmem",)) == [("_agentmem", "x")]


async def _async_letters(texts: list[str]) -> list[list[float]]:
    return Letters().embed_documents(texts)


def test_async_only_embedder_works_from_sync(open_store: Open) -> None:
    """An async embedding function serves sync calls too."""
    store = open_store(index={"dims": 36, "embed": _async_letters, "fields": ["text"]})
    store.put(("a",), "k", {"text": "abc"})
    assert [hit.key for hit in store.search(("a",), query="abc")] == ["k"]


async def test_async_only_embedder_on_a_loop(open_store: Open) -> None:
    """An async embedding function works from async calls, and from a sync call on a loop."""
    store = open_store(index={"dims": 36, "embed": _async_letters, "fields": ["text"]})
    await store.aput(("a",), "k", {"text": "abc"})
    assert [hit.key for hit in await store.asearch(("a",), query="abc")] == ["k"]
    assert [hit.key for hit in store.search(("a",), query="abc")] == ["k"]


def test_long_text_costs_no_more_than_a_bounded_one(
    client: Client, embedder: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a very long text a bounded part is embedded, analyzed and kept as words; all is stored."""
    analyzed: list[int] = []

    def counted(text: str) -> list[str]:
        analyzed.append(len(text))
        return terms(text)

    monkeypatch.setattr("langchain_agentmem.stores._engine.terms", counted)
    text = "beginning " + "word " * 200_000 + "end"
    client.put(("a",), "long", {"text": text})
    assert analyzed == [INDEXED_CHARACTERS]
    assert [len(each) for each in embedder.documents] == [INDEXED_CHARACTERS]
    (kept,) = client.store.conn.execute("SELECT length(terms) FROM units").fetchone()
    assert 0 < kept <= INDEXED_CHARACTERS
    assert client.keys(("a",), query="beginning", mode="lexical") == ["long"]
    assert client.keys(("a",), query="end", mode="lexical") == []
    assert client.get(("a",), "long").value == {"text": text}
