"""Conformance of order, limits and namespaces: rows L1 to L4, N1 to N4 and their rules."""

from __future__ import annotations

from typing import Any, Final

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    PutOp,
    SearchOp,
)

from langchain_agentmem.testing.checks import expect_equal, expect_error, expect_true, keys
from langchain_agentmem.testing.harness import StoreOpener, StoreSuite

_NS: Final = ("order",)
_BAD_LABELS: Final[dict[str, Any]] = {
    "dot": "a.b",
    "empty": "",
    "none": None,
    "integer": 1,
    "nul": "a\x00b",
}
_ODD_LABELS: Final = ("foo", "foobar", "foo%", "Foo", "foo\n", "f_o", "f?o", "[foo]", "fo*")


class OrderConformance(StoreSuite):
    """Order without a query, and numbers that bound a result."""

    @pytest.mark.parametrize("name", ["limit", "offset"])
    def test_l1_negative_number_is_refused(self, subject: BaseStore, name: str) -> None:
        """L1: a negative limit or offset raises ValueError, in search and in listing."""
        subject.put(_NS, "k", {"n": 1})
        options: dict[str, Any] = {name: -1}
        with expect_error(ValueError, f"search with {name}=-1"):
            subject.search(_NS, **options)
        with expect_error(ValueError, f"list_namespaces with {name}=-1"):
            subject.list_namespaces(**options)

    @pytest.mark.parametrize("number", [True, 1.5, "3", None], ids=repr)
    def test_l1_number_must_be_an_integer(self, subject: BaseStore, number: Any) -> None:  # noqa: ANN401 - any wrong value
        """L1: a bool, a float, a string or None is no limit."""
        with expect_error(ValueError, f"search with limit={number!r}"):
            subject.search(_NS, limit=number)

    def test_l1_limit_zero_gives_nothing(self, subject: BaseStore) -> None:
        """L1: zero is a number of items like any other."""
        subject.put(_NS, "k", {"n": 1})
        expect_equal(subject.search(_NS, limit=0), [], "search with limit=0")
        expect_equal(subject.list_namespaces(limit=0), [], "list_namespaces with limit=0")

    def test_l1_offset_beyond_the_end_gives_nothing(self, subject: BaseStore) -> None:
        """L1: there is nothing after the last item."""
        subject.put(_NS, "k", {"n": 1})
        expect_equal(subject.search(_NS, offset=5), [], "search with offset=5 over one item")

    @pytest.mark.parametrize("depth", [0, -1])
    def test_l2_max_depth_below_one_is_refused(self, subject: BaseStore, depth: int) -> None:
        """L2: no namespace has no label."""
        subject.put(_NS, "k", {"n": 1})
        with expect_error(ValueError, f"list_namespaces with max_depth={depth}"):
            subject.list_namespaces(max_depth=depth)

    def test_l3_newest_update_comes_first(self, opener: StoreOpener) -> None:
        """L3: without a query the last write leads, even within one second."""
        store = opener.open()
        for key in ("a", "b", "c", "d"):
            store.put(_NS, key, {"n": 1})
            opener.tick()
        store.put(_NS, "b", {"n": 2})
        expect_equal(keys(store.search(_NS)), ["b", "d", "c", "a"], "keys, newest update first")

    def test_l3_later_op_of_a_batch_is_newer(self, subject: BaseStore) -> None:
        """L3: ties in time are broken by write order."""
        subject.batch([PutOp(_NS, key, {"n": 1}) for key in ("c", "a", "b")])
        expect_equal(keys(subject.search(_NS)), ["b", "a", "c"], "keys, last written first")

    def test_l3_pages_follow_each_other(self, opener: StoreOpener) -> None:
        """L3: pages without a query concatenate to the whole list."""
        store = opener.open()
        for n in range(7):
            store.put(_NS, str(n), {"n": n})
            opener.tick()
        pages = [keys(store.search(_NS, limit=3, offset=start)) for start in (0, 3, 6)]
        found = [key for page in pages for key in page]
        expect_equal(found, keys(store.search(_NS, limit=10)), "concatenated pages")
        expect_equal(sorted(found), [str(n) for n in range(7)], "keys on all pages")

    def test_l4_namespace_is_not_made_by_reading(self, subject: BaseStore) -> None:
        """L4: get and search in an unknown namespace do not create it."""
        subject.get(("ghost",), "k")
        subject.search(("ghost", "child"))
        expect_equal(subject.list_namespaces(), [], "namespaces after reads")

    def test_l4_emptied_namespace_is_not_listed(self, subject: BaseStore) -> None:
        """L4: a namespace ends with its last item."""
        subject.put(("gone",), "k", {"n": 1})
        subject.put(("kept",), "k", {"n": 1})
        subject.delete(("gone",), "k")
        expect_equal(subject.list_namespaces(), [("kept",)], "namespaces after delete")


