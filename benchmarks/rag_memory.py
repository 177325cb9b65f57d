"""Evidence recall of `RAGMemory` itself, through its store, at its defaults.

Run by hand: `python benchmarks/rag_memory.py DATA_FOLDER [--dataset locomo] [--store PATH]`.
`DATA_FOLDER` holds `locomo/`, `memdaily/` and `musique/`; nothing of it is part of this project.
Turns are imported as a user would import them and asked for with `Memory.recall`; the loaders and
the measure are those of `recall.py`, which measures the ranking functions without a store.
"""

import argparse
import time
from pathlib import Path

from langchain_core.messages import HumanMessage
from recall import CUTOFFS, LOADERS, Scope, Tally, report

from langchain_agentmem import FaissSqliteStore, RAGMemory


def imported(memory: RAGMemory, scope: Scope) -> dict[str, dict[str, str]]:
    """Remember a scope's turns as one user's conversation and return its config."""
    config = {"configurable": {"user_id": scope.name, "thread_id": "conversation"}}
    memory.remember(
        [
            HumanMessage(
                turn.content,
                id=turn.key,
                name=turn.speaker,
                additional_kwargs={
                    "observed_at": turn.observed_at,
                    "session": turn.session,
                    "title": turn.title,
                },
            )
            for turn in scope.turns
        ],
        config=config,
    )
    return config


def measure(memory: RAGMemory, scopes: list[Scope], tally: Tally) -> None:
    """Import every scope and ask every question."""
    for scope in scopes:
        config = imported(memory, scope)
        for question in scope.questions:
            started = time.perf_counter()
            found = memory.recall(question.text, config=config).items
            tally.seconds += time.perf_counter() - started
            keys = [each.item.source_message_ids[0] for each in found]
            tally.add(scope.name, question, keys)


def main() -> None:
    """Run the measurement that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with locomo/, memdaily/ and musique/")
    parser.add_argument("--dataset", choices=sorted(LOADERS), action="append")
    parser.add_argument("--store", default=":memory:", help="file of the store")
    arguments = parser.parse_args()
    for name in arguments.dataset or LOADERS:
        tally = Tally(CUTOFFS[name])
        with FaissSqliteStore(arguments.store) as store:
            memory = RAGMemory(store=store, max_tokens=100_000)
            measure(memory, list(LOADERS[name](arguments.data)), tally)
        print(f"{name}: R@{CUTOFFS[name]}")
        report(name, tally)


if __name__ == "__main__":
    main()
