"""The general recipe: from a pool of hybrid candidates to ranked turns, without a model call.

The ingredients and their weights come from measurements on LoCoMo, MuSiQue and MemDaily, with one
set of weights for all three; `benchmarks/recall.py` prints what each ingredient adds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from langchain_agentmem.retrieval.context import Candidate, Session, session_scores
from langchain_agentmem.retrieval.dates import DateMention, date_match, date_mentions
from langchain_agentmem.retrieval.fusion import normalize_max
from langchain_agentmem.retrieval.lexical import LexicalIndex
from langchain_agentmem.retrieval.rules import (
    asked_at_last,
    asks_when,
    is_first_person,
    is_question,
    is_user,
    named_speakers,
    time_share,
    without_names,
)
from langchain_agentmem.retrieval.synonyms import WordVectors, synonym_scores
from langchain_agentmem.retrieval.text import (
    analyze,
    latin_share,
    query_terms,
    terms_of,
    words,
)

Scores = NDArray[np.floating]
"""One number for each turn."""

STATIC_DENSE_WEIGHT: Final = 0.3
"""What static vectors weigh, such as those of the bundled model."""
NEURAL_DENSE_WEIGHT: Final = 0.5
"""What the vectors of a neural model weigh."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each ingredient counts; 0 switches one off.

    Attributes:
        dense: The dense score, against 1 for the lexical one; None for what suits the embedding
            model: .3 for static vectors, .5 for others. Documents gain from 1.
        focus: The lexical score for the last question of a text that says more than that.
        synonyms: Words of like meaning, where vectors of words are given.
        latin_only: The embedding model knows Latin script only: it does not vote on questions in
            other scripts; None for what the model says of itself.
        previous: The content score of the turn before, in the same session.
        following: The content score of the turn after.
        session_best: The best content score of the session.
        session_lexical: BM25 of the session as one document.
        speaker: The turn's speaker is the one asked about.
        date: The turn's day matches a date in the question.
        when: The question asks for a time and the turn speaks of one.
        echo: What a turn loses of its score that asks the very same question.
        title: The document's title is named in one of the first five.
    """

    dense: float | None = None
    focus: float = 1.0
    synonyms: float = 0.3
    latin_only: bool | None = None
    previous: float = 0.2
    following: float = 0.1
    session_best: float = 0.4
    session_lexical: float = 0.5
    speaker: float = 0.3
    date: float = 0.25
    when: float = 0.07
    echo: float = 1.0
    title: float = 0.4

    def dense_for(self, query: str) -> float:
        """Return the dense weight for one question: 0 in a script that the model does not know."""
        if self.latin_only is not False and latin_share(query) < _LATIN_ENOUGH:
            return 0.0
        return STATIC_DENSE_WEIGHT if self.dense is None else self.dense


POOL_DEPTH: Final = 100
"""How many hybrid candidates to ask the store for; more changes no result by a point."""
_LATIN_ENOUGH: Final = 0.5
_WHOLE_SESSIONS: Final = 5  # sessions whose turns outside the pool are ranked, too
_HOP_FROM: Final = 5
_NONE: Final = -1  # the row of no turn
DEFAULT_WEIGHTS: Final = Weights()


@dataclass(frozen=True, slots=True)
class Ranked:
    """One ranked turn.

    Attributes:
        key: The turn's key in the store.
        score: The sum of `parts`.
        parts: What each ingredient, named as in `Weights`, contributes.
        candidate: The turn, or None for one outside the pool, known by key only.
    """

    key: str
    score: float
    parts: Mapping[str, float]
    candidate: Candidate | None = None


class Ranking(Sequence[Ranked]):
    """Turns, best first; each is put together when it is asked for."""

    def __init__(self, turns: Sequence[Candidate], pool: int, parts: Mapping[str, Scores]) -> None:
        """Order turns by the sum of their parts, ties newest first, then by key.

        Args:
            turns: The turns.
            pool: How many of them, the first ones, are of the pool.
            parts: What each ingredient gives each turn.
        """
        self._turns = turns
        self._pool = pool
        self._parts = parts
        self._scores = _total(parts, len(turns)).tolist()
        by_score = sorted(range(len(turns)), key=self._scores.__getitem__, reverse=True)
        self._order: list[int] = []
        for _, tied in groupby(by_score, key=self._scores.__getitem__):
            rows = [*tied]
            if len(rows) > 1:
                rows.sort(key=lambda row: (-_age(turns[row]), turns[row].key))
            self._order += rows

    def __len__(self) -> int:
        """Return the number of turns."""
        return len(self._order)

    @overload
    def __getitem__(self, place: int) -> Ranked: ...

    @overload
    def __getitem__(self, place: slice) -> list[Ranked]: ...

    def __getitem__(self, place: int | slice) -> Ranked | list[Ranked]:
        """Return the turn, or the turns, of some places."""
        if isinstance(place, slice):
            return [self._ranked(row) for row in self._order[place]]
        return self._ranked(self._order[place])

    def _ranked(self, row: int) -> Ranked:
        parts = {name: float(values[row]) for name, values in self._parts.items() if values[row]}
        turn = self._turns[row]
        return Ranked(turn.key, self._scores[row], parts, turn if row < self._pool else None)


def rank(
    query: str,
    candidates: Sequence[Candidate],
    sessions: Mapping[str, Session],
    weights: Weights = DEFAULT_WEIGHTS,
    word_vectors: WordVectors | None = None,
) -> Ranking:
    """Rank the turns of one scope for a question.

    Args:
        query: The question as asked.
        candidates: The pool of one scope. A candidate whose session is not given has no context.
        sessions: The pool's sessions by id.
        weights: The ingredients' weights.
        word_vectors: Vectors of words, to find other words for what is asked.

    Returns:
        The pool and the other turns of its best sessions, best first; ties newest first, then by
        key.
    """
    pool = list({candidate.key: candidate for candidate in candidates}.values())
    reached = {c.session: sessions[c.session] for c in pool if c.session in sessions}
    content = _content_parts(query, pool, weights, word_vectors)
    own = _total(content, len(pool))
    shared = _session_parts(query, pool, reached, own, weights)
    turns = [*pool, *_around(pool, reached, shared)]
    parts = {name: _padded(values, len(turns)) for name, values in content.items()}
    parts.update(_context_parts(turns, reached, _padded(own, len(turns)), shared, weights))
    top = float(_total(parts, len(turns)).max(initial=0.0)) or 1.0
    parts = {name: values / top for name, values in parts.items()}
    parts.update(Rules.of(query, turns, weights).parts(turns))
    asked = analyze(query).words if weights.echo and is_question(query) else ()
    if asked:
        echo = np.array([turn.analyzed.words == asked for turn in turns])
        parts["echo"] = np.where(echo, -weights.echo * _total(parts, len(turns)), 0.0)
    ranking = Ranking(turns, len(pool), parts)
    gains = title_gains(ranking, pool, weights.title)
    if not gains.any():
        return ranking
    return Ranking(turns, len(pool), {**parts, "title": _padded(gains, len(turns))})


def title_gains(ranking: Sequence[Ranked], pool: Sequence[Candidate], share: float) -> Scores:
    """Return what documents gain whose title is named in one of the first five.

    The second hop of a question about documents; turns of a conversation have no title and gain
    nothing.

    Args:
        ranking: The ranking so far, best first.
        pool: The documents that may gain.
        share: How much of the naming document's score the named one gains.
    """
    gains = np.zeros(len(pool))
    titled = {
        row: f" {title} "
        for row, turn in enumerate(pool)
        if (named := turn.title or turn.analyzed.heading)
        and (title := " ".join(analyze(named).words))
    }
    if not titled or not share:
        return gains
    rows = {turn.key: row for row, turn in enumerate(pool)}
    for naming in ranking[:_HOP_FROM]:
        if naming.candidate is None:
            continue
        text = f" {' '.join(naming.candidate.analyzed.words)} "
        own = titled.get(rows[naming.key])
        for row, title in titled.items():
            if title in text and title != own:
                gains[row] = max(gains[row], share * naming.score)
    return gains


def _content_parts(
    query: str, pool: Sequence[Candidate], weights: Weights, vectors: WordVectors | None
) -> dict[str, Scores]:
    """Return the parts of each turn's own score."""
    parts = {
        "lexical": np.array([turn.lexical for turn in pool]),
        "dense": weights.dense_for(query) * np.array([turn.dense for turn in pool]),
    }
    asked = asked_at_last(query) if weights.focus else None
    if asked is not None:
        index = LexicalIndex()
        index.add_many(terms_of(turn.analyzed.words) for turn in pool)
        parts["focus"] = weights.focus * normalize_max(index.scores(query_terms(asked)))
    if vectors is not None and weights.synonyms:
        meant = words(without_names(query, {turn.speaker for turn in pool if turn.speaker}))
        said = [turn.analyzed.words for turn in pool]
        parts["synonyms"] = weights.synonyms * synonym_scores(meant, said, vectors)
    return parts


