"""`agentmem import`: fill the memory from files of conversations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_agentmem.cli._memory import of_user, opened, owner
from langchain_agentmem.cli._output import visible

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.conversations import ConversationFile
    from langchain_agentmem.memories.base import Memory

_SHOWN = 5


@dataclass(slots=True)
class Tally:
    """What an import did so far.

    Attributes:
        turns: Turns that are stored now, whether new or known.
        events: How many were new, changed or known: `ADD`, `UPDATE`, `NOOP`.
        users: Whose they are.
    """

    turns: int = 0
    events: Counter[str] = field(default_factory=Counter)
    users: dict[str, None] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON."""
        return {
            "imported": self.turns,
            "new": self.events["ADD"],
            "changed": self.events["UPDATE"],
            "known": self.events["NOOP"],
            "users": list(self.users),
        }


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's private type
    """Add the command's arguments."""
    from langchain_agentmem.conversations import BATCH_SIZE, FORMATS

    parser = commands.add_parser(
        "import",
        parents=[common],
        help="fill the memory from conversations: JSONL, OpenAI lists, ChatGPT, MemoryBank",
        description="Read conversations into the memory. All files are checked before anything is "
        "written. An import that was cut off is run again: what is there is not written twice.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="what to read")
    parser.add_argument(
        "--format", choices=FORMATS, default="auto", help="format of the files (default: auto)"
    )
    parser.add_argument(
        "--skip-invalid",
        action="store_true",
        help="leave out turns that cannot be read, and report them, instead of stopping",
    )
    parser.add_argument(
        "--batch-size",
        type=int,
        default=BATCH_SIZE,
        metavar="N",
        help=f"turns that are written and acknowledged together (default: {BATCH_SIZE})",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Check all files, then import them."""
    from langchain_agentmem.conversations import ConversationFile

    files = [
        ConversationFile(path, format=args.format, skip_invalid=args.skip_invalid)
        for path in args.files
    ]
    total = sum(1 for file in files for _ in file)
    tally = Tally()
    with opened(args, create=True) as memory:
        steps = import_turns(memory, files, owner(args), tally, size=max(args.batch_size, 1))
        if out.as_json:
            for _ in steps:
                out.json(imported=tally.turns, of=total)
        else:
            _show_progress(steps, tally, total, out)
    _report(out, tally, files)
    return 0


def import_turns(
    memory: Memory, files: Iterable[ConversationFile], user: str, tally: Tally, *, size: int
) -> Iterator[None]:
    """Import batch by batch; at each yield everything in the tally is stored for good.

    Args:
        memory: Where to.
        files: What to read.
        user: Whose the turns are whose file does not say.
        tally: What is counted.
        size: How many turns are written together.
    """
    from langchain_agentmem.conversations import batches

    for file in files:
        for named, thread, messages in batches(file, size):
            whose = named or user
            config = of_user(whose, **({"thread_id": thread} if thread else {}))
            operations = memory.remember(messages, config=config)
            tally.turns += len(messages)
            tally.events.update(op.event for op in operations)
            tally.events["NOOP"] += len(messages) - len(operations)
            tally.users[whose] = None
            yield


def _show_progress(steps: Iterator[None], tally: Tally, total: int, out: Output) -> None:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("importing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out.progress) as bar:
        task = bar.add_task("importing", total=total)
        for _ in steps:
            bar.update(task, completed=tally.turns)


def _report(out: Output, tally: Tally, files: list[ConversationFile]) -> None:
    silent = sum(file.silent for file in files)
    invalid = [reason for file in files for reason in file.invalid]
    if out.as_json:
        out.json(done=True, **tally.to_dict(), without_words=silent, invalid=invalid)
        return
    for reason in invalid[:_SHOWN]:
        out.note(f"left out: {visible(reason)}")
    if len(invalid) > _SHOWN:
        out.note(f"... and {len(invalid) - _SHOWN} more; --json lists them all")
    people = ", ".join(list(tally.users)[:_SHOWN]) + (", ..." if len(tally.users) > _SHOWN else "")
    parts = [f"{tally.events['ADD']} new", f"{tally.events['NOOP']} already known"]
    parts += [f"{tally.events['UPDATE']} changed"] if tally.events["UPDATE"] else []
    parts += [f"{silent} without words left out"] if silent else []
    parts += [f"{len(invalid)} unreadable left out"] if invalid else []
    users = "1 user" if len(tally.users) == 1 else f"{len(tally.users)} users"
    of = f" of {users} ({visible(people)})" if tally.users else ""
    out.say(f"{tally.turns} turns{of}: {', '.join(parts)}.", style="bold")
