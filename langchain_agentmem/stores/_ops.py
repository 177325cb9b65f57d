"""Operations and results beyond LangGraph's own, and the checks every operation passes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast, get_args

from langgraph.store.base import (
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.stores._namespaces import check_labels, is_unicode
from langchain_agentmem.stores._values import check_json, read

if TYPE_CHECKING:
    from langchain_agentmem.stores._rows import ItemRow

SearchMode = Literal["dense", "lexical", "hybrid"]
DistanceType = Literal["cosine", "inner_product", "l2"]
MODES: Final = get_args(SearchMode)
_MOST: Final = 2**62  # no store has more items, and a database's integer has no more bits
_MOST_MINUTES: Final = 1e9
_MINUTES: Final = "a positive number of minutes, at most 1e9, or None"
_TTL_KEYS: Final = {
    "default_ttl": _MINUTES,
    "sweep_interval_minutes": _MINUTES,
    "refresh_on_read": "True or False",
    "omit_expired": "True or False",
}


class StoreIndexConfig(IndexConfig, total=False):
    """LangGraph's `IndexConfig` with the options this store adds."""

    distance_type: DistanceType
    """How vectors are compared; `"cosine"` by default. Higher scores are always better."""

    mode: SearchMode
    """How queries are answered; `"dense"` by default when `embed` is given."""

    dense_weight: float
    """Weight of the normalized dense score beside the lexical one in hybrid search."""


