"""What every memory is compared with: nothing, the last turns, everything, plain words, vectors.

Each keeps the turns as they were said, in memory, and none calls a model. They are used like a
memory (`remember`, `recall`), which is all that a system of your own has to offer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from langchain_agentmem.items import MemoryItem, StoredMemory
from langchain_agentmem.memories.state import Recall
from langchain_agentmem.messages import speaker_of, text_of, time_of
from langchain_agentmem.rendering import render_line, render_memories
from langchain_agentmem.retrieval.budget import count_tokens
from langchain_agentmem.retrieval.lexical import LexicalIndex
from langchain_agentmem.retrieval.text import index_text, query_terms, terms

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from langchain_agentmem.evaluation.systems import Setup

_FLOAT_BYTES = 4


@dataclass
class _Log:
    """The turns of one user, and what is needed to rank them."""

    turns: list[StoredMemory] = field(default_factory=list)
    words: LexicalIndex = field(default_factory=LexicalIndex)
    vectors: list[list[float]] = field(default_factory=list)


class Baseline:
    """Base of the baselines: keeps every turn of each user.

    Args:
        setup: What the benchmark gives every system.
        limit: Most turns to recall.

    Attributes:
        ranks: Whether the order of what it recalls means anything.
    """

    ranks: ClassVar[bool] = True

    def __init__(self, setup: Setup, *, limit: int = 10) -> None:
        self.limit = limit
        self.embeddings: Embeddings = setup.embeddings
        self._logs: dict[str, _Log] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept: the words and the vectors."""
        logs = self._logs.values()
        words = sum(len(turn.text.encode()) for log in logs for turn in log.turns)
        return words + sum(_FLOAT_BYTES * len(each) for log in logs for each in log.vectors)

    def remember(
        self, messages: Sequence[BaseMessage], *, config: RunnableConfig
    ) -> list[StoredMemory]:
        """Keep the turns and return them."""
        log = self._log(config)
        told = [_memory(message) for message in messages]
        log.turns += told
        self.index(log, [_indexed(each) for each in told])
        return told

    def recall(self, query: str, *, config: RunnableConfig, limit: int | None = None) -> Recall:
        """Return the turns that the baseline chooses, best first."""
        log = self._log(config)
        most = self.limit if limit is None else limit
        chosen = [log.turns[at] for at in self.choose(log, query, most)]
        text = render_memories(chosen)
        return Recall(items=chosen, text=text, tokens=count_tokens(text))

    def _log(self, config: RunnableConfig) -> _Log:
        return self._logs.setdefault(str(config["configurable"]["user_id"]), _Log())

    def index(self, log: _Log, texts: Sequence[str]) -> None:
        """Prepare new turns for ranking; nothing to do where they are not ranked."""

    def choose(self, log: _Log, query: str, limit: int) -> Sequence[int]:
        """Return the positions of the turns to recall, best first."""
        raise NotImplementedError


def _memory(message: BaseMessage) -> StoredMemory:
    key = str(message.id)
    item = MemoryItem(
        content=text_of(message),
        observed_at=time_of(message),
        attributed_to=speaker_of(message),
        source_message_ids=(key,),
    )
    return StoredMemory(item=item, namespace=("baseline",), key=key)


def _indexed(turn: StoredMemory) -> str:
    return index_text(turn.text, turn.item.attributed_to, turn.observed_at)


class Nothing(Baseline):
    """No memory at all: what the answering model knows by itself."""

    def choose(self, log: _Log, query: str, limit: int) -> Sequence[int]:  # noqa: ARG002 - the base's signature
        """Choose nothing."""
        return ()


class LastTurns(Baseline):
    """The last `limit` turns, newest first, whatever is asked."""

    def choose(self, log: _Log, query: str, limit: int) -> Sequence[int]:  # noqa: ARG002 - the base's signature
        """Choose the newest turns."""
        return range(len(log.turns))[::-1][:limit]


class FullContext(Baseline):
    """The whole conversation, oldest turn first, cut at the beginning where it does not fit.

    Args:
        setup: What the benchmark gives every system.
        max_tokens: Size of the context window.
    """

    ranks = False

    def __init__(self, setup: Setup, *, max_tokens: int = 128_000) -> None:
        super().__init__(setup)
        self.max_tokens = max_tokens

    def choose(self, log: _Log, query: str, limit: int) -> Sequence[int]:  # noqa: ARG002 - the base's signature
        """Choose everything that fits, the newest turns first of all."""
        left = self.max_tokens
        for start in reversed(range(len(log.turns))):
            left -= count_tokens(render_line(log.turns[start]))
            if left < 0:
                return range(start + 1, len(log.turns))
        return range(len(log.turns))


class BM25(Baseline):
    """Plain word search: Okapi BM25 with its textbook constants over dated turns.

    Words are those of the package: Porter stems, stop words dropped from the question, characters
    and pairs of characters for Chinese and Japanese.

    Args:
        setup: What the benchmark gives every system.
        limit: Most turns to recall.
        k1: How fast repetitions saturate.
        b: How much long turns are held back.
    """

    def __init__(self, setup: Setup, *, limit: int = 10, k1: float = 1.2, b: float = 0.75) -> None:
        super().__init__(setup, limit=limit)
        self.k1, self.b = k1, b

    def index(self, log: _Log, texts: Sequence[str]) -> None:
        """Add the words of new turns."""
        log.words.add_many(terms(text) for text in texts)

    def choose(self, log: _Log, query: str, limit: int) -> Sequence[int]:
        """Choose the turns with the best word scores."""
        return _best(log.words.scores(query_terms(query), k1=self.k1, b=self.b), limit)


class Dense(Baseline):
    """Plain vector search: cosine of the embedded question and the embedded, dated turns."""

    def index(self, log: _Log, texts: Sequence[str]) -> None:
        """Embed new turns."""
        log.vectors += self.embeddings.embed_documents(list(texts))

    def choose(self, log: _Log, query: str, limit: int) -> Sequence[int]:
        """Choose the nearest turns."""
        if not log.vectors:
            return ()
        vectors = np.array(log.vectors, dtype=np.float32)
        asked = np.array(self.embeddings.embed_query(query), dtype=np.float32)
        norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
        return _best(vectors @ asked / np.maximum(norms, 1e-12), limit)


def _best(scores: NDArray[np.floating[Any]], limit: int) -> Sequence[int]:
    return [int(at) for at in np.argsort(-scores, kind="stable")[:limit] if scores[at] > 0]
