"""Filters: rows F1 to F16 of the contract and the extension operators."""

from typing import Any

import pytest

from langchain_agentmem.stores import FaissSqliteStore
from tests.unit_tests.stores.conftest import Client

BIG = 2**53


def _found(values: dict[str, Any], condition: dict[str, Any], store: FaissSqliteStore) -> set[str]:
    """Return the keys a filter selects, the same with and without a query."""
    for key, value in values.items():
        store.put(("f",), key, value | {"text": "word"})
    plain = {item.key for item in store.search(("f",), filter=condition, limit=100)}
    ranked = {item.key for item in store.search(("f",), query="w", filter=condition, limit=100)}
    assert plain == ranked
    return plain


NUMBERS = {
    "2": {"n": 2},
    "9": {"n": 9},
    "10": {"n": 10},
    "100": {"n": 100},
    "x": {"n": "x"},
    "null": {"n": None},
    "missing": {},
}
NESTED = {"in": {"m": {"x": 2, "y": 0}}, "out": {"m": {"y": 2}}, "scalar": {"m": 3}}
LISTS = {"ab": {"l": ["a", "b"]}, "a": {"l": ["a"]}, "text": {"l": "a"}, "none": {}}


@pytest.mark.parametrize(
    ("values", "condition", "expected"),
    [
        pytest.param(NESTED, {"m": {"x": 2}}, {"in"}, id="F1"),
        pytest.param(NESTED, {"m": {"x": {"$gt": 1}}}, {"in"}, id="F2"),
        pytest.param(NESTED, {"m": {"$eq": {"x": 2}}}, set(), id="F3-eq-is-not-subset"),
        pytest.param(NESTED, {"m": {"$eq": {"y": 0, "x": 2}}}, {"in"}, id="F3-eq"),
        pytest.param(NESTED, {"m": {"$ne": {"y": 0, "x": 2}}}, {"out", "scalar"}, id="F3-ne"),
        pytest.param({"a": {"a.b": 1, "a": {"b": 2}}}, {"a.b": 1}, {"a"}, id="F4"),
        pytest.param({"a": {"a.b": 1, "a": {"b": 2}}}, {"a.b": 2}, set(), id="F4-literal-wins"),
        pytest.param({"a": {"a": {"b": 2}}}, {"a.b": 2}, {"a"}, id="F5"),
        pytest.param(NUMBERS, {"n": {"$gt": 5}}, {"9", "10", "100"}, id="F6"),
        pytest.param(NUMBERS, {"n": {"$lt": 5}}, {"2"}, id="F7-lt"),
        pytest.param(NUMBERS, {"n": {"$lt": float("inf")}}, {"2", "9", "10", "100"}, id="F7-inf"),
        pytest.param({"t": {"n": True}, "1": {"n": 1}}, {"n": {"$gte": 1}}, {"1"}, id="F7-bool"),
        pytest.param(
            {"old": {"d": "2025-01-31"}, "new": {"d": "2026-01-01"}},
            {"d": {"$gte": "2026"}},
            {"new"},
            id="F8",
        ),
        pytest.param(NUMBERS, {"n": {"$ne": 9}}, set(NUMBERS) - {"9"}, id="F9"),
        pytest.param(NUMBERS, {"n": None}, {"null", "missing"}, id="F10"),
        pytest.param({"t": {"n": True}, "1": {"n": 1}}, {"n": 1}, {"1"}, id="F11"),
        pytest.param({"t": {"n": True}, "1": {"n": 1}}, {"n": True}, {"t"}, id="F11-true"),
        pytest.param(LISTS, {"l": ["a"]}, {"a"}, id="F12"),
        pytest.param(LISTS, {"l": {"$eq": ["a", "b"]}}, {"ab"}, id="F12-eq"),
        pytest.param({"a": {"n": BIG}, "b": {"n": BIG + 1}}, {"n": BIG + 1}, {"b"}, id="F13"),
        pytest.param({"a": {"n": 10**30 + 1}}, {"n": {"$gt": 10**30}}, {"a"}, id="F13-big"),
        pytest.param({"a": {"n": 1}, "b": {"n": 1.5}}, {"n": 1.0}, {"a"}, id="int-equals-float"),
        pytest.param(NESTED, {"m": {}}, {"in", "out"}, id="empty-nested-matches-objects"),
        pytest.param(NUMBERS, {}, set(NUMBERS), id="empty-filter-matches-all"),
        pytest.param(NUMBERS, {"n": {"$in": [9, None]}}, {"9", "null", "missing"}, id="in"),
        pytest.param(NUMBERS, {"n": {"$in": []}}, set(), id="in-nothing"),
        pytest.param(NUMBERS, {"n": {"$nin": [9]}}, set(NUMBERS) - {"9"}, id="nin"),
        pytest.param(NUMBERS, {"n": {"$exists": False}}, {"missing"}, id="exists"),
        pytest.param(LISTS, {"l": {"$contains": "a"}}, {"ab", "a"}, id="contains"),
        pytest.param(NUMBERS, {"n": {"$not": {"$gt": 5}}}, {"2", "x", "null", "missing"}, id="not"),
        pytest.param(NUMBERS, {"$or": [{"n": 2}, {"n": 9}]}, {"2", "9"}, id="or"),
        pytest.param(NUMBERS, {"$and": [{"n": {"$gt": 2}}, {"n": {"$lt": 10}}]}, {"9"}, id="and"),
        pytest.param(NUMBERS, {"$not": {"n": {"$exists": True}}}, {"missing"}, id="top-not"),
    ],
)
def test_filter_selects(
    store: FaissSqliteStore, values: dict[str, Any], condition: dict[str, Any], expected: set[str]
) -> None:
    """A filter selects exactly these items, in listings and in ranked searches."""
    assert _found(values, condition, store) == expected


@pytest.mark.parametrize("key", ["a b", "名", "it's", 'say "x"', "x') OR 1=1 --", "%"])
def test_f14_any_string_is_a_field_key(store: FaissSqliteStore, key: str) -> None:
    """Field keys with spaces, quotes or other scripts work, and none of them reaches SQL."""
    assert _found({"yes": {key: 1}, "no": {"other": 1}}, {key: 1}, store) == {"yes"}


@pytest.mark.parametrize(
    "condition",
    [
        {"n": {"$regex": "x"}},
        {"$nor": []},
        {"m": {"x": 1, "$gt": 0}},
        {"n": {"$in": 1}},
        {"$or": []},
        {"n": {"$exists": 1}},
        {"n": float("nan")},
    ],
)
def test_f15_f16_bad_filter_is_refused(client: Client, condition: dict[str, Any]) -> None:
    """An unusable filter raises ValueError, even where there is no item to test."""
    with pytest.raises(ValueError, match=r"\$|filter"):
        client.search(("empty",), filter=condition)


def test_filter_sees_later_writes(client: Client) -> None:
    """A cached filter column follows updates, new items and deletes."""
    client.put(("f",), "a", {"text": "w", "tag": "x"})
    assert client.keys(("f",), query="w", filter={"tag": "x"}) == ["a"]
    client.put(("f",), "b", {"text": "w", "tag": "x"})
    client.put(("f",), "a", {"text": "w", "tag": "y"})
    assert client.keys(("f",), query="w", filter={"tag": "x"}) == ["b"]
    client.delete(("f",), "b")
    assert client.keys(("f",), query="w", filter={"tag": "x"}) == []
