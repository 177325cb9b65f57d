"""The memory budget: what is held is counted, and what exceeds it is read from the file."""

import random

import numpy as np
import pytest
from langgraph.store.base import PutOp

from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.stores._segments import Segment, SegmentCache
from tests.unit_tests.floor import Clock
from tests.unit_tests.stores.conftest import Letters, Open

Found = list[tuple[str, float | None]]


def _cache(store: FaissSqliteStore) -> SegmentCache:
    assert store._engine is not None
    assert store._engine.index is not None
    return store._engine.index.segments


def _found(store: FaissSqliteStore, prefix: tuple[str, ...], **options: object) -> Found:
    hits = store.search(prefix, refresh_ttl=False, **options)  # type: ignore[arg-type]
    return [(hit.key, hit.score) for hit in hits]


def _alike(left: Found, right: Found) -> bool:
    return [key for key, _ in left] == [key for key, _ in right] and np.allclose(
        [score or 0.0 for _, score in left], [score or 0.0 for _, score in right], atol=1e-6
    )


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes vectors be read a few at a time."""
    monkeypatch.setattr("langchain_agentmem.stores._index._LOAD_CHUNK", 7)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("distance", ["cosine", "inner_product", "l2"])
@pytest.mark.parametrize("budget", [0, 0.008])
def test_vectors_beyond_the_budget_are_found_in_the_file(
    open_store: Open,
    embedder: Letters,
    clock: Clock,
    distance: str,
    budget: float,
) -> None:
    """Filters, pages, expiry, several texts an item, changes: the same results as from memory."""
    index = {"dims": 36, "embed": embedder, "fields": ["text[*]"], "distance_type": distance}
    memory, file = open_store(index=index), open_store(index=index, memory_budget_mb=budget)
    rng = random.Random(3)  # noqa: S311 - test data
    for n in range(120):
        texts = ["".join(rng.choices("abcdefgh", k=5)) for _ in range(n % 3 + 1)]
        namespace, key = ("a", rng.choice("xyz")), str(n % 90)
        value = {"text": texts, "even": n % 2 == 0}
        memory.put(namespace, key, value, ttl=1 if n % 9 else None)
        if n % 8 == 0:
            memory.delete(namespace, str(n % 90 - 5))
        for prefix in ((), ("a", "x")) if n % 7 == 0 else ():
            options = {"query": "abc", "filter": {"even": True} if n % 2 else None, "offset": n % 4}
            for mode in ("dense", "hybrid"):
                found = _found(file, prefix, mode=mode, **options)
                assert _alike(found, _found(memory, prefix, mode=mode, **options))
    clock.move(61)
    assert _alike(_found(file, (), query="abc"), _found(memory, (), query="abc"))


def test_a_scope_that_fits_keeps_its_vectors_beside_one_that_does_not(
    open_store: Open, embedder: Letters
) -> None:
    """A search of everything, which must read the file, takes nothing from the scopes in use."""
    store = open_store(index={"dims": 36, "embed": embedder}, memory_budget_mb=0.03)
    places = [("a", "small" if n % 40 == 0 else f"s{n % 9}") for n in range(400)]
    store.batch([PutOp(place, str(n), {"text": f"word {n}"}) for n, place in enumerate(places)])
    assert len(_found(store, ("a", "small"), query="word 40", limit=50)) == 10
    assert len(_found(store, (), query="word 40", limit=50)) == 50
    assert _found(store, ("a", "small"), query="word 40")[0][0] == "40"
    held = {segment.root: segment for segment in _cache(store).all()}
    assert held["a\x1fsmall\x1f"].vectors is not None
    assert held[""].vectors is None
    assert _cache(store).nbytes < 30_000


def _check(cache: SegmentCache) -> None:
    assert cache.nbytes == sum(segment.nbytes for segment in cache.all())


def test_held_bytes_are_those_of_all_segments(open_store: Open, embedder: Letters) -> None:
    """The running count follows loads, changes, filters, words, removals and drops."""
    store = open_store(index={"dims": 36, "embed": embedder, "mode": "hybrid"})
    for n in range(60):
        store.put(("a", f"s{n % 5}"), str(n), {"text": f"word {n}", "tag": n % 7})
    for n in range(5):
        store.search(("a", f"s{n}"), query="word", filter={"tag": n})
        _check(_cache(store))
    assert len(_cache(store)) == 5
    for n in range(40):
        store.put(("a", f"s{n % 5}"), str(n + 100), {"text": f"another {n}"})
        store.delete(("a", f"s{n % 5}"), str(n))
        store.search(("a", f"s{n % 5}"), query="word", filter={"tag": 3})
        _check(_cache(store))
    store.search(("a",), query="word")
    _check(_cache(store))
    assert [segment.root for segment in _cache(store).all()] == ["a\x1f"]
    cache = _cache(store)
    cache.budget = 0
    cache.trim()
    assert (cache.nbytes, len(cache)) == (0, 0)


def test_the_least_recently_used_scope_is_dropped_first(
    open_store: Open, embedder: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scope that is searched again and again stays while others come and go."""
    store = open_store(index={"dims": 36, "embed": embedder}, memory_budget_mb=0.02)
    store.batch([PutOp(("a", f"s{n % 20}"), str(n), {"text": f"word {n}"}) for n in range(80)])
    for n in range(1, 20):
        store.search(("a", "s0"), query="word")
        store.search(("a", f"s{n}"), query="word")
        assert _cache(store).nbytes <= 20_000

    def fail(*_: object, **__: object) -> Segment:
        msg = "loaded again"
        raise AssertionError(msg)

    assert _found(store, ("a", "s0"), query="word 20")[0][0] == "20"
    monkeypatch.setattr("langchain_agentmem.stores._index.MemoryIndex._load", fail)
    store.search(("a", "s0"), query="word")
    with pytest.raises(AssertionError, match="loaded again"):
        store.search(("a", "s1"), query="word")
