"""The journal: history, provenance, undo, closed items out of sight, erasure without remains."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import ConflictError, MemoryNotFoundError
from langchain_agentmem.items import Cause, Event, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.scopes import closed, journal, reserved
from langchain_agentmem.steps.effects import Put, Steps
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.steps.journal import (
    JournalEntry,
    apply,
    erase,
    erase_below,
    history,
    homes,
    read,
    undo,
)
from tests.unit_tests.floor import START, Clock, Drive, everything

HOME = ("m", "u", "facts")
FORGET = Cause(surface="forget")


class Book:
    """The journal's steps on one store, driven one way, with short names for the tests."""

    def __init__(self, drive: Drive, env: Environment) -> None:
        self._drive = drive
        self._env = env

    def run(self, steps: Steps[Any]) -> Any:  # noqa: ANN401 - whatever the steps return
        """Carry steps out."""
        return self._drive(steps, self._env)

    def read(self, key: str = "k") -> StoredMemory | None:
        """Return a memory, live or closed."""
        (found,) = self.run(read([(HOME, key)]))
        return found  # type: ignore[no-any-return]

    def item(self, key: str = "k") -> MemoryItem:
        """Return the item of a memory that exists."""
        found = self.read(key)
        assert found is not None
        return found.item

    def change(self, event: Event, after: MemoryItem | None, key: str = "k", **more: Any) -> Any:  # noqa: ANN401
        """Apply one operation on what is stored now."""
        stored = self.read(key)
        before = stored.item if stored else None
        op = MemoryOperation(
            event=event, namespace=HOME, key=key, before=before, after=after, **more
        )
        (applied,) = self.run(apply([op]))
        return applied

    def add(self, text: str, key: str = "k", **more: Any) -> Any:  # noqa: ANN401
        """Add a memory."""
        return self.change("ADD", MemoryItem(content=text), key, **more)

    def update(self, text: str, key: str = "k", **more: Any) -> Any:  # noqa: ANN401
        """Change a memory's text."""
        old = self.item(key)
        return self.change(
            "UPDATE", replace(old, content=text, version=old.version + 1), key, **more
        )

    def close(self, key: str = "k", **changes: Any) -> Any:  # noqa: ANN401
        """Archive a memory."""
        old = self.item(key)
        closing: dict[str, Any] = {"status": "archived", "version": old.version + 1}
        return self.change("DELETE", replace(old, **(closing | changes)), key)

    def history(self, key: str = "k") -> list[JournalEntry]:
        """Return a memory's changes."""
        return self.run(history(HOME, key))  # type: ignore[no-any-return]

    def texts(self, key: str = "k") -> list[tuple[str, object, object]]:
        """Return event and texts of each change."""
        return [
            (e.event, e.before and e.before.text, e.after and e.after.text)
            for e in self.history(key)
        ]


@pytest.fixture
def book(drive: Drive, env: Environment) -> Book:
    """An empty store with the journal's steps."""
    return Book(drive, env)


def test_history_tells_every_change_with_its_time_and_cause(book: Book, clock: Clock) -> None:
    """Oldest first, each with the item before and after."""
    cause = Cause(surface="tool", message_ids=("m1",), thread_id="t", model="scripted")
    book.add("a", cause=cause)
    clock.move(hours=1)
    book.update("b")
    book.close()
    assert book.texts() == [("ADD", None, "a"), ("UPDATE", "a", "b"), ("DELETE", "b", "b")]
    first, second, third = book.history()
    assert (first.version, first.at, first.cause) == (1, START, cause)
    assert second.at == START + timedelta(hours=1)
    assert third.after is not None
    assert third.after.status == "archived"


def test_history_of_nothing_is_an_error(book: Book) -> None:
    """A key that never was is told apart from one without changes."""
    with pytest.raises(MemoryNotFoundError, match="no memory 'k'"):
        book.history()
    with pytest.raises(MemoryNotFoundError):
        book.run(undo(HOME, "k"))


def test_history_of_a_foreign_item_is_empty(book: Book, any_store: BaseStore) -> None:
    """An item that other code put has no recorded changes, until it is changed here."""
    any_store.put(HOME, "k", {"content": "old"}, index=False)
    assert book.history() == []
    book.update("new")
    assert book.texts() == [("UPDATE", "old", "new")]


