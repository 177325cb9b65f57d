"""Hybrid recall over several namespaces of one scope, without a model call.

Each namespace gives a pool of its best matches; the pools are brought on one scale and ranked in
the context of their sessions by `langchain_agentmem.retrieval.rank`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langchain_agentmem.embeddings import dense_weight, word_vectors
from langchain_agentmem.items import StoredMemory, parse_timestamp, to_timestamp
from langchain_agentmem.retrieval.context import Candidate, Session
from langchain_agentmem.retrieval.fusion import normalize_dense, normalize_max
from langchain_agentmem.retrieval.lexical import LexicalIndex
from langchain_agentmem.retrieval.rank import (
    DEFAULT_WEIGHTS,
    STATIC_DENSE_WEIGHT,
    Ranked,
    Weights,
    rank,
)
from langchain_agentmem.retrieval.text import query_terms, terms
from langchain_agentmem.scopes import SEPARATOR, closed
from langchain_agentmem.steps.effects import (
    Emit,
    Get,
    HasWiderSearch,
    List,
    Now,
    Ref,
    Search,
    SearchEach,
    Steps,
    StoreEmbeddings,
)
from langchain_agentmem.steps.journal import as_it_was
from langchain_agentmem.steps.turns import Log, read_sessions, session_key

_RANKED_CHARACTERS: Final = 100_000
"""Of a huge memory so much is read again for ranking; the store has scored all of its words."""
_SESSIONS_READ: Final = 12
"""Records of so many sessions are read for context, those of the best matches."""


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
        found: The memories, best first.
        lexical: Their word scores, divided by the best one.
        cosine: Their similarities to the question; NaN where there is none.
        floor: The similarity that is worth nothing here, that of the namespace's 200th best; NaN
            where there is none.
    """

    found: Sequence[StoredMemory]
    lexical: Sequence[float]
    cosine: Sequence[float]
    floor: float = math.nan


def search(home: tuple[str, ...], query: str, depth: int, moment: Moment) -> Steps[Pool]:
    """Return the best matches of one namespace at a moment, as `search_each` does."""
    (pool,) = yield from search_each([(home, query)], depth, moment)
    return pool


def search_each(
    asked: Sequence[tuple[tuple[str, ...], str]], depth: int, moment: Moment
) -> Steps[list[Pool]]:
    """Return the best matches of namespaces at a moment; the newest where a query is empty.

    On a store without hybrid search the store's own matches are scored by words here; a store
    without any index is read whole, and so is a store that cannot tell what was newest or known.

    Args:
        asked: Each namespace with its query.
        depth: Most matches of each.
        moment: The time that is spoken of.
    """
    wider = yield from HasWiderSearch()
    known = {"observed_at": {"$lte": to_timestamp(moment.at)}} if moment.past and wider else None
    found: list[list[StoredMemory] | None] = [None] * len(asked)
    if wider or not (moment.past or not all(query for _, query in asked)):
        found[:] = yield from SearchEach(
            [Search(home, query or None, limit=depth, filter=known) for home, query in asked]
        )
    pools = []
    for (home, query), matches in zip(asked, found, strict=True):
        pools.append((yield from _pool(home, query, matches, moment)))
    return pools


def _pool(
    home: tuple[str, ...], query: str, matches: list[StoredMemory] | None, moment: Moment
) -> Steps[Pool]:
    """Return a pool of a store's matches, or of all of a namespace where it was not searched."""
    found = (yield from List(home)) if matches is None else matches
    finds_words = bool(found) or (yield from HasWiderSearch())
    by_words = finds_words and all("lexical" in each.parts for each in found)
    if query and not by_words:
        yield from Emit("store_without_hybrid_search", {"namespace": list(home)})
        if matches is not None and not any(each.score is not None for each in found):
            found = yield from List(home)
    if moment.past:
        found = [*found, *(yield from earlier(home, moment))]
    shown = [each for each in found if moment.shows(each)]
    if query and (moment.past or not by_words):
        return _scored_here(query, shown)
    return Pool(
        shown,
        [each.parts.get("lexical", 0.0) for each in shown],
        [each.parts.get("cosine", math.nan) for each in shown],
        _floor(found),
    )


def _floor(found: Sequence[StoredMemory]) -> float:
    """Return the similarity that a store counted as nothing, from the parts of its scores.

    The store knows all of a namespace; what it returned are matches of words, too, which may be
    less similar than many memories it did not return, and its most similar one need not be among
    them. Its scale is linear, so two of its points tell where it begins.
    """
    scale = sorted(
        (each.parts["dense"], each.parts["cosine"])
        for each in found
        if each.parts.get("dense", 0.0) > 0 and "cosine" in each.parts
    )
    if not scale or scale[0][0] == scale[-1][0]:
        return math.nan
    (low, cosine), (high, nearest) = scale[0], scale[-1]
    return cosine - low * (nearest - cosine) / (high - low)


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
    known = [each.parts.get("cosine", each.score) for each in found]
    cosine = np.array([math.nan if each is None else each for each in known])
    lexical = np.array(word_scores(query, found))
    order = np.argsort(-(lexical + STATIC_DENSE_WEIGHT * _dense(cosine)), kind="stable")
    return Pool([found[n] for n in order], lexical[order].tolist(), cosine[order].tolist())


