"""The last messages of a scope, word for word: context for extraction, never recalled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from langchain_agentmem.items import MemoryItem, StoredMemory
from langchain_agentmem.steps.effects import List, Put, Steps, Write
from langchain_agentmem.steps.facts import key_of
from langchain_agentmem.steps.turns import Turn

_OWN: Final = "_ring"


def latest(home: tuple[str, ...]) -> Steps[list[StoredMemory]]:
    """Return the messages kept, oldest first."""
    return sorted((yield from List(home)), key=_number)


def push(home: tuple[str, ...], said: Sequence[Turn], size: int) -> Steps[None]:
    """Keep messages, and of all of them only the last `size`; known ones are left alone."""
    if not size:
        return
    kept = yield from latest(home)
    known = {each.key for each in kept}
    start = _number(kept[-1]) + 1 if kept else 0
    new: dict[str, Put] = {}
    for number, turn in enumerate(said, start=start):
        key = key_of(home, turn.message_id)
        if key not in known and key not in new:
            new[key] = Put(home, key, _item(turn, number).to_value())
    overflow = [*(each.key for each in kept), *new][: max(len(kept) + len(new) - size, 0)]
    puts = [put for key, put in new.items() if key not in overflow]
    yield from Write([*puts, *(Put(home, key, None) for key in overflow if key in known)])


def _item(turn: Turn, number: int) -> MemoryItem:
    return MemoryItem(
        kind="message",
        memory_type="episodic",
        content=turn.content,
        metadata={_OWN: {"number": number}},
        observed_at=turn.observed_at,
        source_message_ids=(turn.message_id,),
        attributed_to=turn.speaker,
    )


def _number(message: StoredMemory) -> int:
    own = message.metadata.get(_OWN)
    return int(own["number"]) if isinstance(own, dict) else 0
