"""`agentmem export`: everything that is kept of one user, as JSON lines."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_agentmem.cli._memory import RECORDS, hint_for_nothing, of_user, opened, owner
from langchain_agentmem.errors import StorageError
from langchain_agentmem.items import to_timestamp
from langchain_agentmem.scopes import closed, reserved
from langchain_agentmem.scopes import journal as journal_of
from langchain_agentmem.steps import journal, turns
from langchain_agentmem.steps.drivers import run as drive
from langchain_agentmem.steps.effects import List, Steps

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager
    from typing import TextIO

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.items import StoredMemory
    from langchain_agentmem.memories.rag import RAGMemory

Line = dict[str, Any]


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's private type
    """Add the command's arguments."""
    parser = commands.add_parser(
        "export",
        parents=[common],
        help="write everything that is kept of one user as JSON lines",
        description="Write everything that is kept of one user as JSON lines: memories, closed "
        "ones, records and history. 'agentmem import' reads the words of an export as turns.",
    )
    parser.add_argument(
        "--output", "-o", type=Path, metavar="FILE", help="a new file (default: stdout)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Write one line for each stored item."""
    user = owner(args)
    with opened(args) as memory:
        lines = drive(_lines(memory, user), memory.environment(of_user(user)))
        if not lines:
            out.note(hint_for_nothing(memory, user))
    with _target(args.output) as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    if args.output:
        count = sum(line["value"]["kind"] not in RECORDS for line in lines)
        if out.as_json:
            out.json(user=user, memories=count, lines=len(lines), file=str(args.output))
        else:
            out.say(f"{count} memories of {user} are in {args.output}.")
    return 0


def _target(path: Path | None) -> AbstractContextManager[TextIO]:
    if path is None:
        return nullcontext(sys.stdout)
    try:
        return path.open("x", encoding="utf-8")
    except FileExistsError as error:
        msg = f"{path} exists already and is not overwritten; name a new file."
        raise StorageError(msg) from error


def _lines(memory: RAGMemory, user: str) -> Steps[list[Line]]:
    scope = yield from memory.scope()
    lines: list[Line] = []
    for home in (yield from journal.homes(scope)):
        changes: dict[str, list[Any]] = {}
        for record in (yield from List(journal_of(home))):
            key, _, version = record.key.rpartition("@")
            content = record.item.content
            changes.setdefault(key, []).append((int(version), content))
        counters = {
            each.key: each.item.content for each in (yield from List(reserved("counters", home)))
        }
        found = [*(yield from List(home)), *(yield from List(closed(home)))]
        for each in sorted(found, key=lambda one: (one.created_at, one.key)):
            line = _line(each, user)
            line["history"] = [
                {"version": version, **change}
                for version, change in sorted(changes.get(each.key, []))
            ]
            if each.key in counters:
                line["counters"] = counters[each.key]
            lines.append(line)
    return lines


def _line(memory: StoredMemory, user: str) -> Line:
    """Return an item with the fields of our JSONL on top, where it has words of its own."""
    stored = {
        name: value for name, value in memory.to_dict().items() if name not in ("score", "parts")
    }
    if memory.item.kind in RECORDS:
        return stored
    when, said_by = memory.observed_at or memory.created_at, memory.item.attributed_to
    session = turns.session_key(memory)
    spoken = {
        "user": user,
        "thread": turns.thread_of(memory),
        "session": session,
        "speaker": said_by,
        "content": memory.text,
        "time": to_timestamp(when) if when else None,
        "id": next(iter(memory.item.source_message_ids), memory.key),
    }
    return {**{name: value for name, value in spoken.items() if value is not None}, **stored}
