"""Memory at work, offline: import, ask in a second process, kill a chat, ask in a third process.

Run `make demo`, or `python examples/demo.py --help` for other conversations and questions. What is
shown for a question is what `RAGMemory` recalls with its defaults; no model is involved.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_agentmem import StoredMemory

HERE = Path(__file__).parent
BANK = HERE / "memorybank"
AGENTMEM = (sys.executable, "-m", "langchain_agentmem.cli")
FULL_LINES = 3
LABEL_WIDTH = 32

console = Console(highlight=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo, or the part of it that answers in a process of its own."""
    args = arguments().parse_args(argv)
    if args.answer:
        answer(args.db, args.questions, people=args.people, each=args.each)
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        db = args.db or Path(folder) / "memory.sqlite"
        show_import(db, args.conversations)
        show_answers(db, args)
        show_kill(db, args.told, Path(folder))
    console.print(f"\nDone in {time.monotonic() - began:.0f} s.", style="bold")
    return 0


def arguments() -> argparse.ArgumentParser:
    """Return the options: what to import, what to ask, what to tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--conversations",
        nargs="+",
        type=Path,
        default=[BANK / "memory_bank_en.json", BANK / "memory_bank_cn.json"],
        help="files to import, in any format of 'agentmem import'",
    )
    parser.add_argument(
        "--questions",
        nargs="+",
        type=Path,
        default=[BANK / "probing_questions_en.jsonl", BANK / "probing_questions_cn.jsonl"],
        help="JSON lines: {user: [question, ...]}",
    )
    parser.add_argument(
        "--told",
        type=Path,
        default=HERE / "told.json",
        help="JSON: user, what to tell in the chat, what to ask afterwards",
    )
    parser.add_argument("--people", type=int, default=3, help="people a file of questions")
    parser.add_argument("--each", type=int, default=1, help="questions a person")
    parser.add_argument("--db", type=Path, help="memory file (default: a temporary one)")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    return parser


def show_import(db: Path, conversations: Sequence[Path]) -> None:
    """Import in a process of its own, with its progress bar."""
    heading("1", "Import conversations")
    run(*AGENTMEM, "import", *map(str, conversations), "--db", str(db))


def show_answers(db: Path, args: argparse.Namespace) -> None:
    """Ask in a second process."""
    heading("2", "A second process answers from what is remembered")
    questions = [str(path) for path in args.questions]
    counts = ["--people", str(args.people), "--each", str(args.each)]
    run(sys.executable, __file__, "--answer", "--db", str(db), *counts, "--questions", *questions)


def show_kill(db: Path, told: Path, folder: Path) -> None:
    """Tell a chat something, kill it, and ask in a third process."""
    story = json.loads(told.read_text("utf-8"))
    heading("3", f"{story['user']} tells an agent something new, and its process is killed")
    command = [*AGENTMEM, "chat", "--db", str(db), "--user", story["user"], "--model", "none"]
    with subprocess.Popen(  # noqa: S603 - our own command
        [*command, "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as chat:
        for fact in story["tell"]:
            assert chat.stdin is not None  # noqa: S101 - it is a pipe
            assert chat.stdout is not None  # noqa: S101 - it is a pipe
            chat.stdin.write(fact + "\n")
            chat.stdin.flush()
            json.loads(chat.stdout.readline())
            console.print(Text.assemble(("  you> ", "bold green"), fact))
        chat.send_signal(signal.SIGKILL)
    console.print(f"  process {chat.pid} killed (status {chat.returncode})", style="red")
    heading("4", "A third process recalls it")
    everything = ["--each", str(len(story["ask"]))]
    asked = folder / "asked.jsonl"
    asked.write_text(json.dumps({story["user"]: story["ask"]}, ensure_ascii=False), "utf-8")
    run(
        sys.executable,
        __file__,
        "--answer",
        "--db",
        str(db),
        "--questions",
        str(asked),
        *everything,
    )


def answer(db: Path, questions: Sequence[Path], *, people: int, each: int) -> None:
    """Show what is recalled for some questions of some people of each file."""
    from langchain_agentmem import FaissSqliteStore, RAGMemory

    with FaissSqliteStore(db) as store:
        memory = RAGMemory(store=store)
        for path in questions:
            for user, asked in islice(read_questions(path), people):
                for question in asked[:each]:
                    began = time.perf_counter()
                    found = memory.recall(question, config={"configurable": {"user_id": user}})
                    took = 1000 * (time.perf_counter() - began)
                    title = Text.assemble((f"\n  {user}", "bold cyan"), f" asks: {question}")
                    title.append(f"  ({took:.0f} ms)", "dim")
                    console.print(title, soft_wrap=True)
                    show_evidence(found.items)


def show_evidence(items: Sequence[StoredMemory]) -> None:
    """Show the recalled turns with dates, best first; on a terminal the later ones in short."""
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", width=5)
    for _ in ("date", "speaker", "words"):
        table.add_column(overflow="fold")
    for number, item in enumerate(items, 1):
        day = f"{item.observed_at:%Y-%m-%d}" if item.observed_at else ""
        words, style = Text(item.text), ""
        if number > FULL_LINES:
            style = "dim"
            words.truncate(max(console.width - LABEL_WIDTH, 20), overflow="ellipsis")
        speaker = item.item.attributed_to or ""
        table.add_row(f"{number}.", day, speaker, words, style=style)
        if not console.is_terminal:
            console.print(
                f"{number:>4}. {day} {speaker}: {item.text}", markup=False, soft_wrap=True
            )
    if console.is_terminal:
        console.print(table)


def read_questions(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each person's questions."""
    for line in path.read_text("utf-8").splitlines():
        if line.strip():
            for user, asked in json.loads(line).items():
                yield user.strip(), asked


def heading(number: str, title: str) -> None:
    """Show the title of a part."""
    console.print(f"\n{number}. {title}", style="bold magenta")


def run(*command: str) -> None:
    """Run a command to its end."""
    subprocess.run(command, check=True)  # noqa: S603 - our own command


if __name__ == "__main__":
    sys.exit(main())
