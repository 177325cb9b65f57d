"""Several processes with several threads on one file: nobody is locked out, nothing is stale."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from langgraph.store.base import PutOp

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.stores import FaissSqliteStore
from tests.survival.files import open_file, processes

PROCESSES: Final = 4
THREADS: Final = 4
_COUNTER: Final = (("contention", "shared"), "counter")
_LATEST: Final = ("contention", "latest")


@dataclass(slots=True)
class Report:
    """What a crowd did.

    Attributes:
        writes: How many writes were acknowledged.
        reads: How many reads and searches were checked.
        increments: How often the shared counter was raised.
        problems: What was lost, stale, wrong or locked, in words.
    """

    writes: int = 0
    reads: int = 0
    increments: int = 0
    problems: list[str] = field(default_factory=list)


class _Worker:
    """One thread: it writes its own items and a shared counter, and reads everybody's latest.

    Args:
        store: The store of its process.
        slot: Its number among all threads.
        board: The last acknowledged number of every thread, in memory all processes share.
    """

    def __init__(self, store: FaissSqliteStore, slot: int, board: Any) -> None:  # noqa: ANN401 - a shared array
        self.report = Report()
        self.kept: set[str] = set()
        self._store = store
        self._slot = slot
        self._board = board
        self._mine = ("contention", "items", str(slot))
        self._rng = random.Random(slot)  # noqa: S311 - which operation comes next
        self._number = 0

    def run(self, deadline: float) -> None:
        """Work until the time is over; an error is a problem and ends it."""
        steps = [self._put, self._delete, self._announce, self._look, self._search, self._count]
        try:
            while time.monotonic() < deadline:
                self._rng.choices(steps, [30, 8, 20, 20, 12, 10])[0]()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            self.report.problems.append(f"thread {self._slot}: {error!r}")

    def _put(self) -> None:
        self._number += 1
        key = f"{self._slot}x{self._number}"
        self._store.put(self._mine, key, {"text": f"item{key}", "n": self._number})
        self.kept.add(key)
        self.report.writes += 1

    def _delete(self) -> None:
        if self.kept:
            key = self.kept.pop()
            self._store.delete(self._mine, key)
            self.report.writes += 1
            self._check(self._store.get(self._mine, key) is None, f"{key} came back")

    def _announce(self) -> None:
        """Put a new latest item, and tell everybody only once the store has returned."""
        self._number += 1
        value = {"text": f"latest{self._slot}", "n": self._number}
        self._store.put(_LATEST, str(self._slot), value)
        self._board[self._slot] = self._number
        self.report.writes += 1

    def _look(self) -> None:
        """Read another thread's latest item: it must be as new as the board has said."""
        other = self._rng.randrange(len(self._board))
        known = self._board[other]
        if known:
            item = self._store.get(_LATEST, str(other))
            self._check(item is not None and item.value["n"] >= known, f"latest {other} is stale")

    def _search(self) -> None:
        """Find another thread's latest item by words or vectors, as new as the board has said."""
        other = self._rng.randrange(len(self._board))
        known = self._board[other]
        if known:
            mode: Any = self._rng.choice(["lexical", "hybrid"])
            hits = self._store.search(_LATEST, query=f"latest{other}", mode=mode, limit=1)
            fresh = [hit.key for hit in hits] == [str(other)] and hits[0].value["n"] >= known
            self._check(fresh, f"a {mode} search for latest {other} finds {hits}")

    def _count(self) -> None:
        """Raise the shared counter, again if somebody else was quicker."""
        while True:
            item = self._store.get(*_COUNTER)
            version = None if item is None else int(item.value["version"])
            op = PutOp(*_COUNTER, {"version": (version or 0) + 1})
            try:
                self._store.batch([op], expect={_COUNTER: version})
            except ConflictError:
                continue
            self.report.increments += 1
            self.report.writes += 1
            return

    def _check(self, holds: bool, problem: str) -> None:
        self.report.reads += 1
        if not holds:
            self.report.problems.append(problem)


def work(path: str, process: int, board: Any, seconds: float, results: Any) -> None:  # noqa: ANN401 - shared objects
    """Run the threads of one process and hand in what they did."""
    with open_file(path) as store:
        workers = [_Worker(store, process * THREADS + n, board) for n in range(THREADS)]
        deadline = time.monotonic() + seconds
        threads = [threading.Thread(target=worker.run, args=(deadline,)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for worker in workers:
        report = worker.report
        results.put(
            (report.writes, report.reads, report.increments, report.problems, sorted(worker.kept))
        )


def run(seconds: float, progress: Callable[[int], None] | None = None) -> Report:
    """Let four processes of four threads work on one new file.

    Args:
        seconds: How long.
        progress: Called with the number of seconds passed.
    """
    context = processes()
    total, kept = Report(), set[str]()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "crowd.sqlite")
        board = context.Array("q", PROCESSES * THREADS)
        results = context.Queue()
        crowd = [
            context.Process(target=work, args=(path, number, board, seconds, results))
            for number in range(PROCESSES)
        ]
        for process in crowd:
            process.start()
        for passed in range(int(seconds) if progress is not None else 0):
            time.sleep(1)
            if progress is not None:
                progress(passed + 1)
        for _ in range(PROCESSES * THREADS):
            writes, reads, increments, problems, keys = results.get(timeout=seconds + 60)
            total.writes += writes
            total.reads += reads
            total.increments += increments
            total.problems += problems
            kept.update(keys)
        for process in crowd:
            process.join()
        total.problems += _final(path, kept, total.increments)
    return total


def _final(path: str, kept: set[str], increments: int) -> list[str]:
    """Compare what is left with what was acknowledged."""
    with open_file(path) as store:
        items = {item.key for item in store.search(("contention", "items"), limit=10_000_000)}
        counter = store.get(*_COUNTER)
        problems = [f"lost: {key}" for key in sorted(kept - items)]
        problems += [f"came back: {key}" for key in sorted(items - kept)]
        if counter is None or counter.value["version"] != increments:
            problems.append(f"{increments} increments made {counter and counter.value}")
        if store.conn.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            problems.append("the file is not sound")
    return problems
