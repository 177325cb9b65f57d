"""Measure what the write path costs, beside LangMem's store manager on the same store.

    python benchmarks/write_path.py [--items 200] [--repeat 60] [--limit]

Each way remembers one exchange of two messages with one new fact, with a scripted model that
answers at once. All are measured in one run, in turns, on one `FaissSqliteStore` with the default
embeddings and `--items` memories in the scope; a new conversation has a new fact, so every round
writes. Shown are the medians of CPU and wall time, and their ratios to LangMem's store manager.

`--limit` fails if the like-for-like `LangMem` needs more than a quarter of the manager.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final

import langmem  # type: ignore[import-untyped]  # published without annotations
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import PutOp

from langchain_agentmem import FaissSqliteStore, RAGMemory
from langchain_agentmem.memories import AMem, LangMem, Mem0
from langchain_agentmem.steps.facts import key_of
from langchain_agentmem.testing import ScriptedChatModel

Call = Callable[[int], object]

HOST: Final = "LangMem store manager"
LIKE: Final = "LangMem"
SHARE: Final = 0.25
WARM_UP: Final = 5
TEMPLATE: Final = ("memories", "{user_id}")


def of(user: str) -> RunnableConfig:
    """Return a user's config."""
    return {"configurable": {"user_id": user, "thread_id": "t"}}


def said(number: int) -> list[BaseMessage]:
    """Return one exchange."""
    return [
        HumanMessage(f"By the way, I collect things of kind {number}.", id=f"u{number}"),
        AIMessage("How interesting!", id=f"a{number}"),
    ]


def model_of(*replies: Any) -> ScriptedChatModel:  # noqa: ANN401 - what a scripted model takes
    """Return a model that gives these replies in turn, each with a number that is new."""
    numbers = count()

    def answer(_: list[BaseMessage]) -> Any:  # noqa: ANN401 - what a scripted model takes
        number = next(numbers)
        reply = replies[number % len(replies)]
        return reply(number) if callable(reply) else reply

    return ScriptedChatModel(replies=answer)


def fact(number: int) -> str:
    """Return the fact of an exchange."""
    return f"Ann collects things of kind {number}."


def trustcall_reply(number: int) -> AIMessage:
    """Return an insertion as LangMem's extractor reads it."""
    args = {"content": fact(number)}
    return AIMessage("", tool_calls=[{"name": "Memory", "args": args, "id": f"c{number}"}])


def ways(store: FaissSqliteStore) -> dict[str, Call]:
    """Return every way to remember an exchange, by name."""
    manager = langmem.create_memory_store_manager(
        model_of(trustcall_reply), namespace=TEMPLATE, store=store
    )
    like = LangMem(
        model=model_of(lambda n: {"memories": [{"action": "create", "content": fact(n)}]}),
        store=store,
    )
    mem0 = Mem0(
        model=model_of(lambda n: {"facts": [{"text": fact(n)}]}, {"operations": []}), store=store
    )
    described = {"keywords": ["kinds", "things"], "context": "Collecting.", "tags": ["hobby"]}
    amem = AMem(model=model_of(described, {"should_evolve": False}), store=store)
    rag = RAGMemory(store=store)
    return {
        HOST: lambda n: manager.invoke({"messages": said(n)}, of("host")),
        LIKE: lambda n: like.remember(said(n), config=of("like")),
        "Mem0 (2 calls)": lambda n: mem0.remember(said(n), config=of("mem0")),
        "AMem (2 notes, 4 calls)": lambda n: amem.remember(said(n), config=of("amem")),
        "RAGMemory (no call)": lambda n: rag.remember(said(n), config=of("rag")),
    }


@contextmanager
def filled(items: int) -> Iterator[FaissSqliteStore]:
    """Give a store with so many memories in each of the scopes."""
    homes = [
        ("memories", "host"),
        ("memories", "like"),
        ("memories", "mem0", "mem0", "facts"),
        ("memories", "amem", "a_mem", "notes"),
        ("memories", "rag"),
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        FaissSqliteStore(Path(folder) / "memory.sqlite", synchronous="normal") as store,
    ):
        for home in homes:
            texts = [f"Ann likes thing number {number}." for number in range(items)]
            values = ({"kind": "Memory", "content": {"content": text}} for text in texts)
            pairs = zip(texts, values, strict=True)
            store.batch([PutOp(home, key_of(home, text), value) for text, value in pairs])
        yield store


def measured(calls: dict[str, Call], repeat: int) -> dict[str, list[tuple[float, float]]]:
    """Return CPU and wall milliseconds of each way and round; the ways take turns."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for number in range(WARM_UP + repeat):
        for name, call in calls.items():
            cpu, wall = time.process_time(), time.perf_counter()
            call(number)
            took = (1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - wall))
            if number >= WARM_UP:
                spent[name].append(took)
    return spent


def main() -> int:
    """Measure and print a table; return 1 if `--limit` is given and not kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=60)
    parser.add_argument("--limit", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with filled(args.items) as store:
        spent = measured(ways(store), args.repeat)
    middle = {
        name: [median(each) for each in zip(*rows, strict=True)] for name, rows in spent.items()
    }
    print(f"{'median ms a turn':26} {'CPU':>8} {'wall':>8} {'CPU ratio':>10} {'wall ratio':>11}")
    for name, (cpu, wall) in middle.items():
        shares = cpu / middle[HOST][0], wall / middle[HOST][1]
        print(f"{name:26} {cpu:8.2f} {wall:8.2f} {shares[0]:10.2f} {shares[1]:11.2f}")
    is_kept = middle[LIKE][0] <= SHARE * middle[HOST][0]
    return 0 if is_kept or not args.limit else 1


if __name__ == "__main__":
    sys.exit(main())
