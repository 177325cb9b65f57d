"""Listing without a query: newest first, however many namespaces a scope has."""

import random

import pytest

from tests.unit_tests.floor import Clock
from tests.unit_tests.stores.conftest import Client


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
