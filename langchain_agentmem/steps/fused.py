"""Recall by meaning, words and entities, fused; no model call.

Each arm looks until it has enough of what the call may see; then the arms are fused over the union
of their members. No scope is read whole, see `langchain_agentmem.steps.arms`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from langchain_agentmem.items import StoredMemory
from langchain_agentmem.retrieval.boosts import boosted, entity_boost, keyword_boost
from langchain_agentmem.retrieval.filters import matches
from langchain_agentmem.retrieval.fusion import reciprocal_rank_fusion
from langchain_agentmem.retrieval.text import query_terms
from langchain_agentmem.steps import arms, entities, journal
from langchain_agentmem.steps.effects import Get, Steps
from langchain_agentmem.steps.recall import Moment, earlier, ref_text, session_ref, when_said

_ARM_DEPTH: Final = 60
_QUERY_ENTITIES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and what may answer it.

    Attributes:
        query: The words; empty for the newest memories.
        limit: Most memories to return.
        moment: The time the question speaks of.
        threshold: Least cosine of the semantic arm.
        fusion: How the arms are added up.
        entity_match: Least cosine of an entity of the query and a known one.
        filters: See `langchain_agentmem.retrieval.filters`.
        show_expired: Also return what has expired.
        include_superseded: Also return closed memories.
    """

    query: str
    limit: int
    moment: Moment
    threshold: float = 0.1
    fusion: Literal["mem0", "rrf"] = "mem0"
    entity_match: float = 0.5
    filters: Mapping[str, Any] | None = None
    show_expired: bool = False
    include_superseded: bool = False

    @property
    def depth(self) -> int:
        """How many members an arm has at most."""
        return max(4 * self.limit, _ARM_DEPTH)

    @property
    def closed_too(self) -> bool:
        """Whether closed memories may answer."""
        return self.moment.past or self.include_superseded or "status" in (self.filters or {})

    def shows(self, memory: StoredMemory) -> bool:
        """Tell whether a memory may be seen."""
        if not matches(memory.item, self.filters):
            return False
        if self.moment.past:
            return self.moment.shows(memory)
        item = replace(memory.item, expires_at=None) if self.show_expired else memory.item
        return item.is_current(self.moment.at) or (self.closed_too and item.status != "active")


@dataclass(frozen=True, slots=True)
class Place:
    """One level to search.

    Attributes:
        homes: Namespaces of its memories.
        facts: The one of them whose memories entities point to.
        entities: Namespace of those entities.
    """

    homes: Sequence[tuple[str, ...]]
    facts: tuple[str, ...]
    entities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """What the arms found, by `ref_text`: the memories, and each arm's scores."""

    pool: dict[str, StoredMemory] = field(default_factory=dict)
    semantic: dict[str, float] = field(default_factory=dict)
    words: dict[str, float] = field(default_factory=dict)
    entity: dict[str, float] = field(default_factory=dict)

    def add(self, arm: dict[str, float], memories: Sequence[StoredMemory]) -> None:
        """Note what an arm found."""
        self.pool.update({ref_text(each): each for each in memories})
        arm.update(arms.by_place(memories))


def search(question: Question, places: Sequence[Place]) -> Steps[list[StoredMemory]]:
    """Return the best memories of some levels, best first, each with the parts of its score."""
    if not question.query or not question.limit:
        return (yield from _newest(question, places))
    found = _Found()
    for place in places:
        for home in place.homes:
            yield from _search_home(home, question, found)
        yield from _entity_arm(place, question, found)
    fused = _fused(question, found)
    best = sorted(fused.items(), key=lambda pair: -pair[1]["score"])[: question.limit]
    return [found.pool[key].scored(parts["score"], parts) for key, parts in best]


def _newest(question: Question, places: Sequence[Place]) -> Steps[list[StoredMemory]]:
    found: list[StoredMemory] = []
    for home in (home for place in places for home in place.homes):
        found += yield from arms.newest(home, question.limit, question.shows)
        found += yield from _past(home, question)
    return sorted(found, key=when_said, reverse=True)[: question.limit]


def _past(home: tuple[str, ...], question: Question) -> Steps[list[StoredMemory]]:
    """Return the closed memories that may answer, and earlier versions if the past is asked."""
    if question.moment.past:
        return [
            each for each in (yield from earlier(home, question.moment)) if question.shows(each)
        ]
    return (yield from arms.hidden(home, question.shows)) if question.closed_too else []


def _search_home(home: tuple[str, ...], question: Question, found: _Found) -> Steps[None]:
    query, depth = question.query, question.depth
    near = yield from arms.semantic(home, query, depth, question.shows)
    past = yield from _past(home, question)
    named = yield from arms.lexical(home, query, depth, question.shows, near=near, past=past)
    near += yield from arms.embedded(query, arms.shortlist(query, past, depth))
    found.add(found.semantic, [e for e in near if (e.score or 0.0) >= question.threshold])
    found.add(found.words, named)


def _entity_arm(place: Place, question: Question, found: _Found) -> Steps[None]:
    """Add the facts of entities that the question names; of a crowded one the latest."""
    for asked in entities.entities_in(question.query)[:_QUERY_ENTITIES]:
        near = yield from entities.nearest(
            place.entities, asked.name, question.entity_match, limit=_QUERY_ENTITIES
        )
        for cosine, known in near:
            keys = entities.facts_of(known)
            boost = entity_boost(cosine, len(keys))
            for fact in (yield from _facts(place.facts, keys[-question.depth :], question, found)):
                ref = ref_text(fact)
                found.pool.setdefault(ref, fact)
                found.entity[ref] = max(found.entity.get(ref, 0.0), boost)


def _facts(
    home: tuple[str, ...], keys: Sequence[str], question: Question, found: _Found
) -> Steps[list[StoredMemory]]:
    """Return the facts under some keys that may be seen, reading those that no arm has found."""
    known = [found.pool.get(session_ref(home, key)) for key in keys]
    unread = [(home, key) for key, one in zip(keys, known, strict=True) if one is None]
    reading = journal.read(unread) if question.closed_too else Get(unread)
    read = yield from reading
    return [one for one in (*known, *read) if one is not None and question.shows(one)]


def _fused(question: Question, found: _Found) -> dict[str, dict[str, float]]:
    """Return the parts and the score of every member of an arm."""
    depth = question.depth
    semantic, raw = arms.top(found.semantic, depth), arms.top(found.words, depth)
    if question.fusion == "rrf":
        rankings = [list(arm) for arm in (semantic, raw, arms.top(found.entity, depth))]
        return {key: {"score": score} for key, score in reciprocal_rank_fusion(rankings)}
    terms = len(set(query_terms(question.query)))
    keyword = {key: keyword_boost(score, terms) for key, score in raw.items()}
    return boosted(semantic, keyword, found.entity)
