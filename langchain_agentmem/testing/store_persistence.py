"""Conformance of what outlives the store object, and of erasure and search by words."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Final

import pytest
from langgraph.store.base import BaseStore, InvalidNamespaceError

from langchain_agentmem.testing.checks import expect_equal, expect_error, expect_true, keys
from langchain_agentmem.testing.doubles import CharacterEmbeddings
from langchain_agentmem.testing.harness import StoreOpener, StoreSuite, index_of
from langchain_agentmem.testing.runners import Runner

_NS: Final = ("kept",)


def _put_elsewhere(suite_class: type[StoreSuite], where: Path, key: str) -> None:
    """Put one item from a process of its own."""
    suite = suite_class()
    with suite_class.runner_class() as runner:
        runner.enter(suite.reopen(where)).put(_NS, key, {"text": f"from {key}"})


class PersistenceConformance(StoreSuite):
    """Data outlives the object, and several objects share it."""

    def test_p_items_survive_reopening(self, tmp_path: Path) -> None:
        """A closed store's items, times and namespaces are there when it is opened again."""
        self.need("persistent")
        with self.runner_class() as runner:
            store = StoreOpener(self, runner, tmp_path).open()
            store.put(_NS, "k", {"text": "名", "n": 2**60})
            before = store.get(_NS, "k")
        with self.runner_class() as runner:
            store = StoreOpener(self, runner, tmp_path).open(again=True)
            expect_equal(store.get(_NS, "k"), before, "item after reopening")
            expect_equal(store.list_namespaces(), [_NS], "namespaces after reopening")

    def test_p_index_survives_reopening(self, tmp_path: Path) -> None:
        """A reopened store answers queries without embedding its items anew."""
        self.need("persistent", "supports_vectors")
        embedder = CharacterEmbeddings()
        index = index_of(embedder)
        with self.runner_class() as runner:
            store = StoreOpener(self, runner, tmp_path).open(index=index)
            for text in ("abc", "xyz"):
                store.put(_NS, text, {"text": text})
        with self.runner_class() as runner:
            store = StoreOpener(self, runner, tmp_path).open(index=index, again=True)
            found = keys(store.search(_NS, query="xyzz", limit=1))
        expect_equal(found, ["xyz"], "keys found after reopening")
        items = [text for text in embedder.documents if text != "xyzz"]
        expect_equal(items, ["abc", "xyz"], "texts of items embedded before and after reopening")

    def test_p_second_store_sees_the_first_ones_writes(self, opener: StoreOpener) -> None:
        """Two open stores on one place are one store, for reads, queries and deletes."""
        self.need("persistent", "multi_process")
        index = None
        if self.supports_vectors:
            embedder = CharacterEmbeddings()
            index = index_of(embedder)
        first = opener.open(index=index)
        second = opener.open(index=index, again=True)
        query = "abc" if index else None
        expect_equal(keys(second.search(_NS, query=query)), [], "keys before the put")
        first.put(_NS, "k", {"text": "abc"})
        expect_equal(keys(second.search(_NS, query=query)), ["k"], "keys seen by the second store")
        second.delete(_NS, "k")
        expect_equal(keys(first.search(_NS, query=query)), [], "keys seen after the delete")

    @pytest.mark.slow
    def test_p_writes_of_other_processes_are_seen(self, opener: StoreOpener) -> None:
        """Processes that write at once lose nothing, and an open store sees it all."""
        self.need("persistent", "multi_process")
        store = opener.open()
        store.put(_NS, "own", {"text": "own"})
        context = multiprocessing.get_context("spawn")
        names = ["first", "second"]
        processes = [
            context.Process(target=_put_elsewhere, args=(type(self), opener.where, name))
            for name in names
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
        expect_equal([process.exitcode for process in processes], [0, 0], "exit codes")
        found = sorted(keys(store.search(_NS)))
        expect_equal(found, ["first", "own", "second"], "keys put by three processes")


class NamespaceDeleteConformance(StoreSuite):
    """`delete_namespace` erases a subtree and nothing else."""

    def test_d_subtree_is_erased(self, subject: BaseStore, runner: Runner) -> None:
        """The namespace and everything below go; neighbors with a longer label stay."""
        self.need("namespace_delete")
        for namespace in (("u1",), ("u1", "x"), ("u1", "x", "y"), ("u10",), ("u",)):
            subject.put(namespace, "k", {"n": 1})
        expect_equal(runner.call(subject, "delete_namespace", ("u1",)), 3, "items erased")
        expect_equal(subject.list_namespaces(), [("u",), ("u10",)], "namespaces left")

    def test_d_empty_prefix_is_refused(self, subject: BaseStore, runner: Runner) -> None:
        """Erasing everything by an empty tuple would be an accident."""
        self.need("namespace_delete")
        subject.put(("a",), "k", {"n": 1})
        with expect_error(InvalidNamespaceError, "delete_namespace(())"):
            runner.call(subject, "delete_namespace", ())
        expect_equal(len(subject.search(())), 1, "items left")

    def test_d_erased_items_are_not_found_by_a_query(
        self, opener: StoreOpener, runner: Runner
    ) -> None:
        """The vectors go with the items."""
        self.need("namespace_delete", "supports_vectors")
        embedder = CharacterEmbeddings()
        store = opener.open(index=index_of(embedder))
        store.put(("gone",), "k", {"text": "abc"})
        store.put(("kept",), "k", {"text": "xyz"})
        expect_equal(len(store.search((), query="abc")), 2, "items found before")
        runner.call(store, "delete_namespace", ("gone",))
        found = [item.namespace for item in store.search((), query="abc")]
        expect_equal(found, [("kept",)], "namespaces found after")


class LexicalConformance(StoreSuite):
    """`lexical_search` finds words, in any script, and takes no syntax."""

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("The Café in Zürich", "cafe zurich"),
            ("我住在上海的浦东", "上海"),
            ("กรุงเทพเป็นเมืองหลวง", "เมือง"),
            ("東京タワーに行きました", "タワー"),
            ("أحب القهوة العربية", "القهوة"),
            ("cost: 42 EUR (net)", "42"),
        ],
        ids=["accents", "chinese", "thai", "japanese", "arabic", "number"],
    )
    def test_w_words_are_found(
        self, opener: StoreOpener, runner: Runner, text: str, query: str
    ) -> None:
        """Case and accents do not matter, and scripts without spaces are searchable."""
        store = self.open_words(opener)
        store.put(_NS, "yes", {"text": text})
        store.put(_NS, "no", {"text": "unrelated words only"})
        found = runner.call(store, "lexical_search", _NS, query)
        expect_equal(keys(found), ["yes"], f"keys found by {query!r}")

    @pytest.mark.parametrize("query", ["!?", "...", "()", '"', "*", "-"])
    def test_w_punctuation_finds_nothing(
        self, opener: StoreOpener, runner: Runner, query: str
    ) -> None:
        """A query without a word gives no hit and no error."""
        store = self.open_words(opener)
        store.put(_NS, "k", {"text": 'stop! "really"? (yes) * - ...'})
        found = runner.call(store, "lexical_search", _NS, query)
        expect_equal(keys(found), [], f"keys found by {query!r}")

    @pytest.mark.parametrize(
        "query", ['blue" OR "', "blue AND (", "NEAR(blue", "text:blue", "^blue*"]
    )
    def test_w_query_is_plain_text(self, opener: StoreOpener, runner: Runner, query: str) -> None:
        """Characters that mean something to a word index are literal."""
        store = self.open_words(opener)
        store.put(_NS, "yes", {"text": "a blue bicycle"})
        store.put(_NS, "no", {"text": "a red car"})
        found = runner.call(store, "lexical_search", _NS, query)
        expect_equal(keys(found), ["yes"], f"keys found by {query!r}")

    def test_w_scope_filter_and_pages_apply(self, opener: StoreOpener, runner: Runner) -> None:
        """Search by words obeys the same bounds as any search."""
        store = self.open_words(opener)
        for n in range(6):
            store.put((*_NS, str(n % 2)), str(n), {"text": "blue " * (n + 1), "n": n})
        options = {"filter": {"n": {"$gt": 0}}, "limit": 1}
        pages = [
            keys(runner.call(store, "lexical_search", (*_NS, "1"), "blue", offset=start, **options))
            for start in range(4)
        ]
        expect_equal(sorted(key for page in pages for key in page), ["1", "3", "5"], "all pages")

    def test_w_scores_fall(self, opener: StoreOpener, runner: Runner) -> None:
        """The item that says more of the query leads."""
        store = self.open_words(opener)
        store.put(_NS, "one", {"text": "blue house with a garden"})
        store.put(_NS, "both", {"text": "blue bicycle with a bell"})
        found = runner.call(store, "lexical_search", _NS, "blue bicycle")
        expect_equal(keys(found), ["both", "one"], "keys, best first")
        scores = [item.score for item in found]
        expect_true(scores[0] > scores[1], f"scores: expected falling, found {scores}")

    def open_words(self, opener: StoreOpener) -> BaseStore:
        """Open a store with an index, or skip."""
        self.need("lexical_search")
        embedder = CharacterEmbeddings()
        return opener.open(index=index_of(embedder))
