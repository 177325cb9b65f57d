"""Conformance of filters: rows F1 to F16, their rules, and the extension operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from langgraph.store.base import BaseStore

from langchain_agentmem.testing.checks import expect_equal, expect_error, keys
from langchain_agentmem.testing.harness import StoreSuite

_NS: Final = ("filters",)
_BIG: Final = 2**53


def matched(store: BaseStore, values: Mapping[str, Any], condition: dict[str, Any]) -> list[str]:
    """Put one item for each value and return the sorted keys a filter selects."""
    for key, value in values.items():
        store.put(_NS, key, value, index=False)
    return sorted(keys(store.search(_NS, filter=condition, limit=100)))


def check(
    store: BaseStore, values: Mapping[str, Any], condition: dict[str, Any], expected: str
) -> None:
    """Fail unless a filter selects exactly the expected keys, separated by spaces."""
    found = matched(store, values, condition)
    expect_equal(found, sorted(expected.split()), f"keys matched by {condition}")


class FilterConformance(StoreSuite):
    """Filters every store should understand alike."""

    def test_f1_nested_dict_operand_is_a_subset_match(self, subject: BaseStore) -> None:
        """F1: a dict without operators is a filter on the sub-object; extra keys do not matter."""
        values = {
            "same": {"m": {"x": 1}},
            "more": {"m": {"x": 1, "y": 2}},
            "other": {"m": {"x": 2}},
            "scalar": {"m": 1},
            "none": {},
        }
        check(subject, values, {"m": {"x": 1}}, "same more")

    def test_f1_empty_nested_operand_matches_any_object(self, subject: BaseStore) -> None:
        """F1: `{}` as an operand asks for an object, whatever is in it."""
        values = {"empty": {"m": {}}, "full": {"m": {"x": 1}}, "list": {"m": []}, "none": {}}
        check(subject, values, {"m": {}}, "empty full")

    def test_f1_mixed_operators_and_fields_are_refused(self, subject: BaseStore) -> None:
        """F1: a dict that mixes operators with field names raises ValueError."""
        subject.put(_NS, "k", {"m": {"x": 1}}, index=False)
        with expect_error(ValueError, "a filter mixing x with $gt"):
            subject.search(_NS, filter={"m": {"x": 1, "$gt": 0}})

    def test_f2_operator_in_a_nested_dict_applies_at_its_depth(self, subject: BaseStore) -> None:
        """F2: `{"m": {"x": {"$gt": 1}}}` compares the field `x` of the object `m`."""
        values = {"two": {"m": {"x": 2, "y": 0}}, "one": {"m": {"x": 1}}, "no": {"m": 3}}
        check(subject, values, {"m": {"x": {"$gt": 1}}}, "two")

    def test_f3_eq_of_a_dict_is_whole_value_equality(self, subject: BaseStore) -> None:
        """F3: `$eq` with a dict is deep equality, not a subset match."""
        values = {"same": {"m": {"x": {"y": 1}}}, "more": {"m": {"x": {"y": 1}, "z": 2}}, "no": {}}
        check(subject, values, {"m": {"$eq": {"x": {"y": 1}}}}, "same")

    def test_f3_ne_of_a_dict_is_the_complement_of_eq(self, subject: BaseStore) -> None:
        """F3: `$ne` with a dict selects exactly what `$eq` does not."""
        values = {"same": {"m": {"x": 1}}, "more": {"m": {"x": 1, "z": 2}}, "no": {}}
        check(subject, values, {"m": {"$ne": {"x": 1}}}, "more no")

    def test_f4_literal_key_with_a_dot_wins(self, subject: BaseStore) -> None:
        """F4: a field whose name holds a dot is found by that name, before any path."""
        values = {"literal": {"a.b": 1, "a": {"b": 2}}}
        check(subject, values, {"a.b": 1}, "literal")
        check(subject, values, {"a.b": 2}, "")

    def test_f5_dotted_path_reads_the_nested_field(self, subject: BaseStore) -> None:
        """F5: without such a literal key, a dotted name is a path."""
        self.need("dotted_filter_paths")
        values = {"nested": {"a": {"b": 2}}, "other": {"a": {"b": 3}}, "none": {"a": 2}}
        check(subject, values, {"a.b": 2}, "nested")

    def test_f6_numbers_compare_as_numbers(self, subject: BaseStore) -> None:
        """F6: `$gt 5` over 2, 9, 10, 100 is no comparison of texts."""
        values = {str(n): {"n": n} for n in (2, 9, 10, 100)}
        check(subject, values, {"n": {"$gt": 5}}, "9 10 100")

    @pytest.mark.parametrize("operator", ["$gt", "$gte", "$lt", "$lte"])
    def test_f7_range_ignores_values_of_another_type(
        self, subject: BaseStore, operator: str
    ) -> None:
        """F7: a missing, null or differently typed value is not in a range of numbers."""
        values: dict[str, Any] = {
            "number": {"n": 5},
            "string": {"n": "5"},
            "null": {"n": None},
            "missing": {},
            "true": {"n": True},
            "list": {"n": [5]},
            "object": {"n": {"x": 5}},
        }
        operand = 4 if operator.startswith("$g") else 6
        check(subject, values, {"n": {operator: operand}}, "number")

    @pytest.mark.parametrize("operator", ["$gt", "$gte", "$lt", "$lte"])
    def test_f7_range_with_an_operand_that_has_no_order_matches_nothing(
        self, subject: BaseStore, operator: str
    ) -> None:
        """F7: null and bool operands have no order, so nothing matches and nothing raises."""
        values = {"number": {"n": 1}, "true": {"n": True}, "null": {"n": None}, "missing": {}}
        check(subject, values, {"n": {operator: None}}, "")
        check(subject, values, {"n": {operator: True}}, "")

    def test_f8_range_on_iso_dates_is_string_order(self, subject: BaseStore) -> None:
        """F8: strings compare with strings by code points."""
        values = {"old": {"at": "2025-12-31T23:59"}, "new": {"at": "2026-01-01T00:00"}}
        check(subject, values, {"at": {"$gte": "2026-01-01"}}, "new")

    def test_f8_several_operators_are_anded(self, subject: BaseStore) -> None:
        """F8: operators on one field hold together."""
        values = {str(n): {"n": n} for n in range(5)}
        check(subject, values, {"n": {"$gt": 1, "$lte": 3}}, "2 3")

    def test_f9_ne_includes_a_missing_field(self, subject: BaseStore) -> None:
        """F9: `$ne` is the complement of `$eq`, items without the field included."""
        values: dict[str, Any] = {"a": {"n": 1}, "b": {"n": 2}, "null": {"n": None}, "missing": {}}
        check(subject, values, {"n": {"$ne": 1}}, "b missing null")

    @pytest.mark.parametrize("bare", [True, False], ids=["bare", "eq"])
    def test_f10_none_matches_null_and_missing(self, subject: BaseStore, *, bare: bool) -> None:
        """F10: a missing field reads as null."""
        values: dict[str, Any] = {"null": {"n": None}, "missing": {}, "zero": {"n": 0}}
        check(subject, values, {"n": None if bare else {"$eq": None}}, "null missing")

    def test_f10_ne_none_asks_for_any_other_value(self, subject: BaseStore) -> None:
        """F10: `$ne None` leaves out null and missing."""
        values: dict[str, Any] = {"null": {"n": None}, "missing": {}, "zero": {"n": 0}}
        check(subject, values, {"n": {"$ne": None}}, "zero")

    def test_f11_bool_is_no_number(self, subject: BaseStore) -> None:
        """F11: True is not 1 and 0 is not False, in both directions."""
        values: dict[str, Any] = {
            "true": {"n": True},
            "one": {"n": 1},
            "float": {"n": 1.0},
            "false": {"n": False},
            "zero": {"n": 0},
        }
        check(subject, values, {"n": True}, "true")
        check(subject, values, {"n": 1}, "one float")
        check(subject, values, {"n": {"$eq": False}}, "false")
        check(subject, values, {"n": {"$ne": 0}}, "true one float false")

    def test_f12_lists_are_equal_element_by_element(self, subject: BaseStore) -> None:
        """F12: a list operand, bare and under `$eq`, matches the same list only."""
        values = {"same": {"t": ["a", "b"]}, "longer": {"t": ["a", "b", "c"]}, "text": {"t": "a"}}
        check(subject, values, {"t": ["a", "b"]}, "same")
        check(subject, values, {"t": {"$eq": ["a", "b"]}}, "same")

    def test_f13_large_integers_are_exact(self, subject: BaseStore) -> None:
        """F13: integers beyond 2^53 are not rounded to floats."""
        values = {"even": {"n": _BIG}, "odd": {"n": _BIG + 1}}
        check(subject, values, {"n": _BIG + 1}, "odd")
        check(subject, values, {"n": {"$eq": _BIG}}, "even")

    def test_f13_ranges_of_large_integers_are_exact(self, subject: BaseStore) -> None:
        """F13: a range does not round them either."""
        check(subject, {"even": {"n": _BIG}, "odd": {"n": _BIG + 1}}, {"n": {"$gt": _BIG}}, "odd")

    @pytest.mark.parametrize(
        "field", ["a b", "名", "it's", 'say "hi"', "x') OR 1=1 --", "cost $", "é"]
    )
    def test_f14_field_names_may_be_any_string(self, subject: BaseStore, field: str) -> None:
        """F14: spaces, quotes, SQL and other scripts in a field name are literal."""
        check(subject, {"yes": {field: 1}, "no": {field: 2}, "none": {}}, {field: 1}, "yes")

    def test_f15_unknown_operator_is_refused(self, subject: BaseStore) -> None:
        """F15: an operator the store does not know raises ValueError."""
        subject.put(_NS, "k", {"n": 1}, index=False)
        with expect_error(ValueError, "the operator $near", "$near"):
            subject.search(_NS, filter={"n": {"$near": 1}})

    def test_f16_unknown_operator_is_refused_without_items(self, subject: BaseStore) -> None:
        """F16: a filter is checked before anything runs, in an empty namespace too."""
        with expect_error(ValueError, "the operator $near in an empty namespace"):
            subject.search(("nothing", "here"), filter={"n": {"$near": 1}})

    def test_f_unknown_top_level_operator_is_refused(self, subject: BaseStore) -> None:
        """Rule (h): a top-level name with `$` that is no operator is an error, not a field."""
        subject.put(_NS, "k", {"n": 1}, index=False)
        with expect_error(ValueError, "the top-level operator $nor"):
            subject.search(_NS, filter={"$nor": [{"n": 1}]})

    def test_f_top_level_fields_are_anded(self, subject: BaseStore) -> None:
        """Rule (a): all fields of a filter must match."""
        values = {"both": {"a": 1, "b": 2}, "first": {"a": 1}, "second": {"b": 2}}
        check(subject, values, {"a": 1, "b": 2}, "both")

    def test_f_empty_filter_matches_everything(self, subject: BaseStore) -> None:
        """Rule (a): no condition is no restriction."""
        check(subject, {"a": {"n": 1}, "b": {}}, {}, "a b")

    def test_f_int_and_float_compare_by_value(self, subject: BaseStore) -> None:
        """Rule (c): 2 equals 2.0, and 2.5 lies between 2 and 3."""
        values = {"int": {"n": 2}, "float": {"n": 2.0}, "half": {"n": 2.5}}
        check(subject, values, {"n": 2.0}, "int float")
        check(subject, values, {"n": {"$gt": 2, "$lt": 3}}, "half")

    def test_f_strings_are_equal_by_code_points(self, subject: BaseStore) -> None:
        """Rule (c): case, accents and composition distinguish strings."""
        composed, decomposed = "caf\u00e9", "cafe\u0301"
        values = {"composed": {"s": composed}, "decomposed": {"s": decomposed}, "up": {"s": "CAFÉ"}}
        check(subject, values, {"s": composed}, "composed")

    def test_f_string_is_no_number(self, subject: BaseStore) -> None:
        """Rule (c): the string "1" is not the number 1."""
        values: dict[str, Any] = {"text": {"n": "1"}, "number": {"n": 1}}
        check(subject, values, {"n": 1}, "number")
        check(subject, values, {"n": "1"}, "text")

    def test_f_filter_applies_to_the_whole_scope(self, subject: BaseStore) -> None:
        """Rule (a): limit and offset count matching items only."""
        for n in range(20):
            subject.put((*_NS, str(n % 2)), str(n), {"even": n % 2 == 0, "n": n}, index=False)
        found = subject.search(_NS, filter={"n": {"$gte": 10}}, limit=4, offset=8)
        expect_equal(len(found), 2, "items on the last page of 10 matching items")
