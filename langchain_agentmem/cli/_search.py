"""`agentmem search`: what the memory recalls for a question."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.text import Text

from langchain_agentmem.cli._memory import hint_for_nothing, opened, owner, real_text, recalled
from langchain_agentmem.cli._output import as_row, heading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.memories.state import Recall


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's private type
    """Add the command's arguments."""
    parser = commands.add_parser(
        "search",
        parents=[common],
        help="show what is recalled for a question",
        description="Show what is recalled for a question, best first, without a model.",
    )
    parser.add_argument("query", type=real_text, help="a question or a few words")
    add_recall_options(parser)
    parser.add_argument("--why", action="store_true", help="show what each score is made of")
    parser.set_defaults(run=run)


def add_recall_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a recall."""
    parser.add_argument(
        "--limit", type=_count, metavar="N", help="most memories to show (default: 10)"
    )
    parser.add_argument(
        "--as-of",
        type=_time,
        metavar="TIME",
        help="what was known at that time, e.g. 2026-03-01 or 2026-03-01T09:30",
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        msg = f"must be a number of 0 or more, not {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _time(text: str) -> datetime:
    from langchain_agentmem.items import parse_timestamp

    try:
        return parse_timestamp(text)
    except ValueError as error:
        msg = f"must be a time such as 2026-03-01T09:30, not {text!r}"
        raise argparse.ArgumentTypeError(msg) from error


def run(args: argparse.Namespace, out: Output) -> int:
    """Recall and show."""
    user = owner(args)
    with opened(args) as memory:
        found = recalled(memory, args.query, args)
        if not found.items and not out.as_json:
            out.note(hint_for_nothing(memory, user))
    show(found, out, query=args.query, user=user, why=args.why)
    return 0


def show(found: Recall, out: Output, *, query: str, user: str, why: bool) -> None:
    """Show a recall, best first."""
    from langchain_agentmem.surfaces.agent import source_of

    if out.as_json:
        out.json(query=query, user=user, items=[as_row(each) for each in found.items])
        return
    for number, memory in enumerate(found.items, 1):
        out.memory(memory, heading(memory, source_of(memory), number=number))
        if why:
            out.say(Text(f"    {made_of(memory.parts)}", "dim"))


def made_of(parts: Mapping[str, float]) -> str:
    """Return the ingredients of a score in one line, the largest first."""
    ordered = sorted(parts.items(), key=lambda part: -abs(part[1]))
    return "because of " + ", ".join(f"{name} {value:.3f}" for name, value in ordered if value)