def _session_parts(
    query: str,
    pool: Sequence[Candidate],
    sessions: Mapping[str, Session],
    own: Scores,
    weights: Weights,
) -> dict[str, tuple[float, float]]:
    """Return what every turn of a session gains alike: by its best turn, and by its words."""
    lexical = session_scores(query_terms(query), pool, sessions)
    best = dict.fromkeys(sessions, 0.0)
    for turn, score in zip(pool, own.tolist(), strict=True):
        if turn.session in best:
            best[turn.session] = max(best[turn.session], score)
    return {
        key: (weights.session_best * best[key], weights.session_lexical * lexical[key])
        for key in sessions
    }


def _around(
    pool: Sequence[Candidate],
    sessions: Mapping[str, Session],
    shared: Mapping[str, tuple[float, float]],
) -> list[Candidate]:
    """Return the best sessions' turns outside the pool, as far as the records know them."""
    best = sorted(sessions, key=lambda key: (-sum(shared[key]), key))[:_WHOLE_SESSIONS]
    known = {turn.key for turn in pool}
    return [
        Candidate(turn, "", key, speaker, sessions[key].started_at)
        for key in best
        for turn, speaker in zip_longest(
            sessions[key].turns, sessions[key].speakers[: len(sessions[key].turns)]
        )
        if turn not in known
    ]


