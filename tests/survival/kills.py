"""Kill a writing process at random moments and see what is left.

Run as `python -m tests.survival.kills --rounds 200`; status 1 means that something was lost.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.survival.writer import NAMESPACE, open_file


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one round left.

    Attributes:
        acknowledged: The numbers whose put had returned.
        lost: Those of them that are not in the file.
        integrity: What SQLite says about the file; `"ok"` if it is sound.
        newest_found: Whether a query finds the last acknowledged item.
    """

    acknowledged: list[int]
    lost: list[int]
    integrity: str
    newest_found: bool

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.lost and self.integrity == "ok" and self.newest_found


def kill_once(path: Path, start: int, delay_s: float, mutant: str = "") -> Outcome:
    """Start a writer, kill it `delay_s` seconds after its first acknowledgement, and look."""
    command = [sys.executable, "-m", "tests.survival.writer", str(path), str(start), mutant]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(delay_s)
        process.kill()
        lines = (first + process.stdout.read()).split("\n")
    # The last line may have been cut off; a complete one ends with a line break.
    acknowledged = [int(line) for line in lines[:-1]]
    return examine(path, acknowledged)


def examine(path: Path, acknowledged: list[int]) -> Outcome:
    """Open a file again and compare it with what was acknowledged."""
    connection = sqlite3.connect(path)
    integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    with open_file(str(path)) as store:
        lost = [n for n in acknowledged if store.get(NAMESPACE, str(n)) is None]
        newest = acknowledged[-1]
        found = store.search(NAMESPACE, query=f"item {newest}", limit=1000, filter={"n": newest})
    return Outcome(acknowledged, lost, integrity, [item.key for item in found] == [str(newest)])


def run(rounds: int, seed: int, mutant: str = "") -> list[Outcome]:
    """Kill a writer of one file `rounds` times at random moments; returns all outcomes."""
    rng = random.Random(seed)  # noqa: S311 - moments to kill at
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        path, start = Path(folder) / "store.sqlite", 0
        for _ in range(rounds):
            outcome = kill_once(path, start, rng.uniform(0, 0.3), mutant)
            outcomes.append(outcome)
            start = outcome.acknowledged[-1] + 2
    return outcomes


def main() -> int:
    """Run as many rounds as are asked for and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    outcomes = run(args.rounds, args.seed)
    puts = sum(len(outcome.acknowledged) for outcome in outcomes)
    bad = [outcome for outcome in outcomes if not outcome.ok]
    sys.stdout.write(
        f"seed {args.seed}: {args.rounds} kills, {puts} acknowledged puts, "
        f"{sum(len(outcome.lost) for outcome in bad)} lost, {len(bad)} bad rounds\n"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
