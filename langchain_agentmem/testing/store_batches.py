"""Conformance of batches: rows B1 to B3 and their rules."""

from __future__ import annotations

from typing import Any, Final

from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, PutOp, SearchOp

from langchain_agentmem.testing.checks import expect_equal, expect_error, expect_true, keys
from langchain_agentmem.testing.doubles import CharacterEmbeddings
from langchain_agentmem.testing.harness import StoreOpener, StoreSuite, index_of

_NS: Final = ("batches",)


class _FailingEmbeddings(CharacterEmbeddings):
    """Refuses any text that says so."""

    def document_vector(self, text: str) -> list[float]:
        """Raise for a poisoned text.

        Raises:
            RuntimeError: If the text asks for it.
        """
        if "poison" in text:
            msg = "the embedder is down"
            raise RuntimeError(msg)
        return super().document_vector(text)


class BatchConformance(StoreSuite):
    """A batch is one whole: its reads first, then all of its writes or none."""

    def test_b_results_come_in_op_order(self, subject: BaseStore) -> None:
        """Every op has one result, at its own position."""
        subject.put(_NS, "k", {"n": 1})
        ops: list[Any] = [
            ListNamespacesOp(),
            PutOp(_NS, "new", {"n": 2}),
            GetOp(_NS, "k"),
            SearchOp(_NS),
            GetOp(_NS, "none"),
        ]
        listed, put, got, found, missing = subject.batch(ops)
        expect_equal(listed, [_NS], "result of ListNamespacesOp")
        expect_equal(put, None, "result of PutOp")
        expect_true(
            getattr(got, "value", None) == {"n": 1}, f"GetOp: expected the item, found {got}"
        )
        expect_true(
            isinstance(found, list) and len(found) == 1,
            f"SearchOp: expected one item, found {found}",
        )
        expect_equal(missing, None, "result of GetOp for a missing key")

    def test_b_empty_batch_gives_no_result(self, subject: BaseStore) -> None:
        """Nothing to do is fine."""
        expect_equal(subject.batch([]), [], "result of an empty batch")

    def test_b_ops_may_come_from_a_generator(self, subject: BaseStore) -> None:
        """The ops are an iterable that can be read once."""
        subject.batch(PutOp(_NS, str(n), {"n": n}) for n in range(3))
        expect_equal(len(subject.search(_NS)), 3, "items put by a generator of ops")

    def test_b_unknown_op_is_refused(self, subject: BaseStore) -> None:
        """An op that is none raises ValueError naming its type."""
        strange: Any = {"not": "an op"}
        with expect_error(ValueError, "batch with a dict as op", "dict"):
            subject.batch([PutOp(_NS, "k", {"n": 1}), strange])
        expect_equal(keys(subject.search(_NS)), [], "keys after the refused batch")

    def test_b1_refused_value_leaves_the_batch_unwritten(self, subject: BaseStore) -> None:
        """B1: one value that cannot be stored keeps its neighbors out, deletes included."""
        subject.put(_NS, "old", {"n": 1})
        ops = [
            PutOp(_NS, "good", {"n": 1}),
            PutOp(_NS, "old", None),
            PutOp(_NS, "bad", {"n": object()}),
        ]
        with expect_error((TypeError, ValueError), "batch with an object as a value"):
            subject.batch(ops)
        expect_equal(keys(subject.search(_NS)), ["old"], "keys after the refused batch")

    def test_b1_failing_embedder_leaves_the_batch_unwritten(self, opener: StoreOpener) -> None:
        """B1: an embedder that raises changes nothing, deletes included."""
        embedder = _FailingEmbeddings()
        store = opener.open(index=index_of(embedder))
        store.put(_NS, "old", {"text": "fine"})
        ops = [
            PutOp(_NS, "good", {"text": "fine too"}),
            PutOp(_NS, "old", None),
            PutOp(_NS, "bad", {"text": "poison"}),
        ]
        with expect_error(RuntimeError, "batch whose embedder fails"):
            store.batch(ops)
        expect_equal(keys(store.search(_NS)), ["old"], "keys after the failed batch")

    def test_b2_reads_see_the_state_before(self, subject: BaseStore) -> None:
        """B2: get, search and listing ignore the puts of their own batch."""
        subject.put(_NS, "k", {"n": 1})
        ops: list[Any] = [
            PutOp(_NS, "k", {"n": 2}),
            PutOp(("fresh",), "k", {"n": 3}),
            GetOp(_NS, "k"),
            SearchOp(()),
            ListNamespacesOp(),
        ]
        _, _, got, found, listed = subject.batch(ops)
        value = getattr(got, "value", None)
        expect_equal(value, {"n": 1}, "value read beside the put")
        values = [item.value for item in found] if isinstance(found, list) else found  # type: ignore[union-attr]  # a search's result
        expect_equal(values, [{"n": 1}], "values found beside the puts")
        expect_equal(listed, [_NS], "namespaces listed beside the puts")

    def test_b3_last_put_of_a_key_wins(self, subject: BaseStore) -> None:
        """B3: of several puts and deletes of one key only the last applies."""
        subject.put(_NS, "deleted", {"n": 0})
        ops = [
            PutOp(_NS, "twice", {"n": 1}),
            PutOp(_NS, "deleted", {"n": 1}),
            PutOp(_NS, "revived", None),
            PutOp(_NS, "twice", {"n": 2}),
            PutOp(_NS, "deleted", None),
            PutOp(_NS, "revived", {"n": 3}),
        ]
        subject.batch(ops)
        found = {item.key: item.value for item in subject.search(_NS)}
        expect_equal(found, {"twice": {"n": 2}, "revived": {"n": 3}}, "items after the batch")

    def test_b3_only_surviving_puts_are_embedded(self, opener: StoreOpener) -> None:
        """B3: a text that is overwritten in its own batch costs no embedding."""
        embedder = CharacterEmbeddings()
        store = opener.open(index=index_of(embedder))
        store.batch([PutOp(_NS, "k", {"text": "first"}), PutOp(_NS, "k", {"text": "second"})])
        expect_equal(embedder.documents, ["second"], "texts embedded")

    def test_b3_keys_of_two_namespaces_do_not_mix(self, subject: BaseStore) -> None:
        """B3: the last put wins per namespace and key, not per key."""
        subject.batch([PutOp(("x",), "k", {"n": 1}), PutOp(("y",), "k", {"n": 2})])
        found = sorted(item.value["n"] for item in subject.search(()))
        expect_equal(found, [1, 2], "values of one key in two namespaces")