def _dense(cosine: NDArray[np.float64], floor: float = math.nan) -> NDArray[np.float64]:
    """Return similarities on a scale of 0 to 1; 0 for all where there is none."""
    if not np.isfinite(cosine).any():
        return np.zeros(len(cosine))
    return normalize_dense(cosine, floor=None if math.isnan(floor) else floor)


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
) -> Steps[Sequence[Ranked]]:
    """Rank the pools of several namespaces together, in the context of their sessions.

    Args:
        query: The question as asked.
        pools: Pools of namespaces that the call may read.
        sessions: Sessions of their turns, by `session_ref`; of one that is not given, only the
            pool's turns are known. A memory that was saved outside of any conversation is a
            session of its own.
        weights: Weights of the ingredients.
    """
    embeddings = yield from StoreEmbeddings()
    if weights.dense is None:
        weights = replace(weights, dense=dense_weight(embeddings))
    if weights.latin_only is None:
        weights = replace(weights, latin_only=hasattr(embeddings, "covers"))
    candidates = _candidates(query, pools)
    memories = [each for pool in pools for each in pool.found]
    alone = {
        one.key: _alone(memory, one)
        for one, memory in zip(candidates, memories, strict=True)
        if one.session == one.key
    }
    known = {**sessions, **alone}
    usual = sum(each.length for each in known.values()) // max(len(known), 1)
    unread = {one.session: Session(one.session, (), usual) for one in candidates}
    return rank(query, candidates, {**unread, **known}, weights, word_vectors())


def sessions_of(pool: Pool, log: Log) -> Steps[dict[str, Session]]:
    """Return the sessions of a pool's best turns, by `session_ref`."""
    keys: dict[str, None] = {}
    for each in pool.found:
        key = session_key(each)
        if key:
            keys[key] = None
            if len(keys) == _SESSIONS_READ:
                break
    found = yield from read_sessions(log, [*keys])
    return {placed.key: placed for placed in (_placed(each, log.turns) for each in found)}


def _candidates(query: str, pools: Sequence[Pool]) -> list[Candidate]:
    """Bring the pools of several namespaces on one scale.

    A word score is relative to the best of its own namespace, which may itself match badly: it
    counts as much as that best match covers of the question. Similarities compare as they are.
    """
    wanted = set(query_terms(query))
    found = [each for pool in pools for each in pool.found]
    lexical = [score * cover for pool in pools for score, cover in _covered(pool, wanted)]
    cosine = np.array([each for pool in pools for each in pool.cosine])
    floors = [pool.floor for pool in pools if not math.isnan(pool.floor)]
    dense = _dense(cosine, max(floors, default=math.nan))
    return [
        _candidate(each, words, similarity)
        for each, words, similarity in zip(
            found, normalize_max(np.array(lexical)).tolist(), dense.tolist(), strict=True
        )
    ]


def _candidate(memory: StoredMemory, lexical: float, dense: float) -> Candidate:
    item, key = memory.item, ref_text(memory)
    content = item.text
    if len(content) > _RANKED_CHARACTERS:
        content = content[:_RANKED_CHARACTERS]
    session = session_key(memory)
    return Candidate(
        key=key,
        content=content,
        session=session_ref(memory.namespace, session) if session else key,
        speaker=item.attributed_to,
        observed_at=when_said(memory),
        lexical=lexical,
        dense=dense,
        title=str(item.metadata.get("title") or ""),
    )


def _covered(pool: Pool, wanted: set[str]) -> list[tuple[float, float]]:
    """Return each word score with the share of the question's terms that the best match holds."""
    if not pool.found:
        return []
    best = pool.found[max(range(len(pool.lexical)), key=pool.lexical.__getitem__)]
    cover = len(wanted.intersection(terms(searched_text(best)[:_RANKED_CHARACTERS]))) / (
        len(wanted) or 1
    )
    return [(score, cover) for score in pool.lexical]


def _alone(memory: StoredMemory, candidate: Candidate) -> Session:
    return Session(
        key=candidate.key,
        turns=(candidate.key,),
        length=len(terms(searched_text(memory)[:_RANKED_CHARACTERS])),
        started_at=candidate.observed_at,
        speakers=(candidate.speaker,),
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
    return _prefix(namespace) + key


@lru_cache(maxsize=1_024)
def _prefix(namespace: tuple[str, ...]) -> str:
    return SEPARATOR.join((*namespace, ""))


def _placed(session: Session, turns_home: tuple[str, ...]) -> Session:
    """Return a session whose keys are places, for ranking with those of other namespaces."""
    home = session_ref(turns_home, "")
    return replace(session, key=home + session.key, turns=tuple([home + t for t in session.turns]))


def _ref(text: str) -> Ref:
    *namespace, key = text.split(SEPARATOR)
    return tuple(namespace), key
