"""`agentmem copy`: everything from one store to another, of all users."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    import argparse

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.stores.copying import CopyReport


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's private type
    """Add the command's arguments."""
    parser = commands.add_parser(
        "copy",
        parents=[common],
        help="copy everything, of all users, from one store to another",
        description="Copy everything, of all users, from one store to another, both indexed with "
        "the model that --embed names: sqlite:///file.sqlite or postgresql://user@host/database. "
        "What is there already is not written again, so a copy can be continued. In the end both "
        "are compared.",
    )
    parser.add_argument("--from", dest="source", required=True, metavar="URL", help="read this")
    parser.add_argument("--to", dest="target", required=True, metavar="URL", help="write this")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Copy, compare and report."""
    from langchain_agentmem.embeddings import resolve_embeddings
    from langchain_agentmem.stores.copying import copy_urls

    columns = (TextColumn("Copying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out.progress, transient=True) as bar:
        task = bar.add_task("copy", total=None)
        report = copy_urls(
            args.source,
            args.target,
            embeddings=resolve_embeddings(args.embed),
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if out.as_json:
        out.json(**asdict(report))
        return _missing(report, out)
    out.say(
        f"{report.items} items, {report.written} of them new or changed, are in the target; "
        "all were compared and are equal."
    )
    out.say(f"{report.reused} texts kept their vectors, {report.embedded} were embedded.")
    if not report.kept_times:
        out.say("The target cannot keep timestamps; the items count as new.")
    return _missing(report, out)


def _missing(report: CopyReport, out: Output) -> int:
    """Say what is not in the copy; returns the exit status."""
    if not report.unreadable:
        return 0
    msg = (
        f"{report.unreadable} items cannot be read and are not in the copy; "
        "'agentmem doctor' says which."
    )
    out.error(msg, kind="CorruptStoreError")
    return 1