def test_undo_of_a_foreign_item_says_that_nothing_is_recorded(
    book: Book, any_store: BaseStore
) -> None:
    """There is no change to take back, so the item stays as it is."""
    any_store.put(HOME, "k", {"content": "old"}, index=False)
    with pytest.raises(MemoryNotFoundError, match="no recorded change"):
        book.run(undo(HOME, "k"))
    assert book.item().text == "old"


def test_a_foreign_version_does_not_make_history_or_erasure_long(
    book: Book, any_store: BaseStore
) -> None:
    """A value of other code may carry any number as its version."""
    any_store.put(HOME, "k", {"content": "x", "version": 10**12}, index=False)
    assert book.history() == []
    book.update("y")
    assert book.texts() == [("UPDATE", "x", "y")]
    book.run(erase([(HOME, "k")], cause=FORGET))
    assert everything(any_store) == {}


def test_closed_items_are_out_of_sight(book: Book, any_store: BaseStore) -> None:
    """Plain code on the store sees active memories only; here they are still read."""
    book.add("a")
    book.close(status="superseded", superseded_by="k2")
    assert any_store.get(HOME, "k") is None
    assert any_store.search(HOME[:1]) == []
    assert book.item().superseded_by == "k2"
    hidden = any_store.get(closed(HOME), "k")
    assert hidden is not None
    assert hidden.value["status"] == "superseded"


def test_closing_ends_validity_now_unless_it_ended_before(book: Book, clock: Clock) -> None:
    """An item closed without an end of validity held until it was closed."""
    book.add("a")
    book.add("b", "k2")
    clock.move(days=1)
    book.close()
    book.close("k2", valid_to=START)
    assert (book.item().valid_to, book.item("k2").valid_to) == (clock.now, START)


def test_undo_takes_an_update_back_and_undo_takes_the_undo_back(book: Book) -> None:
    """Undo is itself a change: twice gives the later text again, and all of it is recorded."""
    book.add("a")
    book.update("b")
    book.run(undo(HOME, "k"))
    assert (book.item().text, book.item().version) == ("a", 3)
    book.run(undo(HOME, "k"))
    assert (book.item().text, book.item().version) == ("b", 4)
    assert [entry.cause.surface for entry in book.history()] == ["memory", "memory", "undo", "undo"]


def test_undo_of_an_addition_archives(book: Book, any_store: BaseStore) -> None:
    """What was added by mistake is out of sight, not lost, and undo brings it back."""
    book.add("a")
    assert book.run(undo(HOME, "k")).event == "DELETE"
    assert any_store.get(HOME, "k") is None
    book.run(undo(HOME, "k"))
    assert any_store.get(HOME, "k") is not None
    assert (book.item().status, book.item().text) == ("active", "a")


def test_undo_of_a_deletion_brings_the_memory_back_whole(book: Book, any_store: BaseStore) -> None:
    """Under the same key, active, with its own end of validity and no closed remains."""
    book.add("a")
    before = book.item()
    book.close()
    assert book.run(undo(HOME, "k")).event == "ADD"
    assert book.item() == replace(before, version=3)
    assert any_store.get(closed(HOME), "k") is None


def test_a_stale_decision_writes_nothing(book: Book, any_store: BaseStore) -> None:
    """An operation on an item that was changed since is a conflict, with its whole batch."""
    book.add("a")
    old = book.item()
    book.update("b")
    before = everything(any_store)
    stale = MemoryOperation(
        event="UPDATE", namespace=HOME, key="k", before=old, after=replace(old, version=2)
    )
    new = MemoryOperation(event="ADD", namespace=HOME, key="n", after=MemoryItem(content="n"))
    with pytest.raises(ConflictError):
        book.run(apply([new, stale], also=[Put(HOME, "own", {"content": "x"})]))
    assert everything(any_store) == before


def test_a_key_that_is_closed_is_not_added_again(book: Book) -> None:
    """An addition expects that its key was never used, closed items included."""
    book.add("a")
    book.close()
    op = MemoryOperation(event="ADD", namespace=HOME, key="k", after=MemoryItem(content="new"))
    with pytest.raises(ConflictError):
        book.run(apply([op]))


def test_further_items_are_written_with_the_operations(book: Book, any_store: BaseStore) -> None:
    """An architecture's own records share the batch and its conditions."""
    op = MemoryOperation(event="ADD", namespace=HOME, key="k", after=MemoryItem(content="a"))
    record = Put(HOME[:2], "record", {"content": "x"})
    book.run(apply([op], also=[record], expect={(HOME[:2], "record"): None}))
    assert any_store.get(HOME[:2], "record") is not None


