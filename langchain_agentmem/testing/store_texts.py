"""Conformance of what is embedded: paths, texts, calls of the embedder, and ranking rules."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from langgraph.store.base import BaseStore, PutOp

from langchain_agentmem.testing.checks import expect_equal, expect_error, expect_true, keys
from langchain_agentmem.testing.doubles import CharacterEmbeddings, TableEmbeddings
from langchain_agentmem.testing.harness import StoreOpener, StoreSuite
from langchain_agentmem.testing.store_index import indexed, put_texts, ranked

_NS: Final = ("index",)
_VALUE: Final[dict[str, Any]] = {
    "a": {"b": "deep"},
    "l": [{"b": "first"}, {"b": "second"}, {"c": "third"}],
    "n": 7,
    "yes": True,
    "null": None,
    "名": "text",
}
_EXTRACTED: Final = {
    "a.b": ["deep"],
    "l[0].b": ["first"],
    "l[-1].c": ["third"],
    "l[*].b": ["first", "second"],
    "{n,a.b}": ["7", "deep"],
    "n": ["7"],
    "yes": ["True"],
    "a": ['{"b": "deep"}'],
    "null": [],
    "missing": [],
    "l[9].b": [],
    "名": ["text"],
    "$": [json.dumps(_VALUE, sort_keys=True, ensure_ascii=False)],
}


class TextConformance(StoreSuite):
    """Which texts of a value are embedded, and how often."""

    @pytest.mark.parametrize("path", sorted(_EXTRACTED))
    def test_v_path_selects_its_texts(self, opener: StoreOpener, path: str) -> None:
        """A path at a put decides what is embedded; null and missing are skipped."""
        embedder = CharacterEmbeddings()
        store = indexed(opener, embedder)
        store.put(_NS, "k", _VALUE, index=[path])
        expect_equal(sorted(embedder.documents), sorted(_EXTRACTED[path]), f"texts of {path}")

    def test_v_star_selects_all_values(self, opener: StoreOpener) -> None:
        """`*` is every value of an object."""
        embedder = CharacterEmbeddings()
        store = indexed(opener, embedder)
        store.put(_NS, "k", {"a": "one", "b": "two"}, index=["*"])
        expect_equal(sorted(embedder.documents), ["one", "two"], "texts of *")

    def test_v_default_fields_are_the_whole_value(self, opener: StoreOpener) -> None:
        """Without `fields` the value is embedded as sorted JSON, other scripts kept."""
        embedder = CharacterEmbeddings()
        store = opener.open(index={"dims": embedder.dims, "embed": embedder})
        store.put(_NS, "k", {"b": "名", "a": 1})
        expect_equal(embedder.documents, ['{"a": 1, "b": "名"}'], "texts embedded")

    def test_v_index_false_embeds_nothing(self, opener: StoreOpener) -> None:
        """`index=False` calls no embedder."""
        embedder = CharacterEmbeddings()
        indexed(opener, embedder).put(_NS, "k", {"text": "abc"}, index=False)
        expect_equal(embedder.documents, [], "texts embedded")

    def test_v_documents_of_a_batch_are_one_call(self, opener: StoreOpener) -> None:
        """A batch is embedded as a batch, each text once."""
        embedder = CharacterEmbeddings()
        put_texts(indexed(opener, embedder), "abc", "def", "ghi")
        expect_equal([sorted(call) for call in embedder.document_calls], [["abc", "def", "ghi"]],
                     "calls of embed_documents")  # fmt: skip

    def test_v_equal_texts_are_embedded_once(self, opener: StoreOpener) -> None:
        """The same text in two items or two fields of one batch costs one embedding."""
        embedder = CharacterEmbeddings()
        store = indexed(opener, embedder, ["title", "body"])
        store.batch([PutOp(_NS, key, {"title": "same", "body": "same"}) for key in ("a", "b")])
        expect_equal(embedder.documents, ["same"], "texts embedded")

    def test_v_documents_are_not_embedded_as_queries(self, opener: StoreOpener) -> None:
        """Putting calls `embed_documents` only."""
        embedder = CharacterEmbeddings()
        put_texts(indexed(opener, embedder), "abc")
        expect_equal(embedder.query_calls, [], "texts given to embed_query by a put")

    @pytest.mark.parametrize("path", ["l[0", "{a,b"], ids=["bracket", "brace"])
    def test_v_invalid_path_is_refused_before_any_write(
        self, opener: StoreOpener, path: str
    ) -> None:
        """A path that cannot be read raises, and nothing of its batch is written."""
        store = indexed(opener, CharacterEmbeddings())
        ops = [PutOp(_NS, "good", {"text": "a"}), PutOp(_NS, "bad", {"l": ["b"]}, index=[path])]
        with expect_error(ValueError, f"put with the path {path!r}"):
            store.batch(ops)
        expect_equal(keys(store.search(_NS)), [], "keys after the refused batch")

    def test_v_filter_applies_before_ranking(self, opener: StoreOpener) -> None:
        """A filter chooses the items, then exactly those are ranked."""
        table = {f"t{n}": [1.0, n / 10] for n in range(10)} | {"q": [1.0, 0.0]}
        store = indexed(opener, TableEmbeddings(table))
        ops = [PutOp(_NS, f"t{n}", {"text": f"t{n}", "late": n >= 7}) for n in range(10)]  # noqa: PLR2004 - the numbers of this test
        store.batch(ops)
        found = ranked(store, "q", filter={"late": True}, limit=3)
        expect_equal(found, ["t7", "t8", "t9"], "keys of the filtered query")

    def test_v_query_keeps_to_its_scope(self, opener: StoreOpener) -> None:
        """The nearest item of another namespace is not returned."""
        store = indexed(opener, TableEmbeddings({"near": [1.0, 0.0], "far": [0.0, 1.0]}))
        store.put(("other",), "k", {"text": "near"})
        store.put((*_NS, "child"), "mine", {"text": "far"})
        expect_equal(ranked(store, "near"), ["mine"], "keys found in the scope")

    def test_v_ties_go_to_the_newer_item(self, opener: StoreOpener) -> None:
        """Equal scores are ordered by the last write, newest first."""
        store = indexed(opener, CharacterEmbeddings())
        for key in ("a", "c", "b"):
            store.put(_NS, key, {"text": "same"})
            opener.tick()
        store.put(_NS, "c", {"text": "same", "again": True})
        expect_equal(ranked(store, "same"), ["c", "b", "a"], "keys with equal scores")

    def test_v_scores_are_floats_that_fall(self, opener: StoreOpener) -> None:
        """Every item found by a query has a score, the best one first."""
        store = indexed(opener, CharacterEmbeddings())
        put_texts(store, "abc", "abd", "xyz")
        scores = [item.score for item in store.search(_NS, query="abc")]
        numbers = [score for score in scores if isinstance(score, float)]
        expect_equal(len(numbers), 3, f"number of float scores in {scores}")
        expect_equal(numbers, sorted(numbers, reverse=True), "scores in order")
        what = f"cosine scores: expected within -1 and 1, found {numbers}"
        expect_true(all(-1.0001 <= score <= 1.0001 for score in numbers), what)  # noqa: PLR2004 - the numbers of this test

    def test_v_async_embedder_works_or_says_how(self, opener: StoreOpener) -> None:
        """An async embedding function works from sync calls, or the error says what to call."""

        async def embed(texts: list[str]) -> list[list[float]]:
            return [[float(len(text)), 1.0] for text in texts]

        store = opener.open(index={"dims": 2, "embed": embed, "fields": ["text"]})
        try:
            put_texts(store, "abc")
        except Exception as err:  # noqa: BLE001 - any store's error, its message is checked
            said = str(err)
            expect_true("async" in said, f"error: expected one that names async, found {said!r}")
        else:
            expect_equal(ranked(store, "abc"), ["abc"], "keys embedded by an async function")
            expect_true(ranked(store, "abc"), "query by an async function")

    def test_v_query_without_index_is_no_query(self, subject: BaseStore) -> None:
        """V4: a store without index returns its items unranked."""
        subject.put(_NS, "k", {"text": "abc"})
        found = subject.search(_NS, query="abc")
        expect_equal([item.score for item in found], [None], "scores without an index")
