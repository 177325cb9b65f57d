"""How each memory's write cost, read cost and store size grow with the number of turns."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from langchain_agentmem.evaluation.data import Turn
from langchain_agentmem.evaluation.measures import percentile
from langchain_agentmem.evaluation.meter import Budget, Usage, metered
from langchain_agentmem.evaluation.simulation import (
    SimulatedChatModel,
    generated_question,
    generated_turns,
)
from langchain_agentmem.evaluation.systems import Setup, System, SystemSpec
from langchain_agentmem.evaluation.trial import (
    ScopeClock,
    nbytes_of,
    new_store,
    no_store,
    tokens_of,
)

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.runnables import RunnableConfig

    from langchain_agentmem.evaluation.meter import Meter

SIZES: Final = (100, 1000, 10_000, 100_000)
_USER: Final[RunnableConfig] = {"configurable": {"user_id": "grower", "thread_id": "long"}}
_PAIR: Final = 2
_BULK: Final = 200
_LAST: Final = 200
_QUESTIONS: Final = 20


@dataclass(slots=True, kw_only=True)
class _Growing:
    """A system whose store grows, and the stream of turns it is given."""

    spec: SystemSpec
    system: System
    stored: Callable[[], int]
    clock: ScopeClock
    meter: Meter
    turns: Iterator[Turn]
    deadline: float
    timer: Callable[[], float]
    rng: random.Random
    written: int = 0
    sample: list[Turn] = field(default_factory=list)

    def write(self, count: int, batch: int) -> tuple[int, float]:
        """Write up to `count` turns before the deadline; return how many and the seconds."""
        done, seconds = 0, 0.0
        while done < count and self.timer() < self.deadline:
            turns = list(islice(self.turns, min(batch, count - done)))
            self.clock.reach(turns[-1].observed_at)
            messages = [turn.message("grower") for turn in turns]
            started = self.timer()
            self.system.remember(messages, config=_USER)
            seconds += self.timer() - started
            done += len(turns)
            self.sample.append(turns[0])
        self.written += done
        return done, seconds

    def _metered(self, count: int, batch: int) -> tuple[tuple[int, float], Usage]:
        self.meter.take()
        return self.write(count, batch), self.meter.take()

    def grow(self, size: int) -> dict[str, Any]:
        """Write until there are `size` turns, ask, and return the figures."""
        due = size - self.written
        last = min(_LAST, due)
        (done, seconds), used = self._metered(due - last, _PAIR if self.spec.needs_model else _BULK)
        if self.timer() < self.deadline:
            (done, seconds), used = self._metered(last, _PAIR)
        reads, tokens = self._read()
        return {
            "system": self.spec.name,
            "turns": self.written,
            "write_ms": 1000 * seconds / max(done, 1),
            "write_calls": used.calls / max(done, 1),
            "write_tokens": used.tokens / max(done, 1),
            "read_p50_ms": 1000 * (percentile(reads, 50) or 0.0),
            "read_p95_ms": 1000 * (percentile(reads, 95) or 0.0),
            "read_tokens": sum(tokens) / max(len(tokens), 1),
            "kilobytes": nbytes_of(self.system, self.stored) / 1000,
            "stopped": self.written < size,
        }

    def _read(self) -> tuple[list[float], list[int]]:
        """Ask about turns of all ages; the first question warms up and does not count."""
        reads, tokens = [], []
        asked = self.rng.choices(self.sample, k=_QUESTIONS + 1) if self.sample else []
        for at, turn in enumerate(asked):
            question = generated_question(turn, self.rng)
            started = self.timer()
            found = self.system.recall(question, config=_USER, limit=10)
            if at:
                reads.append(self.timer() - started)
                tokens.append(tokens_of(found))
        return reads, tokens


def measure_growth(
    specs: Sequence[SystemSpec],
    embeddings: Callable[[str], Embeddings],
    *,
    sizes: Sequence[int] = SIZES,
    seconds: float = 120.0,
    seed: int = 0,
    timer: Callable[[], float] = time.perf_counter,
    tick: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Return how costs grow: one entry for each system and size.

    Args:
        specs: The systems.
        embeddings: The embedding model of a name.
        sizes: Numbers of turns at which to measure, ascending.
        seconds: Most seconds of writing for each system; one that needs more is measured where
            it stands then, and marked as `stopped`.
        seed: Of the turns and questions.
        timer: Measures seconds.
        tick: Called with a line of progress.
    """
    found: list[dict[str, Any]] = []
    for spec in specs:
        clock = ScopeClock()
        model, meter = metered(SimulatedChatModel(), Budget(), None)
        embedder = embeddings(spec.embed)
        home = no_store() if spec.is_baseline else new_store(embedder, clock)
        with home as (store, stored):
            setup = Setup(
                store=store,
                embeddings=embedder,
                model=model if spec.needs_model else None,
                clock=clock,
                rng=random.Random(seed),  # noqa: S311 - reproducible, not secret
            )
            growing = _Growing(
                spec=spec,
                system=spec.build(setup),
                stored=stored,
                clock=clock,
                meter=meter,
                turns=generated_turns(seed),
                deadline=timer() + seconds,
                timer=timer,
                rng=random.Random(seed),  # noqa: S311 - as above
            )
            for size in sorted(sizes):
                tick(f"{spec.name}: {size:,} turns")
                figures = growing.grow(size)
                found.append(figures)
                if figures["stopped"]:
                    break
    return found
