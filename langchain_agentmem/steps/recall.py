"""Hybrid recall over several namespaces of one scope, without a model call.

Each namespace gives a pool of its best matches; the pools are brought on one scale and ranked in
the context of their sessions by `langchain_agentmem.retrieval.rank`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from langchain_agentmem.embeddings import dense_weight, word_vectors
from langchain_agentmem.items import StoredMemory, parse_timestamp, to_timestamp
from langchain_agentmem.retrieval.context import Candidate, Session
from langchain_agentmem.retrieval.fusion import normalize_dense, normalize_max
from langchain_agentmem.retrieval.lexical import LexicalIndex
from langchain_agentmem.retrieval.rank import DEFAULT_WEIGHTS, Ranked, Weights, rank
from langchain_agentmem.retrieval.text import heading, query_terms, terms
from langchain_agentmem.scopes import SEPARATOR, closed
from langchain_agentmem.steps.effects import (
    Emit,
    Get,
    HasWiderSearch,
    List,
    Now,
    Ref,
    Search,
    Steps,
    StoreEmbeddings,
)
from langchain_agentmem.steps.journal import as_it_was
from langchain_agentmem.steps.turns import session_key

_RANKED_CHARACTERS: Final = 100_000
"""Of a huge memory so much is read again for ranking; the store has scored all of its words."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The time that recall speaks of.

    Attributes:
        at: The time itself.
        past: True to recall what was known and held then; False for now.
    """

    at: datetime
    past: bool = False

    def shows(self, memory: StoredMemory) -> bool:
        """Tell whether a memory was known and held at the moment."""
        if not self.past:
            return memory.item.is_current(self.at)
        known = when_said(memory) <= self.at and not self.precedes_change_of(memory)
        return known and memory.item.holds_at(self.at)

    def precedes_change_of(self, memory: StoredMemory) -> bool:
        """Tell whether a memory may have had another content at the moment."""
        changed = memory.item.version > 1 or memory.item.status != "active"
        return changed and (memory.updated_at is None or memory.updated_at > self.at)


def moment_of(state: Mapping[str, Any]) -> Steps[Moment]:
    """Return the time that a recall speaks of: `as_of` of its state, or now."""
    if state.get("as_of"):
        return Moment(parse_timestamp(state["as_of"]), past=True)
    return Moment((yield from Now()))


@dataclass(frozen=True, slots=True)
class Pool:
    """The best matches of one namespace, with what their scores are made of.

    Attributes:
        found: The memories.
        lexical: Their word scores, divided by the best one.
        cosine: Their similarities to the question; NaN where there is none.
    """

    found: Sequence[StoredMemory]
    lexical: Sequence[float]
    cosine: Sequence[float]


def search(home: tuple[str, ...], query: str, depth: int, moment: Moment) -> Steps[Pool]:
    """Return the best matches of one namespace at a moment; the newest without a query.

    On a store without hybrid search the store's own matches are scored by words here; a store
    without any index is read whole, and so is a store that cannot tell what was newest or known.
    """
    wider = yield from HasWiderSearch()
    known = {"observed_at": {"$lte": to_timestamp(moment.at)}} if moment.past and wider else None
    whole = not wider and (moment.past or not query)
    best = Search(home, query or None, limit=depth, filter=known)
    found = yield from (List(home) if whole else best)
    by_words = all("lexical" in each.parts for each in found)
    if query and not by_words:
        yield from Emit("store_without_hybrid_search", {"namespace": list(home)})
        if found[0].score is None and not whole:
            found = yield from List(home, filter=known)
    if moment.past:
        found = [*found, *(yield from earlier(home, moment))]
    shown = [each for each in found if moment.shows(each)]
    if query and (moment.past or not by_words):
        return _scored_here(query, shown)
    return Pool(
        shown,
        [each.parts.get("lexical", 0.0) for each in shown],
        [each.parts.get("cosine", math.nan) for each in shown],
    )


def earlier(home: tuple[str, ...], moment: Moment) -> Steps[list[StoredMemory]]:
    """Return the memories of a namespace that are closed or were changed since, as they were."""
    updated = {"version": {"$gt": 1}} if (yield from HasWiderSearch()) else None
    hidden = yield from List(closed(home))
    found = [
        *(each for each in (yield from List(home, filter=updated))),
        *(replace(each, namespace=home) for each in hidden),
    ]
    then: list[StoredMemory] = []
    for each in found:
        if moment.precedes_change_of(each):
            then.append((yield from as_it_was(each, moment.at)))
        elif each.item.status != "active":
            then.append(each)
    return then


def _scored_here(query: str, found: Sequence[StoredMemory]) -> Pool:
    cosine = [each.parts.get("cosine", each.score) for each in found]
    return Pool(
        found, word_scores(query, found), [math.nan if each is None else each for each in cosine]
    )


def word_scores(query: str, found: Sequence[StoredMemory]) -> list[float]:
    """Score memories by the words of a query alone, divided by the best score."""
    if not found:
        return []
    index = LexicalIndex()
    index.add_many([terms(searched_text(each)) for each in found])
    scores: list[float] = normalize_max(index.scores(query_terms(query))).tolist()
    return scores


def ranked(
    query: str,
    pools: Sequence[Pool],
    sessions: Mapping[str, Session],
    weights: Weights = DEFAULT_WEIGHTS,
) -> Steps[list[Ranked]]:
    """Rank the pools of several namespaces together, in the context of their sessions.

    Args:
        query: The question as asked.
        pools: Pools of namespaces that the call may read.
        sessions: The sessions of their turns, by `session_ref`. A memory that was saved outside
            of any conversation is a session of its own.
        weights: Weights of the ingredients.
    """
    embeddings = yield from StoreEmbeddings()
    if weights.dense is None:
        weights = replace(weights, dense=dense_weight(embeddings))
    if weights.latin_only is None:
        weights = replace(weights, latin_only=hasattr(embeddings, "covers"))
    alone = {
        ref_text(each): _alone(each)
        for pool in pools
        for each in pool.found
        if session_key(each) is None
    }
    return rank(query, _candidates(query, pools), {**sessions, **alone}, weights, word_vectors())


def _candidates(query: str, pools: Sequence[Pool]) -> list[Candidate]:
    """Bring the pools of several namespaces on one scale.

    A word score is relative to the best of its own namespace, which may itself match badly: it
    counts as much as that best match covers of the question. Similarities compare as they are.
    """
    wanted = set(query_terms(query))
    found = [each for pool in pools for each in pool.found]
    lexical = [score * cover for pool in pools for score, cover in _covered(pool, wanted)]
    cosine = np.array([each for pool in pools for each in pool.cosine])
    dense = normalize_dense(cosine) if np.isfinite(cosine).any() else np.zeros(len(found))
    return [
        Candidate(
            key=ref_text(each),
            content=each.text[:_RANKED_CHARACTERS],
            session=session_ref(each.namespace, session_key(each) or each.key),
            speaker=each.item.attributed_to,
            observed_at=when_said(each),
            lexical=words,
            dense=similarity,
            title=str(each.metadata.get("title") or heading(each.text)),
        )
        for each, words, similarity in zip(
            found, normalize_max(np.array(lexical)).tolist(), dense.tolist(), strict=True
        )
    ]


def _covered(pool: Pool, wanted: set[str]) -> list[tuple[float, float]]:
    """Return each word score with the share of the question's terms that the best match holds."""
    if not pool.found:
        return []
    best = pool.found[max(range(len(pool.lexical)), key=pool.lexical.__getitem__)]
    cover = len(wanted.intersection(terms(searched_text(best)[:_RANKED_CHARACTERS]))) / (
        len(wanted) or 1
    )
    return [(score, cover) for score in pool.lexical]


