"""Recall by meaning, words and entities, fused; no model call.

What a call may see is decided first, over everything of its levels; then each arm ranks it; then
the arms are fused over the union of their members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from langchain_agentmem.items import StoredMemory
from langchain_agentmem.retrieval.boosts import boosted, entity_boost, keyword_boost
from langchain_agentmem.retrieval.filters import matches
from langchain_agentmem.retrieval.fusion import reciprocal_rank_fusion
from langchain_agentmem.retrieval.text import query_terms
from langchain_agentmem.steps import arms, entities
from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.steps.recall import Moment, ref_text, session_ref, when_said

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


def search(question: Question, places: Sequence[Place]) -> Steps[list[StoredMemory]]:
    """Return the best memories of some levels, best first, each with the parts of its score."""
    query, depth = question.query, question.depth
    pool: dict[str, StoredMemory] = {}
    semantic: dict[str, float] = {}
    entity: dict[str, float] = {}
    for place in places:
        for home in place.homes:
            seen = yield from arms.eligible(home, question.shows, closed_too=question.closed_too)
            pool.update({ref_text(each): each for each in seen})
            if query and seen:
                near = yield from arms.similarities(home, query, seen, depth)
                semantic.update({k: s for k, s in near.items() if s >= question.threshold})
        if query:
            entity.update((yield from _entity_arm(place, question, pool)))
    if not query:
        return sorted(pool.values(), key=when_said, reverse=True)[: question.limit]
    fused = _fused(question, pool, arms.top(semantic, depth), entity)
    best = sorted(fused.items(), key=lambda pair: -pair[1]["score"])[: question.limit]
    return [pool[key].scored(parts["score"], parts) for key, parts in best]


def _entity_arm(
    place: Place, question: Question, pool: Mapping[str, StoredMemory]
) -> Steps[dict[str, float]]:
    found: dict[str, float] = {}
    for asked in entities.entities_in(question.query)[:_QUERY_ENTITIES]:
        near = yield from entities.nearest(
            place.entities, asked.name, question.entity_match, limit=_QUERY_ENTITIES
        )
        for cosine, known in near:
            keys = entities.facts_of(known)
            for ref in (session_ref(place.facts, key) for key in keys):
                if ref in pool:
                    found[ref] = max(found.get(ref, 0.0), entity_boost(cosine, len(keys)))
    return found


def _fused(
    question: Question,
    pool: Mapping[str, StoredMemory],
    semantic: Mapping[str, float],
    entity: Mapping[str, float],
) -> dict[str, dict[str, float]]:
    """Return the parts and the score of every member of an arm."""
    raw = arms.top(arms.okapi(question.query, list(pool.values())), question.depth)
    if question.fusion == "rrf":
        rankings = [list(arm) for arm in (semantic, raw, arms.top(entity, question.depth))]
        return {key: {"score": score} for key, score in reciprocal_rank_fusion(rankings)}
    terms = len(set(query_terms(question.query)))
    keyword = {key: keyword_boost(score, terms) for key, score in raw.items()}
    return boosted(semantic, keyword, entity)
