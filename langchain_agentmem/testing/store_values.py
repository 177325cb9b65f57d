"""Conformance of timestamps, values and keys: rows T1, T2, A1 to A3 and their rules."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from langgraph.store.base import BaseStore, Item, PutOp

from langchain_agentmem.testing.checks import expect_equal, expect_error, expect_true, keys
from langchain_agentmem.testing.harness import StoreOpener, StoreSuite

_NS: Final = ("values",)
_REFUSED: Final = (TypeError, ValueError)
_UNSTORABLE: Final[dict[str, tuple[Any, str]]] = {
    "set": ({"a": {1, 2}}, "a"),
    "bytes": ({"a": b"x"}, "a"),
    "datetime": ({"a": [{"b": datetime(2026, 1, 1, tzinfo=UTC)}]}, "a[0].b"),
    "nan": ({"a": float("nan")}, "a"),
    "infinity": ({"a": {"b": float("inf")}}, "a.b"),
    "integer_key": ({"a": {1: 2}}, "a"),
    "surrogate": ({"a": "\ud800"}, "a"),
    "surrogate_key": ({"a": {"\ud800": 1}}, "a"),
    "object": ({"a": object()}, "a"),
}
_TEXTS: Final = {
    "nul": "a\x00b",
    "chinese": "我住在上海",
    "arabic": "أحب القهوة",
    "emoji": "👩‍👩‍👧 🏳️‍🌈",
    "combining": "cafe\u0301",
    "separators": "\x1e\x1f\u2028",
    "quotes": "'\"\\`%_*?[",
    "empty": "",
}
_KEYS: Final = ("plain", "a/b", "名", "", " ", "'; DROP TABLE items; --", "%", "a\nb", "🏳️‍🌈")


def got(store: BaseStore, key: str) -> Item:
    """Return the item of a key.

    Raises:
        AssertionError: If there is none.
    """
    item = store.get(_NS, key)
    if item is None:
        msg = f"get({key!r}): expected the item that was put, found None"
        raise AssertionError(msg)
    return item


class ValueConformance(StoreSuite):
    """What goes in comes out, or is refused."""

    def test_put_then_get_returns_the_item(self, subject: BaseStore) -> None:
        """An item carries its value, key and namespace."""
        subject.put(("a", "b"), "k", {"x": 1})
        item = subject.get(("a", "b"), "k")
        expect_true(item is not None, "get after put: expected an item, found None")
        if item is not None:
            found = (item.value, item.key, item.namespace)
            expect_equal(found, ({"x": 1}, "k", ("a", "b")), "value, key and namespace")

    def test_get_of_a_missing_key_is_none(self, subject: BaseStore) -> None:
        """Neither an unknown namespace nor an unknown key is an error."""
        subject.put(_NS, "k", {"x": 1})
        expect_equal(subject.get(_NS, "other"), None, "get of an unknown key")
        expect_equal(subject.get(("other",), "k"), None, "get in an unknown namespace")

    def test_delete_removes_and_is_silent_when_absent(self, subject: BaseStore) -> None:
        """Deleting twice is harmless and leaves other items alone."""
        subject.put(_NS, "k", {"x": 1})
        subject.put(_NS, "other", {"x": 2})
        subject.delete(_NS, "k")
        subject.delete(_NS, "k")
        expect_equal(keys(subject.search(_NS)), ["other"], "keys after delete")

    def test_put_replaces_the_whole_value(self, subject: BaseStore) -> None:
        """A second put does not merge with the first."""
        subject.put(_NS, "k", {"x": 1, "y": 2})
        subject.put(_NS, "k", {"x": 3})
        expect_equal(got(subject, "k").value, {"x": 3}, "value after the second put")

    def test_t1_created_at_survives_an_update(self, opener: StoreOpener) -> None:
        """T1: an update moves `updated_at` only."""
        store = opener.open()
        store.put(_NS, "k", {"n": 1})
        first = got(store, "k")
        opener.tick()
        store.put(_NS, "k", {"n": 2})
        second = got(store, "k")
        expect_equal(second.created_at, first.created_at, "created_at after an update")
        what = f"updated_at: expected later than {first.updated_at}, found {second.updated_at}"
        expect_true(second.updated_at > first.updated_at, what)

    def test_t1_delete_and_put_start_a_new_created_at(self, opener: StoreOpener) -> None:
        """T1: a deleted item does not leave its age to the next one."""
        store = opener.open()
        store.put(_NS, "k", {"n": 1})
        first = got(store, "k")
        opener.tick()
        store.delete(_NS, "k")
        store.put(_NS, "k", {"n": 2})
        second = got(store, "k")
        what = f"created_at: expected later than {first.created_at}, found {second.created_at}"
        expect_true(second.created_at > first.created_at, what)

    def test_t1_updated_at_never_runs_backwards(self, opener: StoreOpener) -> None:
        """T1: a clock set back does not make an update older than what it replaced."""
        self.need("accepts_clock")
        store = opener.open()
        store.put(_NS, "k", {"n": 1})
        first = got(store, "k")
        opener.clock.advance(minutes=-5)
        store.put(_NS, "k", {"n": 2})
        second = got(store, "k")
        what = f"updated_at: expected at least {first.updated_at}, found {second.updated_at}"
        expect_true(second.updated_at >= first.updated_at, what)

    def test_t1_reads_do_not_move_updated_at(self, opener: StoreOpener) -> None:
        """T1: get and search leave timestamps alone."""
        store = opener.open()
        store.put(_NS, "k", {"n": 1})
        first = got(store, "k").updated_at
        opener.tick()
        store.search(_NS)
        expect_equal(got(store, "k").updated_at, first, "updated_at after reads")

    def test_t2_timestamps_are_aware_utc(self, subject: BaseStore) -> None:
        """T2: both times carry the offset zero, in get and in search."""
        subject.put(_NS, "k", {"n": 1})
        for item in (got(subject, "k"), subject.search(_NS)[0]):
            for name, moment in (("created_at", item.created_at), ("updated_at", item.updated_at)):
                expect_equal(moment.utcoffset(), timedelta(0), f"UTC offset of {name} {moment}")

    def test_t2_timestamps_are_finer_than_a_second(self, opener: StoreOpener) -> None:
        """T2: items written one after the other in one second are told apart."""
        store = opener.open()
        moments = set()
        for n in range(3):
            store.put(_NS, str(n), {"n": n})
            moments.add(got(store, str(n)).updated_at)
            opener.tick()
        expect_equal(len(moments), 3, "distinct times of three puts a few milliseconds apart")

    def test_a1_mutating_the_given_value_changes_nothing(self, subject: BaseStore) -> None:
        """A1: the store keeps a copy at every depth."""
        value: dict[str, Any] = {"l": [1], "m": {"x": [1]}}
        subject.put(_NS, "k", value)
        value["l"].append(2)
        value["m"]["x"].append(2)
        expect_equal(got(subject, "k").value, {"l": [1], "m": {"x": [1]}}, "value in the store")

    def test_a1_mutating_a_returned_item_changes_nothing(self, subject: BaseStore) -> None:
        """A1: what get and search return are copies at every depth."""
        subject.put(_NS, "k", {"l": [1], "m": {"x": [1]}})
        got(subject, "k").value["l"].append(2)
        subject.search(_NS)[0].value["m"]["x"].append(2)
        expect_equal(got(subject, "k").value, {"l": [1], "m": {"x": [1]}}, "value in the store")

    @pytest.mark.parametrize("kind", sorted(_UNSTORABLE))
    def test_a2_non_json_value_is_refused(self, subject: BaseStore, kind: str) -> None:
        """A2: what JSON cannot give back equal raises, and nothing is written."""
        value, _ = _UNSTORABLE[kind]
        subject.put(_NS, "k", {"old": True})
        with expect_error(_REFUSED, f"put of {kind}"):
            subject.put(_NS, "k", value)
        expect_equal(got(subject, "k").value, {"old": True}, "value after the refused put")

    @pytest.mark.parametrize("kind", sorted(_UNSTORABLE))
    def test_a2_refusal_names_the_path(self, subject: BaseStore, kind: str) -> None:
        """A2: the message says where in the value the trouble is."""
        value, path = _UNSTORABLE[kind]
        with expect_error(_REFUSED, f"put of {kind}", f"value.{path}"):
            subject.put(_NS, "k", value)

    def test_a2_tuples_come_back_as_lists(self, subject: BaseStore) -> None:
        """A2: JSON has one kind of sequence."""
        subject.put(_NS, "k", {"t": (1, (2, 3))})
        expect_equal(got(subject, "k").value, {"t": [1, [2, 3]]}, "value put with tuples")

    @pytest.mark.parametrize("kind", sorted(_TEXTS))
    def test_a2_text_round_trips(self, subject: BaseStore, kind: str) -> None:
        """A2: every script, NUL and control characters come back as they were."""
        value = {"text": _TEXTS[kind], "key " + _TEXTS[kind]: [_TEXTS[kind]]}
        subject.put(_NS, "k", value)
        expect_equal(got(subject, "k").value, value, f"value with {kind} text")

    @pytest.mark.parametrize(
        "number",
        [0, -1, 2**53 + 1, 2**63, 10**40, 0.1, 1e-308, 1.7976931348623157e308, -0.0, 1.0],
        ids=repr,
    )
    def test_a2_numbers_round_trip(self, subject: BaseStore, number: float) -> None:
        """A2: integers of any size and floats are exact, and keep their type and sign."""
        subject.put(_NS, "k", {"n": number})
        found = got(subject, "k").value
        expect_equal(json.dumps(found), json.dumps({"n": number}), "the number as JSON")

    def test_a2_nesting_and_key_order_round_trip(self, subject: BaseStore) -> None:
        """A2: objects, lists, null and bools keep their place."""
        value = {"z": {"b": [None, True, {"y": []}], "a": {}}, "a": 1}
        subject.put(_NS, "k", value)
        expect_equal(got(subject, "k").value, value, "a nested value")

    def test_a3_non_string_key_is_its_string(self, subject: BaseStore) -> None:
        """A3: `put` and `get` apply `str()` to a key alike."""
        number: Any = 7
        subject.put(_NS, number, {"n": 1})
        expect_equal(keys(subject.search(_NS)), ["7"], "key of an item put with 7")
        expect_true(subject.get(_NS, number) is not None, "get(7): expected the item, found None")
        expect_true(subject.get(_NS, "7") is not None, "get('7'): expected the item, found None")
        subject.delete(_NS, number)
        expect_equal(keys(subject.search(_NS)), [], "keys after delete(7)")

    def test_a3_non_string_key_is_the_same_in_a_batch(self, subject: BaseStore) -> None:
        """A3: ops given to batch treat keys like the methods."""
        number: Any = 7
        subject.batch([PutOp(_NS, number, {"n": 1})])
        expect_equal(keys(subject.search(_NS)), ["7"], "key of an item put with 7 in a batch")
        expect_true(subject.get(_NS, "7") is not None, "get('7'): expected the item, found None")

    @pytest.mark.parametrize("key", ["a\x00b", "\ud800"], ids=["nul", "surrogate"])
    def test_a3_unstorable_key_is_refused(self, subject: BaseStore, key: str) -> None:
        """A3: NUL and lone surrogates in a key raise ValueError."""
        with expect_error(ValueError, f"put with the key {key!r}"):
            subject.put(_NS, key, {"n": 1})
        expect_equal(keys(subject.search(_NS)), [], "keys after the refused put")

    @pytest.mark.parametrize("key", _KEYS, ids=repr)
    def test_a3_any_other_key_works(self, subject: BaseStore, key: str) -> None:
        """A3: a key is data, whatever characters it holds."""
        subject.put(_NS, "neighbor", {"n": 0})
        subject.put(_NS, key, {"n": 1})
        expect_equal(got(subject, key).value, {"n": 1}, f"value of the key {key!r}")
        subject.delete(_NS, key)
        expect_equal(keys(subject.search(_NS)), ["neighbor"], f"keys after delete({key!r})")
