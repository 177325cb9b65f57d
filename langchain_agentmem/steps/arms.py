"""Retrieval arms over everything of one namespace that a call may see.

What may be seen is decided first, over all memories; only then is anything ranked or cut, so a
filter never empties a list of best matches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.items import StoredMemory
from langchain_agentmem.retrieval.lexical import LexicalIndex
from langchain_agentmem.retrieval.text import query_terms, terms
from langchain_agentmem.scopes import closed
from langchain_agentmem.steps.effects import Embed, Emit, List, Now, Search, Steps
from langchain_agentmem.steps.recall import Moment, ref_text, searched_text, when_said

OKAPI_K1: Final = 1.5
OKAPI_B: Final = 0.75

Test = Callable[[StoredMemory], bool]


def eligible(home: tuple[str, ...], test: Test, *, closed_too: bool) -> Steps[list[StoredMemory]]:
    """Return every memory of a namespace that passes a test.

    Args:
        home: The namespace.
        test: What a memory must pass: status, time, filter.
        closed_too: Also look among superseded and archived memories.
    """
    found = yield from List(home)
    if closed_too:
        hidden = yield from List(closed(home))
        found += [replace(each, namespace=home) for each in hidden]
    return [each for each in found if test(each)]


def nearest(home: tuple[str, ...], text: str, limit: int) -> Steps[list[StoredMemory]]:
    """Return the live memories of a namespace most similar to a text, best first.

    A store without vectors is searched by words.
    """
    now = yield from Now()
    pool = yield from eligible(home, lambda each: each.item.is_current(now), closed_too=False)
    near = yield from similarities(home, text, pool, limit)
    by_ref = {ref_text(each): each for each in pool}
    return [by_ref[ref] for ref in top(near or okapi(text, pool), limit)]


def best(
    home: tuple[str, ...], query: str, limit: int, moment: Moment
) -> Steps[list[StoredMemory]]:
    """Return the best memories of a namespace: by cosine, by words without it, else the newest."""
    pool = yield from eligible(home, moment.shows, closed_too=moment.past)
    if not query or not pool:
        return sorted(pool, key=when_said, reverse=True)[:limit]
    scores = yield from similarities(home, query, pool, limit)
    if not any(score > 0 for score in scores.values()):
        scores = okapi(query, pool)
    by_ref = {ref_text(each): each for each in pool}
    return [by_ref[ref].scored(score) for ref, score in top(scores, limit).items()]


def similarities(
    home: tuple[str, ...], query: str, pool: Sequence[StoredMemory], depth: int
) -> Steps[dict[str, float]]:
    """Return the cosine similarity of the best `depth` memories of a pool, by `ref_text`.

    Live memories are searched in the store; closed ones, which have no vector there, are embedded
    here. A store without vectors gives none.
    """
    wanted = {ref_text(each) for each in pool}
    live = sum(each.item.status == "active" for each in pool)
    found = yield from _nearest(home, query, live, depth, wanted)
    hidden = [each for each in pool if each.item.status != "active"]
    found.update((yield from _embedded(query, hidden)))
    best = sorted(found.items(), key=lambda pair: -pair[1])[:depth]
    return dict(best)


def _nearest(
    home: tuple[str, ...], query: str, live: int, depth: int, wanted: set[str]
) -> Steps[dict[str, float]]:
    """Search deeper and deeper until `depth` wanted memories, or all of them, are found."""
    limit = max(depth, 1)
    while live:
        try:
            hits = yield from Search(home, query, limit=limit, mode="dense")
        except ValueError:  # a store that is searched by words alone
            return {}
        found = {
            ref_text(each): each.parts.get("cosine", each.score)
            for each in hits
            if ref_text(each) in wanted
        }
        if len(found) >= min(depth, live) or len(hits) < limit:
            return {ref: score for ref, score in found.items() if score is not None}
        limit *= 4
    return {}


def _embedded(query: str, memories: Sequence[StoredMemory]) -> Steps[dict[str, float]]:
    if not memories:
        return {}
    try:
        (asked,) = yield from Embed([query], query=True)
        vectors = yield from Embed([searched_text(each) for each in memories])
    except ConfigurationError:  # no embedding model anywhere: words alone
        yield from Emit("closed_memories_by_words_only", {"count": len(memories)})
        return {}
    scores = (cosine(asked, vector) for vector in vectors)
    return {ref_text(each): score for each, score in zip(memories, scores, strict=True)}


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the cosine of two vectors; 0 where one is zero."""
    lengths = math.hypot(*first) * math.hypot(*second)
    return sum(a * b for a, b in zip(first, second, strict=True)) / lengths if lengths else 0.0


def okapi(query: str, pool: Sequence[StoredMemory]) -> dict[str, float]:
    """Return the raw Okapi BM25 score (k1 1.5, b 0.75) of each memory with a word of the query."""
    index = LexicalIndex()
    index.add_many([terms(searched_text(each)) for each in pool])
    scores = index.scores(query_terms(query), k1=OKAPI_K1, b=OKAPI_B).tolist()
    return {ref_text(each): score for each, score in zip(pool, scores, strict=True) if score > 0}


def top(scores: Mapping[str, float], depth: int) -> dict[str, float]:
    """Return the best `depth` of some scores, best first."""
    return dict(sorted(scores.items(), key=lambda pair: -pair[1])[:depth])
