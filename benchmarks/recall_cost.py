"""What a recall costs in processor time, by how many turns one user has said.

Run by hand: `python benchmarks/recall_cost.py DATA_FOLDER [SIZE ...]`. The turns are those of
LoCoMo, repeated under other names until there are enough; every question is asked through
`RAGMemory` as a user has it, on a file. *first* is the mean over the questions, each asked once, of
a process that was asked nothing about these turns before; *again* that of asking all once more;
the other columns are the mean of each question's quickest time of `--repeat`, since what else the
machine does only adds to it.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

from langchain_agentmem import FaissSqliteStore, RAGMemory
from langchain_agentmem.embeddings import WordLlamaEmbeddings
from langchain_agentmem.evaluation.data import Question, Turn
from langchain_agentmem.evaluation.datasets import load

CONFIG: Final[Any] = {"configurable": {"user_id": "ann", "thread_id": "t"}}
QUESTIONS: Final = 100


def conversation(data: Path, size: int) -> tuple[list[Turn], list[Question]]:
    """Return so many turns, and questions about them."""
    scopes = list(load("locomo", data).scopes)
    turns = (
        replace(turn, key=f"{name}{turn.key}", session=f"{name}{turn.session}")
        for again in count()
        for scope in scopes
        for name in (f"{again}-{scope.name}-",)
        for turn in scope.turns
    )
    asked = [question for scope in scopes for question in scope.questions[: QUESTIONS // 5]]
    return list(islice(turns, size)), asked


def quickest(call: Callable[[], object], repeat: int) -> float:
    """Return the least processor time of a call, in milliseconds."""
    times = []
    for _ in range(repeat):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return 1e3 * min(times)


def measure(data: Path, size: int, repeat: int) -> list[float]:
    """Return milliseconds: of a first recall, one again, the quickest, its parts."""
    turns, questions = conversation(data, size)
    embed = WordLlamaEmbeddings()
    with tempfile.TemporaryDirectory() as folder, FaissSqliteStore(f"{folder}/m.sqlite") as store:
        memory = RAGMemory(store=store)
        memory.remember([turn.message("m") for turn in turns], config=CONFIG)
        home = ("memories", "ann", "rag", "turns")
        texts = [question.text for question in questions]
        calls: Sequence[Callable[[str], object]] = (
            lambda text: memory.recall(text, config=CONFIG),
            lambda text: (embed.embed_query(text), embed.embed_query(text)),
            lambda text: store.search(home, query=text, limit=10),
        )
        memory.recall("Good morning!", config=CONFIG)
        plan = [(calls[0], 1), (calls[0], 1), *((call, repeat) for call in calls)]
        return [
            sum(quickest(partial(call, text), times) for text in texts) / len(texts)
            for call, times in plan
        ]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with locomo/")
    parser.add_argument("sizes", type=int, nargs="*", help="600 6000 by default")
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    print("   turns    first    again quickest   of it embedding   a bare search of 10, ms")
    for size in options.sizes or (600, 6_000):
        first, again, least, embedding, search = measure(options.data, size, options.repeat)
        print(f"{size:8,} {first:8.2f} {again:8.2f} {least:8.2f} {embedding:17.2f} {search:25.2f}")


if __name__ == "__main__":
    main()
