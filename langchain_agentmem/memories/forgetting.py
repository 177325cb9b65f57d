"""What `Memory.forget` selects, and what it does to the store's file afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from langgraph.store.base import BaseStore

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.scopes import closed
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.effects import Call, List, Ref, Steps


class Everything:
    """A selector that needs no keys.

    Args:
        name: Name of the constant.
        whole: Whether it selects what other architectures keep in the scope, too.
    """

    def __init__(self, name: str, *, whole: bool) -> None:
        self.name = name
        self.whole = whole

    def __repr__(self) -> str:
        """Return the constant's name."""
        return self.name


EVERYTHING: Final = Everything("EVERYTHING", whole=True)
"""Selects the whole scope: `memory.forget(EVERYTHING, config=config)`.

That is everything at and below the namespace of the call, whatever architecture keeps it: items,
archives, sessions, summaries, prompts, what is queued, and their history. Where namespaces of
users lie below that of an organization, the organization's scope holds theirs.
"""

OWN: Final = Everything("OWN", whole=False)
"""Selects what the memory's own architecture keeps in the scope, and what tools put there bare."""

Selector: TypeAlias = "str | Sequence[str] | Mapping[str, Any] | Everything"


def select(
    selector: str | Sequence[str] | Mapping[str, Any],
    scope: tuple[str, ...],
    own: tuple[str, ...],
) -> Steps[list[Ref]]:
    """Return the places that a selector may mean, existing or not.

    Args:
        selector: A key, several keys, or a filter.
        scope: The namespace of the call.
        own: The architecture's namespace below it.

    Raises:
        ValueError: The filter selects by nothing.
    """
    if isinstance(selector, Mapping):
        _check_selects(selector)
    homes = [*(yield from journal.homes(own)), scope]
    if not isinstance(selector, Mapping):
        keys = [selector] if isinstance(selector, str) else list(selector)
        return [(home, key) for key in dict.fromkeys(keys) for home in homes]
    refs = []
    for home in homes:
        for lying in (home, closed(home)):
            found = yield from List(lying, filter=selector)
            refs += [(home, each.key) for each in found]
    return list(dict.fromkeys(refs))


def cleaning(store: BaseStore, *, vacuum: bool) -> Call | None:
    """Return the call that removes remains of erased text from the store's file.

    Args:
        store: The store of the call.
        vacuum: Whether no byte may remain; otherwise only the log is emptied, where a store can.

    Raises:
        ConfigurationError: The store has no `vacuum`.
    """
    name = "vacuum" if vacuum else "checkpoint"
    function = getattr(store, name, None)
    if callable(function):
        return Call(function, afunction=getattr(store, f"a{name}", None))
    if not vacuum:
        return None
    msg = (
        f"{type(store).__name__} has no vacuum(), so vacuum=True cannot be kept; use a "
        "FaissSqliteStore, or leave vacuum out and clean the store by its own means."
    )
    raise ConfigurationError(msg)


def _check_selects(selector: Mapping[str, Any]) -> None:
    """Refuse a filter that every memory passes, such as one that a mistake has left empty.

    Raises:
        ValueError: It is one.
    """
    if all(_passes_all(key, operand) for key, operand in selector.items()):
        msg = (
            f"The filter {dict(selector)!r} selects by nothing: an empty condition, or a field "
            "that is missing. Name a value it must have, or use EVERYTHING for a whole scope."
        )
        raise ValueError(msg)


def _passes_all(key: str, operand: object) -> bool:
    """Tell whether one condition of a filter holds for what simply lacks the field."""
    if operand is None:
        return True
    if isinstance(operand, Mapping):
        if key == "$not":
            return False
        missing = {"$eq": None, "$exists": False}
        return all(
            missing[name] is part if name in missing else _passes_all(name, part)
            for name, part in operand.items()
        )
    if key in ("$and", "$or") and isinstance(operand, list | tuple):
        test = all if key == "$and" else any
        return test(
            isinstance(part, Mapping) and all(_passes_all(*each) for each in part.items())
            for part in operand
        )
    return False
