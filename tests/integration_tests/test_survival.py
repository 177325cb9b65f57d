"""A store survives what ends its writers: SIGKILL at random moments, with threads at work.

`AGENTMEM_KILLS` sets how many writers are killed (20 by default, 500 for a long run):

    AGENTMEM_KILLS=500 python -m pytest --timeout 3600 tests/integration_tests/test_survival.py
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from langchain_agentmem.stores import FaissSqliteStore

KILLS = int(os.environ.get("AGENTMEM_KILLS", "20"))
ROUNDS = 4  # each on a file of its own, killed again and again while it grows
INDEX = {"fields": ["text"]}

# Each thread writes an item, at times rewrites or deletes an older one of its own, and says so
# in one atomic write to the pipe only after the store has returned.
WRITER = """
import os, random, sys, threading
from langchain_agentmem.stores import FaissSqliteStore

path, generation, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = FaissSqliteStore(path, index={"fields": ["text"]})
store.setup()

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def write(thread):
    rng = random.Random(seed * 10 + thread)
    for n in range(1_000_000):
        key = f"{generation}-{thread}-{n}"
        say("try", key, 1)
        store.put(("w", str(thread)), key, {"text": f"item {thread} word{generation}x{thread}x{n}"})
        say("put", key, 1)
        if n and rng.random() < 0.3:
            old = f"{generation}-{thread}-{rng.randrange(n)}"
            say("try", old, 2)
            store.put(("w", str(thread)), old, {"text": f"rewritten {old.replace('-', 'x')}"})
            say("put", old, 2)
        if n and rng.random() < 0.1:
            old = f"{generation}-{thread}-{rng.randrange(n)}"
            say("try", old, 0)
            store.delete(("w", str(thread)), old)
            say("put", old, 0)

for thread in range(4):
    threading.Thread(target=write, args=(thread,)).start()
"""


class Ledger:
    """What writers have announced and what they have been told is done, by key.

    Attributes:
        done: The last acknowledged state of each key: 1 written, 2 rewritten, 0 deleted.
        open: The state of each key that was begun and not acknowledged: it may be there or not.
    """

    def __init__(self) -> None:
        self.done: dict[str, int] = {}
        self.open: dict[str, int] = {}

    def read(self, output: str) -> int:
        """Take in what a writer said before it died; returns how many writes it was sure of."""
        lines = output.splitlines(keepends=True)
        words = [line.split() for line in lines if line.endswith("\n")]
        for what, key, state in words:
            if what == "try":
                self.open[key] = int(state)
            else:
                self.done[key] = int(state)
                del self.open[key]
        return sum(what == "put" for what, _, _ in words)

    def settle(self, found: dict[str, int]) -> None:
        """Compare with what a file holds; what was open counts as it was found from then on."""
        for key in {*self.done, *self.open, *found}:
            allowed = {self.done.get(key, 0), self.open.get(key, self.done.get(key, 0))}
            assert found.get(key, 0) in allowed, f"{key}: {found.get(key, 0)} is not in {allowed}"
            self.done[key] = found.get(key, 0)
        self.open.clear()


def _kill_a_writer(path: Path, generation: int, rng: random.Random) -> str:
    """Start a writer, kill it some moments after its first word, and return what it said."""
    command = [sys.executable, "-c", WRITER, str(path), str(generation), str(rng.random())[2:8]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(rng.random() * 0.4)
        os.kill(writer.pid, signal.SIGKILL)
        return first + writer.stdout.read()


def _check(path: Path, ledger: Ledger, rng: random.Random) -> None:
    """Open what a killed writer left and compare items, words and the file itself."""
    with FaissSqliteStore(path, index=INDEX) as store:  # type: ignore[arg-type]
        assert store.conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        store.conn.execute("INSERT INTO words(words) VALUES ('integrity-check')")
        items = store.search(("w",), limit=1_000_000)
        states = {
            item.key: 2 if item.value["text"].startswith("rewritten") else 1 for item in items
        }
        ledger.settle(states)
        for key in rng.sample(sorted(ledger.done), min(20, len(ledger.done))):
            plain = key.replace("-", "x")
            word = {1: f"word{plain}", 2: plain}.get(states.get(key, 0), plain)
            hits = store.lexical_search(("w",), word)
            assert [hit.key for hit in hits] == ([key] if key in states else [])


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_nothing_acknowledged_is_lost(tmp_path: Path, round_: int) -> None:
    """After each kill every acknowledged write and delete holds, and the file is sound."""
    rng = random.Random(round_)  # noqa: S311 - moments to kill at
    path, ledger, acknowledged = tmp_path / "store.db", Ledger(), 0
    for generation in range(max(1, KILLS // ROUNDS)):
        acknowledged += ledger.read(_kill_a_writer(path, generation, rng))
        _check(path, ledger, rng)
    assert acknowledged > 0
