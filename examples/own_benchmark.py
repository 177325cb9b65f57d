"""A memory and a data set of your own in the benchmark: this file is all they need.

python examples/own_benchmark.py
agentmem bench --dataset examples/own_benchmark.py:pets --memory examples/own_benchmark.py:Rare
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig

from langchain_agentmem.cli import main
from langchain_agentmem.evaluation import Dataset, Question, Scope, Setup, Turn
from langchain_agentmem.items import MemoryItem, StoredMemory
from langchain_agentmem.memories import Recall

SAID = (
    "We took in a second cat, Olive, from the shelter.",
    "Olive is afraid of the vacuum cleaner.",
    "The rabbit next door is called Biscuit.",
)


def pets(folder: Path) -> Dataset:  # noqa: ARG001 - a real one reads its files from --data
    """Return the data set: who said what and when, and which turns answer each question."""
    day = datetime(2026, 3, 1, tzinfo=UTC)
    turns = [
        Turn(key=str(at), content=text, session="kitchen", speaker="Ann", observed_at=day)
        for at, text in enumerate(SAID)
    ]
    questions = [
        Question(text="What is the cat afraid of?", evidence=frozenset({"1"}), answers=("vacuum",)),
        Question(text="Who lives next door?", evidence=frozenset({"2"}), answers=("Biscuit",)),
    ]
    return Dataset(
        name="pets",
        title="Pets",
        scopes=[Scope(name="ann", turns=turns, questions=questions)],
        cutoffs=(1, 3),
    )


class Rare:
    """A memory: turns that share rare words with the question come first.

    `remember` and `recall` are all that is asked of it; a subclass of `Memory` has both.
    """

    def __init__(self, setup: Setup, *, limit: int = 3) -> None:  # noqa: ARG002 - has store and model
        self.turns: list[StoredMemory] = []
        self.limit = limit

    def remember(self, messages: Sequence[AnyMessage], *, config: RunnableConfig) -> None:  # noqa: ARG002 - one user alone
        """Keep each turn, and the id of the message that it was."""
        for message in messages:
            key = str(message.id)
            item = MemoryItem(content=str(message.text), source_message_ids=(key,))
            self.turns.append(StoredMemory(item=item, namespace=("rare",), key=key))

    def recall(self, query: str, *, config: RunnableConfig, limit: int | None = None) -> Recall:  # noqa: ARG002 - as above
        """Return the best turns first."""
        asked = set(query.lower().strip("?").split())
        told = [set(turn.text.lower().strip(".").split()) for turn in self.turns]
        known = Counter(word for words in told for word in words)
        scores = [sum(1 / known[word] for word in asked & words) for words in told]
        order = sorted(range(len(scores)), key=lambda at: -scores[at])[: limit or self.limit]
        found = [self.turns[at] for at in order]
        return Recall(items=found, text="\n".join(turn.text for turn in found), tokens=40)


if __name__ == "__main__":
    here = Path(__file__)
    with TemporaryDirectory() as folder:
        own = ["--dataset", f"{here}:pets", "--memory", f"{here}:Rare", "--memory", "RAGMemory"]
        main(["bench", *own, "--out", folder])
