"""Conformance of expiry: rows X1 to X4 and their rules."""

from __future__ import annotations

from typing import Final

import pytest
from langgraph.store.base import BaseStore, PutOp

from langchain_agentmem.testing.checks import expect_equal, expect_error, expect_true, keys
from langchain_agentmem.testing.doubles import CharacterEmbeddings
from langchain_agentmem.testing.harness import StoreOpener, StoreSuite, index_of
from langchain_agentmem.testing.runners import Runner

_NS: Final = ("expiry",)
_LATE: Final = 1.2
_HALF: Final = 0.6


class TTLConformance(StoreSuite):
    """Items that expire are gone at once, and reads keep them alive if they may."""

    def test_x4_ttl_is_refused_by_a_store_without(self, subject: BaseStore) -> None:
        """X4: a time to live that would be ignored raises NotImplementedError."""
        if self.supports_ttl:
            pytest.skip("the store supports a time to live")
        with expect_error(NotImplementedError, "put with ttl"):
            subject.put(_NS, "k", {"n": 1}, ttl=1)

    def test_x1_expired_item_is_absent_before_a_sweep(self, opener: StoreOpener) -> None:
        """X1: neither get, search nor listing shows an expired item."""
        store = opener.open(ttl={})
        store.put(_NS, "k", {"n": 1}, ttl=opener.ttl_minutes)
        store.put(("kept",), "k", {"n": 1})
        opener.wait(_LATE * opener.ttl_minutes)
        expect_equal(store.get(_NS, "k"), None, "get of an expired item")
        expect_equal(keys(store.search(_NS)), [], "search of an expired item")
        expect_equal(store.list_namespaces(), [("kept",)], "namespaces with an expired item")

    def test_x1_expired_item_is_absent_from_a_query(self, opener: StoreOpener) -> None:
        """X1: an expired item is not ranked either."""
        embedder = CharacterEmbeddings()
        index = index_of(embedder)
        store = opener.open(ttl={}, index=index)
        store.put(_NS, "old", {"text": "abc"}, ttl=opener.ttl_minutes)
        store.put(_NS, "new", {"text": "abd"})
        opener.wait(_LATE * opener.ttl_minutes)
        expect_equal(keys(store.search(_NS, query="abc", limit=1)), ["new"], "keys of the query")

    def test_x1_put_over_an_expired_item_starts_anew(self, opener: StoreOpener) -> None:
        """X1: the next put treats an expired item as absent: `created_at` is new."""
        store = opener.open(ttl={})
        store.put(_NS, "k", {"n": 1}, ttl=opener.ttl_minutes)
        first = store.get(_NS, "k", refresh_ttl=False)
        opener.wait(_LATE * opener.ttl_minutes)
        store.put(_NS, "k", {"n": 2})
        second = store.get(_NS, "k")
        ages = (first and first.created_at, second and second.created_at)
        good = first is not None and second is not None and second.created_at > first.created_at
        expect_true(good, f"created_at: expected a later one after expiry, found {ages}")

    def test_x2_read_refreshes_by_default(self, opener: StoreOpener) -> None:
        """X2: an item that is read lives on from the time of the read."""
        store = opener.open(ttl={})
        store.put(_NS, "got", {"n": 1}, ttl=opener.ttl_minutes)
        store.put((*_NS, "x"), "found", {"n": 1}, ttl=opener.ttl_minutes)
        store.put((*_NS, "y"), "unread", {"n": 1}, ttl=opener.ttl_minutes)
        opener.wait(_HALF * opener.ttl_minutes)
        store.get(_NS, "got")
        store.search((*_NS, "x"))
        opener.wait(_HALF * opener.ttl_minutes)
        expect_equal(sorted(keys(store.search(_NS))), ["found", "got"], "keys kept alive by reads")

    def test_x2_refresh_can_be_declined(self, opener: StoreOpener) -> None:
        """X2: `refresh_ttl=False` reads without keeping alive."""
        store = opener.open(ttl={})
        store.put(_NS, "k", {"n": 1}, ttl=opener.ttl_minutes)
        opener.wait(_HALF * opener.ttl_minutes)
        store.get(_NS, "k", refresh_ttl=False)
        store.search(_NS, refresh_ttl=False)
        opener.wait(_HALF * opener.ttl_minutes)
        expect_equal(store.get(_NS, "k"), None, "get after two reads without refresh")

    def test_x2_configuration_can_decline_refresh(self, opener: StoreOpener) -> None:
        """X2: `refresh_on_read=False` is the default of every read of that store."""
        store = opener.open(ttl={"refresh_on_read": False})
        store.put(_NS, "k", {"n": 1}, ttl=opener.ttl_minutes)
        opener.wait(_HALF * opener.ttl_minutes)
        store.get(_NS, "k")
        opener.wait(_HALF * opener.ttl_minutes)
        expect_equal(store.get(_NS, "k"), None, "get after a read without refresh")

    def test_x2_items_beyond_the_limit_are_not_refreshed(self, opener: StoreOpener) -> None:
        """X2: only what a search returns lives on."""
        store = opener.open(ttl={})
        store.put(_NS, "older", {"n": 1}, ttl=opener.ttl_minutes)
        opener.tick()
        store.put(_NS, "newer", {"n": 1}, ttl=opener.ttl_minutes)
        opener.wait(_HALF * opener.ttl_minutes)
        returned = keys(store.search(_NS, limit=1))
        opener.wait(_HALF * opener.ttl_minutes)
        expect_equal(keys(store.search(_NS)), returned, "keys left after a search with limit 1")

    def test_x2_reads_do_not_move_updated_at(self, opener: StoreOpener) -> None:
        """X2: keeping an item alive is no update."""
        store = opener.open(ttl={})
        store.put(_NS, "k", {"n": 1}, ttl=opener.ttl_minutes)
        first = store.get(_NS, "k")
        opener.wait(_HALF * opener.ttl_minutes)
        second = store.get(_NS, "k")
        times = (first and first.updated_at, second and second.updated_at)
        expect_equal(times[1], times[0], "updated_at after reads that refresh")

    def test_x3_fractions_of_a_minute_count(self, opener: StoreOpener) -> None:
        """X3: half a unit expires after half the time."""
        store = opener.open(ttl={})
        fraction = 0.5 if self.accepts_clock else self.shortest_ttl_minutes
        store.put(_NS, "k", {"n": 1}, ttl=min(fraction, 0.5))
        store.put(_NS, "kept", {"n": 1}, ttl=2)
        expect_true(
            store.get(_NS, "k", refresh_ttl=False) is not None,
            "get at once: expected the item, found None",
        )
        opener.wait(_LATE * min(fraction, 0.5))
        expect_equal(store.get(_NS, "k"), None, "get after a fraction of a minute")
        expect_equal(keys(store.search(_NS)), ["kept"], "keys after a fraction of a minute")

    @pytest.mark.parametrize("ttl", [0, -1, float("nan")], ids=repr)
    def test_x_ttl_that_is_not_positive_is_refused(self, opener: StoreOpener, ttl: float) -> None:
        """A time to live is a positive number of minutes."""
        store = opener.open(ttl={})
        with expect_error(ValueError, f"put with ttl={ttl}"):
            store.put(_NS, "k", {"n": 1}, ttl=ttl)
        expect_equal(store.get(_NS, "k"), None, "item after the refused put")

    def test_x_default_ttl_applies_to_put(self, opener: StoreOpener) -> None:
        """A put that says nothing takes `default_ttl`; None means no expiry."""
        store = opener.open(ttl={"default_ttl": opener.ttl_minutes})
        store.put(_NS, "default", {"n": 1})
        store.put(_NS, "never", {"n": 1}, ttl=None)
        opener.wait(_LATE * opener.ttl_minutes)
        expect_equal(keys(store.search(_NS)), ["never"], "keys after the default time to live")

    def test_x_op_without_ttl_never_expires(self, opener: StoreOpener) -> None:
        """A `PutOp` means what it says: the default applies to `put` only."""
        store = opener.open(ttl={"default_ttl": opener.ttl_minutes})
        store.batch([PutOp(_NS, "k", {"n": 1})])
        opener.wait(_LATE * opener.ttl_minutes)
        expect_equal(keys(store.search(_NS)), ["k"], "keys after the default time to live")

    def test_x_put_without_ttl_clears_the_expiry(self, opener: StoreOpener) -> None:
        """Every put sets the expiry anew, also to none."""
        store = opener.open(ttl={})
        store.put(_NS, "k", {"n": 1}, ttl=opener.ttl_minutes)
        store.put(_NS, "k", {"n": 2})
        opener.wait(_LATE * opener.ttl_minutes)
        expect_equal(keys(store.search(_NS)), ["k"], "keys after a put without ttl")

    def test_x_sweep_removes_and_counts(self, opener: StoreOpener, runner: Runner) -> None:
        """`sweep_ttl` returns how many items it removed, live ones stay."""
        store = opener.open(ttl={})
        for key in ("a", "b"):
            store.put(_NS, key, {"n": 1}, ttl=opener.ttl_minutes)
        store.put(_NS, "kept", {"n": 1})
        opener.wait(_LATE * opener.ttl_minutes)
        expect_equal(runner.call(store, "sweep_ttl"), 2, "result of sweep_ttl")
        expect_equal(runner.call(store, "sweep_ttl"), 0, "result of a second sweep_ttl")
        expect_equal(keys(store.search(_NS)), ["kept"], "keys after the sweep")
