"""`agentmem backup`: a copy of the file as it is at this moment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_agentmem.cli._memory import path_of
from langchain_agentmem.cli._output import visible
from langchain_agentmem.rendering import counted

if TYPE_CHECKING:
    import argparse

    from langchain_agentmem.cli._output import Output


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's private type
    """Add the command's arguments."""
    parser = commands.add_parser(
        "backup",
        parents=[common],
        help="copy the file as it is, also while it is in use",
        description="Copy the file as it is at this moment, while others read and write on. To "
        "restore a copy, name it with --db, or put it in the place of the file while nothing uses "
        "that, and remove the files ending in -wal and -shm beside it. What you forget later stays "
        "in earlier copies.",
    )
    parser.add_argument("target", type=Path, metavar="FILE", help="the copy, a new file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Write the copy and say how big it is."""
    from langchain_agentmem.stores.faiss_sqlite import FaissSqliteStore

    target: Path = args.target.expanduser()
    with FaissSqliteStore(path_of(args, create=False), index=None) as store:
        size = store.backup(target)
        items = store.statistics().items
    if out.as_json:
        out.json(path=str(target), bytes=size, items=items)
    else:
        out.say(
            f"{visible(str(target))}: {counted(items, 'item')}, {size / 1e6:.1f} MB", style="bold"
        )
    return 0
