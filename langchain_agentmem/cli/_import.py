"""`agentmem import`: fill the memory from files of conversations."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_agentmem.cli._bench_options import count
from langchain_agentmem.cli._memory import of_user, opened, owner
from langchain_agentmem.cli._output import visible
from langchain_agentmem.errors import ConfigurationError, StorageError
from langchain_agentmem.rendering import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.consolidation import MemoryQueue
    from langchain_agentmem.conversations import ConversationFile
    from langchain_agentmem.memories.base import Memory

_SHOWN = 5
_EPILOG = """\
fields of a JSON line (only content must be there; other names that are read in parentheses):
  content  what was said (text, message)
  user     whose memory (user_id)
  thread   the conversation (thread_id, conversation_id)
  session  the sitting within it
  role     user or assistant; system and tool are left out
  speaker  who said it (name)
  time     ISO 8601 or seconds since 1970
           (timestamp, created_at, create_time, date, observed_at)
  title    of a document, so that others which name it lead to it
  id       makes the turn recognizable when it is imported again

A --user that is given owns all turns, whatever the files say. Without it the files name the users,
and turns without one belong to AGENTMEM_USER. The file - is standard input."""


@dataclass(slots=True)
class Tally:
    """What an import did so far.

    Attributes:
        turns: Turns that are stored now, whether new or known.
        queued: Whether they are queued instead of remembered.
        events: How many were new, changed or known: `ADD`, `UPDATE`, `NOOP`.
        users: Whose they are.
    """

    turns: int = 0
    queued: bool = False
    events: Counter[str] = field(default_factory=Counter)
    users: dict[str, None] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON."""
        if self.queued:
            return {"queued": self.turns, "users": list(self.users)}
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
    from langchain_agentmem.migration import FOREIGN_FORMATS

    parser = commands.add_parser(
        "import",
        parents=[common],
        help="fill the memory from conversations: JSONL, OpenAI lists, ChatGPT, MemoryBank; or "
        "from memories of LangMem and mem0",
        description="Read conversations, or another package's memories, into the memory. All "
        "files are checked before anything is written. An import that was cut off is run again: "
        "what is there is not written twice.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="what to read")
    parser.add_argument(
        "--format",
        choices=(*FORMATS, *FOREIGN_FORMATS),
        default="auto",
        help="format of the files (default: auto); langmem is a dump of a store, mem0 an export",
    )
    parser.add_argument(
        "--skip-invalid",
        action="store_true",
        help="leave out turns that cannot be read, and report them, instead of stopping",
    )
    parser.add_argument(
        "--queue",
        action="store_true",
        help="do not keep the turns word for word, but queue them for 'agentmem consolidate', "
        "which makes them into memory with a model",
    )
    parser.add_argument(
        "--batch-size",
        type=count,
        default=BATCH_SIZE,
        metavar="N",
        help=f"turns that are written and acknowledged together (default: {BATCH_SIZE})",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Check all files, then import them.

    Raises:
        ConfigurationError: The arguments contradict each other.
    """
    from langchain_agentmem.cli import _import_memories
    from langchain_agentmem.migration import FOREIGN_FORMATS

    with _rereadable(args.files) as paths:
        if args.format in FOREIGN_FORMATS:
            if args.queue:
                msg = f"--queue takes conversations; a {args.format} file holds memories already."
                raise ConfigurationError(msg)
            return _import_memories.run(args, [path for path, _ in paths], out)
        return _import(args, paths, out)


@contextmanager
def _rereadable(paths: Iterable[Path]) -> Iterator[list[tuple[Path, str]]]:
    """Lend paths that can be read twice, with their names; what a pipe gives is kept meanwhile."""
    with tempfile.TemporaryDirectory(prefix="agentmem-") as folder:
        yield [_kept(path, Path(folder) / str(at)) for at, path in enumerate(paths)]


def _kept(path: Path, copy: Path) -> tuple[Path, str]:
    is_stdin = str(path) == "-"
    name = "standard input" if is_stdin else str(path)
    if is_stdin:
        with copy.open("wb") as target:
            shutil.copyfileobj(sys.stdin.buffer, target)
    elif path.exists() and not path.is_file() and not path.is_dir():
        with path.open("rb") as pipe, copy.open("wb") as target:
            shutil.copyfileobj(pipe, target)
    else:
        return path, name
    return copy, name


def _import(args: argparse.Namespace, paths: list[tuple[Path, str]], out: Output) -> int:
    from langchain_agentmem.conversations import ConversationFile

    named = args.user if args.user_given else None
    options = {"format": args.format, "skip_invalid": args.skip_invalid, "user": named}
    files = [ConversationFile(path, name=name, **options) for path, name in paths]
    total = sum(1 for file in files for _ in file)
    tally = Tally(queued=args.queue)
    with opened(args, create=True) as memory:
        steps = import_turns(memory, files, owner(args), tally, size=args.batch_size)
        try:
            if out.as_json:
                for _ in steps:
                    out.json(imported=tally.turns, of=total)
            else:
                _show_progress(steps, tally, total, out)
        except StorageError as error:
            msg = (
                f"{error} {tally.turns} of {total} turns are stored. Import again: "
                "what is there is not written twice."
            )
            raise type(error)(msg) from error
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
        tally: What is counted, and whether turns are queued.
        size: How many turns are written together.
    """
    from langchain_agentmem.conversations import batches

    queue = _queue_of(memory) if tally.queued else None
    for file in files:
        for named, thread, messages in batches(file, size):
            whose = named or user
            config = of_user(whose, **({"thread_id": thread} if thread else {}))
            if queue is not None:
                queue.submit(messages, config=config)
            else:
                operations = memory.remember(messages, config=config)
                tally.events.update(op.event for op in operations)
                tally.events["NOOP"] += len(messages) - len(operations)
            tally.turns += len(messages)
            tally.users[whose] = None
            yield


def _queue_of(memory: Memory) -> MemoryQueue:
    from langchain_agentmem.consolidation import MemoryQueue

    return MemoryQueue(memory.namespace, store=memory.store, after_seconds=0)


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
    users = list(dict.fromkeys(name for file in files for name in file.ignored_users))
    fields = list(dict.fromkeys(name for file in files for name in file.ignored_fields))
    if out.as_json:
        out.json(
            done=True,
            **tally.to_dict(),
            without_words=silent,
            invalid=invalid,
            ignored_users=users,
            ignored_fields=fields,
        )
        return
    if users:
        out.note(visible(f"user in the file ignored, --user owns all turns: {', '.join(users)}"))
    if fields:
        out.note(visible(f"fields ignored: {', '.join(fields)}; --help names those that are read"))
    for reason in invalid[:_SHOWN]:
        out.note(f"left out: {visible(reason)}")
    if len(invalid) > _SHOWN:
        out.note(f"... and {len(invalid) - _SHOWN} more; --json lists them all")
    people = ", ".join(list(tally.users)[:_SHOWN]) + (", ..." if len(tally.users) > _SHOWN else "")
    parts = [f"{tally.events['ADD']} new", f"{tally.events['NOOP']} already known"]
    parts += [f"{tally.events['UPDATE']} changed"] if tally.events["UPDATE"] else []
    parts = ["queued for 'agentmem consolidate'"] if tally.queued else parts
    parts += [f"{silent} without words left out"] if silent else []
    parts += [f"{len(invalid)} unreadable left out"] if invalid else []
    of = f" of {counted(len(tally.users), 'user')} ({visible(people)})" if tally.users else ""
    out.say(f"{counted(tally.turns, 'turn')}{of}: {', '.join(parts)}.", style="bold")
