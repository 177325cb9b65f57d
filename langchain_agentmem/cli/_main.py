"""The command line: its arguments, and what becomes of errors."""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from langchain_agentmem._version import __version__
from langchain_agentmem.cli import (
    _backup,
    _bench,
    _chat,
    _consolidate,
    _copy,
    _doctor,
    _export,
    _forget,
    _import,
    _inspect,
    _search,
)
from langchain_agentmem.cli._memory import DEFAULT_DB, DEFAULT_USER, real_text
from langchain_agentmem.cli._output import Output
from langchain_agentmem.errors import AgentMemoryError

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED: Final = 130
_COMMANDS: Final = (
    _chat,
    _import,
    _search,
    _inspect,
    _consolidate,
    _forget,
    _export,
    _copy,
    _backup,
    _doctor,
    _bench,
)
_EPILOG: Final = """\
environment:
  AGENTMEM_DB     the memory file (default: ~/.agentmem/memory.sqlite)
  AGENTMEM_USER   whose memory (default: me)
  AGENTMEM_EMBED  embedding model: default, minilm, multilingual or provider:model
  AGENTMEM_MODEL  chat model, e.g. openai:gpt-4.1-mini, or none; OPENAI_API_KEY chooses OpenAI

exit status: 0 done, 1 an error that is explained on stderr, 2 wrong usage"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: The arguments; those of the process by default.

    Returns:
        0 if all is done, 1 for an error that was explained on stderr, 130 if it was interrupted.

    Raises:
        SystemExit: With status 2 for wrong usage, and 0 after `--help` and `--version`.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="surrogateescape")
    args = _parser().parse_args(argv)
    out = Output(as_json=args.json)
    try:
        status: int = args.run(args, out)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        out.error("Stopped. Everything that was acknowledged is kept.")
        return _INTERRUPTED
    except (AgentMemoryError, OSError) as error:
        out.error(str(error), kind=type(error).__name__)
        return 1
    except (sqlite3.Error, json.JSONDecodeError, UnicodeDecodeError) as error:
        read = getattr(args, "source", args.db)
        msg = f"{read} is damaged ({error}); run 'agentmem doctor', which says where."
        out.error(msg, kind="CorruptStoreError")
        return 1
    return status


class _Given(argparse.Action):
    """Keeps a value, and that the command line gave it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's signature
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002 - argparse's signature
    ) -> None:
        setattr(namespace, self.dest, values)
        setattr(namespace, f"{self.dest}_given", True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agentmem",
        description="The memory of your agents, in one file: talk to it, fill it, look into it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"agentmem {__version__}")
    common = _common()
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_to(commands, common)
    return parser


def _common() -> argparse.ArgumentParser:
    """Return the options that every command has."""
    common = argparse.ArgumentParser(add_help=False)
    group = common.add_argument_group("common options")
    group.add_argument(
        "--db",
        type=Path,
        default=Path(os.environ.get("AGENTMEM_DB") or DEFAULT_DB),
        metavar="FILE",
        help=f"the memory file (default: AGENTMEM_DB or {DEFAULT_DB})",
    )
    group.add_argument(
        "--user",
        action=_Given,
        type=real_text,
        default=os.environ.get("AGENTMEM_USER"),
        metavar="NAME",
        help=f"whose memory (default: AGENTMEM_USER or {DEFAULT_USER!r})",
    )
    group.add_argument(
        "--embed",
        default=os.environ.get("AGENTMEM_EMBED") or "default",
        metavar="MODEL",
        help="embedding model of the file: default, minilm, multilingual or provider:model",
    )
    common.set_defaults(user_given=False)
    group.add_argument("--json", action="store_true", help="write JSON for machines to stdout")
    return common
