"""`agentmem export`: everything that is kept of one user, as JSON lines."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_agentmem.cli._damage import readable
from langchain_agentmem.cli._memory import hint_for_nothing, of_user, opened, owner
from langchain_agentmem.cli._output import visible
from langchain_agentmem.errors import StorageError
from langchain_agentmem.items import RECORD_KINDS, StoredMemory, to_timestamp
from langchain_agentmem.scopes import closed, reserved
from langchain_agentmem.scopes import journal as journal_of
from langchain_agentmem.steps import journal, turns
from langchain_agentmem.steps.drivers import run as drive
from langchain_agentmem.steps.effects import Steps

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager
    from typing import TextIO

    from langchain_agentmem.cli._output import Output
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
    """Write one line for each stored item that can be read."""
    user = owner(args)
    with opened(args) as memory:
        lines, skipped = drive(_lines(memory), memory.environment(of_user(user)))
        if not lines and not skipped:
            out.note(hint_for_nothing(memory, user))
    records = [line for line in lines if line["value"]["kind"] == "session"]
    contents = [line["value"]["content"] for line in records]
    names = {line["key"]: str(line["value"]["content"]["name"]) for line in records}
    order = {key: at for content in contents for at, key in enumerate(content["turns"])}
    lines.sort(key=lambda line: (line["namespace"], _when(line), order.get(line["key"], 0)))
    with _target(args.output) as file:
        for line in lines:
            file.write(json.dumps(_spoken(line, user, names), ensure_ascii=False) + "\n")
    if args.output:
        count = sum(line["value"]["kind"] not in RECORD_KINDS for line in lines)
        if out.as_json:
            counts = {"memories": count, "lines": len(lines), "skipped": skipped}
            out.json(user=user, **counts, file=str(args.output))
        else:
            out.say(visible(f"{count} memories of {user} are in {args.output}."))
    if skipped:
        msg = f"{skipped} items cannot be read and were left out; 'agentmem doctor' says which."
        out.error(msg, kind="CorruptStoreError")
    return 1 if skipped else 0


def _when(line: Line) -> str:
    """Return when a line was said; turns of one instant keep the order of their session."""
    return str(line["value"].get("observed_at") or line["created_at"])


def _target(path: Path | None) -> AbstractContextManager[TextIO]:
    if path is None:
        return nullcontext(sys.stdout)
    try:
        return path.open("x", encoding="utf-8")
    except FileExistsError as error:
        msg = f"{path} exists already and is not overwritten; name a new file."
        raise StorageError(msg) from error
    except FileNotFoundError as error:
        msg = f"{path.parent} does not exist; create the directory first, or name another file."
        raise StorageError(msg) from error
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror or error}; name another file."
        raise StorageError(msg) from error


def _lines(memory: RAGMemory) -> Steps[tuple[list[Line], int]]:
    """Return the lines of everything that can be read, and how many items cannot."""
    scope = yield from memory.scope()
    lines: list[Line] = []
    skipped = 0
    for home in (yield from journal.homes(scope)):
        names = (home, closed(home), reserved("counters", home), journal_of(home))
        parts = []
        for name in names:
            part, missing = yield from readable(memory.store, name)
            parts.append(part)
            skipped += missing
        live, hidden, counters, records = parts
        changes = _changes(records)
        counted = {each.key: each.item.content for each in counters}
        for each in [*live, *hidden]:
            line = {**_stored(each), "history": sorted(changes.get(each.key, []), key=_version)}
            if each.key in counted:
                line["counters"] = counted[each.key]
            lines.append(line)
    return lines, skipped


def _changes(records: list[StoredMemory]) -> dict[str, list[Line]]:
    """Return the journal of one namespace by the keys of its memories."""
    changes: dict[str, list[Line]] = {}
    for record in records:
        key, _, version = record.key.rpartition("@")
        if isinstance(record.item.content, dict):
            change = {"version": int(version), **record.item.content}
            changes.setdefault(key, []).append(change)
    return changes


def _version(change: Line) -> int:
    return int(change["version"])


def _stored(memory: StoredMemory) -> Line:
    stored = memory.to_dict()
    return {name: value for name, value in stored.items() if name not in ("score", "parts")}


def _spoken(line: Line, user: str, sessions: dict[str, str]) -> Line:
    """Put the fields of our JSONL on top of a line that has words of its own."""
    memory = StoredMemory.from_dict(line)
    if memory.item.kind in RECORD_KINDS:
        return line
    when, title = memory.observed_at or memory.created_at, memory.metadata.get("title")
    spoken = {
        "user": user,
        "thread": turns.thread_of(memory),
        "session": sessions.get(turns.session_key(memory) or ""),
        "speaker": memory.item.attributed_to,
        "content": memory.text,
        "title": title if isinstance(title, str) else None,
        "time": to_timestamp(when) if when else None,
        "id": next(iter(memory.item.source_message_ids), memory.key),
    }
    return {**{name: value for name, value in spoken.items() if value is not None}, **line}