def _alone(memory: StoredMemory) -> Session:
    return Session(
        key=ref_text(memory),
        turns=(ref_text(memory),),
        length=len(terms(searched_text(memory)[:_RANKED_CHARACTERS])),
        started_at=when_said(memory),
        speakers=(memory.item.attributed_to,),
    )


def first(
    order: Sequence[Ranked], pools: Sequence[Pool], limit: int, moment: Moment
) -> Steps[list[StoredMemory]]:
    """Return the best `limit` memories, reading those that are known by key only."""
    known = {ref_text(each): each for pool in pools for each in pool.found}
    chosen: list[StoredMemory] = []
    position = 0
    while len(chosen) < limit and position < len(order):
        part = order[position : position + limit - len(chosen)]
        position += len(part)
        unread = [_ref(one.key) for one in part if one.key not in known]
        for each in (yield from Get(unread)):
            if each is not None:
                known[ref_text(each)] = each
        for one in part:
            memory = known.get(one.key)
            if memory is not None and moment.shows(memory):
                chosen.append(memory.scored(one.score, one.parts))
    return chosen


def when_said(memory: StoredMemory) -> datetime:
    """Return when a memory was observed, or else written."""
    return memory.observed_at or memory.created_at or datetime.min.replace(tzinfo=UTC)


def searched_text(memory: StoredMemory) -> str:
    """Return the text of a memory that is indexed."""
    return memory.item.search_text or memory.text


def ref_text(memory: StoredMemory) -> str:
    """Return a memory's place as one string, so that keys of several namespaces never meet."""
    return session_ref(memory.namespace, memory.key)


def session_ref(namespace: tuple[str, ...], key: str) -> str:
    """Return a session's place, named by the namespace of its turns, as one string."""
    return SEPARATOR.join((*namespace, key))


def placed(session: Session, turns_home: tuple[str, ...]) -> Session:
    """Return a session whose keys are places, for ranking with those of other namespaces."""
    home = session_ref(turns_home, "")
    return replace(session, key=home + session.key, turns=tuple([home + t for t in session.turns]))


def _ref(text: str) -> Ref:
    *namespace, key = text.split(SEPARATOR)
    return tuple(namespace), key
