"""Conformance of the vector index: rows V1 to V12."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import pytest
from langgraph.store.base import BaseStore, PutOp

from langchain_agentmem.testing.checks import expect_equal, expect_error, expect_true, keys
from langchain_agentmem.testing.doubles import (
    AsymmetricEmbeddings,
    CharacterEmbeddings,
    RecordingEmbeddings,
    TableEmbeddings,
)
from langchain_agentmem.testing.harness import StoreOpener, StoreSuite, index_of

_NS: Final = ("index",)
_FAN: Final = {f"t{n}": [math.cos(n / 50), math.sin(n / 50)] for n in range(30)} | {"q": [1.0, 0.0]}


def indexed(
    opener: StoreOpener,
    embedder: RecordingEmbeddings,
    fields: Sequence[str] = ("text",),
    **more: object,
) -> BaseStore:
    """Open a store that embeds with the embedder, by default the field `text`."""
    return opener.open(index=index_of(embedder, fields, **more))


def put_texts(store: BaseStore, *texts: str) -> None:
    """Put one item for each text, with the text as its key."""
    store.batch([PutOp(_NS, text, {"text": text}) for text in texts])


def ranked(store: BaseStore, query: str, **options: Any) -> list[str]:  # noqa: ANN401 - passed on
    """Return the keys a query finds, best first."""
    return keys(store.search(_NS, query=query, **options))


class IndexConformance(StoreSuite):
    """Which items a query finds, in which order, with which scores."""

    def test_v1_vector_of_the_wrong_length_is_refused(self, opener: StoreOpener) -> None:
        """V1: an embedder that does not keep to `dims` raises naming both lengths."""
        embedder = CharacterEmbeddings(7)
        store = opener.open(index={"dims": 9, "embed": embedder, "fields": ["text"]})
        with expect_error(ValueError, "put with a vector of length 7 for dims 9", "7", "9"):
            store.put(_NS, "k", {"text": "abc"})
        expect_equal(store.get(_NS, "k"), None, "item after the refused put")

    @pytest.mark.parametrize("distance", ["cosine", "inner_product", "l2"])
    def test_v2_nearest_comes_first(self, opener: StoreOpener, distance: str) -> None:
        """V2: under each distance the nearest item leads, with scores that fall."""
        if distance not in self.distance_types:
            pytest.skip(f"the store does not declare the distance {distance}")
        table = {"near": [1.0, 0.2], "long": [6.0, 6.0], "far": [-1.0, 0.0], "q": [1.0, 0.0]}
        store = indexed(opener, TableEmbeddings(table), distance_type=distance)
        put_texts(store, "far", "long", "near")
        first = {"cosine": "near", "inner_product": "long", "l2": "near"}[distance]
        rest = {"cosine": "long far", "inner_product": "near far", "l2": "far long"}[distance]
        expect_equal(ranked(store, "q"), [first, *rest.split()], f"keys under {distance}")

    @pytest.mark.parametrize("distance", ["cosine", "inner_product", "l2"])
    def test_v2_scores_are_the_distance_with_higher_better(
        self, opener: StoreOpener, distance: str
    ) -> None:
        """V2: cosine as is, the inner product as is, the Euclidean distance negated."""
        if distance not in self.distance_types:
            pytest.skip(f"the store does not declare the distance {distance}")
        table = {"d": [3.0, 4.0], "q": [2.0, 0.0]}
        store = indexed(opener, TableEmbeddings(table), distance_type=distance)
        put_texts(store, "d")
        score = store.search(_NS, query="q")[0].score
        expected = {"cosine": 0.6, "inner_product": 6.0, "l2": -math.sqrt(17)}[distance]
        good = score is not None and math.isclose(score, expected, rel_tol=1e-3)
        expect_true(good, f"score under {distance}: expected {expected}, found {score}")

    def test_v3_item_without_vector_is_not_found_by_a_query(self, opener: StoreOpener) -> None:
        """V3: an item that was not embedded is stored, not searchable."""
        store = indexed(opener, CharacterEmbeddings())
        put_texts(store, "abc")
        store.put(_NS, "silent", {"text": "abc"}, index=False)
        store.put(_NS, "fieldless", {"other": "abc"})
        expect_equal(ranked(store, "abc"), ["abc"], "keys found by the query")
        expect_equal(len(store.search(_NS)), 3, "items found without a query")

    def test_v4_empty_query_is_no_query(self, opener: StoreOpener) -> None:
        """V4: `""` gives all items without scores."""
        store = indexed(opener, CharacterEmbeddings())
        put_texts(store, "abc", "xyz")
        found = store.search(_NS, query="")
        expect_equal(sorted(keys(found)), ["abc", "xyz"], "keys for an empty query")
        expect_equal([item.score for item in found], [None, None], "scores for an empty query")

    def test_v5_query_is_embedded_as_a_query(self, opener: StoreOpener) -> None:
        """V5: an embedder with two sides gets documents and queries on the right one."""
        embedder = AsymmetricEmbeddings()
        store = indexed(opener, embedder)
        put_texts(store, "aaaa", "bbbb")
        expect_equal(ranked(store, "aaaa", limit=1), ["bbbb"], "first key for the query 'aaaa'")
        expect_equal(embedder.query_calls, ["aaaa"], "texts given to embed_query")

    @pytest.mark.filterwarnings("ignore::RuntimeWarning")
    def test_v6_zero_vectors_score_zero(self, opener: StoreOpener) -> None:
        """V6: under cosine a zero vector is neither near nor far, and never NaN or None."""
        table = {"zero": [0.0, 0.0], "near": [1.0, 0.1], "far": [-1.0, 0.0], "q": [1.0, 0.0]}
        store = indexed(opener, TableEmbeddings(table))
        put_texts(store, "zero", "near", "far")
        found = store.search(_NS, query="q")
        expect_equal(keys(found), ["near", "zero", "far"], "keys with a zero vector among them")
        expect_equal(found[1].score, 0.0, "score of the zero vector")
        scores = [item.score for item in store.search(_NS, query="zero")]
        expect_equal(scores, [0.0, 0.0, 0.0], "scores of a zero query")

    def test_v7_pages_concatenate_to_the_ranked_list(self, opener: StoreOpener) -> None:
        """V7: 30 items in pages of 5 come without gap or repeat."""
        store = indexed(opener, TableEmbeddings(_FAN))
        put_texts(store, *[text for text in _FAN if text != "q"])
        pages = [ranked(store, "q", limit=5, offset=start) for start in range(0, 35, 5)]
        expect_equal([len(page) for page in pages], [5, 5, 5, 5, 5, 5, 0], "sizes of the pages")
        found = [key for page in pages for key in page]
        expect_equal(found, [f"t{n}" for n in range(30)], "keys of all pages")
        expect_equal(ranked(store, "q", limit=30), found, "one page of 30")

    def test_v8_item_with_many_vectors_counts_once(self, opener: StoreOpener) -> None:
        """V8: the best of its vectors is an item's score, and others are not crowded out."""
        store = indexed(opener, TableEmbeddings(_FAN), ["texts[*]"])
        store.put(_NS, "many", {"texts": [f"t{n}" for n in range(20)]})
        for n in range(20, 24):
            store.put(_NS, f"t{n}", {"texts": [f"t{n}"]})
        found = store.search(_NS, query="q", limit=4)
        expect_equal(keys(found), ["many", "t20", "t21", "t22"], "keys, limit 4")
        score = found[0].score
        good = score is not None and math.isclose(score, 1.0, rel_tol=1e-4)
        expect_true(good, f"score of the best vector: expected 1.0, found {score}")

    def test_v8_many_vectors_of_one_put_count_once(self, opener: StoreOpener) -> None:
        """V8: the same with fields given at the put."""
        store = indexed(opener, TableEmbeddings(_FAN), ["none"])
        store.put(_NS, "many", {"texts": [f"t{n}" for n in range(20)]}, index=["texts[*]"])
        for n in range(20, 24):
            store.put(_NS, f"t{n}", {"text": f"t{n}"}, index=["text"])
        expect_equal(ranked(store, "q", limit=4), ["many", "t20", "t21", "t22"], "keys, limit 4")

    @pytest.mark.slow
    def test_v9_small_scope_of_a_large_store_fills_the_limit(self, opener: StoreOpener) -> None:
        """V9: a namespace of 2,000 items in a store of 8,000 gives 50 when 50 are asked for."""
        embedder = CharacterEmbeddings(32)
        store = indexed(opener, embedder)
        for start in range(0, 8000, 500):
            ops = [
                PutOp((*_NS, str(n % 4)), str(n), {"text": f"item {n:o} {n * 7919:x}"})
                for n in range(start, start + 500)
            ]
            store.batch(ops)
        found = store.search((*_NS, "1"), query="item 123 abc", limit=50)
        expect_equal(len(found), 50, "items found in the namespace of 2,000")

    def test_v10_equal_texts_in_one_batch_are_stored(self, opener: StoreOpener) -> None:
        """V10: two items with one text both exist and are found."""
        store = indexed(opener, CharacterEmbeddings())
        store.batch([PutOp(_NS, key, {"text": "same"}) for key in ("a", "b")])
        expect_equal(sorted(ranked(store, "same")), ["a", "b"], "keys with the same text")

    def test_v10_equal_texts_in_one_item_are_stored(self, opener: StoreOpener) -> None:
        """V10: an item with the same text in two fields is found once."""
        store = indexed(opener, CharacterEmbeddings(), ["title", "body"])
        store.put(_NS, "k", {"title": "same", "body": "same"})
        expect_equal(ranked(store, "same"), ["k"], "keys with the same text in two fields")

    def test_v11_only_configured_fields_are_embedded(self, opener: StoreOpener) -> None:
        """V11: `fields` of the configuration decide what is searchable."""
        embedder = CharacterEmbeddings()
        store = indexed(opener, embedder, ["a", "b.c"])
        store.put(_NS, "k", {"a": "one", "b": {"c": "two", "d": "no"}, "text": "no"})
        expect_equal(sorted(embedder.documents), ["one", "two"], "texts embedded")

    def test_v12_text_of_an_update_replaces_the_former(self, opener: StoreOpener) -> None:
        """V12: after an update the former text finds nothing."""
        store = indexed(opener, TableEmbeddings({"old": [1.0, 0.0], "new": [0.0, 1.0]}))
        store.put(_NS, "k", {"text": "old"})
        store.put(_NS, "k", {"text": "new"})
        expect_equal(store.search(_NS, query="old")[0].score, 0.0, "score of the former text")

    def test_v12_update_without_index_removes_the_vector(self, opener: StoreOpener) -> None:
        """V12: `index=False` makes an item unsearchable that was searchable before."""
        store = indexed(opener, CharacterEmbeddings())
        store.put(_NS, "k", {"text": "old"})
        store.put(_NS, "k", {"text": "old"}, index=False)
        expect_equal(ranked(store, "old"), [], "keys found by the former text")

    def test_v12_update_without_the_field_removes_the_vector(self, opener: StoreOpener) -> None:
        """V12: the vector of a field goes with the field."""
        store = indexed(opener, CharacterEmbeddings())
        store.put(_NS, "k", {"text": "old"})
        store.put(_NS, "k", {"other": "x"})
        expect_equal(ranked(store, "old"), [], "keys found by the former text")

    def test_v12_shrunk_array_leaves_no_vector(self, opener: StoreOpener) -> None:
        """V12: the vectors of removed elements go."""
        table = {"keep": [1.0, 0.0], "drop": [0.0, 1.0]}
        store = indexed(opener, TableEmbeddings(table), ["texts[*]"])
        store.put(_NS, "k", {"texts": ["keep", "drop"]})
        store.put(_NS, "k", {"texts": ["keep"]})
        expect_equal(store.search(_NS, query="drop")[0].score, 0.0, "score of the removed text")

    def test_v12_delete_and_put_leave_no_vector(self, opener: StoreOpener) -> None:
        """V12: a deleted item's vectors do not come back with its key."""
        store = indexed(opener, CharacterEmbeddings())
        store.put(_NS, "k", {"text": "old"})
        store.delete(_NS, "k")
        expect_equal(ranked(store, "old"), [], "keys found after delete")
        store.put(_NS, "k", {"text": "old"}, index=False)
        expect_equal(ranked(store, "old"), [], "keys found after delete and put")
