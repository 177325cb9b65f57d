"""A small data set with known answers, and what runs on it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig

from langchain_agentmem.evaluation.benchmark import make_report
from langchain_agentmem.evaluation.data import Dataset, Question, Scope, Turn
from langchain_agentmem.evaluation.meter import Budget
from langchain_agentmem.evaluation.runner import Runner
from langchain_agentmem.evaluation.systems import SystemSpec, system
from langchain_agentmem.evaluation.trial import Equipment
from langchain_agentmem.items import MemoryItem, StoredMemory
from langchain_agentmem.memories import Recall
from langchain_agentmem.testing import CharacterEmbeddings

SAID = (
    "My dog is called Rex.",
    "I work at the harbor.",
    "My sister Mia plays the cello.",
    "I have sold the bicycle.",
)
ASKED = (
    Question(
        text="What is the dog called?", evidence=frozenset({"0"}), category="1", answers=("Rex",)
    ),
    Question(
        text="Who plays the cello?", evidence=frozenset({"2"}), category="2", answers=("Mia",)
    ),
    Question(
        text="Which bicycle do I have?",
        evidence=frozenset({"3"}),
        forbidden=frozenset({"0", "1"}),
        category="1",
        answers=("none",),
        doubtful=True,
    ),
    Question(text="What is the cat called?", evidence=frozenset({"0"}), category="5"),
)


def scope(name: str = "ann", questions: tuple[Question, ...] = ASKED) -> Scope:
    """Return a conversation of four turns."""
    turns = [
        Turn(
            key=str(at),
            content=text,
            session="s",
            observed_at=datetime(2026, 1, at + 1, tzinfo=UTC),
        )
        for at, text in enumerate(SAID)
    ]
    return Scope(name=name, turns=turns, questions=questions)


def dataset(*scopes: Scope) -> Dataset:
    """Return a data set of conversations, of two if none is given."""
    return Dataset(
        name="small",
        title="Small",
        scopes=scopes or (scope("ann"), scope("bob")),
        cutoffs=(1, 3),
        categories={"1": "plain", "2": "family", "5": "adversarial"},
        apart=frozenset({"5"}),
    )


class Everything:
    """A system that recalls every turn, newest first, and fails where it is told to."""

    def __init__(self, setup: Any, *, fails_at: str = "", leaks: bool = False) -> None:  # noqa: ANN401, ARG002 - not used
        self.said: list[AnyMessage] = []
        self.fails_at, self.leaks = fails_at, leaks

    def remember(
        self,
        messages: Sequence[AnyMessage],
        *,
        config: RunnableConfig,  # noqa: ARG002 - one user alone
    ) -> list[AnyMessage]:
        """Keep the messages."""
        if self.fails_at and any(self.fails_at in str(each.content) for each in messages):
            msg = "no room"
            raise RuntimeError(msg)
        self.said += messages
        return list(messages)

    def recall(self, query: str, *, config: RunnableConfig, limit: int | None = None) -> Recall:  # noqa: ARG002 - as above
        """Return everything."""
        if self.fails_at and self.fails_at in query:
            msg = "out of order"
            raise RuntimeError(msg)
        found = [_stored(str(each.id), str(each.content)) for each in reversed(self.said)]
        if self.leaks:
            found.append(_stored("eve\x1f0", "a secret"))
        return Recall(items=found, text=" / ".join(each.text for each in found), tokens=7)


def _stored(key: str, text: str) -> StoredMemory:
    item = MemoryItem(content=text, source_message_ids=(key,))
    return StoredMemory(item=item, namespace=("x",), key=key)


def everything(**parameters: Any) -> SystemSpec:  # noqa: ANN401 - of any type
    """Return the system above."""
    return SystemSpec(name="everything", make=Everything, parameters=parameters)


def equipment(**given: Any) -> Equipment:  # noqa: ANN401 - any part
    """Return what trials need, with a timer that counts."""
    embeddings = CharacterEmbeddings()
    ticks = count()
    return Equipment(
        **{
            "embeddings": lambda _: embeddings,
            "timer": lambda: next(ticks) / 1000,
            "budget": Budget(),
            "limit": 3,
            **given,
        }
    )


def report(
    *specs: SystemSpec,
    data: Dataset | None = None,
    folder: Path | None = None,
    reference: str = "bm25",
    **given: Any,  # noqa: ANN401 - any part of the equipment
) -> dict[str, Any]:
    """Return the report of some systems on the small data set."""
    chosen = list(specs or map(system, ("nothing", "bm25", "RAGMemory")))
    datasets = [data or dataset()]
    runner = Runner(chosen, datasets, equipment(**given), folder=folder)
    return make_report(
        runner, chosen, datasets, reference=reference, date=datetime(2026, 1, 1, tzinfo=UTC)
    )


def of(result: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what a report says about one system."""
    found: dict[str, Any] = next(
        each for each in result["datasets"][0]["systems"] if each["name"] == name
    )
    return found
