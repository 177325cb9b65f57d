"""Filters on values, compiled once and validated before anything runs.

The rules are those of the LangGraph store contract where the official stores agree; where they do
not: a missing field reads as null, `$ne` is exactly the complement of `$eq`, booleans are never
numbers, numbers compare without rounding, and a range operator never raises.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from langchain_agentmem.stores._values import check_json

Predicate = Callable[[Any], bool]


class _Missing:
    """The value of a field that is not there; reads as null except to `$exists`."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


class Filter:
    """A filter ready to run: conditions on fields, and conditions on the whole value.

    Attributes:
        fields: Pairs of a field key and the predicate its value must meet, all AND-ed.
        whole: Predicates on the whole value, AND-ed with them.
    """

    def __init__(self, conditions: Mapping[str, Any]) -> None:
        self.fields: list[tuple[str, Predicate]] = []
        self.whole: list[Predicate] = []
        for key, operand in conditions.items():
            if not isinstance(key, str):
                msg = f"A filter key must be a string, not {type(key).__name__}: {key!r}."
                raise TypeError(msg)
            if key in _LOGIC:
                self.whole.append(_LOGIC[key](operand))
            elif key.startswith("$"):
                _refuse_operator(key, [*_LOGIC])
            else:
                self.fields.append((key, _condition(operand, f"filter.{key}")))

    def __call__(self, value: Any) -> bool:  # noqa: ANN401 - JSON
        """Tell whether a value passes."""
        return all(test(resolve(value, key)) for key, test in self.fields) and all(
            test(value) for test in self.whole
        )


def compile_filter(conditions: Mapping[str, Any] | None) -> Filter | None:
    """Compile a filter; None and the empty filter select everything and give None.

    Raises:
        ValueError: If an operator is unknown, keys are mixed, or an operand is not JSON.
        TypeError: If the filter is no mapping, or an operand has a type JSON does not know.
    """
    if not conditions:
        return None
    if not isinstance(conditions, Mapping):
        msg = f"A filter must be a mapping of field to condition, not {type(conditions).__name__}."
        raise TypeError(msg)
    return Filter(conditions)


def resolve(value: Any, key: str) -> Any:  # noqa: ANN401 - JSON
    """Return the field of an object: the key taken literally, else as a dotted path."""
    if not isinstance(value, dict):
        return MISSING
    if key in value:
        return value[key]
    if "." not in key:
        return MISSING
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return MISSING
        value = value[part]
    return value


def same(left: Any, right: Any) -> bool:  # noqa: ANN401 - JSON
    """Compare two JSON values deeply and by JSON type; missing equals null."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if left is MISSING or left is None:
        return right is None
    return bool(left == right)


def _condition(operand: Any, path: str) -> Predicate:  # noqa: ANN401 - JSON
    """Compile what one field is compared with."""
    if not isinstance(operand, Mapping):
        return _equals(operand, path)
    operators = [key for key in operand if isinstance(key, str) and key.startswith("$")]
    if operators and len(operators) < len(operand):
        msg = f"{path} mixes operators {operators} with field names; put them in separate filters."
        raise ValueError(msg)
    if operators:
        tests = [_operator(name, part, path) for name, part in operand.items()]
        return lambda value: all(test(value) for test in tests)
    nested = Filter(operand)
    return lambda value: isinstance(value, dict) and nested(value)


def _operator(name: str, operand: Any, path: str) -> Predicate:  # noqa: ANN401 - JSON
    if name not in _OPERATORS:
        _refuse_operator(name, [*_OPERATORS])
    return _OPERATORS[name](operand, f"{path}.{name}")


def _refuse_operator(name: str, supported: Sequence[str]) -> None:
    msg = f"Unknown filter operator {name!r}; supported here: {', '.join(supported)}."
    raise ValueError(msg)


def _equals(operand: Any, path: str) -> Predicate:  # noqa: ANN401 - JSON
    check_json(operand, path)
    return lambda value: same(value, operand)


def _differs(operand: Any, path: str) -> Predicate:  # noqa: ANN401 - JSON
    check_json(operand, path)
    return lambda value: not same(value, operand)


def _range(compare: Callable[[Any, Any], bool]) -> Callable[[Any, str], Predicate]:
    def build(operand: Any, path: str) -> Predicate:  # noqa: ANN401 - JSON
        if operand not in (math.inf, -math.inf):  # bounds that make sense in a range
            check_json(operand, path)
        kind = _order_kind(operand)
        if kind is None:
            return lambda _: False
        return lambda value: _order_kind(value) is kind and compare(value, operand)

    return build


def _order_kind(value: Any) -> type | None:  # noqa: ANN401 - JSON
    """Return what a value can be ordered with: numbers, strings, or nothing."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float
    return str if isinstance(value, str) else None


