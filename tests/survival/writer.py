"""A process whose threads write into a store file and say so, until it is killed.

Each line goes to a pipe in one atomic write. `+ OP ID=VERSION ...` announces what an atomic
operation is about to do, version 0 being an erasure; `- OP` says that the store has returned.
"""

from __future__ import annotations

import os
import random
import threading
from typing import TYPE_CHECKING, Any, Final

from langgraph.store.base import PutOp

from tests.survival.files import open_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain_agentmem.stores import FaissSqliteStore

ROOT: Final = "survival"
THREADS: Final = 4
_BUCKET_SIZE: Final = 8


def place(identity: str) -> tuple[str, ...]:
    """Return the namespace of an item: its thread's, and below it its bucket's."""
    generation, thread, bucket, _ = identity.split(".")
    return ROOT, thread, f"{generation}-{bucket}"


def word(identity: str) -> str:
    """Return a word that only this item has."""
    return f"word{identity.replace('.', 'x')}"


def value(identity: str, version: int) -> dict[str, Any]:
    """Return what a version of an item holds."""
    return {"text": f"{word(identity)} version{version}", "id": identity, "v": version}


class Worker:
    """One writing thread; items are its own, so that what it has done decides what is there.

    Args:
        store: The store all threads of the process share.
        name: Generation and thread, joined by a dot.
        say: Writes a line to the pipe.
        mutant: `"early"` acknowledges before the store has returned.
    """

    def __init__(
        self, store: FaissSqliteStore, name: str, say: Callable[[str], None], mutant: str
    ) -> None:
        self._store = store
        self._name = name
        self._say = say
        self._mutant = mutant
        self._rng = random.Random(name)  # noqa: S311 - a reproducible sequence of operations
        self._live: dict[str, int] = {}
        self._operations = self._items = 0

    def run(self) -> None:
        """Work for ever."""
        steps = [self._add, self._rewrite, self._delete, self._forget, self._checkpoint, self._read]
        while True:
            self._rng.choices(steps, [50, 25, 10, 4, 4, 7])[0]()

    def _do(self, changes: Mapping[str, int], work: Callable[[], object]) -> None:
        """Announce an atomic operation, do it and acknowledge it."""
        self._operations += 1
        operation = f"{self._name}.{self._operations}"
        self._say(f"+ {operation} " + " ".join(f"{k}={v}" for k, v in changes.items()))
        if self._mutant == "early":
            self._say(f"- {operation}")
        work()
        if self._mutant != "early":
            self._say(f"- {operation}")
        self._live.update(changes)
        for identity in [key for key, version in changes.items() if not version]:
            del self._live[identity]

    def _put(self, changes: Mapping[str, int]) -> None:
        ops = [
            PutOp(place(key), key, value(key, version) if version else None)
            for key, version in changes.items()
        ]
        self._do(changes, lambda: self._store.batch(ops))

    def _some(self) -> list[str]:
        return self._rng.sample(list(self._live), min(len(self._live), self._rng.randint(1, 3)))

    def _add(self) -> None:
        names = range(self._items, self._items + self._rng.randint(1, 3))
        self._items = names.stop
        self._put({f"{self._name}.{n // _BUCKET_SIZE}.{n % _BUCKET_SIZE}": 1 for n in names})

    def _rewrite(self) -> None:
        self._put({key: self._live[key] + 1 for key in self._some()})

    def _delete(self) -> None:
        self._put(dict.fromkeys(self._some(), 0))

    def _forget(self) -> None:
        """Erase a whole bucket, at times to the last byte."""
        if self._live:
            where = place(self._rng.choice(list(self._live)))
            gone = {key: 0 for key in self._live if place(key) == where}
            vacuum = self._rng.random() < 0.2
            self._do(gone, lambda: self._store.delete_namespace(where, vacuum=vacuum))

    def _checkpoint(self) -> None:
        self._store.checkpoint()

    def _read(self) -> None:
        """Search, so that the index in memory follows what all threads write."""
        for identity in self._some():
            found = self._store.search((ROOT,), query=word(identity), mode="hybrid", limit=1)
            if [(item.key, item.value["v"]) for item in found] != [
                (identity, self._live[identity])
            ]:
                self._say(f"! {identity} version {self._live[identity]} was not found: {found}")


def write(path: str, pipe: Any, generation: int, mutant: str = "") -> None:  # noqa: ANN401 - a Connection
    """Write with several threads at once, for ever."""
    store = open_file(path, busy_timeout_s=120)
    store.conn.execute("PRAGMA wal_autocheckpoint = 20")
    store.conn.execute("INSERT INTO words(words, rank) VALUES ('automerge', 2)")
    store.conn.execute("INSERT INTO words(words, rank) VALUES ('crisismerge', 3)")

    def say(line: str) -> None:
        os.write(pipe.fileno(), f"{line}\n".encode())

    for number in range(THREADS):
        worker = Worker(store, f"{generation}.{number}", say, mutant)
        threading.Thread(target=worker.run).start()