def test_noops_and_rejections_pass_through_unwritten(book: Book, any_store: BaseStore) -> None:
    """Only proposals that change something are written, and only they are marked."""
    noop = MemoryOperation(event="NOOP", namespace=HOME, key="k")
    no = MemoryOperation(event="ADD", namespace=HOME, key="k", after=MemoryItem(content="a"))
    rejected = no.rejected("unknown handle")
    assert book.run(apply([noop, rejected])) == [noop, rejected]
    assert everything(any_store) == {}


def test_erasing_through_apply_is_refused(book: Book) -> None:
    """An operation without an item to write belongs to `erase`."""
    op = MemoryOperation(event="DELETE", namespace=HOME, key="k")
    with pytest.raises(ValueError, match="erase"):
        book.run(apply([op]))


@pytest.mark.parametrize("end", ["live", "closed"])
def test_erase_leaves_nothing(book: Book, any_store: BaseStore, end: str) -> None:
    """Item, closed item, counters and every journal record of it are gone; others stay."""
    book.add("secret")
    book.update("secret again")
    book.add("other", "k@1")
    if end == "closed":
        book.close()
    any_store.put(reserved("counters", HOME), "k", {"count": 3}, index=False)
    (done,) = book.run(erase([(HOME, "k"), (HOME, "none")], cause=FORGET))
    assert (done.event, done.key, done.status, done.before) == ("DELETE", "k", "applied", None)
    assert set(everything(any_store)) == {(HOME, "k@1"), (journal(HOME), "k@1@1")}


def test_erase_finds_the_journal_of_an_item_that_other_code_overwrote(
    book: Book, any_store: BaseStore
) -> None:
    """A plain put loses the version, but the earlier texts in the journal are erased too."""
    book.add("secret")
    book.update("secret 2")
    book.update("secret 3")
    any_store.put(HOME, "k", {"content": "by LangMem"}, index=False)
    book.run(erase([(HOME, "k")], cause=FORGET))
    assert everything(any_store) == {}


def test_erase_finds_the_journal_of_an_item_that_other_code_deleted(
    book: Book, any_store: BaseStore
) -> None:
    """A plain delete leaves the journal; forgetting the key erases that too."""
    book.add("secret")
    book.update("secret 2")
    any_store.delete(HOME, "k")
    book.run(erase([(HOME, "k")], cause=FORGET))
    assert everything(any_store) == {}


@pytest.mark.parametrize("exact", [False, True])
def test_erase_below_leaves_nothing_of_a_namespace(
    book: Book, any_store: BaseStore, *, exact: bool
) -> None:
    """Live, closed, journal, counters and queue go; a namespace whose label is longer stays."""
    book.add("a")
    book.add("b", "k2")
    book.close("k2")
    near = (*HOME[:-1], "facts2")
    for home in (near, reserved("counters", HOME), reserved("queue", HOME)):
        any_store.put(home, "x", {"content": "x"}, index=False)
    done = book.run(erase_below(HOME, exact=exact, cause=FORGET))
    assert {(op.namespace, op.key) for op in done} == {(HOME, "k"), (HOME, "k2")}
    assert set(everything(any_store)) == {(near, "x")}


def test_erase_below_exact_leaves_deeper_namespaces(book: Book, any_store: BaseStore) -> None:
    """The exact namespace goes, what lies below stays."""
    any_store.put(HOME[:2], "bare", {"content": "x"}, index=False)
    book.add("a")
    book.run(erase_below(HOME[:2], exact=True, cause=FORGET))
    assert set(everything(any_store)) == {(HOME, "k"), (journal(HOME), "k@1")}


def test_homes_are_found_where_only_closed_items_are_left(book: Book) -> None:
    """A namespace whose every item was closed is still a home of memories."""
    book.add("a")
    book.close()
    assert book.run(homes(HOME[:2])) == [HOME]


def test_journal_and_closed_items_are_never_indexed(drive: Drive) -> None:
    """Only the searchable text of live items is embedded, never a record of the package."""
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [[1.0, 0.0] for _ in texts]

    store = InMemoryStore(index={"dims": 2, "embed": embed, "fields": ["$"]})
    book = Book(drive, Environment(store=store, clock=Clock()))
    book.add("first")
    book.update("second")
    book.close()
    assert embedded == ["first", "second"]
