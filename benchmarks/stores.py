"""How fast stores are, as ratios within one run, with the recall of their search beside it.

    python benchmarks/stores.py [SIZE ...] [--only NAME ...] [--report PAGE]

Every store gets the same items, the same random unit vectors made beforehand, and the same queries;
the calls of all stores take turns, so that what else the machine does hits all of them alike.
Recall is measured against exact search. Absolute times depend on the machine; the ratios count.
With a million items there are 10,000 users, and only ours is measured.
Stores whose packages are missing, or that are hopeless at a size, are left out with the reason.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import statistics
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import faiss
from store_data import Data, make_data
from store_report import write_report
from store_subjects import LARGEST, SUBJECTS, FlatScan, K, LangGraph, Ours, Subject, our_index

from langchain_agentmem.stores import FaissSqliteStore

KINDS: Final = ("plain", "group", "user", "tag")
HYBRID: Final = ("hybrid", "hybrid user")
CPU_ROWS: Final = 7
CPU_CALLS: Final = 15
SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
ROUNDS: Final = {1_000: 20, 10_000: 12, 100_000: 8}
FEWEST_ROUNDS: Final = 6
OURS: Final = "FaissSqliteStore"
QUICK_MS: Final = 20
ROW: Final = 5
PATIENCE_S: Final = 6
"""Longer than this no store's calls of one kind are repeated."""
LARGE: Final = 1_000_000
THREADS: Final = 8
TASKS: Final = 64
MIXED_S: Final = 3.0


@dataclass
class Row:
    """What one store took at one size.

    Attributes:
        size: How many items there were.
        store: The store's name.
        medians: Milliseconds by call; `fill` is for one item.
        ratios: How many times as long as ours a call took, the median over turns.
        recall: Share of the exact nearest items that the searches returned, by kind.
        cpu: Milliseconds of processor time by call, for ours and the flat scan; `fill` is for one
            item, for every store, as far as it works in this process.
        more: Other figures by name.
    """

    size: int
    store: str
    medians: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    recall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    more: dict[str, float] = field(default_factory=dict)


def measure(size: int, options: argparse.Namespace) -> list[Row]:
    """Fill every store with `size` items and let their calls take turns."""
    users = 10_000 if size >= LARGE else 100
    rounds = max(2, options.rounds or ROUNDS.get(size, FEWEST_ROUNDS))
    data = make_data(size, users, options.dims, max(ROW * rounds, CPU_CALLS))
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        subjects: dict[str, Any] = {}
        rows: dict[str, Row] = {}
        for name, make in SUBJECTS.items():
            if name not in options.only or size > LARGEST.get(name, size):
                continue
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            try:
                subjects[name] = stack.enter_context(make(folder, data))
            except ImportError as err:
                print(f"{name} is left out: {err}")
                continue
            rows[name] = Row(size, name)
            _fill(subjects[name], data, rows[name])
            if name == OURS:
                subjects[name].store.checkpoint()
                _measure_file(folder / "ours.sqlite", data, rows[name])
        for name in (OURS, "flat scan"):
            rows[name].cpu |= _processor_times(subjects[name], data)
        _take_turns(subjects, rows, data, rounds)
        if options.mixed and size < LARGE:
            _measure_mixed(subjects, rows, data)
    return list(rows.values())


def _fill(subject: Subject, data: Data, row: Row) -> None:
    """Fill a store; the time of the embedder, which only looks vectors up, is left out."""
    embedding, before = data.model.seconds, time.process_time()
    took = _timed(subject.fill) - 1000 * (data.model.seconds - embedding)
    processor = time.process_time() - before - (data.model.seconds - embedding)
    row.medians["fill"] = took / data.size
    row.cpu["fill"] = 1000 * processor / data.size
    print(f"{row.store:22} filled with {data.size:,} items in {took / 1000:.1f} s", flush=True)


