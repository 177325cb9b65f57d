"""Namespaces as text: every tuple has one encoding, and a prefix is one contiguous range.

A label is followed by the separator U+001F; separator and escape inside a label are escaped. All
paths below a prefix therefore start with its encoding and lie together in code point order.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from langgraph.store.base import InvalidNamespaceError, MatchCondition

SEPARATOR: Final = "\x1f"
_AFTER_SEPARATOR: Final = "\x20"
_ESCAPE: Final = "\x1e"
RESERVED_ROOT: Final = "_agentmem"
RESERVED_PATH: Final = RESERVED_ROOT + SEPARATOR
MARK_BYTES: Final = 8


def encode(namespace: Iterable[str]) -> str:
    """Return the encoded path of a namespace; the empty namespace is the empty path."""
    return _encode(tuple(namespace))


@lru_cache(maxsize=4096)
def _encode(namespace: tuple[str, ...]) -> str:
    return "".join(_escape(label) + SEPARATOR for label in namespace)


@lru_cache(maxsize=4096)
def decode(path: str) -> tuple[str, ...]:
    """Return the namespace that `encode` turned into this path."""
    return tuple(_unescape(part) for part in path.split(SEPARATOR)[:-1])


def ancestors(path: str) -> list[str]:
    """Return the non-empty prefixes of a path, shortest first, the path itself last."""
    parts = path.split(SEPARATOR)[:-1]
    return [SEPARATOR.join(parts[: n + 1]) + SEPARATOR for n in range(len(parts))]


def bounds(path: str) -> tuple[str, str]:
    """Return the half-open range of paths that are a non-empty path or lie below it."""
    return path, path[:-1] + _AFTER_SEPARATOR


def is_reserved(path: str) -> bool:
    """Tell whether a path lies under the root that shorter prefixes do not show."""
    return path.startswith(RESERVED_PATH)


@lru_cache(maxsize=4096)
def mark(path: str) -> bytes:
    """Return `MARK_BYTES` that stand for a path and tell nothing of it."""
    return blake2b(path.encode(), digest_size=MARK_BYTES).digest()


def marks(path: str) -> bytes:
    """Return the marks of all prefixes that see the items of a path, one after the other."""
    return b"".join(map(mark, seen_from(path)))


def seen_from(path: str) -> list[str]:
    """Return the prefixes that see the items of a path, shortest first."""
    return ancestors(path) if is_reserved(path) else ["", *ancestors(path)]


def covers(root: str, path: str) -> bool:
    """Tell whether a search of `root` sees items in `path`."""
    return path.startswith(root) and (is_reserved(root) or not is_reserved(path))


def scope_condition(path: str, *, exact: bool = False) -> tuple[str, list[str]]:
    """Return the SQL condition on `n.path` for a search prefix, and its bound values."""
    if exact:
        return "n.path = ?", [path]
    if not path:
        low, high = bounds(RESERVED_PATH)
        return "NOT (n.path >= ? AND n.path < ?)", [low, high]
    return "(n.path >= ? AND n.path < ?)", list(bounds(path))


def check_labels(namespace: Sequence[str]) -> None:
    """Refuse labels that LangGraph refuses, and those that are not valid Unicode.

    Raises:
        InvalidNamespaceError: If a label is empty, no string, has a period, NUL or lone surrogate.
    """
    if type(namespace) is tuple and all(type(label) is str for label in namespace):
        _check_tuple(namespace)
    else:
        _check_labels(namespace)


def _check_labels(namespace: Sequence[str]) -> None:
    if isinstance(namespace, str) or not isinstance(namespace, Sequence):
        msg = f"A namespace is a tuple of strings, not {type(namespace).__name__}: {namespace!r}."
        raise InvalidNamespaceError(msg)
    for label in namespace:
        problem = _problem_of_text(label) if type(label) is str else _label_problem(label)
        if problem:
            msg = f"Invalid namespace label {label!r} in {tuple(namespace)!r}: {problem}."
            raise InvalidNamespaceError(msg)


# A batch names few namespaces many times; only a tuple that passed is remembered.
_check_tuple = lru_cache(maxsize=4096)(_check_labels)


def check_deletable(prefix: Sequence[str]) -> None:
    """Refuse a prefix that must not be erased as a whole.

    Raises:
        InvalidNamespaceError: If it is empty, or has a label that is not acceptable.
    """
    if not prefix:
        msg = "delete_namespace needs a namespace; the empty prefix would erase everything."
        raise InvalidNamespaceError(msg)
    check_labels(prefix)


def matches(namespace: tuple[str, ...], conditions: Iterable[MatchCondition]) -> bool:
    """Tell whether a namespace meets all conditions; `"*"` stands for exactly one label."""
    return all(_meets(namespace, condition) for condition in conditions)


def _meets(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return not path or all(want in ("*", label) for want, label in zip(path, part, strict=True))


def _label_problem(label: object) -> str | None:
    if not isinstance(label, str):
        return f"labels must be strings, not {type(label).__name__}"
    return _problem_of_text(label)


@lru_cache(maxsize=4096)
def _problem_of_text(label: str) -> str | None:
    if not label:
        return "labels cannot be empty"
    if "." in label:
        return "labels cannot contain periods ('.')"
    if "\x00" in label:
        return "labels cannot contain NUL ('\\x00')"
    return None if is_unicode(label) else "labels cannot contain lone surrogates"


def is_unicode(text: str) -> bool:
    """Tell whether a string can be written as UTF-8, which lone surrogates cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escape(label: str) -> str:
    if _ESCAPE in label or SEPARATOR in label:
        label = label.replace(_ESCAPE, _ESCAPE + "E").replace(SEPARATOR, _ESCAPE + "S")
    return label


def _unescape(part: str) -> str:
    if _ESCAPE in part:
        part = part.replace(_ESCAPE + "S", SEPARATOR).replace(_ESCAPE + "E", _ESCAPE)
    return part
