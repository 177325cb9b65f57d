"""The general recipe: from a pool of hybrid candidates to ranked turns, without a model call.

The ingredients and their weights come from measurements on LoCoMo, MuSiQue and MemDaily, with one
set of weights for all three; `benchmarks/recall.py` prints what each ingredient adds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

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
    latin_share,
    query_terms,
    terms_of,
    words,
)

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


POOL_DEPTH: Final = 150
"""How many hybrid candidates to ask the store for; more changes no result by a point."""
_LATIN_ENOUGH: Final = 0.5
_WHOLE_SESSIONS: Final = 5  # sessions whose turns outside the pool are ranked, too
_HOP_FROM: Final = 5
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


def rank(
    query: str,
    candidates: Sequence[Candidate],
    sessions: Mapping[str, Session],
    weights: Weights = DEFAULT_WEIGHTS,
    word_vectors: WordVectors | None = None,
) -> list[Ranked]:
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
    pool = {candidate.key: candidate for candidate in candidates}
    reached = {c.session: sessions[c.session] for c in pool.values() if c.session in sessions}
    gained = _content_parts(pool, weights, query)
    if word_vectors is not None and weights.synonyms:
        _add_synonyms(gained, pool, query, weights.synonyms, word_vectors)
    own = {key: sum(parts.values()) for key, parts in gained.items()}
    shared = _session_parts(query, candidates, reached, own, weights)
    turns = {**pool, **_around(pool, reached, shared)}
    for key, parts in _context_parts(turns, reached, own, shared, weights):
        gained.setdefault(key, {}).update(parts)
    top = max((sum(parts.values()) for parts in gained.values()), default=0.0) or 1.0
    rules = Rules.of(query, turns.values(), weights)
    asked = words(query) if weights.echo and is_question(query) else []
    ranked = []
    for key, turn in turns.items():
        parts = {name: value / top for name, value in gained[key].items() if value}
        rules.add_to(parts, turn)
        if asked and turn.words == asked:
            parts["echo"] = -weights.echo * sum(parts.values())
        ranked.append(Ranked(key, sum(parts.values()), parts, pool.get(key)))
    ranked.sort(key=lambda one: (-one.score, -_age(turns[one.key]), one.key))
    return follow_titles(ranked, weights.title)


def follow_titles(ranked: Sequence[Ranked], share: float) -> list[Ranked]:
    """Lift documents whose title is named in one of the first five.

    The second hop of a question about documents; turns of a conversation have no title and keep
    their places.

    Args:
        ranked: The ranking so far, best first.
        share: How much of the naming document's score the named one gains.

    Returns:
        The ranking in its new order.
    """
    titled = {
        one.key: f" {title} "
        for one in ranked
        if one.candidate and (title := " ".join(words(one.candidate.title)))
    }
    if not titled or not share:
        return list(ranked)
    gains: dict[str, float] = {}
    for naming in ranked[:_HOP_FROM]:
        text = f" {' '.join(words(naming.candidate.content))} " if naming.candidate else ""
        own = titled.get(naming.key)
        for key, title in titled.items():
            if title != own and title in text:
                gains[key] = max(gains.get(key, 0.0), share * naming.score)
    lifted = [
        replace(one, score=one.score + gains[one.key], parts={**one.parts, "title": gains[one.key]})
        if one.key in gains
        else one
        for one in ranked
    ]
    return sorted(lifted, key=lambda one: -one.score)


def _content_parts(
    pool: Mapping[str, Candidate], weights: Weights, query: str
) -> dict[str, dict[str, float]]:
    """Return the parts of each turn's own score."""
    dense = weights.dense_for(query)
    parts = {key: {"lexical": c.lexical, "dense": dense * c.dense} for key, c in pool.items()}
    asked = asked_at_last(query) if weights.focus else None
    if asked is not None:
        index = LexicalIndex()
        index.add_many(terms_of(candidate.words) for candidate in pool.values())
        scores = normalize_max(index.scores(query_terms(asked))).tolist()
        for part, score in zip(parts.values(), scores, strict=True):
            part["focus"] = weights.focus * score
    return parts


def _add_synonyms(
    gained: Mapping[str, dict[str, float]],
    pool: Mapping[str, Candidate],
    query: str,
    weight: float,
    vectors: WordVectors,
) -> None:
    """Add to each turn's own score what words of like meaning are worth."""
    speakers = {turn.speaker for turn in pool.values() if turn.speaker}
    asked = words(without_names(query, speakers))
    said = [turn.words for turn in pool.values()]
    for key, score in zip(pool, synonym_scores(asked, said, vectors).tolist(), strict=True):
        gained[key]["synonyms"] = weight * score


def _session_parts(
    query: str,
    candidates: Sequence[Candidate],
    sessions: Mapping[str, Session],
    own: Mapping[str, float],
    weights: Weights,
) -> dict[str, dict[str, float]]:
    """Return what every turn of a session gains alike."""
    lexical = session_scores(query_terms(query), candidates, sessions)
    best = dict.fromkeys(sessions, 0.0)
    for candidate in candidates:
        if candidate.session in best:
            best[candidate.session] = max(best[candidate.session], own[candidate.key])
    return {
        key: {
            "session_best": weights.session_best * best[key],
            "session_lexical": weights.session_lexical * lexical[key],
        }
        for key in sessions
    }


def _around(
    pool: Mapping[str, Candidate],
    sessions: Mapping[str, Session],
    shared: Mapping[str, Mapping[str, float]],
) -> dict[str, Candidate]:
    """Return the best sessions' turns outside the pool, as far as the records know them."""
    best = sorted(sessions, key=lambda key: (-sum(shared[key].values()), key))[:_WHOLE_SESSIONS]
    return {
        turn: Candidate(turn, "", key, speaker, sessions[key].started_at)
        for key in best
        for turn, speaker in zip_longest(
            sessions[key].turns, sessions[key].speakers[: len(sessions[key].turns)]
        )
        if turn not in pool
    }


def _context_parts(
    turns: Mapping[str, Candidate],
    sessions: Mapping[str, Session],
    own: Mapping[str, float],
    shared: Mapping[str, Mapping[str, float]],
    weights: Weights,
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield what each ranked turn gains from its neighbors and its session."""
    for session in sessions.values():
        said = ("", *session.turns, "")
        for place, key in enumerate(session.turns):
            if key in turns:
                yield (
                    key,
                    {
                        "previous": weights.previous * own.get(said[place], 0.0),
                        "following": weights.following * own.get(said[place + 2], 0.0),
                        **shared[session.key],
                    },
                )


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

    def add_to(self, parts: dict[str, float], turn: Candidate) -> None:
        """Add to the parts of a turn's score what the rules give it."""
        if turn.speaker in self.speakers and self.weights.speaker:
            parts["speaker"] = self.weights.speaker
        if self.dates and turn.observed_at is not None:
            _add(parts, "date", self.weights.date * date_match(self.dates, turn.observed_at.date()))
        if self.when:
            _add(parts, "when", self.weights.when * time_share(turn.content))


def _add(parts: dict[str, float], name: str, value: float) -> None:
    if value:
        parts[name] = value