def _quiet() -> ExitStack:
    """Keep the garbage collector away from the data, which no user's program would hold."""
    stack = ExitStack()
    gc.collect()
    gc.freeze()
    stack.callback(gc.unfreeze)
    return stack


def _timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - started)


def _processor_times(subject: Subject, data: Data) -> dict[str, float]:
    """Return the least processor time of each kind of search, without that of the embedder."""
    times: dict[str, float] = {}
    for kind in (*KINDS, *HYBRID):
        if _can(subject, kind):
            subject.search(kind, 0)
            rows: list[float] = []
            calls = CPU_CALLS if _timed(lambda kind=kind: subject.search(kind, 0)) < QUICK_MS else 1
            while len(rows) < CPU_ROWS and sum(rows) * calls < 1000 * PATIENCE_S:
                started = time.process_time() - data.model.seconds
                for n in range(calls):
                    subject.search(kind, n)
                took = time.process_time() - data.model.seconds - started
                rows.append(1000 * took / calls)
            times[kind] = min(rows)
    return times


def _measure_file(path: Path, data: Data, row: Row) -> None:
    """Measure the file, and a second store that opens it."""
    row.more["disk B / item"] = path.stat().st_size / data.size
    before = _resident()
    second = FaissSqliteStore(path, index=our_index(data))
    row.more["open ms"] = _timed(second.setup)
    query = data.queries[0]
    row.more["first scoped search ms"] = _timed(
        lambda: second.search(data.namespace(0), query=query)
    )
    row.more["held MB after one scope"] = (_resident() - before) / 1e6
    second.close()


def _resident() -> float:
    return 4096 * int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])


def _take_turns(
    subjects: dict[str, Subject], rows: dict[str, Row], data: Data, rounds: int
) -> None:
    calls: dict[str, Callable[[Subject, int], Any]] = {}
    for kind in (*KINDS, *HYBRID):
        calls[kind] = lambda subject, n, kind=kind: subject.search(kind, n)
    calls["put"] = lambda subject, n: subject.put(data.size + n)
    calls["put again"] = lambda subject, n: subject.put(n)
    for name, call in calls.items():
        able = {store: subject for store, subject in subjects.items() if _can(subject, name)}
        times = _turns(able, call, rounds)
        for store, taken in times.items():
            rows[store].medians[name] = statistics.median(taken)
            ratios = [other / ours for other, ours in zip(taken, times[OURS], strict=False)]
            rows[store].ratios[name] = statistics.median(ratios)
        for store, subject in able.items() if name in KINDS else ():
            rows[store].recall[name] = _recall(subject, data, name, len(times[store]))


def _can(subject: Subject, call: str) -> bool:
    """Tell whether a store has a call; a vector store that has a document may refuse it."""
    if isinstance(subject, FlatScan):
        return call == "plain"
    if call == "put again":
        return isinstance(subject, LangGraph)
    return isinstance(subject, Ours) or not call.startswith("hybrid")


def _turns(
    subjects: dict[str, Subject], call: Callable[[Subject, int], Any], rounds: int
) -> dict[str, list[float]]:
    """Return milliseconds of each store's calls by turn; the first turn is not counted."""
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for n in range(rounds):
        for name, subject in subjects.items():
            taken = times[name]
            if len(taken) < 3 or sum(taken) < 1000 * PATIENCE_S:
                # Several calls in a row, for a store in use does not find its caches cold.
                quick = taken and taken[-1] < QUICK_MS
                turn = range(ROW * n, ROW * n + (ROW if quick else 1))
                taken.append(
                    statistics.median([_timed(lambda s=subject, i=i: call(s, i)) for i in turn])
                )
    return {name: taken[1:] for name, taken in times.items()}


def _recall(subject: Subject, data: Data, kind: str, count: int) -> float:
    wanted = [data.nearest(kind, n, K) for n in range(min(count, 10))]
    found = [set(subject.search(kind, n)) for n in range(len(wanted))]
    hits = sum(len(one & other) for one, other in zip(wanted, found, strict=True))
    return hits / sum(map(len, wanted))


