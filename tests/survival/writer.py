"""A process that puts items into a store file and acknowledges each on stdout, until it is killed.

Run as `python -m tests.survival.writer PATH START [MUTANT]`. Each line of stdout is the number of
an item whose put has returned. Mutants are broken on purpose, to show that the checks notice.
"""

from __future__ import annotations

import sys
from typing import Any

from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.testing import CharacterEmbeddings

NAMESPACE = ("survival",)
DIMS = 16


def open_file(path: str, **options: Any) -> FaissSqliteStore:  # noqa: ANN401 - passed on
    """Return the store of the survival tests on a file."""
    index: Any = {"dims": DIMS, "embed": CharacterEmbeddings(DIMS), "fields": ["text"]}
    return FaissSqliteStore(path, index=index, **options)


def acknowledge(number: int) -> None:
    """Tell the parent that an item is stored."""
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def write(path: str, start: int, mutant: str) -> None:
    """Put items from `start` on, for ever."""
    synchronous: Any = "normal" if mutant == "synchronous" else "full"
    store = open_file(path, synchronous=synchronous)
    if mutant == "off":
        store.conn.execute("PRAGMA synchronous = OFF")
    number = start
    while True:
        if mutant == "early":
            acknowledge(number)
        store.put(NAMESPACE, str(number), {"text": f"item {number}", "n": number})
        if mutant != "early":
            acknowledge(number)
        number += 1


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
