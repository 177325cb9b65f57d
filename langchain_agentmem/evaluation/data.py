"""What a benchmark is made of: datasets of conversations, their turns and their questions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

SEPARATOR: Final = "\x1f"
"""Between the name of a conversation and the key of a turn, in the ids of messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a conversation, or one passage of a corpus.

    Attributes:
        key: Its name within the conversation, which evidence refers to.
        content: The words.
        session: The sitting it belongs to; a passage is a session of its own.
        speaker: Who said it; None for the plain user or assistant.
        role: `"user"` or `"assistant"`.
        observed_at: When, aware; None where the data set does not say.
        title: Title of a passage.
        entities: Named entities that came ready with the data set.
        triples: Subject, relation and object of statements that came ready with the data set.
    """

    key: str
    content: str
    session: str
    speaker: str | None = None
    role: str = "user"
    observed_at: datetime | None = None
    title: str = ""
    entities: tuple[str, ...] = ()
    triples: tuple[tuple[str, str, str], ...] = ()

    def message(self, scope: str) -> AnyMessage:
        """Return the message a memory is given; its id is unique among all conversations."""
        kind = AIMessage if self.role == "assistant" else HumanMessage
        known = {
            "observed_at": self.observed_at,
            "session": self.session,
            "title": self.title,
            "entities": list(self.entities),
            "triples": [list(each) for each in self.triples],
        }
        return kind(
            self.content,
            id=message_id(scope, self.key),
            name=self.speaker,
            additional_kwargs={name: value for name, value in known.items() if value},
        )


def message_id(scope: str, key: str) -> str:
    """Return the id of the message that a turn becomes."""
    return f"{scope}{SEPARATOR}{key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question; only its text ever reaches a memory or the answering model.

    Attributes:
        text: What is asked.
        evidence: Keys of the turns that answer it; empty where the data set names none.
        category: Number or name of its kind, for the report alone.
        answers: Gold answers, any of which is right; empty where there are none.
        forbidden: Keys of turns that must not be recalled for it.
        asked_at: When it is asked: later turns are not written yet. None: in the end.
        doubtful: Whether the gold answer or evidence is known to be wrong.
        drafted: Whether a model drafted it.
    """

    text: str
    evidence: frozenset[str] = frozenset()
    category: str = ""
    answers: tuple[str, ...] = ()
    forbidden: frozenset[str] = frozenset()
    asked_at: datetime | None = None
    doubtful: bool = False
    drafted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Everything of one user: the turns in the order of time, and the questions about them.

    Attributes:
        name: Whose it is; unique within a data set.
        turns: What was said.
        questions: What is asked about it.
    """

    name: str
    turns: Sequence[Turn]
    questions: Sequence[Question] = ()

    def digest(self) -> str:
        """Return a SHA-256 of everything a memory is given: the turns and the questions' texts."""
        asked = [(each.text, each.asked_at) for each in self.questions]
        content = [self.name, [asdict(turn) for turn in self.turns], asked]
        return hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Conversations with questions, and what a reader has to know about them.

    Attributes:
        name: Short name.
        title: Name for people.
        scopes: The conversations, one user each.
        cutoffs: The k of recall@k that are usual for it, ascending; the last but one, or the only
            one, is the primary.
        categories: What the categories are called, by number; for the report alone.
        apart: Categories that are reported apart and in no total.
        batch: So many turns are remembered in one call: 2 for a chat, more for documents.
        source: Where a user gets it.
        license: Under which terms.
        notes: What was left out or repaired while it was read.
    """

    name: str
    title: str
    scopes: Sequence[Scope]
    cutoffs: tuple[int, ...] = (1, 5, 10)
    categories: Mapping[str, str] = field(default_factory=dict)
    apart: frozenset[str] = frozenset()
    batch: int = 2
    source: str = ""
    license: str = ""
    notes: tuple[str, ...] = ()

    @property
    def primary(self) -> int:
        """The k of the measure that systems are compared by."""
        return self.cutoffs[-2] if len(self.cutoffs) > 1 else self.cutoffs[0]

    @property
    def turns(self) -> int:
        """How many turns there are."""
        return sum(len(scope.turns) for scope in self.scopes)

    @property
    def questions(self) -> int:
        """How many questions there are."""
        return sum(len(scope.questions) for scope in self.scopes)

    def first(self, limit: int | None) -> Dataset:
        """Return the data set with its first `limit` questions and the conversations they need."""
        if limit is None:
            return self
        left = limit
        scopes: list[Scope] = []
        for scope in self.scopes:
            if left <= 0:
                break
            scopes.append(replace(scope, questions=scope.questions[:left]))
            left -= len(scope.questions)
        return replace(self, scopes=scopes)


def batches(turns: Sequence[Turn], size: int) -> Iterator[list[Turn]]:
    """Yield up to `size` turns that follow each other in one session.

    Titled passages, each a session of its own, are put together, as a corpus is imported.
    """
    batch: list[Turn] = []
    for turn in turns:
        if len(batch) == size or (batch and batch[-1].session != turn.session and not turn.title):
            yield batch
            batch = []
        batch.append(turn)
    if batch:
        yield batch


def by_time(questions: Iterable[Question]) -> list[tuple[int, Question]]:
    """Return questions with their positions, in the order in which they are asked."""
    numbered = list(enumerate(questions))
    dated = [(each.asked_at, at) for at, each in numbered if each.asked_at is not None]
    order = [at for _, at in sorted(dated)]
    order += [at for at, each in numbered if each.asked_at is None]
    return [numbered[at] for at in order]
