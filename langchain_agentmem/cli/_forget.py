"""`agentmem forget`: erase memories for good, with a receipt."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.cli._memory import (
    at_home,
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
from langchain_agentmem.items import MemoryItem, StoredMemory
from langchain_agentmem.rendering import counted
from langchain_agentmem.scopes import ROOT, closed
from langchain_agentmem.scopes import journal as journal_of
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.drivers import run as drive

if TYPE_CHECKING:
    import argparse

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.items import MemoryOperation
    from langchain_agentmem.memories.rag import RAGMemory
    from langchain_agentmem.steps.effects import Ref

    Lying = dict[Ref, StoredMemory | None]

OUTSIDE: Final = (
    "conversation checkpoints of your graphs",
    "backups and copies of the file",
    "files the memories were imported from",
)
_SHOWN = 5
_UNREADABLE: Final = "unreadable"
_NOUN: Final = ("memory", "memories")


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
        "--matching",
        type=real_text,
        metavar="TEXT",
        help="all memories that hold this text, or held it in an earlier version",
    )
    what.add_argument("--all", action="store_true", help="everything of the user")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Select, ask, erase and give the receipt; 1 if nothing was erased."""
    user = owner(args)
    with opened(args) as memory:
        before = _lying(memory, user)
        known = _known(memory, user, before)
        lost = [each for each in known if each.item.kind == _UNREADABLE]
        found = known if args.all else _selected(args, known, before, user)
        if lost and args.matching:
            out.note(
                f"{len(lost)} memories of {user!r} cannot be read, so nobody knows whether they "
                "match; 'agentmem doctor' says which, and a KEY or --all erases them."
            )
        if not (before if args.all else found):
            out.note("No memory matches." if args.matching else hint_for_nothing(memory, user))
            _receipt(out, user, [], records=0, rewritten=False)
            return 1
        if not args.yes and not _confirmed(out, found, user):
            out.note("Nothing was erased.")
            return 1
        erased = _erase(args, memory, user, found, before)
        left = _lying(memory, user)
        records = len(before.keys() - left.keys()) - len(erased)
        _receipt(out, user, erased, records=max(records, 0), rewritten=_rewrite(memory, out))
    if args.all and left:
        msg = f"{len(left)} items of {user!r} are still there: something wrote them meanwhile, or "
        out.error(f"{msg}their keys are damaged. Forget again.", kind="StorageError")
        return 1
    return 0


def _lying(memory: RAGMemory, user: str) -> Lying:
    """Return all that lies in the user's scope, records and history included."""
    return drive(journal.below(_scope(memory, user)), memory.environment(of_user(user)))


def _scope(memory: RAGMemory, user: str) -> tuple[str, ...]:
    return memory.namespace(of_user(user))


def _known(memory: RAGMemory, user: str, lying: Lying) -> list[StoredMemory]:
    """Return all memories under the namespace they were live in, the unreadable ones last."""
    readable = [at_home(each) for each in contents(memory, user, hidden=True)]
    root = closed(())
    lost = [
        at_home(_unread(namespace, key))
        for (namespace, key), found in lying.items()
        if found is None and (namespace[0] != ROOT or namespace[: len(root)] == root)
    ]
    return [*readable, *lost]


def _unread(namespace: tuple[str, ...], key: str) -> StoredMemory:
    item = MemoryItem(content="", kind=_UNREADABLE)
    return StoredMemory(item=item, namespace=namespace, key=key)


def _selected(
    args: argparse.Namespace, known: list[StoredMemory], lying: Lying, user: str
) -> list[StoredMemory]:
    if not args.matching:
        return [the_one(known, key, user=user) for key in args.keys]
    wanted = args.matching.casefold()
    earlier = _with_earlier(lying, wanted)
    return [
        each
        for each in known
        if wanted in each.text.casefold() or (each.namespace, each.key) in earlier
    ]


def _with_earlier(lying: Lying, wanted: str) -> set[Ref]:
    """Return the memories an earlier version of which holds a text."""
    root = journal_of(())
    matching = set()
    for (namespace, key), record in lying.items():
        if record is None or namespace[: len(root)] != root:
            continue
        content: Any = record.content
        before = content.get("before") if isinstance(content, dict) else None
        if before and wanted in MemoryItem.from_value(before).text.casefold():
            matching.add((namespace[len(root) :], key.rpartition("@")[0]))
    return matching


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
    question = f"Erase {counted(len(found), *_NOUN)} of {visible(user)} for good? [y/N] "
    return out.console.input(question, markup=False).strip().lower() in ("y", "yes")


def _erase(
    args: argparse.Namespace,
    memory: RAGMemory,
    user: str,
    found: list[StoredMemory],
    before: Lying,
) -> list[MemoryOperation]:
    """Erase.

    Raises:
        StorageError: The file cannot be written; the message says what was erased before.
    """
    from langchain_agentmem.cli import _erase as chosen
    from langchain_agentmem.memories.base import EVERYTHING

    if args.all:
        steps = memory.forget_steps(EVERYTHING, None)
    else:
        refs, scope = [(each.namespace, each.key) for each in found], _scope(memory, user)
        steps = chosen.erase(refs, scope=scope, store=memory.store, whole=not args.matching)
    try:
        return drive(steps, memory.environment(of_user(user)))
    except StorageError as error:
        gone = len(before.keys() - _lying(memory, user).keys())
        msg = f"{error} {gone} of {len(before)} items were erased before; run the command again."
        raise type(error)(msg) from error


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


def _receipt(
    out: Output, user: str, erased: list[MemoryOperation], *, records: int, rewritten: bool
) -> None:
    unread = sum(op.reason == journal.UNREAD for op in erased)
    counts = Counter(op.namespace for op in erased)
    if out.as_json:
        out.json(
            user=user,
            erased=counts.total(),
            namespaces=[{"namespace": list(name), "count": n} for name, n in counts.items()],
            keys=[op.key for op in erased],
            unreadable=unread,
            records=records,
            file_rewritten=rewritten,
            not_covered=list(OUTSIDE),
        )
        return
    if not (erased or records):
        return
    out.say(f"Erased {counted(counts.total(), *_NOUN)} of {visible(user)} for good:", style="bold")
    for name, count in counts.items():
        out.say(f"  {count} in {visible(' / '.join(name))}")
    if unread:
        out.say(f"  {unread} of them had expired or could not be read")
    about = counted(records, "record")
    out.say(f"  {about} about them: history with earlier versions, sessions, queues")
    out.say("  with their vectors and words")
    if rewritten:
        out.say("  the file was rewritten, so that no trace is left in it")
    out.say(f"Not covered: {', '.join(OUTSIDE)}.", style="dim")
