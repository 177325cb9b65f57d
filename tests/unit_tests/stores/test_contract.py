"""Order, limits, namespaces, timestamps, values, batches, expiry: the rows of the contract."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.stores import FaissSqliteStore, StoreSearchOp
from tests.unit_tests.floor import Clock
from tests.unit_tests.stores.conftest import Client, Letters, Open


@pytest.mark.parametrize("bad", [{"limit": -1}, {"offset": -1}, {"limit": True}, {"offset": 1.5}])
def test_l1_bad_limit_or_offset(client: Client, bad: dict[str, Any]) -> None:
    """A negative limit or offset, or one that is no integer, raises ValueError."""
    with pytest.raises(ValueError, match=r"limit|offset"):
        client.search(("a",), **bad)
    with pytest.raises(ValueError, match=r"limit|offset"):
        client.list_namespaces(**bad)


def test_l1_limit_zero_gives_nothing(client: Client) -> None:
    """A limit of zero is no error and gives an empty page."""
    client.put(("a",), "k", {"text": "x"})
    assert client.search(("a",), limit=0) == client.search(("a",), limit=0, query="x") == []
    assert client.search(("a",), limit=0, filter={"text": "x"}) == []


def test_l2_depth_zero(client: Client) -> None:
    """A depth below one raises ValueError."""
    with pytest.raises(ValueError, match="max_depth"):
        client.list_namespaces(max_depth=0)


def test_l3_newest_update_first(client: Client, clock: Clock) -> None:
    """Without a query the newest update comes first, also within one instant and one batch."""
    client.put(("a",), "1", {"text": "x"})
    client.put(("a",), "2", {"text": "x"})
    client.batch([PutOp(("a",), "3", {}), PutOp(("a",), "4", {}), PutOp(("a",), "3", {})])
    assert client.keys(("a",)) == ["3", "4", "2", "1"]
    clock.move(1e-6)
    client.put(("a",), "1", {"text": "y"})
    assert client.keys(("a",), limit=2, offset=0) == ["1", "3"]
    assert client.keys(("a",), limit=2, offset=1) == ["3", "4"]


def test_l4_namespace_without_items_is_not_listed(client: Client, clock: Clock) -> None:
    """Reading, emptying or expiry leaves no namespace behind."""
    client.get(("read",), "k")
    client.put(("emptied",), "k", {})
    client.delete(("emptied",), "k")
    client.put(("expired",), "k", {}, ttl=1)
    client.put(("live",), "k", {})
    clock.move(61)
    assert client.list_namespaces() == [("live",)]


def test_namespaces_match_whole_segments_literally(client: Client) -> None:
    """No label is a pattern, and a prefix never ends inside a label."""
    labels = ["foo", "foobar", "foo%", "Foo", "foo\n", "f_o", "foo\x1f", "foo\x1e", "foo\x01"]
    for label in labels:
        client.put((label, "b"), label, {"text": "x"})
    for options in ({}, {"query": "x"}):
        assert client.keys(("foo",), **options) == ["foo"]
        assert client.keys(("foo\x1f",), **options) == ["foo\x1f"]
    assert set(client.list_namespaces()) == {(label, "b") for label in labels}
    assert client.list_namespaces(prefix=("foo",)) == [("foo", "b")]


def test_listing_conditions(client: Client) -> None:
    """A star stands for one label; depth truncates and removes duplicates before the page."""
    for namespace in [("a", "b"), ("a", "c", "b"), ("a", "c", "d"), ("x", "b")]:
        client.put(namespace, "k", {})
    assert client.list_namespaces(prefix=("*", "b")) == [("a", "b"), ("x", "b")]
    assert client.list_namespaces(suffix=("c", "*")) == [("a", "c", "b"), ("a", "c", "d")]
    assert client.list_namespaces(max_depth=2) == [("a", "b"), ("a", "c"), ("x", "b")]
    assert client.list_namespaces(max_depth=1, limit=1, offset=1) == [("x",)]


def test_t1_created_at_survives_updates(client: Client, clock: Clock) -> None:
    """An update keeps `created_at`; a put after a delete starts anew."""
    client.put(("a",), "k", {"v": 1})
    clock.move(300)
    client.put(("a",), "k", {"v": 2})
    item = client.get(("a",), "k")
    assert item.created_at == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert item.updated_at == datetime(2026, 3, 1, 10, 5, tzinfo=UTC)
    client.delete(("a",), "k")
    client.put(("a",), "k", {"v": 3})
    assert client.get(("a",), "k").created_at == datetime(2026, 3, 1, 10, 5, tzinfo=UTC)


def test_t2_times_are_aware_and_exact(client: Client, clock: Clock) -> None:
    """Times are UTC with microseconds, and never run backwards for one key."""
    clock.move(0.123457)
    client.put(("a",), "k", {})
    written = client.get(("a",), "k").updated_at
    assert written == clock.now
    assert written.utcoffset() == timedelta(0)
    clock.move(-60)
    client.put(("a",), "k", {"v": 2})
    assert client.get(("a",), "k").updated_at == written


def test_a1_nothing_is_shared(client: Client) -> None:
    """Changing the dict given or the item returned does not change the store."""
    value: dict[str, Any] = {"deep": [{"x": 1}]}
    client.put(("a",), "k", value)
    value["deep"][0]["x"] = 2
    client.get(("a",), "k").value["deep"][0]["x"] = 3
    client.search(("a",))[0].value["deep"].clear()
    assert client.get(("a",), "k").value == {"deep": [{"x": 1}]}


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": {1, 2}}, r"value\.a"),
        ({"a": float("nan")}, r"value\.a"),
        ({"a": [{"b": float("inf")}]}, r"value\.a\[0\]\.b"),
        ({"a": [datetime(2026, 1, 1, tzinfo=UTC)]}, r"value\.a\[0\]"),
        ({"a": b"x"}, r"value\.a"),
        ({1: 2}, "value"),
        ({"a": {"b": {None: 1}}}, r"value\.a\.b"),
        ({"a": "\ud800"}, r"value\.a"),
        ([1], "value"),
        ("text", "value"),
    ],
)
def test_a2_no_json_value(client: Client, value: Any, where: str) -> None:  # noqa: ANN401
    """What JSON cannot hold is refused by its path, and nothing of the batch is written."""
    with pytest.raises((TypeError, ValueError), match=where):
        client.batch([PutOp(("a",), "good", {}), PutOp(("a",), "bad", value)])
    assert client.search(("a",)) == []


def test_values_come_back_identical(client: Client) -> None:
    """Every JSON value comes back byte-identical; tuples come back as lists."""
    value = {
        "ints": [0, -1, 2**63, -(2**64), 10**400],
        "floats": [0.1, -0.0, 1e308, 5e-324, 1.0],
        "text": "NUL \x00, 日本語, עברית, 👩‍👩‍👧, \u2028, é e\u0301",
        "": {"deep": [[[None, True, False]]]},
    }
    client.put(("a",), "k", value | {"pair": (1, 2)})
    back = client.get(("a",), "k").value
    assert json.dumps(back) == json.dumps(value | {"pair": [1, 2]})


def test_a3_keys_are_strings(client: Client) -> None:
    """Keys go through `str` everywhere alike."""
    client.put(("a",), 5, {"v": 1})
    client.batch([PutOp(("a",), 6, {"v": 1})])  # type: ignore[arg-type]  # a number on purpose
    assert client.get(("a",), "5") == client.get(("a",), 5)
    assert client.batch([GetOp(("a",), 6)])[0].key == "6"  # type: ignore[arg-type]  # likewise
    client.delete(("a",), 5)
    assert client.get(("a",), "5") is None
    for odd in ["", " ", "a/b", "%", "\n", "\x1f", "🙂"]:
        client.put(("keys",), odd, {"k": odd})
        assert client.get(("keys",), odd).value == {"k": odd}


@pytest.mark.parametrize("key", ["a\x00b", "\udfff"])
def test_a3_unstorable_key(client: Client, key: str) -> None:
    """NUL and lone surrogates in a key raise ValueError."""
    with pytest.raises(ValueError, match="key"):
        client.put(("a",), key, {})


@pytest.mark.parametrize("label", ["a.b", "", None, 3, "a\x00", "\ud800"])
def test_n1_bad_label_in_a_batch(client: Client, label: str) -> None:
    """A bad label given straight to `batch` raises, and its neighbors are not written."""
    for op in (
        PutOp((label,), "k", {}),
        GetOp(("ok", label), "k"),
        SearchOp((label,)),
        StoreSearchOp((label,)),
        ListNamespacesOp((MatchCondition("prefix", (label,)),)),
    ):
        with pytest.raises(InvalidNamespaceError):
            client.batch([PutOp(("good",), "k", {}), op])
    assert client.get(("good",), "k") is None


def test_n2_empty_namespace_in_a_batch(client: Client) -> None:
    """A put without a namespace is refused."""
    with pytest.raises(InvalidNamespaceError):
        client.batch([PutOp((), "k", {})])


def test_n3_upstream_root_through_batch(client: Client) -> None:
    """LangGraph's own root is refused by `put`, and works through `batch` and `delete`."""
    with pytest.raises(InvalidNamespaceError):
        client.put(("langgraph", "x"), "k", {})
    client.batch([PutOp(("langgraph", "x"), "k", {"v": 1})])
    assert client.get(("langgraph", "x"), "k").value == {"v": 1}
    client.delete(("langgraph", "x"), "k")
    assert client.get(("langgraph", "x"), "k") is None


