"""One system on one conversation: write it in the order of time, ask, and note what it cost."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import AgentMemoryError
from langchain_agentmem.evaluation import answering
from langchain_agentmem.evaluation.data import (
    SEPARATOR,
    Dataset,
    Question,
    Scope,
    Turn,
    batches,
    by_time,
    message_id,
)
from langchain_agentmem.evaluation.meter import Budget, Meter, metered
from langchain_agentmem.evaluation.records import Asked, Cost, Unit
from langchain_agentmem.evaluation.systems import Setup, System, SystemSpec
from langchain_agentmem.items import MemoryOperation
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.messages import text_of
from langchain_agentmem.retrieval.budget import count_tokens
from langchain_agentmem.stores.faiss_sqlite import FaissSqliteStore

if TYPE_CHECKING:
    from langchain_core.caches import BaseCache
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import RunnableConfig
    from langgraph.store.base import BaseStore

    from langchain_agentmem.memories.state import Recall

logger = logging.getLogger(__name__)

Timer = Callable[[], float]
_BEGINNING: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""What the clock shows where a data set has no dates."""


_PAGES: Final = ("count", "size")


class LeakedScopeError(AgentMemoryError, RuntimeError):
    """A system recalled a turn of another conversation, or one that was never written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What all trials of a run share.

    Attributes:
        embeddings: The embedding model of a name; the empty name is the benchmark's own.
        model: Writes memories, for systems that ask one.
        answerer: Answers the questions from what was recalled; None to measure recall alone.
        judge: Judges the answers; None for no judge.
        cache: Known replies of models.
        budget: Tokens that may be spent.
        seed: Of every random generator.
        limit: Most results to recall.
        timer: Measures seconds.
        tick: Called after each call of `remember` and each question, for progress.
    """

    embeddings: Callable[[str], Embeddings]
    model: BaseChatModel | None = None
    answerer: BaseChatModel | None = None
    judge: BaseChatModel | None = None
    cache: BaseCache | None = None
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    limit: int = 10
    timer: Timer = time.perf_counter
    tick: Callable[[int], None] = lambda _: None


class ScopeClock:
    """Shows the time of the conversation, never today's, so that a rerun gives the same store."""

    def __init__(self) -> None:
        self.now = _BEGINNING

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now

    def reach(self, moment: datetime | None) -> None:
        """Go on to a later moment; never back."""
        if moment is not None and moment > self.now:
            self.now = moment


class Trial:
    """One system on one conversation.

    Args:
        spec: The system.
        dataset: The data set.
        scope: The conversation.
        equipment: What all trials share.
    """

    def __init__(
        self, spec: SystemSpec, dataset: Dataset, scope: Scope, equipment: Equipment
    ) -> None:
        self.spec, self.dataset, self.scope, self.equipment = spec, dataset, scope, equipment
        self.clock = ScopeClock()
        self.unit = Unit(system=spec.name, dataset=dataset.name, scope=scope.name)
        self.known = {message_id(scope.name, turn.key) for turn in scope.turns}
        self.config: RunnableConfig = {
            "configurable": {"user_id": scope.name, "thread_id": "conversation"}
        }

    def run(self) -> Unit:
        """Write the conversation, ask the questions, and return what happened."""
        asked = [Asked() for _ in self.scope.questions]
        self.unit.asked = asked
        if self.scope.turns and self.scope.turns[0].observed_at is not None:
            self.clock.now = self.scope.turns[0].observed_at
        embeddings = self.equipment.embeddings(self.spec.embed)
        home = no_store() if self.spec.is_baseline else new_store(embeddings, self.clock)
        with home as (store, stored):
            model, meter = self._metered(self.equipment.model)
            system = self.spec.build(
                Setup(
                    store=store,
                    embeddings=embeddings,
                    model=model if self.spec.needs_model else None,
                    clock=self.clock,
                    rng=random.Random(self.equipment.seed),  # noqa: S311 - reproducible, not secret
                )
            )
            left = list(self.scope.turns)
            for position, question in by_time(self.scope.questions):
                left = self._write_until(system, left, question.asked_at, meter)
                asked[position] = self._ask(system, question, meter)
            self._write_until(system, left, None, meter)
            self.unit.nbytes = nbytes_of(system, stored)
        return self.unit

    def _metered(self, model: BaseChatModel | None) -> tuple[BaseChatModel | None, Meter]:
        return metered(model, self.equipment.budget, self.equipment.cache)

    def _write_until(
        self, system: System, turns: Sequence[Turn], moment: datetime | None, meter: Meter
    ) -> list[Turn]:
        """Write the turns up to a moment, all without one, and return the rest."""
        due = [turn for turn in turns if moment is None or _said_by(turn, moment)]
        written = list(batches(due, self.dataset.batch))
        for at, batch in enumerate(written):
            self.equipment.budget.go_on()
            self.clock.reach(batch[-1].observed_at)
            self._remember(system, batch, meter)
            if at + 1 == len(written) or written[at + 1][0].session != batch[-1].session:
                self._consolidate(system, batch, meter)
            self.equipment.tick(len(batch))
        self.clock.reach(moment)
        return list(turns[len(due) :])

    def _remember(self, system: System, batch: Sequence[Turn], meter: Meter) -> None:
        messages = [turn.message(self.scope.name) for turn in batch]
        started = self.equipment.timer()
        try:
            done = system.remember(messages, config=self.config)
        except Exception as error:  # noqa: BLE001 - one failure must not end a long run
            logger.warning("%s could not remember a batch: %s", self.spec.name, error)
            self.unit.write_errors.append(f"{batch[0].key}: {_told(error)}")
            done = ()
        seconds = self.equipment.timer() - started
        self.unit.turns += len(batch)
        self.unit.writes.append(_cost(meter, seconds))
        self.unit.items += _added(done)

    def _consolidate(self, system: System, batch: Sequence[Turn], meter: Meter) -> None:
        """Run a memory's background work, as a server does when a session has ended."""
        if not isinstance(system, Memory) or system.consolidate_flow() is None:
            return
        started = self.equipment.timer()
        try:
            report = system.consolidate(config=self.config)
        except Exception as error:  # noqa: BLE001 - one failure must not end a long run
            logger.warning("%s could not consolidate: %s", self.spec.name, error)
            self.unit.write_errors.append(f"consolidating after {batch[-1].key}: {_told(error)}")
        else:
            self.unit.items += _added(report.operations)
        seconds = self.equipment.timer() - started
        self.unit.consolidations.append(_cost(meter, seconds))

    def _ask(self, system: System, question: Question, meter: Meter) -> Asked:
        self.equipment.budget.go_on()
        asked = Asked()
        started = self.equipment.timer()
        try:
            found = system.recall(question.text, config=self.config, limit=self.equipment.limit)
            seconds = self.equipment.timer() - started
            asked.results = self._results(found)
            asked.tokens = tokens_of(found)
            asked.cost = _cost(meter, seconds)
            self._answer(question, shown(found), asked)
        except Exception as error:  # noqa: BLE001 - one failure must not end a long run
            logger.warning("%s failed at a question: %s", self.spec.name, error)
            asked.error = _told(error)
        self.equipment.tick(1)
        return asked

    def _results(self, found: Recall) -> list[list[str]]:
        """Return the turns behind each result; a view's messages count newest first.

        Raises:
            LeakedScopeError: One of them belongs to another conversation.
        """
        ids = [list(each.item.source_message_ids) for each in found.items]
        ids += [[str(each.id)] for each in reversed(found.messages or ()) if each.id]
        for each in {name for result in ids for name in result}:
            if SEPARATOR in each and each not in self.known:
                msg = f"a turn of another conversation was recalled: {each.split(SEPARATOR)}"
                raise LeakedScopeError(msg)
        return [[name.split(SEPARATOR)[-1] for name in result] for result in ids]

    def _answer(self, question: Question, memories: str, asked: Asked) -> None:
        if self.equipment.answerer is None:
            return
        model, meter = self._metered(self.equipment.answerer)
        if model is None:
            return
        started = self.equipment.timer()
        asked.answer = answering.answer(model, question.text, memories)
        asked.answer_cost = _cost(meter, self.equipment.timer() - started)
        judge, _ = self._metered(self.equipment.judge)
        if judge is None or not question.answers:
            return
        gold = " or ".join(question.answers)
        asked.verdicts = [
            answering.judge(judge, question.text, gold, asked.answer, attempt)
            for attempt in range(answering.JUDGE_ROUNDS)
        ]
        vague = answering.VAGUE[len(question.text) % len(answering.VAGUE)]
        asked.control = answering.judge(judge, question.text, gold, vague)


