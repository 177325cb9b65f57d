"""Run all of it at length: `python -m tests.survival` or `make survival`; status 1 is a failure.

Each part prints one line. The mutants are broken on purpose: a part that does not notice its
mutant fails, for then its silence about the store means nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.survival import contention, fsyncs, kills, machine

_MUTANT_KILLS = 10


def survive_kills(count: int, seed: int) -> bool:
    """Kill writers and their mutant."""
    outcome = kills.run(count, seed, progress=lambda done: _progress("kills", done))
    mutant = kills.run(_MUTANT_KILLS, seed, "early")
    _say(
        f"{outcome.kills} kills, {outcome.acknowledged} acknowledged operations, "
        f"{len(outcome.problems)} lost or wrong; acknowledging before the commit: "
        f"{len(mutant.problems)} lost in {mutant.kills} kills",
        outcome.problems,
    )
    return not outcome.problems and bool(mutant.problems)


def survive_a_crowd(seconds: float) -> bool:
    """Let several processes work on one file."""
    report = contention.run(seconds, progress=lambda passed: _progress("seconds", passed))
    _say(
        f"{contention.PROCESSES} processes x {contention.THREADS} threads for {seconds:g} s: "
        f"{report.writes} writes, {report.reads} checked reads, {report.increments} increments "
        f"of one counter, {len(report.problems)} lost, stale or locked",
        report.problems,
    )
    return not report.problems


def survive_power_loss() -> bool:
    """Count what a put forces to the disk, and what the mutants do."""
    if fsyncs.strace() is None:
        _say("syncs were not counted: strace is not installed", [])
        return True
    with tempfile.TemporaryDirectory() as folder:
        ours, *mutants = (
            fsyncs.syncs_per_put(Path(folder) / f"syncs{number}.sqlite", mutant)
            for number, mutant in enumerate(("", *fsyncs.MUTANTS))
        )
    _say(f"{ours:.2f} syncs a put; with synchronous off or normal: {mutants}", [])
    return ours >= 1 and all(mutant < 1 for mutant in mutants)


def survive_anything(examples: int, steps: int) -> bool:
    """Compare random sequences of operations with a plain model."""
    for kind in machine.MACHINES:
        started = time.monotonic()
        machine.run(kind, examples, steps)
        took = time.monotonic() - started
        _say(f"{kind.__name__}: {examples} sequences of up to {steps} steps, {took:.0f} s", [])
    return True


def main() -> int:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60, help="of contention")
    parser.add_argument("--examples", type=int, default=500, help="of random sequences")
    parser.add_argument("--steps", type=int, default=60, help="of a random sequence")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    _say(f"seed {args.seed}", [])
    survived = [
        survive_kills(args.kills, args.seed),
        survive_a_crowd(args.seconds),
        survive_power_loss(),
        survive_anything(args.examples, args.steps),
    ]
    return 0 if all(survived) else 1


def _say(line: str, problems: list[str]) -> None:
    sys.stdout.write("\n".join([line, *(f"  {problem}" for problem in problems[:20])]) + "\n")
    sys.stdout.flush()


def _progress(what: str, done: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done} {what} ")


if __name__ == "__main__":
    sys.exit(main())