def test_n4_delete_with_a_bad_label(client: Client) -> None:
    """Deleting in an ill-formed namespace raises."""
    with pytest.raises(InvalidNamespaceError):
        client.delete(("a.b",), "k")


def test_unknown_op(client: Client) -> None:
    """An unknown operation raises ValueError naming its type."""
    with pytest.raises(ValueError, match="str"):
        client.batch(["nonsense"])


class _Failing(Letters):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Refuse some texts."""
        if "fail" in texts:
            msg = "embedding failed"
            raise RuntimeError(msg)
        return super().embed_documents(texts)


@pytest.mark.parametrize("is_async", [False, True])
def test_b1_failing_embedding_changes_nothing(open_store: Open, is_async: bool) -> None:
    """If one text cannot be embedded, no put and no delete of the batch happens."""
    store = open_store(index={"dims": 36, "embed": _Failing(), "fields": ["text"]})
    client = Client(store, is_async=is_async)
    client.put(("a",), "old", {"text": "x"})
    ops = [
        PutOp(("a",), "new", {"text": "fine"}),
        PutOp(("a",), "old", None),
        PutOp(("a",), "bad", {"text": "fail"}),
    ]
    with pytest.raises(RuntimeError, match="embedding failed"):
        client.batch(ops)
    assert client.keys(("a",)) == ["old"]


def test_b1_failing_statement_changes_nothing(client: Client) -> None:
    """If the file refuses one statement, nothing of the batch is written."""
    client.store.conn.execute(
        "CREATE TEMP TRIGGER refuse BEFORE INSERT ON items WHEN NEW.key = 'bad' "
        "BEGIN SELECT RAISE(ABORT, 'refused'); END"
    )
    with pytest.raises(OSError, match="refused"):
        client.batch([PutOp(("a",), "good", {"text": "x"}), PutOp(("a",), "bad", {"text": "x"})])
    assert client.search(("a",), query="x") == []
    client.put(("a",), "later", {"text": "x"})
    assert client.keys(("a",)) == ["later"]


def test_b2_reads_see_the_state_before(client: Client) -> None:
    """All reads of a batch, wherever they stand, see the state before it."""
    client.put(("a",), "k", {"text": "old"})
    results = client.batch(
        [
            PutOp(("a",), "k", {"text": "new"}),
            GetOp(("a",), "k"),
            SearchOp(("a",), query="old"),
            PutOp(("b",), "k", {}),
            ListNamespacesOp(),
        ]
    )
    assert results[0] is results[3] is None
    assert results[1].value == results[2][0].value == {"text": "old"}
    assert results[4] == [("a",)]
    assert client.get(("a",), "k").value == {"text": "new"}


def test_b3_last_write_of_a_key_wins(client: Client, embedder: Letters) -> None:
    """Of several puts and deletes of one key the last wins, and only it is embedded."""
    client.batch(
        [
            PutOp(("a",), "1", {"text": "first"}),
            PutOp(("a",), "1", None),
            PutOp(("a",), "1", {"text": "last"}),
            PutOp(("a",), "2", {"text": "gone"}),
            PutOp(("a",), "2", None),
        ]
    )
    assert [(i.key, i.value["text"]) for i in client.search(("a",))] == [("1", "last")]
    assert embedder.documents == ["last"]


def test_expect_guards_a_batch(client: Client) -> None:
    """A conditional write happens only if every item is at its expected version."""
    place = ("a",)
    client.batch([PutOp(place, "k", {"version": 3})], expect={(place, "k"): None})
    client.batch([PutOp(place, "k", {"version": 4})], expect={(place, "k"): 3})
    with pytest.raises(ConflictError) as caught:
        client.batch(
            [PutOp(place, "k", {"version": 5}), PutOp(place, "new", {})],
            expect={(place, "k"): 3, (place, "new"): None},
        )
    assert caught.value.conflicts == {(place, "k"): (3, 4)}
    assert client.get(place, "k").value == {"version": 4}
    assert client.get(place, "new") is None
    client.put(place, "plain", {"version": True})
    client.batch([PutOp(place, "plain", None)], expect={(place, "plain"): 1})


def test_expect_takes_expired_for_absent(client: Client, clock: Clock) -> None:
    """An expired item does not exist for a conditional write."""
    client.put(("a",), "k", {}, ttl=1)
    clock.move(61)
    with pytest.raises(ConflictError):
        client.batch([PutOp(("a",), "k", {})], expect={(("a",), "k"): 1})
    client.batch([PutOp(("a",), "k", {})], expect={(("a",), "k"): None})


def test_x1_expired_item_is_absent_at_once(client: Client, clock: Clock) -> None:
    """After its time an item is gone for every read, and the sweep removes what it left."""
    client.put(("a",), "k", {"text": "abc"}, ttl=1)
    assert client.keys(("a",), query="abc", refresh_ttl=False) == ["k"]
    clock.move(61)
    assert client.get(("a",), "k") is None
    assert client.search(("a",)) == client.search(("a",), query="abc") == []
    assert client.list_namespaces() == []
    assert client.sweep_ttl() == 1
    conn = client.store.conn
    assert conn.execute("SELECT count(*) FROM units").fetchone() == (0,)
    assert conn.execute("SELECT count(*) FROM words WHERE words MATCH 'abc'").fetchone() == (0,)


def test_x1_put_after_expiry_starts_anew(client: Client, clock: Clock) -> None:
    """An expired item is absent for the next put, which sets a new `created_at`."""
    client.put(("a",), "k", {"v": 1}, ttl=1)
    clock.move(61)
    client.put(("a",), "k", {"v": 2})
    assert client.get(("a",), "k").created_at == clock.now


def test_x1_omit_expired_false_reads_until_swept(open_store: Open, clock: Clock) -> None:
    """`omit_expired` False restores LangGraph's reading until the sweep."""
    store = open_store(ttl={"omit_expired": False})
    store.put(("a",), "k", {"text": "x"}, ttl=1)
    clock.move(61)
    assert store.get(("a",), "k", refresh_ttl=False) is not None
    assert len(store.search(("a",), query="x", refresh_ttl=False)) == 1
    store.sweep_ttl()
    assert store.get(("a",), "k") is None


