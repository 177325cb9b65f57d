"""Conformance of the extension operators, for stores that declare `filter_extensions`."""

from __future__ import annotations

from typing import Any, Final

import pytest
from langgraph.store.base import BaseStore

from langchain_agentmem.testing.checks import expect_error
from langchain_agentmem.testing.harness import StoreSuite
from langchain_agentmem.testing.store_filters import check

_VALUES: Final[dict[str, Any]] = {
    "one": {"n": 1, "tags": ["a", "b"]},
    "two": {"n": 2, "tags": []},
    "three": {"n": 3, "tags": "a"},
    "null": {"n": None},
    "missing": {},
}


class FilterExtensionConformance(StoreSuite):
    """Operators LangGraph does not have."""

    @pytest.fixture
    def extended(self, subject: BaseStore) -> BaseStore:
        """Give the store, or skip unless it has them."""
        self.need("filter_extensions")
        return subject

    def test_in_selects_any_of_the_values(self, extended: BaseStore) -> None:
        """`$in` is equality with one of the values."""
        check(extended, _VALUES, {"n": {"$in": [1, 3, True]}}, "one three")

    def test_in_with_none_selects_a_missing_field(self, extended: BaseStore) -> None:
        """A missing field reads as null in `$in` too."""
        check(extended, _VALUES, {"n": {"$in": [None, 2]}}, "two null missing")

    def test_empty_in_selects_nothing(self, extended: BaseStore) -> None:
        """No value is in an empty list."""
        check(extended, _VALUES, {"n": {"$in": []}}, "")

    def test_nin_is_the_complement_of_in(self, extended: BaseStore) -> None:
        """`$nin` selects a missing field unless the list holds None."""
        check(extended, _VALUES, {"n": {"$nin": [1, 3]}}, "two null missing")
        check(extended, _VALUES, {"n": {"$nin": [1, None]}}, "two three")

    def test_empty_nin_selects_everything(self, extended: BaseStore) -> None:
        """Every value is outside an empty list."""
        check(extended, _VALUES, {"n": {"$nin": []}}, "one two three null missing")

    @pytest.mark.parametrize("operator", ["$in", "$nin"])
    def test_membership_needs_a_list(self, extended: BaseStore, operator: str) -> None:
        """A string is no list of characters."""
        with expect_error(ValueError, f"{operator} with a string"):
            extended.search(("any",), filter={"n": {operator: "abc"}})

    def test_exists_tells_null_from_missing(self, extended: BaseStore) -> None:
        """`$exists` asks for the field, not for its value."""
        check(extended, _VALUES, {"n": {"$exists": True}}, "one two three null")
        check(extended, _VALUES, {"n": {"$exists": False}}, "missing")

    def test_exists_needs_a_bool(self, extended: BaseStore) -> None:
        """`$exists: 1` is a mistake."""
        with expect_error(ValueError, "$exists with a number"):
            extended.search(("any",), filter={"n": {"$exists": 1}})

    def test_contains_looks_into_lists_only(self, extended: BaseStore) -> None:
        """`$contains` selects lists with an equal element; a string is no list."""
        check(extended, _VALUES, {"tags": {"$contains": "a"}}, "one")

    def test_contains_compares_deeply(self, extended: BaseStore) -> None:
        """An element that is an object must be equal as a whole."""
        values = {"same": {"l": [{"x": 1}]}, "more": {"l": [{"x": 1, "y": 2}]}, "bool": {"l": [1]}}
        check(extended, values, {"l": {"$contains": {"x": 1}}}, "same")
        check(extended, values, {"l": {"$contains": True}}, "")

    def test_not_on_a_field_is_the_complement(self, extended: BaseStore) -> None:
        """`$not` takes operators on the same field."""
        check(extended, _VALUES, {"n": {"$not": {"$gt": 1}}}, "one null missing")

    def test_not_of_a_nested_filter_is_the_complement(self, extended: BaseStore) -> None:
        """`$not` with a nested filter selects objects that differ, and everything else."""
        values = {"one": {"m": {"x": 1}}, "two": {"m": {"x": 2}}, "none": {}}
        check(extended, values, {"m": {"$not": {"x": 1}}}, "two none")

    def test_and_joins_filters(self, extended: BaseStore) -> None:
        """`$and` asks for all."""
        check(extended, _VALUES, {"$and": [{"n": {"$gt": 1}}, {"n": {"$lt": 3}}]}, "two")

    def test_or_joins_filters(self, extended: BaseStore) -> None:
        """`$or` asks for one of them, beside the other conditions."""
        condition = {"$or": [{"n": 1}, {"n": 2}], "tags": {"$contains": "b"}}
        check(extended, _VALUES, condition, "one")

    def test_top_level_not_is_the_complement(self, extended: BaseStore) -> None:
        """`$not` takes one filter."""
        check(extended, _VALUES, {"$not": {"n": 1}}, "two three null missing")

    def test_operators_nest_freely(self, extended: BaseStore) -> None:
        """Logic inside logic inside logic."""
        condition = {"$not": {"$or": [{"$and": [{"n": 1}, {"tags": ["a", "b"]}]}, {"n": None}]}}
        check(extended, _VALUES, condition, "two three")

    def test_logic_inside_a_nested_filter(self, extended: BaseStore) -> None:
        """A nested filter may hold conditions on the sub-object's fields only."""
        values = {"yes": {"m": {"x": 1, "y": 5}}, "no": {"m": {"x": 1, "y": 6}}, "none": {}}
        check(extended, values, {"m": {"x": {"$in": [1]}, "y": {"$not": {"$gt": 5}}}}, "yes")

    @pytest.mark.parametrize("operator", ["$and", "$or"])
    @pytest.mark.parametrize("operand", [[], {"n": 1}, [1]], ids=["empty", "dict", "scalar"])
    def test_logic_needs_a_list_of_filters(
        self, extended: BaseStore, operator: str, operand: object
    ) -> None:
        """An empty list, a dict or a list of scalars is refused."""
        with expect_error(ValueError, f"{operator} with {operand!r}"):
            extended.search(("any",), filter={operator: operand})