class NamespaceConformance(StoreSuite):
    """Prefixes, wildcards, listing, and labels that are refused."""

    def test_n_search_prefix_matches_whole_labels(self, subject: BaseStore) -> None:
        """A prefix is no text prefix, no pattern, and case-sensitive."""
        for label in _ODD_LABELS:
            subject.put((label,), label, {"n": 1})
            subject.put((label, "child"), f"{label}/child", {"n": 1})
        for label in _ODD_LABELS:
            found = sorted(keys(subject.search((label,), limit=50)))
            expect_equal(found, sorted([label, f"{label}/child"]), f"keys below ({label!r},)")

    def test_n_empty_prefix_searches_everything(self, subject: BaseStore) -> None:
        """`()` is the prefix of every namespace."""
        subject.put(("a",), "1", {"n": 1})
        subject.put(("b", "c"), "2", {"n": 1})
        expect_equal(sorted(keys(subject.search(()))), ["1", "2"], "keys below ()")

    def test_n_same_key_in_two_namespaces_is_two_items(self, subject: BaseStore) -> None:
        """A key belongs to its namespace, and joined labels do not collide."""
        subject.put(("a", "b"), "k", {"n": 1})
        subject.put(("a",), "k", {"n": 2})
        subject.put(("ab",), "k", {"n": 3})
        subject.delete(("a",), "k")
        expect_equal(len(subject.search(())), 2, "items left after one delete of three")

    def test_n_listing_is_sorted(self, subject: BaseStore) -> None:
        """Namespaces come in the order of their tuples, each once."""
        for namespace in (("b",), ("a", "z"), ("a",), ("a", "b")):
            subject.put(namespace, "1", {"n": 1})
            subject.put(namespace, "2", {"n": 1})
        expected = [("a",), ("a", "b"), ("a", "z"), ("b",)]
        expect_equal(subject.list_namespaces(), expected, "namespaces")

    def test_n_max_depth_truncates_before_limit_and_offset(self, subject: BaseStore) -> None:
        """Truncated namespaces are made distinct first, then counted."""
        for first in "abc":
            for second in "xyz":
                subject.put((first, second, "leaf"), "k", {"n": 1})
        found = subject.list_namespaces(max_depth=1, limit=2, offset=1)
        expect_equal(found, [("b",), ("c",)], "namespaces of depth 1, the second and third")

    def test_n_prefix_and_suffix_match_whole_labels(self, subject: BaseStore) -> None:
        """Conditions compare labels, all of them together."""
        for label in _ODD_LABELS:
            subject.put((label, "mid", label), "k", {"n": 1})
        for label in _ODD_LABELS:
            if label == "fo*":
                continue
            found = subject.list_namespaces(prefix=(label,), suffix=(label,))
            expect_equal(found, [(label, "mid", label)], f"namespaces from and to {label!r}")

    def test_n_star_matches_exactly_one_label(self, subject: BaseStore) -> None:
        """`"*"` stands for one whole label, not for a part and not for several."""
        for namespace in (("a", "b"), ("x", "a", "b"), ("b",), ("a", "c")):
            subject.put(namespace, "k", {"n": 1})
        found = subject.list_namespaces(suffix=("*", "b"))
        expect_equal(found, [("a", "b"), ("x", "a", "b")], "namespaces that end with (*, b)")
        found = subject.list_namespaces(prefix=("*", "a"))
        expect_equal(found, [("x", "a", "b")], "namespaces that begin with (*, a)")

    @pytest.mark.parametrize("kind", sorted(_BAD_LABELS))
    def test_n1_bad_label_in_a_batch_is_refused(self, subject: BaseStore, kind: str) -> None:
        """N1: `batch` checks labels like `put`, and nothing of the batch is written."""
        label = _BAD_LABELS[kind]
        ops = [PutOp(("good",), "k", {"n": 1}), PutOp((label,), "k", {"n": 1})]
        with expect_error(InvalidNamespaceError, f"batch with the label {label!r}"):
            subject.batch(ops)
        expect_equal(keys(subject.search(("good",))), [], "keys after the refused batch")

    @pytest.mark.parametrize("kind", ["dot", "empty"])
    def test_n1_bad_label_in_a_read_is_refused(self, subject: BaseStore, kind: str) -> None:
        """N1: a read with a label no item can have is a mistake of the caller."""
        label = _BAD_LABELS[kind]
        for op in (GetOp((label,), "k"), SearchOp((label,))):
            with expect_error(InvalidNamespaceError, f"{type(op).__name__} with {label!r}"):
                subject.batch([op])

    @pytest.mark.parametrize("kind", sorted(_BAD_LABELS))
    def test_n1_bad_label_in_put_is_refused(self, subject: BaseStore, kind: str) -> None:
        """N1: `put` refuses labels that are empty, no strings, or hold a dot or NUL."""
        label = _BAD_LABELS[kind]
        with expect_error(InvalidNamespaceError, f"put with the label {label!r}"):
            subject.put((label,), "k", {"n": 1})

    def test_n1_put_refuses_the_reserved_root(self, subject: BaseStore) -> None:
        """N1: `put` keeps the root `langgraph` for LangGraph."""
        with expect_error(InvalidNamespaceError, "put below langgraph"):
            subject.put(("langgraph", "x"), "k", {"n": 1})

    def test_n2_empty_namespace_in_a_batch_is_refused(self, subject: BaseStore) -> None:
        """N2: an item must be somewhere."""
        with expect_error(InvalidNamespaceError, "PutOp with ()"):
            subject.batch([PutOp((), "k", {"n": 1})])
        with expect_error(InvalidNamespaceError, "put with ()"):
            subject.put((), "k", {"n": 1})

    def test_n3_reserved_root_works_through_batch(self, subject: BaseStore) -> None:
        """N3: LangGraph writes below its own root with batch and deletes it there."""
        namespace = ("langgraph", "x")
        subject.batch([PutOp(namespace, "k", {"n": 1})])
        expect_true(
            subject.get(namespace, "k") is not None,
            "get below langgraph: expected the item, found None",
        )
        subject.delete(namespace, "k")
        expect_equal(subject.get(namespace, "k"), None, "item below langgraph after delete")

    @pytest.mark.parametrize("label", ["a.b", ""])
    def test_n4_delete_with_a_bad_label_is_refused(self, subject: BaseStore, label: str) -> None:
        """N4: nothing can lie there, so the call is a mistake."""
        with expect_error(InvalidNamespaceError, f"delete with the label {label!r}"):
            subject.delete((label,), "k")

    def test_n_listing_by_op_takes_no_condition(self, subject: BaseStore) -> None:
        """A bare `ListNamespacesOp` lists everything."""
        subject.put(("a",), "k", {"n": 1})
        expect_equal(subject.batch([ListNamespacesOp()]), [[("a",)]], "ListNamespacesOp()")
