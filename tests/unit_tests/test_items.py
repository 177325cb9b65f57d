"""Items, stored memories and operations as values and as JSON."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import Item, SearchItem

from langchain_agentmem.items import (
    Cause,
    Event,
    Link,
    MemoryItem,
    MemoryOperation,
    MemoryType,
    Status,
    StoredMemory,
    parse_timestamp,
    to_timestamp,
)

DAY = datetime(2026, 3, 1, 10, tzinfo=UTC)
LATER = DAY + timedelta(days=1)
FULL = MemoryItem(
    content={"name": "Ann", "city": "東京"},
    kind="Person",
    memory_type="procedural",
    metadata={"color": "blue"},
    search_text="Ann 東京",
    status="superseded",
    version=3,
    observed_at=DAY,
    valid_from=DAY,
    valid_to=LATER,
    superseded_by="k2",
    expires_at=LATER,
    links=(Link("related", "k3"),),
    source_message_ids=("m1", "m2"),
    attributed_to="Ann",
)

moments = st.datetimes(timezones=st.just(UTC))
texts = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
links = st.builds(Link, texts, texts)
items = st.builds(
    MemoryItem,
    content=texts | st.dictionaries(texts, json_values, max_size=3),
    kind=texts,
    memory_type=st.sampled_from(get_args(MemoryType)),
    metadata=st.dictionaries(texts, json_values, max_size=3),
    search_text=st.none() | texts.filter(bool),
    status=st.sampled_from(get_args(Status)),
    version=st.integers(1),
    observed_at=st.none() | moments,
    valid_from=st.none() | moments,
    valid_to=st.none() | moments,
    superseded_by=st.none() | texts.filter(bool),
    expires_at=st.none() | moments,
    links=st.lists(links, max_size=3).map(tuple),
    source_message_ids=st.lists(texts, max_size=3).map(tuple),
    attributed_to=st.none() | texts.filter(bool),
)


@given(items)
def test_every_item_survives_json(item: MemoryItem) -> None:
    """What is stored and read again is the same item."""
    assert MemoryItem.from_value(json.loads(json.dumps(item.to_value()))) == item


def test_a_small_item_has_a_small_value() -> None:
    """Fields that say nothing are not stored."""
    assert MemoryItem(content="x").to_value() == {
        "kind": "text",
        "content": "x",
        "memory_type": "semantic",
        "status": "active",
        "version": 1,
    }


def test_a_value_holds_nothing_but_json() -> None:
    """Times are strings, links objects and tuples lists."""
    value = FULL.to_value()
    assert json.loads(json.dumps(value)) == value
    assert value["observed_at"] == "2026-03-01T10:00:00.000000+00:00"
    assert value["links"] == [{"type": "related", "target": "k3"}]


@pytest.mark.parametrize(
    ("value", "content", "kind"),
    [
        ({"content": "x"}, "x", "text"),
        ({"kind": "Memory", "content": {"content": "y"}}, "y", "Memory"),
        ({"kind": "Person", "content": {"name": "A"}}, {"name": "A"}, "Person"),
        ({"content": {"content": "z"}}, "z", "text"),
    ],
    ids=["tool", "manager", "manager-schema", "nested"],
)
def test_langmem_formats_are_read(value: dict[str, Any], content: object, kind: str) -> None:
    """LangMem's tools and its store manager wrote these values."""
    item = MemoryItem.from_value(value)
    assert (item.content, item.kind, item.version, item.status) == (content, kind, 1, "active")


def test_our_own_object_with_one_field_content_is_kept() -> None:
    """Only LangMem's wrapping is taken off, never structure that was stored by this package."""
    item = MemoryItem(content={"content": "y"}, kind="Note")
    assert MemoryItem.from_value(item.to_value()) == item


def test_foreign_value_becomes_content() -> None:
    """An object of some other program is shown whole."""
    item = MemoryItem.from_value({"text": "hi", "n": 1})
    assert (item.content, item.kind) == ({"text": "hi", "n": 1}, "object")


def test_foreign_fields_become_metadata() -> None:
    """Nothing that lies beside the content is lost; own metadata wins over a foreign field."""
    item = MemoryItem.from_value({"content": "x", "tag": 1, "a": 2, "metadata": {"a": 3}})
    assert item.metadata == {"tag": 1, "a": 3}


@pytest.mark.parametrize("content", [None, 7, 1.5, True, ["a", "b"]])
def test_content_of_another_type_is_wrapped(content: object) -> None:
    """A content that is neither text nor object is kept inside of an object."""
    assert MemoryItem.from_value({"content": content}).content == {"content": content}


def test_empty_texts_are_kept() -> None:
    """An empty name or search text is not the same as none."""
    item = MemoryItem(content="a", attributed_to="", search_text="", superseded_by="")
    assert MemoryItem.from_value(item.to_value()) == item


@given(st.dictionaries(st.sampled_from(sorted(MemoryItem.__slots__)) | texts, json_values))
def test_garbage_never_raises(value: dict[str, Any]) -> None:
    """Any JSON object can be read; what makes no sense is taken as not given."""
    item = MemoryItem.from_value(value)
    assert item.status in get_args(Status)
    assert isinstance(item.version, int)
    assert MemoryItem.from_value(item.to_value()) == item


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", "3"),
        ("version", True),
        ("status", "gone"),
        ("memory_type", 5),
        ("observed_at", "yesterday"),
        ("links", [{"type": "x"}, 3]),
        ("source_message_ids", "m1"),
        ("search_text", 1),
    ],
)
def test_a_garbage_field_reads_as_its_default(field: str, value: object) -> None:
    """One bad field does not hide the rest of a memory."""
    item = MemoryItem.from_value({"content": "x", "status": "active", field: value})
    assert getattr(item, field) == getattr(MemoryItem(content="x"), field)


