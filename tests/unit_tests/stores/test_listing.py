"""Listing without a query: newest first, however many namespaces a scope has."""

import random

import numpy as np
import pytest

from langchain_agentmem.stores._search import _leading
from tests.unit_tests.stores.conftest import Client, Clock


@pytest.mark.parametrize("merged", [0, 1, 1_000])
def test_pages_are_newest_first(
    client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch, merged: int
) -> None:
    """Pages follow the times of update, ties by write order, and leave out what has expired."""
    monkeypatch.setattr("langchain_agentmem.stores._search._MERGED", merged)
    monkeypatch.setattr("langchain_agentmem.stores._search._FIRST_PAGE", 2)
    rng = random.Random(5)  # noqa: S311 - test data
    order: dict[tuple[tuple[str, ...], str], int] = {}
    for n in range(90):
        clock.move(rng.choice([0.0, 1.0]))
        namespace, key = rng.choice([("a",), ("a", "x"), ("a", "y"), ("ab",)]), str(n % 60)
        ttl = 1 if n % 5 == 0 else None
        client.put(namespace, key, {"n": n}, ttl=ttl)
        order.pop((namespace, key), None)
        order[namespace, key] = -1 if ttl else n
    clock.move(70)
    for prefix in [(), ("a",), ("a", "x"), ("none",)]:
        below = [n for (space, _), n in order.items() if n >= 0 and space[: len(prefix)] == prefix][
            ::-1
        ]
        for test, wanted in [(None, below), ({"n": {"$gt": 40}}, [n for n in below if n > 40])]:
            found = [
                hit.value["n"]
                for offset in range(0, 100, 7)
                for hit in client.search(prefix, filter=test, limit=7, offset=offset)
            ]
            assert found == wanted


@pytest.mark.parametrize("size", [1, 5, 39, 40, 41, 1_000])
@pytest.mark.parametrize("wanted", [1, 5, 200])
def test_leading_values_are_the_highest(size: int, wanted: int) -> None:
    """Every value at least as high as the last one wanted is kept, none below, equal ones too."""
    rng = np.random.default_rng(size)
    for values in (rng.random(size), rng.integers(0, 3, size).astype(float), np.zeros(size)):
        count = min(wanted, size)
        bar = np.sort(values)[::-1][count - 1]
        assert _leading(values, count).tolist() == np.flatnonzero(values >= bar).tolist()
