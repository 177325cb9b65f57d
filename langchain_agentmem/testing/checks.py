"""The checks of the conformance kit: their failures say what was expected and what was found."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from langgraph.store.base import Item


def expect_equal(found: object, expected: object, what: str) -> None:
    """Fail unless both are equal and of the same types at every depth.

    Raises:
        AssertionError: If they differ.
    """
    if not _identical(found, expected):
        msg = f"{what}: expected {expected!r}, found {found!r}"
        raise AssertionError(msg)


def expect_true(condition: object, what: str) -> None:
    """Fail unless the condition holds; `what` says expected and found.

    Raises:
        AssertionError: If it does not.
    """
    if not condition:
        raise AssertionError(what)


@contextmanager
def expect_error(
    kinds: type[BaseException] | tuple[type[BaseException], ...], what: str, *parts: str
) -> Iterator[None]:
    """Fail unless the block raises one of the errors and its message holds all the parts.

    Raises:
        AssertionError: If nothing, another error or another message is raised.
    """
    names = kinds.__name__ if isinstance(kinds, type) else "/".join(k.__name__ for k in kinds)
    try:
        yield
    except kinds as err:
        missing = [part for part in parts if part not in str(err)]
        if missing:
            msg = f"{what}: expected {names} naming {missing}, found the message {str(err)!r}"
            raise AssertionError(msg) from err
    except Exception as err:  # whatever a foreign store raises is the finding
        msg = f"{what}: expected {names}, found {type(err).__name__}: {err}"
        raise AssertionError(msg) from err
    else:
        msg = f"{what}: expected {names}, found no error"
        raise AssertionError(msg)


def keys(items: Iterable[Item]) -> list[str]:
    """Return the keys of items, in their order."""
    return [item.key for item in items]


def _identical(left: Any, right: Any) -> bool:  # noqa: ANN401 - any result of a store
    """Compare deeply without the equality of 1, 1.0 and True."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_identical(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return (
            type(left) is type(right)
            and len(left) == len(right)
            and all(map(_identical, left, right))
        )
    return type(left) is type(right) and bool(left == right)