def test_x2_reads_refresh_by_default(client: Client, clock: Clock) -> None:
    """Get and search start the time to live anew, unless told not to; updates stay as they were."""
    for key in ("got", "found", "left"):
        client.put(("a", key), "k", {"text": "x"}, ttl=1)
    before = client.get(("a", "got"), "k").updated_at
    clock.move(40)
    client.get(("a", "got"), "k")
    client.search(("a", "found"), query="x")
    client.get(("a", "left"), "k", refresh_ttl=False)
    clock.move(40)
    assert client.list_namespaces() == [("a", "found"), ("a", "got")]
    assert client.keys(("a",), query="x", refresh_ttl=False) == ["k", "k"]
    assert client.get(("a", "got"), "k").updated_at == before


def test_x2_config_can_turn_refreshing_off(open_store: Open, clock: Clock) -> None:
    """`refresh_on_read` False leaves the expiry alone."""
    store = open_store(ttl={"refresh_on_read": False, "default_ttl": 1})
    store.put(("a",), "k", {"text": "x"})
    clock.move(40)
    assert len(store.search(("a",))) == 1
    clock.move(40)
    assert store.get(("a",), "k") is None


def test_x3_fractions_of_a_minute(client: Client, clock: Clock) -> None:
    """A time to live below a minute is honored."""
    client.put(("a",), "k", {}, ttl=0.01)
    clock.move(0.5)
    assert client.get(("a",), "k", refresh_ttl=False) is not None
    clock.move(0.2)
    assert client.get(("a",), "k") is None


