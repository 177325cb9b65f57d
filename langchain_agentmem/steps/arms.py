"""Retrieval arms: the best memories of one namespace by meaning, and by words.

What may be seen is decided before anything is cut: an arm asks the store for more until it has as
many memories that pass as it wants, or until there are no more. A scope is read whole only where a
store has no index at all. Closed memories have no vector in any store and are ranked here.
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
from langchain_agentmem.steps.effects import (
    Embed,
    Emit,
    HasWiderSearch,
    List,
    Now,
    Search,
    SearchMode,
    Steps,
)
from langchain_agentmem.steps.recall import Moment, earlier, ref_text, searched_text, when_said

OKAPI_K1: Final = 1.5
OKAPI_B: Final = 0.75
_DEEPER: Final = 4

Test = Callable[[StoredMemory], bool]


def nearest(home: tuple[str, ...], text: str, limit: int) -> Steps[list[StoredMemory]]:
    """Return the live memories of a namespace most similar to a text, best first."""
    return (yield from best(home, text, limit, Moment((yield from Now()))))


def best(
    home: tuple[str, ...], query: str, limit: int, moment: Moment
) -> Steps[list[StoredMemory]]:
    """Return the best memories of a namespace: by cosine, by words without it, else the newest."""
    test = moment.shows
    past = (
        [each for each in (yield from earlier(home, moment)) if test(each)] if moment.past else []
    )
    if not query:
        return sorted([*(yield from newest(home, limit, test)), *past], key=_age)[:limit]
    near = yield from semantic(home, query, limit, test)
    near += yield from embedded(query, shortlist(query, past, limit))
    if not any((each.score or 0.0) > 0 for each in near):
        near = (yield from lexical(home, query, limit, test, near=near, past=past)) or near
    return ranked(near)[:limit]


def ranked(memories: Sequence[StoredMemory]) -> list[StoredMemory]:
    """Return scored memories, best first."""
    return sorted(memories, key=lambda each: -(each.score or 0.0))


def _age(memory: StoredMemory) -> float:
    return -when_said(memory).timestamp()


def newest(home: tuple[str, ...], limit: int, test: Test) -> Steps[list[StoredMemory]]:
    """Return the newest live memories of a namespace that pass a test.

    Only a store of wider search lists the newest first; any other is read whole.
    """
    if (yield from HasWiderSearch()):
        return (yield from _deep(home, None, limit, test, "hybrid"))
    return sorted([each for each in (yield from List(home)) if test(each)], key=_age)[:limit]


def hidden(home: tuple[str, ...], test: Test) -> Steps[list[StoredMemory]]:
    """Return the superseded and archived memories of a namespace that pass a test."""
    found = yield from List(closed(home))
    return [each for one in found if test(each := replace(one, namespace=home))]


def semantic(
    home: tuple[str, ...], query: str, depth: int, test: Test
) -> Steps[list[StoredMemory]]:
    """Return the `depth` live memories most similar to a query, each scored with its cosine.

    A store without vectors gives none.
    """
    try:
        found = yield from _deep(home, query, depth, test, "dense")
    except ValueError:  # a store that is searched by words alone
        return []
    scores = [each.parts.get("cosine", each.score) for each in found]
    return [
        replace(each, score=score)
        for each, score in zip(found, scores, strict=True)
        if score is not None
    ]


def lexical(
    home: tuple[str, ...],
    query: str,
    depth: int,
    test: Test,
    *,
    near: Sequence[StoredMemory] = (),
    past: Sequence[StoredMemory] = (),
) -> Steps[list[StoredMemory]]:
    """Return the memories with a word of the query, each scored on the raw scale of Okapi BM25.

    Args:
        home: The namespace.
        query: The words.
        depth: At most this many.
        test: What a memory must pass.
        near: What the semantic arm found; on a store that cannot search words, only these are
            looked through.
        past: Closed memories to rank too.
    """
    if (yield from HasWiderSearch()):
        hits = yield from _deep(home, query, depth, test, "lexical")
        found = [each.scored(each.parts["bm25"]) for each in hits if "bm25" in each.parts]
        if len(found) == len(hits) and not past:
            return found
    else:
        yield from Emit("store_without_word_search", {"namespace": list(home)})
        found = []
    if not found and not near:  # no index at all
        found = [each for each in (yield from List(home)) if test(each)]
    pool = {ref_text(each): each for each in (*found, *near, *past)}
    return ranked(okapi(query, list(pool.values())))[:depth]


def _deep(
    home: tuple[str, ...], query: str | None, depth: int, test: Test, mode: SearchMode
) -> Steps[list[StoredMemory]]:
    """Search deeper and deeper until `depth` memories pass, or until there are no more."""
    limit = depth
    while limit:
        found = yield from Search(home, query, limit=limit, mode=mode)
        passed = [each for each in found if test(each)]
        if len(passed) >= depth or len(found) < limit:
            return passed[:depth]
        limit *= _DEEPER
    return []


def shortlist(query: str, memories: Sequence[StoredMemory], depth: int) -> Sequence[StoredMemory]:
    """Return the memories worth embedding: those with the most of the words, then the newest."""
    by_words = [replace(each, score=None) for each in ranked(okapi(query, memories))]
    every = {ref_text(each): each for each in (*by_words, *sorted(memories, key=_age))}
    return list(every.values())[:depth]


def embedded(query: str, memories: Sequence[StoredMemory]) -> Steps[list[StoredMemory]]:
    """Return memories scored with their cosine to a query, embedded here."""
    if not memories:
        return []
    try:
        (asked,) = yield from Embed([query], query=True)
        vectors = yield from Embed([searched_text(each) for each in memories])
    except ConfigurationError:  # no embedding model anywhere: words alone
        yield from Emit("closed_memories_by_words_only", {"count": len(memories)})
        return []
    return [
        each.scored(cosine(asked, vector)) for each, vector in zip(memories, vectors, strict=True)
    ]


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the cosine of two vectors; 0 where one is zero."""
    lengths = math.hypot(*first) * math.hypot(*second)
    return sum(a * b for a, b in zip(first, second, strict=True)) / lengths if lengths else 0.0


def okapi(query: str, pool: Sequence[StoredMemory]) -> list[StoredMemory]:
    """Return the memories of a pool with a word of the query, scored by Okapi (k1 1.5, b 0.75)."""
    index = LexicalIndex()
    index.add_many([terms(searched_text(each)) for each in pool])
    scores = index.scores(query_terms(query), k1=OKAPI_K1, b=OKAPI_B).tolist()
    return [each.scored(score) for each, score in zip(pool, scores, strict=True) if score > 0]


def by_place(memories: Sequence[StoredMemory]) -> dict[str, float]:
    """Return the scores of memories by `ref_text`."""
    return {ref_text(each): each.score for each in memories if each.score is not None}


def top(scores: Mapping[str, float], depth: int) -> dict[str, float]:
    """Return the best `depth` of some scores, best first."""
    return dict(sorted(scores.items(), key=lambda pair: -pair[1])[:depth])
