"""`agentmem import --format langmem|mem0`: take over the memories of another package."""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from langchain_agentmem.cli._memory import of_user, opened, owner
from langchain_agentmem.cli._output import visible
from langchain_agentmem.errors import ConversationFormatError
from langchain_agentmem.migration import ForeignMemory, import_steps, read_memories
from langchain_agentmem.rendering import counted
from langchain_agentmem.steps.drivers import run as carry_out
from langchain_agentmem.steps.effects import Steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.items import MemoryOperation
    from langchain_agentmem.memories.base import Memory

_SHOWN = 5


def run(args: argparse.Namespace, paths: Sequence[Path], out: Output) -> int:
    """Read all files, then write memory by memory, in batches of one user."""
    invalid: list[str] = []

    def reject(reason: str) -> None:
        if not args.skip_invalid:
            raise ConversationFormatError(reason)
        invalid.append(reason)

    found = [each for path in paths for each in read_memories(path, args.format, reject)]
    whose = [args.user if args.user_given else each.user or owner(args) for each in found]
    counts: Counter[str] = Counter()
    with opened(args, create=True) as memory:
        for user, some in _batches(whose, found, max(args.batch_size, 1)):
            env = memory.environment(of_user(user))
            counts.update(op.event for op in carry_out(_written(memory, some), env))
    _report(out, counts, list(dict.fromkeys(whose)), invalid)
    return 0


def _written(memory: Memory, some: Sequence[ForeignMemory]) -> Steps[list[MemoryOperation]]:
    return (yield from import_steps((yield from memory.scope()), some))


def _batches(
    whose: Sequence[str], found: Sequence[ForeignMemory], size: int
) -> list[tuple[str, list[ForeignMemory]]]:
    """Return the memories in batches of one user each; of several under one key the last."""
    pairs = sorted(zip(whose, found, strict=True), key=lambda pair: pair[0])
    batches = []
    for user, group in groupby(pairs, key=lambda pair: pair[0]):
        unique = {(each.below, each.key): each for _, each in group}
        every = list(unique.values())
        batches += [(user, every[at : at + size]) for at in range(0, len(every), size)]
    return batches


def _report(out: Output, counts: Counter[str], users: list[str], invalid: list[str]) -> None:
    total = sum(counts.values())
    if out.as_json:
        numbers = {"new": counts["ADD"], "changed": counts["UPDATE"], "known": counts["NOOP"]}
        out.json(done=True, imported=total, **numbers, users=users, invalid=invalid)
        return
    for reason in invalid[:_SHOWN]:
        out.note(f"left out: {visible(reason)}")
    people = ", ".join(users[:_SHOWN]) + (", ..." if len(users) > _SHOWN else "")
    parts = [f"{counts['ADD']} new", f"{counts['NOOP']} already known"]
    parts += [f"{counts['UPDATE']} changed"] if counts["UPDATE"] else []
    parts += [f"{len(invalid)} unreadable left out"] if invalid else []
    of = f" of {visible(people)}" if users else ""
    out.say(f"{counted(total, 'memory', 'memories')}{of}: {', '.join(parts)}.", style="bold")
