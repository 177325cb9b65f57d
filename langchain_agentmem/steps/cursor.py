"""Which messages of a background run were written already, should the run be begun again.

A run that is killed after its writes and before it is noted as done is begun again. Its model may
answer differently then, so that equal keys alone would not keep a fact single. Therefore a mark for
each message is written in the same batch as what was made of it, on the condition that there is
none yet. Marks lie beside the queue's records of the scope and are dropped when the run is done.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from langchain_agentmem.items import MemoryItem
from langchain_agentmem.scopes import reserved
from langchain_agentmem.steps.effects import Get, Put, Ref, Setting, Steps

if TYPE_CHECKING:
    from langchain_agentmem.steps.turns import Turn

RUN: Final = "consolidating"
"""Name of the setting that tells a memory which record it works on."""

HOME: Final = "consolidating_in"
"""Name of the setting that tells in which scope that record lies."""

_KEYS: Final = uuid.UUID("b0a3c1de-4a0f-5a4b-9c5e-2f1d7a8e6b90")


def unwritten(scope: tuple[str, ...], said: Sequence[Turn]) -> Steps[list[Turn]]:
    """Return the turns that this run has not written yet; all of them outside of a run."""
    run = yield from Setting(RUN)
    if not run or not said:
        return list(said)
    found = yield from Get(refs(scope, str(run), [turn.message_id for turn in said]))
    return [turn for turn, mark in zip(said, found, strict=True) if mark is None]


def marks(
    scope: tuple[str, ...], message_ids: Iterable[str]
) -> Steps[tuple[list[Put], dict[Ref, int | None]]]:
    """Return what to write together with what was made of some messages, and what it relies on.

    Outside of a run that is nothing.
    """
    run = yield from Setting(RUN)
    if not run:
        return [], {}
    places = refs(scope, str(run), message_ids)
    value = MemoryItem(content={}, kind="mark").to_value()
    return [Put(*place, value) for place in places], dict.fromkeys(places)


def refs(scope: tuple[str, ...], run: str, message_ids: Iterable[str]) -> list[Ref]:
    """Return where the marks of a run lie."""
    home = reserved("queue", scope)
    names = dict.fromkeys(message_ids)
    return [(home, str(uuid.uuid5(_KEYS, f"{run}\x1f{name}"))) for name in names]
