"""Copying a store to another: complete, resumable, verified, with times and vectors kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import StorageError
from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.stores.copying import copy_store, copy_urls
from langchain_agentmem.testing import CharacterEmbeddings, ManualClock

if TYPE_CHECKING:
    from pathlib import Path

START = datetime(2020, 5, 17, 12, 0, 0, 654321, tzinfo=UTC)


def filled(path: Path, embedder: CharacterEmbeddings) -> FaissSqliteStore:
    """Return a store with items of every kind, the newest first in the alphabet."""
    clock = ManualClock(START)
    index: Any = {"dims": embedder.dims, "embed": embedder, "fields": ["text"]}
    store = FaissSqliteStore(path, index=index, clock=clock)
    for name in ("c", "b", "a"):
        store.put(("users", name), name, {"text": f"text {name}", "名": [1, None]})
        clock.advance(minutes=1)
    store.put(("users", "a"), "silent", {"text": "not searchable"}, index=False)
    clock.advance(minutes=1)
    store.put(("users", "a"), "own", {"title": "own field"}, index=["title"])
    store.put(("_agentmem", "journal"), "1", {"event": "ADD"}, index=False)
    return store


def copy(tmp_path: Path, embedder: CharacterEmbeddings) -> Any:  # noqa: ANN401 - a report
    """Copy one file to the other."""
    return copy_urls(
        f"sqlite:///{tmp_path}/old.sqlite",
        f"sqlite:///{tmp_path}/new.sqlite",
        embeddings=embedder,
        fields=["text"],
    )


def test_copy_keeps_items_times_index_and_vectors(tmp_path: Path) -> None:
    """The new file answers as the old one did, and nothing was embedded to make it."""
    embedder = CharacterEmbeddings()
    with filled(tmp_path / "old.sqlite", embedder) as old:
        embedder.document_calls.clear()
        report = copy(tmp_path, embedder)
        assert (report.items, report.written, report.embedded) == (6, 6, 0)
        assert report.reused == 4
        assert report.kept_times
        assert embedder.documents == []
        index: Any = {"dims": embedder.dims, "embed": embedder, "fields": ["text"]}
        with FaissSqliteStore(tmp_path / "new.sqlite", index=index) as new:
            assert new.search(()) == old.search(())
            assert new.search(("_agentmem",)) == old.search(("_agentmem",))
            for query in ("text a", "own field", "not searchable"):
                assert new.search((), query=query) == old.search((), query=query)


def test_copy_continues_where_it_was_interrupted(tmp_path: Path) -> None:
    """A second run writes only what is missing or differs."""
    embedder = CharacterEmbeddings()
    with filled(tmp_path / "old.sqlite", embedder) as old:
        first = copy(tmp_path, embedder)
        old.put(("users", "a"), "a", {"text": "changed"})
        old.put(("users", "d"), "d", {"text": "new"})
        second = copy(tmp_path, embedder)
    assert (second.items, second.written) == (first.items + 1, 2)
    assert second.sha256 != first.sha256


def test_copy_keeps_expiry(tmp_path: Path) -> None:
    """An item expires in the target when it would have in the source; expired ones stay behind."""
    clock = ManualClock(datetime.now(UTC))
    with FaissSqliteStore(tmp_path / "old.sqlite", index=None, clock=clock) as old:
        old.put(("a",), "gone", {"n": 1}, ttl=10)
        clock.advance(minutes=60)
        old.put(("a",), "lives", {"n": 2}, ttl=100)
        target = FaissSqliteStore(":memory:", index=None, clock=clock)
        clock.now = datetime.now(UTC) + timedelta(minutes=59)
        with FaissSqliteStore(tmp_path / "old.sqlite", index=None) as source:
            source.conn.execute("UPDATE items SET expires_at = 1 WHERE key = 'gone'")
            copy_store(source, target)
        assert [item.key for item in target.search(("a",), refresh_ttl=False)] == ["lives"]
        clock.advance(minutes=102)
        assert target.search(("a",)) == []


@pytest.mark.parametrize("is_reverse", [False, True], ids=["to", "from"])
def test_copy_works_with_any_store(*, is_reverse: bool) -> None:
    """A store known only by its interface takes and gives items; times are new there."""
    ours, other = FaissSqliteStore(":memory:", index=None), InMemoryStore()
    source, target = (other, ours) if is_reverse else (ours, other)
    for n in range(1100):
        source.put(("users", str(n % 3)), str(n), {"n": n})
    report = copy_store(source, target)
    assert (report.items, report.written) == (1100, 1100)
    assert report.kept_times is is_reverse
    found = {(i.namespace, i.key, i.value["n"]) for i in target.search((), limit=2000)}
    assert len(found) == 1100


class _Lossy(InMemoryStore):
    """A store that loses one item."""

    def batch(self, ops: Any) -> Any:  # noqa: ANN401 - LangGraph's ops and results
        """Leave out the key `lost`."""
        return super().batch([op for op in ops if getattr(op, "value", None) != {"n": 13}])


def test_copy_notices_what_did_not_arrive() -> None:
    """The comparison at the end names what differs."""
    source = InMemoryStore()
    for n in (12, 13):
        source.put(("a",), str(n), {"n": n})
    with pytest.raises(StorageError, match=r"1 of 2 items differ.*'13' in \('a',\)"):
        copy_store(source, _Lossy())


def test_copy_that_is_stopped_between_chunks_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was copied before an interrupt is not written again; all is there in the end."""
    monkeypatch.setattr("langchain_agentmem.stores.copying._CHUNK", 2)
    embedder = CharacterEmbeddings()
    seen: list[tuple[int, int | None]] = []

    def stop(done: int, total: int | None) -> None:
        seen.append((done, total))
        if done == 4:
            raise KeyboardInterrupt

    urls = f"sqlite:///{tmp_path}/old.sqlite", f"sqlite:///{tmp_path}/new.sqlite"
    with filled(tmp_path / "old.sqlite", embedder):
        with pytest.raises(KeyboardInterrupt):
            copy_urls(*urls, embeddings=embedder, fields=["text"], progress=stop)
        report = copy(tmp_path, embedder)
    assert seen == [(2, 6), (4, 6)]
    assert (report.items, report.written) == (6, 2)


def test_copy_notices_times_that_were_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the target keeps times, they are compared too."""
    embedder = CharacterEmbeddings()
    with filled(tmp_path / "old.sqlite", embedder):
        monkeypatch.setattr("langchain_agentmem.stores.copying.stamp", lambda *_: True)
        with pytest.raises(StorageError, match="6 of 6 items differ"):
            copy(tmp_path, embedder)