@pytest.mark.parametrize("ttl", [0, -1, float("inf"), True])
def test_x3_unusable_ttl(client: Client, ttl: float) -> None:
    """A time to live that is not positive is refused."""
    with pytest.raises(ValueError, match="ttl"):
        client.put(("a",), "k", {}, ttl=ttl)


def test_x4_default_ttl_is_for_put_only(open_store: Open, clock: Clock) -> None:
    """`put` takes the default; an explicit None and a PutOp mean what they say; a put resets."""
    store = open_store(ttl={"default_ttl": 1})
    store.put(("a",), "default", {})
    store.put(("a",), "none", {}, ttl=None)
    store.batch([PutOp(("a",), "op", {})])
    store.put(("a",), "reset", {})
    store.put(("a",), "reset", {}, ttl=None)
    clock.move(61)
    assert {item.key for item in store.search(("a",))} == {"none", "op", "reset"}


def test_s1_one_class_for_both(store: FaissSqliteStore) -> None:
    """What was written by an async call is read by a sync call of the same object."""
    asyncio.run(store.aput(("a",), "k", {"text": "x"}))
    assert store.get(("a",), "k") == asyncio.run(store.aget(("a",), "k"))


async def test_s2_bad_op_harms_only_its_caller(store: FaissSqliteStore) -> None:
    """Of two writers in the same tick only the faulty one fails."""
    results = await asyncio.gather(
        store.aput(("a",), "good", {"text": "x"}),
        store.aput(("a",), "bad", {"text": object()}),
        return_exceptions=True,
    )
    assert results[0] is None
    assert isinstance(results[1], TypeError)
    assert (await store.aget(("a",), "good")) is not None


def test_s3_second_event_loop(store: FaissSqliteStore) -> None:
    """One store serves event loops one after the other."""
    for n in range(3):
        asyncio.run(store.aput(("a",), str(n), {"text": "x"}))
    assert len(asyncio.run(store.asearch(("a",), query="x"))) == 3


async def test_s4_sync_call_on_a_running_loop(store: FaissSqliteStore) -> None:
    """A sync call on the loop's own thread works."""
    store.put(("a",), "k", {"text": "x"})
    assert len(store.search(("a",), query="x")) == 1


def test_later_puts_of_a_batch_are_newer_across_namespaces(client: Client) -> None:
    """Puts of one batch keep their order when namespaces alternate, old and new items too."""
    client.batch([PutOp(("a",), "old", {"n": -1})])
    places = [("a",), ("b",), ("a", "x"), ("b",), ("a",), ("c",)]
    ops = [PutOp(place, str(n), {"n": n}) for n, place in enumerate(places)]
    ops.insert(3, PutOp(("a",), "old", {"n": 99}))
    client.batch(ops)
    assert [item.value["n"] for item in client.search(())] == [5, 4, 3, 99, 2, 1, 0]