@dataclass(frozen=True, slots=True)
class StoreSearchOp:
    """A `SearchOp` with this store's options; `batch` takes it beside LangGraph's own ops.

    Attributes:
        namespace_prefix: The scope; its whole subtree unless `exact`.
        filter: Conditions on the values.
        limit: How many items to return at most.
        offset: How many matching items to skip.
        query: What to rank by; None or `""` for newest first.
        refresh_ttl: Whether returned items start their time to live anew.
        mode: How to rank; None for the store's own mode.
        exact: Whether to look in this very namespace only.
    """

    namespace_prefix: tuple[str, ...]
    filter: Mapping[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    query: str | None = None
    refresh_ttl: bool = True
    mode: SearchMode | None = None
    exact: bool = False


StoreOp = Op | StoreSearchOp


class ScoredItem(SearchItem):
    """A search result that says what its score is made of.

    Attributes:
        parts: `lexical` (BM25 divided by the query's maximum), `dense` (similarity normalized over
            the query's best 200) and `cosine` (the raw similarity under the store's distance),
            as far as they were computed.
    """

    __slots__ = ("_row", "_value", "parts")

    _row: "ItemRow | None"
    _value: dict[str, Any] | None

    def __init__(
        self,
        *,
        namespace: tuple[str, ...],
        key: str,
        value: dict[str, Any],
        created_at: datetime,
        updated_at: datetime,
        score: float | None = None,
        parts: Mapping[str, float] | None = None,
    ) -> None:
        self._row = None
        super().__init__(namespace, key, value, created_at, updated_at, score)
        self.parts = {} if parts is None else parts

    @classmethod
    def of_row(
        cls, row: "ItemRow", score: float | None = None, parts: Mapping[str, float] | None = None
    ) -> Self:
        """Return a row of the file as a result, whose value is decoded when it is asked for."""
        item = cls.__new__(cls)
        item._row = row  # noqa: SLF001 - of its own class
        item._value = None  # noqa: SLF001 - of its own class
        item.key = row.key
        item.namespace = row.namespace
        item.created_at = row.created_at
        item.updated_at = row.updated_at
        item.score = score
        item.parts = {} if parts is None else parts
        return item

    @property
    def derived(self) -> dict[str, Any] | None:
        """What readers have made of the value, by their own names; None where nothing is kept.

        All results that show the same write of an item share it; what lies in it must not change.
        """
        return None if self._row is None else self._row.derived

    @property
    def value(self) -> dict[str, Any]:
        """The value, this result's own."""
        if self._value is None and self._row is not None:
            self._value = read(self._row.text)
        return cast("dict[str, Any]", self._value)

    @value.setter
    def value(self, value: dict[str, Any]) -> None:
        """Set this result's own value."""
        self._value = value


def check_op(op: object) -> StoreOp:
    """Return a valid op: search ops as `StoreSearchOp`, keys as strings.

    Raises:
        ValueError: If the type is unknown, a number is out of range or a value is not JSON.
        InvalidNamespaceError: If a namespace is not acceptable.
        TypeError: If a value holds something JSON does not know.
    """
    if isinstance(op, PutOp):
        return _check_put(op)
    if isinstance(op, GetOp):
        check_labels(op.namespace)
        return op._replace(namespace=tuple(op.namespace), key=check_key(op.key))
    if isinstance(op, SearchOp):
        return _check_search(StoreSearchOp(*op))
    if isinstance(op, StoreSearchOp):
        return _check_search(op)
    if isinstance(op, ListNamespacesOp):
        return _check_list(op)
    msg = f"Unknown operation type: {type(op).__name__}."
    raise ValueError(msg)


def check_key(key: object) -> str:
    """Return `str(key)`.

    Raises:
        ValueError: If the key holds NUL or a lone surrogate.
    """
    text = str(key)
    if "\x00" in text or not is_unicode(text):
        msg = f"A key cannot contain NUL or lone surrogates: {text[:80]!r}."
        raise ValueError(msg)
    return text


def _check_put(op: PutOp) -> PutOp:
    if not op.namespace:
        msg = "A namespace cannot be empty when an item is put."
        raise InvalidNamespaceError(msg)
    check_labels(op.namespace)
    if op.value is not None:
        if not isinstance(op.value, (dict, Mapping)):  # the quick answer first
            msg = f"value must be a mapping with string keys, not {type(op.value).__name__}."
            raise TypeError(msg)
        check_json(op.value)
    if op.ttl is not None and not is_minutes(op.ttl):
        msg = f"ttl must be {_MINUTES}, not {op.ttl!r}."
        raise ValueError(msg)
    key = check_key(op.key)
    if key is op.key and type(op.namespace) is tuple:
        return op
    return op._replace(namespace=tuple(op.namespace), key=key)


def is_minutes(number: object) -> bool:
    """Say whether a number of minutes is one that can pass before year 9999."""
    return (
        isinstance(number, int | float)
        and not isinstance(number, bool)
        and 0 < number <= _MOST_MINUTES
    )


def check_ttl_config(ttl: TTLConfig | None) -> TTLConfig | None:
    """Return LangGraph's configuration of expiry; a misspelled key would be without effect.

    Raises:
        ConfigurationError: If it is no mapping, or a key or a value in it cannot be used.
    """
    given: Any = ttl
    if given is None:
        return None
    if not isinstance(given, Mapping) or not given.keys() <= _TTL_KEYS.keys():
        msg = f"ttl must be a dictionary with keys of {sorted(_TTL_KEYS)}, not {given!r}."
        raise ConfigurationError(msg)
    for name, value in given.items():
        fits = value is None or is_minutes(value)
        if not (fits if _TTL_KEYS[name] == _MINUTES else isinstance(value, bool)):
            msg = f"ttl[{name!r}] must be {_TTL_KEYS[name]}, not {value!r}."
            raise ConfigurationError(msg)
    return ttl


def _check_search(op: StoreSearchOp) -> StoreSearchOp:
    check_labels(op.namespace_prefix)
    _check_count("limit", op.limit)
    _check_count("offset", op.offset)
    if max(op.limit, op.offset) > _MOST:
        op = replace(op, limit=min(op.limit, _MOST), offset=min(op.offset, _MOST))
    if op.mode is not None and op.mode not in MODES:
        msg = f"mode must be one of {', '.join(MODES)}, not {op.mode!r}."
        raise ValueError(msg)
    if op.query is not None and not isinstance(op.query, str):
        msg = f"query must be a string or None, not {type(op.query).__name__}."
        raise TypeError(msg)
    return op


def _check_list(op: ListNamespacesOp) -> ListNamespacesOp:
    for condition in op.match_conditions or ():
        check_labels(condition.path)
        if condition.match_type not in ("prefix", "suffix"):
            msg = f"match_type must be 'prefix' or 'suffix', not {condition.match_type!r}."
            raise ValueError(msg)
    _check_count("limit", op.limit)
    _check_count("offset", op.offset)
    op = op._replace(limit=min(op.limit, _MOST), offset=min(op.offset, _MOST))
    if op.max_depth is not None:
        _check_count("max_depth", op.max_depth, least=1)
    return op


def _check_count(name: str, number: object, least: int = 0) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        msg = f"{name} must be an integer of at least {least}, not {number!r}."
        raise ValueError(msg)
