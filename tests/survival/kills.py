"""Kill a writing process at random moments and see what is left."""

from __future__ import annotations

import random
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langchain_agentmem.stores import FaissSqliteStore
from tests.survival.files import open_file, processes
from tests.survival.ledger import Ledger, States
from tests.survival.writer import ROOT, value, word, write

_KILLS_A_FILE: Final = 25
_LONGEST_S: Final = 0.4
_SAMPLE: Final = 10


@dataclass(slots=True)
class Outcome:
    """What kills have left.

    Attributes:
        kills: How many there were.
        acknowledged: How many operations had been acknowledged.
        problems: What was lost or wrong, in words.
    """

    kills: int
    acknowledged: int
    problems: list[str]


def run(
    kills: int, seed: int, mutant: str = "", progress: Callable[[int], None] | None = None
) -> Outcome:
    """Kill writers at random moments, each file's again and again while it grows.

    Args:
        kills: How many.
        seed: Chooses the moments.
        mutant: See `tests.survival.writer.Worker`.
        progress: Called with the number of kills done.
    """
    rng = random.Random(seed)  # noqa: S311 - moments to kill at
    outcome = Outcome(kills, 0, [])
    with tempfile.TemporaryDirectory() as folder:
        for number in range(kills):
            if number % _KILLS_A_FILE == 0:
                path, ledger = Path(folder) / f"{number}.sqlite", Ledger()
            said = kill_a_writer(path, number, _LONGEST_S * rng.random(), mutant)
            acknowledged = ledger.read(said)
            if not acknowledged and not ledger.open:
                outcome.problems.append(f"writer {number} did not start")
            outcome.acknowledged += acknowledged
            outcome.problems += examine(path, ledger, rng)
            if progress is not None:
                progress(number + 1)
    return outcome


def kill_a_writer(path: Path, generation: int, delay_s: float, mutant: str = "") -> str:
    """Start a writer, kill it a while after its first word, and return all it said."""
    context = processes()
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=write, args=(str(path), sender, generation, mutant))
    process.start()
    sender.close()
    said: list[bytes] = []
    spoke = threading.Event()
    listener = threading.Thread(target=_listen, args=(receiver.fileno(), said, spoke))
    listener.start()
    try:
        spoke.wait(60)
        time.sleep(delay_s)
        process.kill()
    finally:
        listener.join()
        process.join()
        receiver.close()
    return b"".join(said).decode()


def _listen(descriptor: int, said: list[bytes], spoke: threading.Event) -> None:
    """Read until the last writer has closed its end."""
    with open(descriptor, "rb", buffering=0, closefd=False) as stream:
        while part := stream.read(65536):
            said.append(part)
            spoke.set()
    spoke.set()


def examine(path: Path, ledger: Ledger, rng: random.Random) -> list[str]:
    """Open what a killed writer has left; returns what is wrong with it."""
    with closing(sqlite3.connect(path)) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
    problems = [] if verdict == "ok" else [f"integrity: {verdict}"]
    with open_file(str(path)) as store:
        store.conn.execute("INSERT INTO words(words) VALUES ('integrity-check')")
        items = store.search((ROOT,), limit=1_000_000)
        problems += [f"wrong: {i}" for i in items if i.value != value(i.key, i.value["v"])]
        found: States = {item.key: item.value["v"] for item in items}
        known = [*found, *ledger.done]
        problems += ledger.settle(found)
        problems += _searched(store, found, rng.sample(known, min(len(known), _SAMPLE)))
        problems += _indexed(store, len(found))
    return [f"{path.name}: {problem}" for problem in problems]


def _searched(store: FaissSqliteStore, found: States, sample: list[str]) -> Iterator[str]:
    """Yield what words and vectors find otherwise than they should."""
    for key in sample:
        wanted = [key] if key in found else []
        hits = store.lexical_search((ROOT,), word(key))
        if [hit.key for hit in hits] != wanted:
            yield f"the word of {key} finds {[hit.key for hit in hits]}"
        if key in found:
            text: Any = value(key, found[key])["text"]
            (best,) = store.search((ROOT,), query=text, mode="dense", filter={"id": key})
            if best.score is None or best.score < 0.999:
                yield f"the vector of {key} is another text's: {best.score}"


def _indexed(store: FaissSqliteStore, items: int) -> Iterator[str]:
    """Yield a word if vectors and words are not those of the items."""
    for table in ("units", "words"):
        (count,) = store.conn.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - fixed names
        if count != items:
            yield f"{count} rows in {table} for {items} items"
