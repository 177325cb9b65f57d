"""`agentmem forget`: erase memories for good, with a receipt."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.cli._memory import (
    contents,
    hint_for_nothing,
    of_user,
    opened,
    owner,
    real_text,
    the_one,
)
from langchain_agentmem.cli._output import heading, visible
from langchain_agentmem.errors import ConfigurationError, StorageError

if TYPE_CHECKING:
    import argparse

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.items import MemoryOperation, StoredMemory
    from langchain_agentmem.memories.rag import RAGMemory

OUTSIDE: Final = (
    "conversation checkpoints of your graphs",
    "backups and copies of the file",
    "files the memories were imported from",
)
_SHOWN = 5


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's private type
    """Add the command's arguments."""
    parser = commands.add_parser(
        "forget",
        parents=[common],
        help="erase memories for good, with a receipt",
        description="Erase memories of one user for good: the words, their vectors, their history "
        "and the free pages of the file. Without --yes it asks first.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("keys", nargs="*", default=[], type=real_text, metavar="KEY", help="keys")
    what.add_argument(
        "--matching", type=real_text, metavar="TEXT", help="all memories that hold this text"
    )
    what.add_argument("--all", action="store_true", help="everything of the user")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Select, ask, erase and give the receipt."""
    user = owner(args)
    with opened(args) as memory:
        found = _selected(args, contents(memory, user, hidden=True), user)
        if not found:
            if not out.as_json:
                out.note("No memory matches." if args.matching else hint_for_nothing(memory, user))
            _receipt(out, user, [], rewritten=False)
            return 0
        if not args.yes and not _confirmed(out, found, user):
            out.note("Nothing was erased.")
            return 1
        erased = _erase(memory, user, None if args.all else found)
        _receipt(out, user, erased, rewritten=_rewrite(memory, out))
    return 0


def _selected(
    args: argparse.Namespace, memories: list[StoredMemory], user: str
) -> list[StoredMemory]:
    if args.all:
        return memories
    if args.matching:
        wanted = args.matching.casefold()
        return [each for each in memories if wanted in each.text.casefold()]
    return [the_one(memories, key, user=user) for key in args.keys]


def _confirmed(out: Output, found: list[StoredMemory], user: str) -> bool:
    """Show what would be erased and ask.

    Raises:
        ConfigurationError: Nobody can be asked.
    """
    from langchain_agentmem.surfaces.agent import source_of

    if out.as_json or not sys.stdin.isatty():
        msg = "Nobody is there to be asked; add --yes to erase without asking."
        raise ConfigurationError(msg)
    for each in found[:_SHOWN]:
        out.memory(each, heading(each, source_of(each)))
    if len(found) > _SHOWN:
        out.say(f"... and {len(found) - _SHOWN} more", style="dim")
    question = f"Erase {_counted(len(found))} of {visible(user)} for good? [y/N] "
    return out.console.input(question, markup=False).strip().lower() in ("y", "yes")


def _erase(memory: RAGMemory, user: str, found: list[StoredMemory] | None) -> list[MemoryOperation]:
    from langchain_agentmem.memories.base import EVERYTHING

    selector = EVERYTHING if found is None else [each.key for each in found]
    return memory.forget(selector, config=of_user(user))


def _rewrite(memory: RAGMemory, out: Output) -> bool:
    """Rewrite the file, so that no byte of what was erased remains; False if it is busy."""
    vacuum = getattr(memory.store, "vacuum", None)
    try:
        if vacuum is not None:
            vacuum()
    except StorageError as error:
        out.note(f"The file could not be rewritten: {error} Run 'agentmem doctor --repair' later.")
        return False
    return True


def _receipt(out: Output, user: str, erased: list[MemoryOperation], *, rewritten: bool) -> None:
    counts = Counter(op.namespace for op in erased)
    if out.as_json:
        out.json(
            user=user,
            erased=counts.total(),
            namespaces=[{"namespace": list(name), "count": n} for name, n in counts.items()],
            keys=[op.key for op in erased],
            file_rewritten=rewritten,
            not_covered=list(OUTSIDE),
        )
        return
    if not erased:
        return
    out.say(f"Erased {_counted(counts.total())} of {visible(user)} for good:", style="bold")
    for name, count in counts.items():
        out.say(f"  {count} in {visible(' / '.join(name))}")
    out.say("  with their vectors, words, history and earlier versions")
    if rewritten:
        out.say("  the file was rewritten, so that no trace is left in it")
    out.say(f"Not covered: {', '.join(OUTSIDE)}.", style="dim")


def _counted(number: int) -> str:
    return f"{number} memor{'y' if number == 1 else 'ies'}"
