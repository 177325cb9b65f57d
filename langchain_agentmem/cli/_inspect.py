"""`agentmem inspect`: whose memories there are, which, their history, and why they are recalled."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from langchain_agentmem.cli import _queue, _search
from langchain_agentmem.cli._memory import (
    at_home,
    contents,
    hint_for_nothing,
    of_user,
    opened,
    owner,
    real_text,
    recalled,
    the_one,
    users,
)
from langchain_agentmem.cli._output import as_row, heading, visible
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.items import to_timestamp

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from datetime import datetime

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.items import StoredMemory
    from langchain_agentmem.memories.rag import RAGMemory
    from langchain_agentmem.steps.journal import JournalEntry

_LISTED = 20


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's private type
    """Add the command's arguments."""
    parser = commands.add_parser(
        "inspect",
        parents=[common],
        help="show users, memories, the history of one, or why some are recalled",
        description="Without arguments: everybody there are memories of. With --user: the newest "
        "memories. With a KEY: one memory and its history. With --why: how a recall came about. "
        "With --queue: what waits to be consolidated, and what became of it.",
    )
    parser.add_argument("key", nargs="?", type=real_text, metavar="KEY", help="key of a memory")
    parser.add_argument("--why", type=real_text, metavar="QUERY", help="explain the recall of this")
    parser.add_argument(
        "--closed", action="store_true", help="list superseded and archived ones too"
    )
    parser.add_argument(
        "--queue", action="store_true", help="show the queue of background consolidation"
    )
    _search.add_recall_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Show what the arguments ask for.

    Raises:
        ConfigurationError: The arguments contradict each other.
    """
    with opened(args) as memory:
        if args.queue and args.as_of:
            msg = "--as-of looks at memories; the queue is shown as it is now."
            raise ConfigurationError(msg)
        if args.queue:
            limit = _LISTED if args.limit is None else args.limit
            _queue.show(memory, args.user, out, limit=limit)
        elif args.why:
            found = recalled(memory, args.why, args)
            _search.show(found, out, query=args.why, user=owner(args), why=True)
        elif args.key:
            _show_one(memory, owner(args), args.key, out, as_of=args.as_of)
        elif args.user:
            limit = _LISTED if args.limit is None else args.limit
            listed = contents(memory, args.user, hidden=args.closed, as_of=args.as_of)
            _list(memory, args.user, listed, out, limit=limit)
        else:
            _list_users(memory, out, as_of=args.as_of)
    return 0


def _list_users(memory: RAGMemory, out: Output, *, as_of: datetime | None) -> None:
    table = Table("user", "memories", "closed", "from", "to", box=None, header_style="bold")
    for user in users(memory):
        found = contents(memory, user, hidden=True, as_of=as_of)
        days = sorted(f"{each.observed_at:%Y-%m-%d}" for each in found if each.observed_at)
        status = Counter(each.item.status == "active" for each in found)
        first, last = (days[0], days[-1]) if days else ("", "")
        if out.as_json:
            counts = {"memories": status[True], "closed": status[False]}
            out.json(user=user, **counts, first=first, last=last)
        table.add_row(Text(visible(user)), str(status[True]), str(status[False]), first, last)
    if out.as_json:
        return
    if table.row_count:
        out.say(table)
        out.note(_size(memory))
    else:
        out.note(
            "The file holds no memories yet; fill it with 'agentmem import' or 'agentmem chat'."
        )


def _size(memory: RAGMemory) -> str:
    """Return what the whole file holds."""
    store: Any = memory.store
    found = store.statistics()
    return (
        f"{found.items} items in {found.namespaces} namespaces with {found.vectors} vectors, "
        f"records and history included; {found.file_bytes / 1e6:.1f} MB."
    )


def _list(
    memory: RAGMemory, user: str, found: Sequence[StoredMemory], out: Output, *, limit: int
) -> None:
    from langchain_agentmem.surfaces.agent import source_of

    if out.as_json:
        out.json(user=user, total=len(found), items=[as_row(each) for each in found[:limit]])
        return
    for each in found[:limit]:
        closed = "" if each.item.status == "active" else f" · {each.item.status}"
        out.memory(each, heading(each, source_of(each) + closed))
    if not found:
        out.note(hint_for_nothing(memory, user))
    elif len(found) > limit:
        out.note(f"{limit} of {len(found)} memories, the newest first; --limit shows more.")


def _show_one(
    memory: RAGMemory, user: str, key: str, out: Output, *, as_of: datetime | None
) -> None:
    found = the_one(contents(memory, user, hidden=True, as_of=as_of), key, user=user)
    entries = [
        entry
        for entry in memory.history(at_home(found), config=of_user(user))
        if as_of is None or entry.at <= as_of
    ]
    if out.as_json:
        history = [_entry(entry) for entry in entries]
        out.json(user=user, item=as_row(found), history=history)
        return
    table = Table(box=None, show_header=False)
    table.add_column(style="cyan")
    table.add_column()
    fields = {"key": found.key, "namespace": " / ".join(found.namespace), **found.item.to_value()}
    for name, value in fields.items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        table.add_row(name, Text(visible(shown)))
    out.say(table)
    out.say("history", style="bold")
    for entry in entries:
        out.say(visible(_line(entry)))


def _entry(entry: JournalEntry) -> dict[str, Any]:
    return {
        "version": entry.version,
        "event": entry.event,
        "at": to_timestamp(entry.at),
        "cause": entry.cause.to_dict(),
        "before": entry.before.to_value() if entry.before else None,
        "after": entry.after.to_value() if entry.after else None,
    }


def _line(entry: JournalEntry) -> str:
    cause = entry.cause
    thread = f" in conversation {cause.thread_id}" if cause.thread_id else ""
    said = f", from message {', '.join(cause.message_ids)}" if cause.message_ids else ""
    note = f" ({cause.note})" if cause.note else ""
    before = f"\n    before: {entry.before.text}" if entry.before else ""
    when = f"{entry.at:%Y-%m-%d %H:%M:%S} UTC"
    return f"  v{entry.version} {entry.event} {when} by {cause.surface}{thread}{said}{note}{before}"