def _context_parts(
    turns: Sequence[Candidate],
    sessions: Mapping[str, Session],
    own: Scores,
    shared: Mapping[str, tuple[float, float]],
    weights: Weights,
) -> dict[str, Scores]:
    """Return what each ranked turn gains from its neighbors and its session."""
    rows = {turn.key: row for row, turn in enumerate(turns)}
    said = [_NONE]  # row of each turn of each session, with a gap between sessions
    for session in sessions.values():
        said += [rows.get(key, _NONE) for key in session.turns]
        said.append(_NONE)
    row = np.array(said)
    score = np.append(own, 0.0)[row]
    held = np.flatnonzero(row != _NONE)
    gained = np.zeros((4, len(turns)))
    gained[0, row[held]] = weights.previous * score[held - 1]
    gained[1, row[held]] = weights.following * score[held + 1]
    nothing = (0.0, 0.0)
    gained[2:] = np.array([shared.get(turn.session, nothing) for turn in turns]).T
    names = ("previous", "following", "session_best", "session_lexical")
    return dict(zip(names, gained, strict=True))


def _total(parts: Mapping[str, Scores], count: int) -> Scores:
    return sum(parts.values(), np.zeros(count))


def _padded(values: Scores, count: int) -> Scores:
    """Return the values of a pool, followed by 0 for turns outside it."""
    padded = np.zeros(count)
    padded[: len(values)] = values
    return padded


def _age(turn: Candidate) -> float:
    """Return a number that is larger for newer turns."""
    return turn.observed_at.timestamp() if turn.observed_at else 0.0


@dataclass(frozen=True, slots=True)
class Rules:
    """What the rules look for in one question."""

    speakers: frozenset[str]
    dates: tuple[DateMention, ...]
    when: bool
    weights: Weights

    @classmethod
    def of(cls, query: str, turns: Iterable[Candidate], weights: Weights) -> "Rules":
        """Read a question about turns of certain speakers."""
        speakers = {turn.speaker for turn in turns if turn.speaker}
        asking = filter(is_user, speakers) if is_first_person(query) else ()
        return cls(
            speakers=named_speakers(query, speakers).union(asking),
            dates=tuple(date_mentions(query)),
            when=asks_when(query),
            weights=weights,
        )

    def parts(self, turns: Sequence[Candidate]) -> dict[str, Scores]:
        """Return what the rules that fire give each turn."""
        given: dict[str, list[float]] = {}
        if self.speakers:
            given["speaker"] = [float(turn.speaker in self.speakers) for turn in turns]
        if self.dates:
            days = [turn.observed_at and turn.observed_at.date() for turn in turns]
            match = {day: date_match(self.dates, day) for day in set(days) if day}
            given["date"] = [match[day] if day else 0.0 for day in days]
        if self.when:
            given["when"] = [time_share(turn.content) for turn in turns]
        return {name: getattr(self.weights, name) * np.array(by) for name, by in given.items()}
