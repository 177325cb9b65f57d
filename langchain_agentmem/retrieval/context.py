"""What surrounds a turn: the values recall works on, and scores of neighbors and sessions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import numpy as np

from langchain_agentmem.retrieval.fusion import normalize_max
from langchain_agentmem.retrieval.lexical import bm25, idf
from langchain_agentmem.retrieval.text import Analyzed, analyze

SESSION_K1: Final = 1.2
SESSION_B: Final = 0.5


@dataclass(frozen=True, slots=True)
class Candidate:
    """One turn of the pool that a store's hybrid search returned.

    Attributes:
        key: The turn's key in the store.
        content: The raw text.
        session: The id of its session.
        speaker: Who said it, or None.
        observed_at: When it was said, or None.
        lexical: BM25 divided by the query's maximum.
        dense: Similarity normalized over the query's best 200.
        title: The title of a document; a turn of a conversation has none.
        analyzed: What recall compares of the content.
    """

    key: str
    content: str
    session: str
    speaker: str | None = None
    observed_at: datetime | None = None
    lexical: float = 0.0
    dense: float = 0.0
    title: str = ""
    analyzed: Analyzed = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Analyze the content."""
        object.__setattr__(self, "analyzed", analyze(self.content))


@dataclass(frozen=True, slots=True)
class Session:
    """One session: a thread on one calendar day, or what an importer says is one.

    Attributes:
        key: The session's id.
        turns: The keys of its turns in their order; none of a session whose record was not read.
        length: The number of index terms of all its turns.
        started_at: When it began, or None.
        speakers: Who said each turn; empty where the record does not say. With it, the rules also
            reach turns outside the pool.
    """

    key: str
    turns: tuple[str, ...]
    length: int
    started_at: datetime | None = None
    speakers: tuple[str | None, ...] = ()


def session_scores(
    query: Collection[str],
    candidates: Sequence[Candidate],
    sessions: Mapping[str, Session],
) -> dict[str, float]:
    """Score each session of a pool as one document.

    Term counts come from the pool alone, which holds nearly every turn that shares a term with the
    question; lengths are those of the whole sessions.

    Args:
        query: The query's terms, names of participants included.
        candidates: The pool.
        sessions: The pool's sessions by id.

    Returns:
        BM25 (k1 1.2, b .5) of each session, divided by the maximum; where no session is known
        to have several turns, the best lexical score of its candidates.
    """
    if all(len(session.turns) <= 1 for session in sessions.values()):
        best = dict.fromkeys(sessions, 0.0)
        for candidate in candidates:
            if candidate.session in best:
                best[candidate.session] = max(best[candidate.session], candidate.lexical)
        return best
    wanted = dict.fromkeys(query)
    counts = {key: dict.fromkeys(wanted, 0) for key in sessions}
    for candidate in candidates:
        if candidate.lexical > 0 and candidate.session in counts:
            count, said = counts[candidate.session], candidate.analyzed.counts
            for term in wanted:
                if term in said:
                    count[term] += said[term]
    length = np.array([session.length for session in sessions.values()], dtype=np.float64)
    total = np.zeros(len(sessions))
    for term in wanted:
        tf = np.array([count[term] for count in counts.values()], dtype=np.float64)
        holding = np.count_nonzero(tf)
        if holding:
            gain = bm25(tf, length, average_length=length.mean(), k1=SESSION_K1, b=SESSION_B)
            total += idf(len(sessions), int(holding)) * gain
    return dict(zip(sessions, normalize_max(total).tolist(), strict=True))
