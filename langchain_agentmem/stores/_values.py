"""Values and timestamps between Python and SQLite: checked, exact, and never shared."""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from zlib import crc32

import orjson

from langchain_agentmem.stores._namespaces import decode, is_unicode

logger = logging.getLogger(__name__)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MAX_DEPTH: Final = 200
_MAX_INTEGER_BITS: Final = 14_000  # Python writes at most 4300 decimal digits by default
# orjson reads integers beyond 64 bits as floats; a run of 19 digits may be one.
_DIGITS_TO_ZERO: Final = bytes.maketrans(b"123456789", b"000000000")
_MAY_BE_BIG: Final = b"0" * 19
_NOT_OURS: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


def check_json(value: object, path: str = "value", depth: int = 0) -> None:
    """Refuse anything that JSON cannot give back equal (tuples come back as lists).

    Args:
        value: What is to be stored, or an operand of a filter.
        path: Where it stands, for the message.
        depth: How deeply it is nested.

    Raises:
        TypeError: If a type is not one of JSON's, or a key is not a string.
        ValueError: If a number is not finite, a string is not Unicode, or nesting is too deep.
    """
    if type(value) is str and value.isascii():
        return
    if isinstance(value, str):
        if not is_unicode(value):
            msg = f"{path} contains a lone surrogate, which is not valid Unicode."
            raise ValueError(msg)
    elif value is None or isinstance(value, bool):
        return
    elif isinstance(value, int):
        if value.bit_length() > _MAX_INTEGER_BITS:
            msg = f"{path} is an integer of {value.bit_length()} bits; store it as a string."
            raise ValueError(msg)
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
            msg = f"{path} is {value}, which JSON cannot hold; use None or a string."
            raise ValueError(msg)
    else:
        _check_container(value, path, depth)


def _check_container(value: object, path: str, depth: int) -> None:
    if depth > _MAX_DEPTH:
        msg = f"{path[:80]} is nested more than {_MAX_DEPTH} levels deep."
        raise ValueError(msg)
    if isinstance(value, (dict, Mapping)):  # the quick answer first
        for key, part in value.items():
            if not isinstance(key, str):
                msg = f"{path} has the key {key!r}; keys must be strings, not {type(key).__name__}."
                raise TypeError(msg)
            if not is_unicode(key):
                check_json(key, f"a key of {path}")
            if type(part) is not str or not part.isascii():  # what most values are
                check_json(part, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for position, part in enumerate(value):
            check_json(part, f"{path}[{position}]", depth + 1)
    else:
        msg = (
            f"{path} is a {type(value).__name__}, which JSON cannot hold; "
            "convert it to a string, number, list or mapping first."
        )
        raise TypeError(msg)


def dump(value: object) -> str:
    """Write a checked value as JSON text."""
    try:
        return orjson.dumps(value, option=_NOT_OURS).decode()
    except (TypeError, ValueError):  # integers beyond 64 bits, mappings, subclasses
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)


def checksum(key: str, text: bytes) -> int:
    """Return a checksum of a key and its value's JSON text."""
    return crc32(text, crc32(key.encode()))


def read(text: bytes) -> Any:  # noqa: ANN401 - JSON
    """Read JSON text that `dump` wrote; integers of any size stay exact.

    Raises:
        ValueError: It is no JSON.
    """
    may_be_big = _MAY_BE_BIG in text.translate(_DIGITS_TO_ZERO)
    return json.loads(text) if may_be_big else orjson.loads(text)


def load(text: bytes, path: str, key: str, expected: int | None) -> dict[str, Any] | None:
    """Read a value that `dump` wrote; integers of any size stay exact.

    A row that something else has damaged must not hide the others of its scope, so it reads as
    absent, with a warning that says where it lies and nothing of what it holds.

    Args:
        text: The value's column, as bytes: SQLite itself fails on text that is no UTF-8.
        path: The encoded namespace, for the warning.
        key: The key.
        expected: The row's checksum; None if it has none.

    Returns:
        The value; None if it cannot be read, or is not the one that was written.
    """
    try:
        value = read(text)
        if isinstance(value, dict) and expected in (None, checksum(key, text)):
            return value
    except (ValueError, TypeError, AttributeError):  # the last two by a key or text of no text type
        pass
    leave_out(path, key)
    return None


def leave_out(path: str, key: str) -> None:
    """Warn that a row cannot be read."""
    logger.warning(
        "The value of %r in %r cannot be read, so it is left out; restore it from a backup, put it "
        "anew, or delete it.",
        *(key, decode(path) if isinstance(path, str) else path),
    )


def version_of(value: Mapping[str, Any]) -> int:
    """Return the version a value carries for conditional writes: its `version`, else 1."""
    version = value.get("version")
    return version if isinstance(version, int) and not isinstance(version, bool) else 1


def to_micros(moment: datetime) -> int:
    """Return microseconds since 1970 UTC."""
    return (moment - _EPOCH) // _MICROSECOND


@lru_cache(maxsize=4096)
def from_micros(micros: int) -> datetime:
    """Return the aware UTC time of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=micros)
