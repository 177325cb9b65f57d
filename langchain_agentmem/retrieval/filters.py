"""Filters over memories that give the same answer on every store.

A filter is a mapping. A field name maps to a value (equality), to `"*"` (the field is there), or to
operators: `eq ne gt gte lt lte in nin contains icontains`, each with or without a `$`. `AND`, `OR`
(lists of filters) and `NOT` (a filter or a list of them) combine filters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.items import MemoryItem, to_timestamp

_ANY: Final = "*"
_ABSENT: Final = object()
_ITEM_FIELDS: Final = (
    "kind",
    "memory_type",
    "status",
    "attributed_to",
    "observed_at",
    "valid_from",
    "valid_to",
    "expires_at",
    "content",
)


def matches(item: MemoryItem, condition: Mapping[str, Any] | None) -> bool:
    """Tell whether an item passes a filter; fields are the caller's metadata, then the item's own.

    Raises:
        ConfigurationError: The filter holds an operator that does not exist.
    """
    return all(_holds(item, name, wanted) for name, wanted in (condition or {}).items())


def _holds(item: MemoryItem, name: str, wanted: Any) -> bool:  # noqa: ANN401 - any JSON
    match name.upper().lstrip("$"):
        case "AND":
            return all(matches(item, each) for each in wanted)
        case "OR":
            return any(matches(item, each) for each in wanted)
        case "NOT":
            parts = wanted if isinstance(wanted, list) else [wanted]
            return not any(matches(item, each) for each in parts)
    found = _field(item, name)
    if wanted == _ANY:
        return found is not _ABSENT
    if not isinstance(wanted, Mapping):
        return _equal(found, wanted)
    return all(_operator(each)(found, value) for each, value in wanted.items())


def _field(item: MemoryItem, name: str) -> Any:  # noqa: ANN401 - any JSON
    if name in item.metadata:
        return item.metadata[name]
    found = getattr(item, name) if name in _ITEM_FIELDS else None
    return _ABSENT if found is None else _plain(found)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON
    return to_timestamp(value) if isinstance(value, datetime) else value


def _operator(name: str) -> Callable[[Any, Any], bool]:
    found = _OPERATORS.get(name.lstrip("$").lower())
    if found is None:
        msg = f"There is no filter operator {name!r}; use one of {sorted(_OPERATORS)}."
        raise ConfigurationError(msg)
    return found


def _equal(found: Any, wanted: Any) -> bool:  # noqa: ANN401 - any JSON
    return found is not _ABSENT and bool(found == _plain(wanted))


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(found: Any, wanted: Any) -> bool:  # noqa: ANN401 - any JSON
        wanted = _plain(wanted)
        numbers = isinstance(found, int | float) and isinstance(wanted, int | float)
        texts = isinstance(found, str) and isinstance(wanted, str)
        return (numbers or texts) and compare(found, wanted)

    return holds


def _contains(found: Any, wanted: Any) -> bool:  # noqa: ANN401 - any JSON
    if isinstance(found, str):
        return str(wanted) in found
    return isinstance(found, list) and wanted in found


def _icontains(found: Any, wanted: Any) -> bool:  # noqa: ANN401 - any JSON
    folded = [str(each).casefold() for each in found] if isinstance(found, list) else found
    wanted = str(wanted).casefold()
    return _contains(folded.casefold() if isinstance(folded, str) else folded, wanted)


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": _equal,
    "ne": lambda found, wanted: not _equal(found, wanted),
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
    "in": lambda found, wanted: any(_equal(found, each) for each in wanted),
    "nin": lambda found, wanted: not any(_equal(found, each) for each in wanted),
    "contains": _contains,
    "icontains": _icontains,
}
