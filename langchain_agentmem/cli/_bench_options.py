"""The options of `agentmem bench`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    _add_data(parser)
    _add_systems(parser)
    _add_run(parser)


def _add_data(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to measure on")
    group.add_argument(
        "--data", type=Path, metavar="FOLDER", help="folder with locomo/, musique/, memdaily/, ..."
    )
    group.add_argument(
        "--dataset",
        action="append",
        metavar="NAME",
        help="one of its data sets, or file.py:function for one of your own; may be repeated "
        "(default: all that are there)",
    )
    group.add_argument(
        "--conversations",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="your own conversations, in any form that 'agentmem import' reads",
    )
    group.add_argument(
        "--questions",
        type=Path,
        metavar="FILE",
        help="questions about them, JSON lines with question, answer, evidence, must_not, ...",
    )
    group.add_argument(
        "--draft",
        type=count,
        metavar="N",
        help="have a model draft so many questions about each conversation",
    )
    group.add_argument("--limit", type=count, metavar="N", help="only the first N questions")


def _add_systems(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to measure")
    group.add_argument(
        "--memory",
        action="append",
        metavar="NAME",
        help="a memory by its class, as NAME:parameter=value,... for other parameters, 'all', or "
        "file.py:Class for one of your own; may be repeated (default: RAGMemory)",
    )
    group.add_argument("--list", action="store_true", help="list the memories and data sets")
    group.add_argument("--model", metavar="NAME", help="chat model that writes memories")
    group.add_argument("--answer", metavar="NAME", help="chat model that answers the questions")
    group.add_argument("--judge", metavar="NAME", help="chat model that judges the answers")
    group.add_argument("--base-url", metavar="URL", help="server of an OpenAI-compatible model")
    group.add_argument(
        "--reference",
        default="bm25",
        metavar="NAME",
        help="the system the others are compared with (default: bm25)",
    )
    group.add_argument(
        "--results", type=count, default=10, metavar="K", help="most results (default: 10)"
    )
    group.add_argument(
        "--growth", action="store_true", help="measure how costs grow with the number of turns"
    )
    group.add_argument(
        "--sizes",
        type=_sizes,
        default=(100, 1000, 10_000, 100_000),
        metavar="N,N",
        help="numbers of turns for --growth (default: 100,1000,10000,100000)",
    )
    group.add_argument(
        "--seconds",
        type=float,
        default=120.0,
        metavar="S",
        help="most seconds of writing for each memory of --growth (default: 120)",
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how to run")
    group.add_argument("--dry-run", action="store_true", help="say what it would cost, and stop")
    group.add_argument(
        "--price",
        type=_price,
        metavar="IN,OUT",
        help="price of a million tokens read and written, for --dry-run",
    )
    group.add_argument(
        "--workers", type=count, default=1, metavar="N", help="conversations at once (default: 1)"
    )
    group.add_argument(
        "--timeout",
        type=float,
        default=120.0,
        metavar="S",
        help="seconds after which a model's call has failed (default: 120)",
    )
    group.add_argument("--budget", type=count, metavar="N", help="most tokens to spend on models")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seed (default: 0)")
    group.add_argument(
        "--out",
        type=_folder,
        default=Path("agentmem-bench"),
        metavar="FOLDER",
        help="where the report and what is kept of the run go (default: agentmem-bench)",
    )


def _folder(text: str) -> Path:
    path = Path(text)
    if path.exists() and not path.is_dir():
        msg = f"{text!r} is a file; name a folder, which is made if it is not there"
        raise argparse.ArgumentTypeError(msg)
    return path


def count(text: str) -> int:
    """Read an argument that is a number of 1 or more.

    Raises:
        ArgumentTypeError: It is something else.
    """
    if not text.isdecimal() or not int(text):
        msg = f"must be a number of 1 or more, not {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _price(text: str) -> tuple[float, float]:
    try:
        read, written = (float(part) for part in text.split(","))
    except ValueError as error:
        msg = f"must be two numbers such as 0.4,1.6, not {text!r}"
        raise argparse.ArgumentTypeError(msg) from error
    return read, written


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(count(part) for part in text.split(","))