def _measure_mixed(subjects: dict[str, Subject], rows: dict[str, Row], data: Data) -> None:
    """Count operations a second of many threads and tasks: 80 % scoped searches, 20 % puts."""
    for name, subject in subjects.items():
        store = getattr(subject, "store", None)
        if name in (OURS, "SqliteStore", "InMemoryStore"):
            rows[name].more[f"{THREADS} threads, ops/s"] = _threads(subject, data)
        if name == OURS:
            rows[name].more[f"{TASKS} tasks, ops/s"] = asyncio.run(_tasks(store, data))


def _threads(subject: Subject, data: Data) -> float:
    done = [0] * THREADS
    end = time.perf_counter() + MIXED_S

    def work(number: int) -> None:
        rng = random.Random(number)
        while time.perf_counter() < end:
            n = rng.randrange(len(data.queries))
            if rng.random() < 0.2:
                subject.put(n)
            else:
                subject.search("user", n)
            done[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / MIXED_S


async def _tasks(store: Any, data: Data) -> float:  # noqa: ANN401 - any store
    done = [0] * TASKS
    end = time.perf_counter() + MIXED_S

    async def work(number: int) -> None:
        rng = random.Random(number)
        while time.perf_counter() < end:
            n = rng.randrange(len(data.queries))
            if rng.random() < 0.2:
                await store.aput(data.namespace(n), str(n), {"text": data.texts[n], "tag": n % 100})
            else:
                await store.asearch(data.namespace(n), query=data.queries[n])
            done[number] += 1

    await asyncio.gather(*(work(number) for number in range(TASKS)))
    return sum(done) / MIXED_S


def show(rows: list[Row]) -> None:
    """Print one table: the time of each call, its ratio to ours, and the recall."""
    print(f"\n{rows[0].size:,} items: median ms (times ours; recall@{K})")
    for row in rows:
        print(row.store)
        for call, value in row.medians.items():
            ratio = f"{row.ratios[call]:9.2f}x" if call in row.ratios else ""
            recall = f"  recall {row.recall[call]:.2f}" if call in row.recall else ""
            print(f"    {call:12}{value:12.4f}{ratio}{recall}")
        for call, value in row.cpu.items():
            print(f"    {call:12}{value:12.4f} ms of processor time")
        for name, value in row.more.items():
            print(f"    {name:26}{value:12.2f}")


def main() -> None:
    """Run the measurement that the command line asks for."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("sizes", type=int, nargs="*", help="1000 to 1000000 by default")
    parser.add_argument("--dims", type=int, default=384)
    parser.add_argument("--rounds", type=int, help="turns, 2 or more; fewer for more items")
    parser.add_argument("--only", nargs="+", choices=sorted(SUBJECTS), default=[*SUBJECTS])
    parser.add_argument("--no-mixed", dest="mixed", action="store_false", help="no threads, tasks")
    parser.add_argument("--results", type=Path, default=Path("build/bench_stores.json"))
    parser.add_argument("--report", type=Path, help="a page whose tables and plot are made anew")
    options = parser.parse_args()
    options.only = {OURS, "flat scan", *options.only}
    warnings.simplefilter("ignore")
    faiss.omp_set_num_threads(1)
    known = json.loads(options.results.read_text()) if options.results.exists() else []
    for size in options.sizes or SIZES:
        rows = measure(size, options)
        show(rows)
        known = [row for row in known if row["size"] != size] + [asdict(row) for row in rows]
        options.results.parent.mkdir(parents=True, exist_ok=True)
        options.results.write_text(json.dumps(known, indent=1))
    if options.report:
        write_report(options.report, sorted(known, key=lambda row: row["size"]))


if __name__ == "__main__":
    main()