def test_text_of_structured_content_keeps_its_characters() -> None:
    """Chinese stays Chinese in the text of an object."""
    assert FULL.text == '{"city": "東京", "name": "Ann"}'


def test_search_text_is_indexed_instead_of_the_content() -> None:
    """An item says which path of its value is searchable."""
    assert MemoryItem(content="x").index_paths == ["content"]
    assert FULL.index_paths == ["search_text"]


@given(moments, moments)
def test_timestamps_sort_as_their_times(one: datetime, other: datetime) -> None:
    """Comparing the stored strings compares the times."""
    assert (to_timestamp(one) < to_timestamp(other)) == (one < other)
    assert parse_timestamp(to_timestamp(one)) == one


def test_timestamp_of_another_zone_is_in_utc() -> None:
    """One instant has one form, wherever the clock stands."""
    there = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert to_timestamp(there) == to_timestamp(DAY)


def test_naive_datetime_is_refused() -> None:
    """A time without a zone could mean any of 24 hours."""
    with pytest.raises(ValueError, match="no time zone"):
        to_timestamp(DAY.replace(tzinfo=None))


def test_timestamp_without_zone_reads_as_utc() -> None:
    """Foreign values often have no zone."""
    assert parse_timestamp("2026-03-01T10:00:00") == DAY


@pytest.mark.parametrize(
    ("item", "holds"),
    [
        (MemoryItem(content="x"), True),
        (MemoryItem(content="x", expires_at=DAY), False),
        (MemoryItem(content="x", expires_at=LATER), True),
        (MemoryItem(content="x", valid_from=LATER), False),
        (MemoryItem(content="x", valid_from=DAY), True),
        (MemoryItem(content="x", valid_to=DAY), False),
        (MemoryItem(content="x", valid_to=LATER), True),
    ],
)
def test_holds_from_its_start_until_before_its_end(item: MemoryItem, *, holds: bool) -> None:
    """The start of validity is inside, its end and the expiry are outside."""
    assert item.holds_at(DAY) is holds


def test_only_active_items_are_current() -> None:
    """A superseded item may have held at a time, but it is not current."""
    closed = MemoryItem(content="x", status="archived")
    assert closed.holds_at(DAY)
    assert not closed.is_current(DAY)
    assert MemoryItem(content="x").is_current(DAY)


def _stored(**changes: object) -> StoredMemory:
    given: dict[str, Any] = {"item": FULL, "namespace": ("a", "b"), "key": "k", "created_at": DAY}
    return StoredMemory(**(given | changes))


@pytest.mark.parametrize("score", [None, 0.5])
def test_stored_memory_survives_json(score: float | None) -> None:
    """What enters graph state comes out of it the same."""
    memory = _stored(score=score, updated_at=LATER, parts={"lexical": 1.0})
    assert StoredMemory.from_dict(json.loads(json.dumps(memory.to_dict()))) == memory


def test_stored_memory_of_store_items() -> None:
    """Items of any LangGraph store are wrapped, with a score only after a search."""
    plain = Item(value={"content": "x"}, key="k", namespace=("a",), created_at=DAY, updated_at=DAY)
    found = SearchItem(("a",), "k", {"content": "x"}, DAY, DAY, 0.5)
    assert StoredMemory.from_store(plain).score is None
    assert StoredMemory.from_store(found).score == 0.5
    assert StoredMemory.from_store(found).content == "x"


def test_stored_memory_shows_its_item() -> None:
    """A hit offers what users read most without a detour."""
    memory = _stored()
    shown = (memory.content, memory.text, memory.observed_at, memory.metadata)
    assert shown == (FULL.content, FULL.text, FULL.observed_at, FULL.metadata)


def test_scored_keeps_parts_unless_given() -> None:
    """Another score does not forget what the first was made of."""
    memory = _stored(score=1.0, parts={"a": 1.0})
    assert memory.scored(2.0).parts == {"a": 1.0}
    assert memory.scored(2.0, {"b": 2.0}).parts == {"b": 2.0}


@pytest.mark.parametrize("event", get_args(Event))
@pytest.mark.parametrize("item", [None, FULL])
def test_operation_survives_json(event: Event, item: MemoryItem | None) -> None:
    """What a remember graph returns in its state is read back the same."""
    operation = MemoryOperation(
        event=event,
        namespace=("a", "b"),
        key="k",
        before=item,
        after=item,
        status="rejected",
        reason="why",
        cause=Cause(surface="tool", message_ids=("m",), thread_id="t", note="n"),
    )
    assert MemoryOperation.from_dict(json.loads(json.dumps(operation.to_dict()))) == operation


def test_operation_is_marked_and_never_changed() -> None:
    """Marking gives a new value; the proposal stays a proposal."""
    proposed = MemoryOperation(event="ADD", namespace=("a",), key="k", after=FULL)
    assert proposed.applied().status == "applied"
    assert proposed.rejected("no").reason == "no"
    assert (proposed.status, proposed.reason) == ("proposed", None)