def _is_in(operand: Any, path: str) -> Predicate:  # noqa: ANN401 - JSON
    choices = _list_operand(operand, path)
    return lambda value: any(same(value, choice) for choice in choices)


def _is_not_in(operand: Any, path: str) -> Predicate:  # noqa: ANN401 - JSON
    choices = _list_operand(operand, path)
    return lambda value: not any(same(value, choice) for choice in choices)


def _list_operand(operand: Any, path: str) -> list[Any]:  # noqa: ANN401 - JSON
    if not isinstance(operand, list | tuple):
        msg = f"{path} needs a list, not {type(operand).__name__}."
        raise ValueError(msg)  # noqa: TRY004 - every bad filter is a ValueError
    check_json(operand, path)
    return list(operand)


def _exists(operand: Any, path: str) -> Predicate:  # noqa: ANN401 - JSON
    if not isinstance(operand, bool):
        msg = f"{path} needs True or False, not {operand!r}."
        raise ValueError(msg)  # noqa: TRY004 - every bad filter is a ValueError
    return lambda value: (value is not MISSING) is operand


def _contains(operand: Any, path: str) -> Predicate:  # noqa: ANN401 - JSON
    check_json(operand, path)
    return lambda value: isinstance(value, list) and any(same(part, operand) for part in value)


def _is_not(operand: Any, path: str) -> Predicate:  # noqa: ANN401 - JSON
    if not isinstance(operand, Mapping):
        msg = f"{path} needs operators or a nested filter; use $ne for a value."
        raise ValueError(msg)  # noqa: TRY004 - every bad filter is a ValueError
    test = _condition(operand, path)
    return lambda value: not test(value)


def _filter_list(operand: Any, name: str) -> list[Filter]:  # noqa: ANN401 - JSON
    if not isinstance(operand, list | tuple) or not operand:
        msg = f"{name} needs a non-empty list of filters."
        raise ValueError(msg)
    return [_subfilter(part, name) for part in operand]


def _subfilter(operand: Any, name: str) -> Filter:  # noqa: ANN401 - JSON
    if not isinstance(operand, Mapping):
        msg = f"{name} needs a filter (a mapping), not {type(operand).__name__}."
        raise ValueError(msg)  # noqa: TRY004 - every bad filter is a ValueError
    return Filter(operand)


def _all_of(operand: Any) -> Predicate:  # noqa: ANN401 - JSON
    parts = _filter_list(operand, "$and")
    return lambda value: all(part(value) for part in parts)


def _any_of(operand: Any) -> Predicate:  # noqa: ANN401 - JSON
    parts = _filter_list(operand, "$or")
    return lambda value: any(part(value) for part in parts)


def _none_of(operand: Any) -> Predicate:  # noqa: ANN401 - JSON
    part = _subfilter(operand, "$not")
    return lambda value: not part(value)


# New operators are added here and nowhere else.
_OPERATORS: Final[dict[str, Callable[[Any, str], Predicate]]] = {
    "$eq": _equals,
    "$ne": _differs,
    "$gt": _range(lambda value, operand: value > operand),
    "$gte": _range(lambda value, operand: value >= operand),
    "$lt": _range(lambda value, operand: value < operand),
    "$lte": _range(lambda value, operand: value <= operand),
    "$in": _is_in,
    "$nin": _is_not_in,
    "$exists": _exists,
    "$contains": _contains,
    "$not": _is_not,
}
_LOGIC: Final[dict[str, Callable[[Any], Predicate]]] = {
    "$and": _all_of,
    "$or": _any_of,
    "$not": _none_of,
}
