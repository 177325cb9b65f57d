"""Pools of candidates: their scale, their order, and the sessions that are read for them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from langgraph.store.base import Op, SearchOp
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.items import MemoryItem, StoredMemory
from langchain_agentmem.retrieval.context import Session
from langchain_agentmem.retrieval.fusion import normalize_dense
from langchain_agentmem.retrieval.rank import Ranked
from langchain_agentmem.steps import recall
from langchain_agentmem.steps.drivers import run
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.steps.recall import Pool
from langchain_agentmem.steps.turns import Log
from langchain_agentmem.stores import FaissSqliteStore

LOG = Log(("memories", "ann", "rag"))


def _turn(key: str, session: str | None, **parts: float) -> StoredMemory:
    """Return a turn of a session that a search found."""
    own = {"_turn": {"session": session, "thread": "t"}} if session else {}
    item = MemoryItem(content=f"Word {key}.", metadata=own)
    return StoredMemory(item=item, namespace=LOG.turns, key=key, parts=parts)


def test_similarities_of_a_pool_are_on_the_scale_of_its_scope() -> None:
    """Matches of words that are hardly similar lend no other a dense score."""
    cosine = np.linspace(0.9, 0.1, 300)
    scope = normalize_dense(cosine)
    chosen = [0, 50, 120, 260, 299]
    found = [_turn(str(n), None, cosine=cosine[n], dense=scope[n]) for n in chosen]
    floor = recall._floor(found)
    assert floor == pytest.approx(cosine[199])
    pool = Pool(found, [0.0] * len(found), [float(cosine[n]) for n in chosen], floor)
    dense = [each.dense for each in recall._candidates("Word?", [pool])]
    assert dense == pytest.approx(scope[chosen].tolist())


def test_scale_of_a_scope_is_known_without_its_most_similar_memory() -> None:
    """Many matches of words may leave the nearest vector out of the pool."""
    cosine = np.linspace(0.9, 0.1, 300)
    scope = normalize_dense(cosine)
    found = [_turn(str(n), None, cosine=cosine[n], dense=scope[n]) for n in (20, 21, 90, 250)]
    assert recall._floor([*found, _turn("words", None, lexical=1.0)]) == pytest.approx(cosine[199])


@pytest.mark.parametrize("parts", [{}, {"lexical": 1.0}, {"cosine": 0.5, "dense": 1.0}])
def test_scale_is_unknown_where_no_score_tells_it(parts: dict[str, float]) -> None:
    """Then a pool is normalized over itself."""
    assert np.isnan(recall._floor([_turn("a", None, **parts)]))


def test_sessions_of_the_best_turns_alone_are_read() -> None:
    """A question that touches a hundred sessions reads as many records as count, no more."""
    found = [_turn(str(n), f"s{n}") for n in range(100)]
    pool = Pool(found, [1.0] * 100, [0.0] * 100)
    asked = next(recall.sessions_of(pool, LOG))
    assert [key for _, key in getattr(asked, "refs", ())] == [f"s{n}" for n in range(12)]


def test_turn_whose_session_is_not_read_keeps_its_rank_among_equals() -> None:
    """What a session adds does not depend on whether its record was read."""
    with FaissSqliteStore(":memory:") as store:
        pool = Pool([_turn("a", "read"), _turn("b", "unread")], [1.0, 1.0], [0.5, 0.5])
        record = Session(recall.session_ref(LOG.turns, "read"), ("x", "y"), 4)

        def ranked(sessions: dict[str, Session]) -> Sequence[Ranked]:
            return run(recall.ranked("word", [pool], sessions), Environment(store=store))

        first, second = ranked({record.key: record})[:2]
    assert first.score == pytest.approx(second.score)


class _Mute(InMemoryStore):
    """A store whose search finds nothing for any query."""

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        """Answer everything but queries."""
        return [
            [] if isinstance(op, SearchOp) and op.query else super(_Mute, self).batch([op])[0]
            for op in ops
        ]


def test_store_that_finds_nothing_is_searched_by_words() -> None:
    """What a foreign store's own search does not return is not lost."""
    store = _Mute()
    store.put(LOG.turns, "a", {"content": "My parrot is called Zanzibar."})
    moment = recall.Moment(datetime.now(UTC))
    pool = run(recall.search(LOG.turns, "parrot", 5, moment), Environment(store=store))
    assert [each.key for each in pool.found] == ["a"]