@contextmanager
def new_store(
    embeddings: Embeddings, clock: Callable[[], datetime]
) -> Iterator[tuple[BaseStore, Callable[[], int]]]:
    """Lend an empty store in a file of its own, and a function that tells its bytes.

    The bytes are those of the file's pages, those of the empty store left out.
    """
    dims = getattr(embeddings, "dims", None) or len(embeddings.embed_query("length"))
    index: Any = {"embed": embeddings, "dims": dims, "mode": "hybrid"}
    with (
        TemporaryDirectory(prefix="agentmem-bench-") as folder,
        FaissSqliteStore(Path(folder) / "memory.sqlite", index=index, clock=clock) as store,
    ):
        empty = _pages(store)
        yield store, lambda: _pages(store) - empty


@contextmanager
def no_store() -> Iterator[tuple[BaseStore, Callable[[], int]]]:
    """Lend a store to a baseline, which needs none."""
    yield InMemoryStore(), int


def _pages(store: FaissSqliteStore) -> int:
    count, size = (store.conn.execute(f"PRAGMA page_{each}").fetchone()[0] for each in _PAGES)
    return int(count * size)


def nbytes_of(system: System, stored: Callable[[], int]) -> int:
    """Return the bytes a system keeps: those it tells of, else those of its store."""
    held = getattr(system, "nbytes", None)
    return stored() if held is None else int(held)


def shown(found: Recall) -> str:
    """Return what of a recall goes into a prompt: its text, and the view of a conversation."""
    view = (f"{each.name or each.type}: {text_of(each)}" for each in found.messages or ())
    return "\n".join(filter(None, (found.text, *view)))


def tokens_of(found: Recall) -> int:
    """Return the estimated tokens of what goes into a prompt."""
    return found.tokens if found.messages is None else count_tokens(shown(found))


def _said_by(turn: Turn, moment: datetime) -> bool:
    return turn.observed_at is None or turn.observed_at <= moment


def _cost(meter: Meter, seconds: float) -> Cost:
    used = meter.take()
    return Cost(
        seconds=None if used.replayed else seconds,
        calls=used.calls,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
    )


def _added(done: object) -> int:
    """Return how many memories came to exist by a call of `remember`, closed ones taken off."""
    if not isinstance(done, list):
        return 0
    operations = [each for each in done if isinstance(each, MemoryOperation)]
    applied = [each.event for each in operations if each.status == "applied"]
    return len(done) - len(operations) + applied.count("ADD") - applied.count("DELETE")


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
