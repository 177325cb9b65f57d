"""Composite effects: exact namespaces, order, paging and expiry on any store."""

from datetime import timedelta
from typing import Any

import pytest
from langgraph.store.base import BaseStore

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.steps.effects import Get, List, Namespaces, Put, Search, Steps, Write
from langchain_agentmem.steps.environment import Environment
from tests.unit_tests.floor import START, Drive


def _fill(store: BaseStore, *namespaces: tuple[str, ...], count: int = 1) -> None:
    """Put `count` items into each namespace."""
    for namespace in namespaces:
        for number in range(count):
            store.put(namespace, f"k{number}", {"content": f"{number}", "n": number}, index=False)


def _keys(found: list[Any]) -> list[tuple[tuple[str, ...], str]]:
    return [(each.namespace, each.key) for each in found]


def test_search_leaves_deeper_namespaces_out(
    drive: Drive, env: Environment, any_store: BaseStore
) -> None:
    """An item of `("m", "u", "x")`, and of `("m", "u10")`, is never found in `("m", "u")`."""
    _fill(any_store, ("m", "u"), ("m", "u", "x"), ("m", "u10"))

    def step() -> Steps[list[Any]]:
        return (yield from Search(("m", "u")))

    assert _keys(drive(step(), env)) == [(("m", "u"), "k0")]


def test_search_below_a_prefix_is_asked_for(
    drive: Drive, env: Environment, any_store: BaseStore
) -> None:
    """With `exact=False` everything below the namespace is found too, never its neighbors."""
    _fill(any_store, ("m", "u"), ("m", "u", "x"), ("m", "u10"))

    def step() -> Steps[list[Any]]:
        return (yield from Search(("m", "u"), exact=False))

    assert {place for place, _ in _keys(drive(step(), env))} == {("m", "u"), ("m", "u", "x")}


@pytest.mark.parametrize(("limit", "offset"), [(3, 0), (3, 2), (0, 0), (100, 0), (5, 58)])
def test_search_pages_past_deeper_items(
    drive: Drive, env: Environment, any_store: BaseStore, limit: int, offset: int
) -> None:
    """However many newer items lie deeper, limit and offset count those of the namespace."""
    _fill(any_store, ("m", "u"), count=60)
    _fill(any_store, ("m", "u", "x"), count=70)

    def step(limit: int, offset: int) -> Steps[list[Any]]:
        return (yield from Search(("m", "u"), limit=limit, offset=offset))

    whole = _keys(drive(step(1000, 0), env))
    assert len(whole) == 60
    assert _keys(drive(step(limit, offset), env)) == whole[offset : offset + limit]


def test_list_pages_through_everything(
    drive: Drive, env: Environment, any_store: BaseStore
) -> None:
    """All items of the namespace come, whatever the page size, and the filter holds."""
    _fill(any_store, ("m",), ("m", "deeper"), count=7)

    def step(filter_: dict[str, Any] | None) -> Steps[list[Any]]:
        return (yield from List(("m",), filter=filter_, page=3))

    assert sorted(_keys(drive(step(None), env))) == [(("m",), f"k{n}") for n in range(7)]
    assert _keys(drive(step({"n": 4}), env)) == [(("m",), "k4")]


def test_namespaces_pages_through_everything(
    drive: Drive, env: Environment, any_store: BaseStore
) -> None:
    """All namespaces at and below the prefix, never a neighbor with a longer label."""
    _fill(any_store, ("m",), ("m", "a"), ("m", "b", "c"), ("m", "d"), ("m2",))

    def step() -> Steps[list[Any]]:
        return (yield from Namespaces(("m",), page=2))

    assert sorted(drive(step(), env)) == [("m",), ("m", "a"), ("m", "b", "c"), ("m", "d")]


def test_get_answers_in_the_order_asked(
    drive: Drive, env: Environment, any_store: BaseStore
) -> None:
    """A key that is nowhere gives None in its place; nothing asked is nothing read."""
    _fill(any_store, ("m",), count=2)

    def step(*keys: str) -> Steps[list[Any]]:
        return (yield from Get([(("m",), key) for key in keys]))

    found = drive(step("k1", "none", "k0"), env)
    assert [each and each.key for each in found] == ["k1", None, "k0"]
    assert drive(step(), env) == []


def test_a_write_is_one_batch(drive: Drive, env: Environment, any_store: BaseStore) -> None:
    """Puts and deletions are applied together; a value of None deletes."""
    _fill(any_store, ("m",))

    def step() -> Steps[None]:
        yield from Write([Put(("m",), "new", {"content": "x"}), Put(("m",), "k0", None)])

    drive(step(), env)
    assert [each.key for each in any_store.search(("m",))] == ["new"]


def test_writing_nothing_touches_no_store(drive: Drive) -> None:
    """An empty write needs no store, which a write of something does."""

    def step(*puts: Put) -> Steps[str]:
        yield from Write(list(puts))
        return "done"

    assert drive(step(), Environment()) == "done"
    with pytest.raises(ConfigurationError, match="No store"):
        drive(step(Put(("m",), "k", {})), Environment())


@pytest.mark.parametrize(("days", "minutes"), [(1, 1440), (-1, 1 / 60)])
def test_expiry_becomes_a_time_to_live_where_the_store_can(days: int, minutes: float) -> None:
    """The store's time to live only collects: never sooner than the expiry, never at once."""

    class Collecting:
        supports_ttl = True

    put = Put(("m",), "k", {"content": "x"}, expires_at=START + timedelta(days=days))
    env = Environment(store=Collecting())  # type: ignore[arg-type]
    assert env.put_op(put, START).ttl == pytest.approx(minutes)
    assert Environment().put_op(put, START).ttl is None
