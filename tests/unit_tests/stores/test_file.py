"""The file: durability, damage, other versions, other models, erasure."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from langchain_agentmem.errors import (
    ConfigurationError,
    CorruptStoreError,
    IndexMismatchError,
    SchemaVersionError,
    StorageError,
)
from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.stores._namespaces import encode
from langchain_agentmem.stores._schema import SCHEMA_VERSION
from tests.unit_tests.floor import Clock
from tests.unit_tests.stores.conftest import Letters, Open

WRITER = """
import sys
from langchain_agentmem.stores import FaissSqliteStore
store = FaissSqliteStore(sys.argv[1], index={"fields": ["text"]})
for n in range(1_000_000):
    store.put(("w",), f"{n:07}", {"text": f"word{n}"})
    print(n, flush=True)
"""


def test_everything_is_there_after_reopening(open_store: Open) -> None:
    """Items, order, vectors and words survive closing."""
    store = open_store()
    store.put(("a",), "1", {"text": "abc"})
    store.put(("a",), "2", {"text": "xyz"}, index=False)
    store.close()
    again = open_store()
    assert [item.key for item in again.search(("a",))] == ["2", "1"]
    assert [item.key for item in again.search(("a",), query="abc")] == ["1"]
    assert [item.key for item in again.lexical_search(("a",), "abc")] == ["1"]


def test_acknowledged_puts_survive_sigkill(tmp_path: Path) -> None:
    """After SIGKILL in a loop of puts every acknowledged item is there, and the file is sound."""
    path = tmp_path / "killed.db"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) >= 40:
                break
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged = [int(line), *map(int, writer.stdout.read().split())]
    with FaissSqliteStore(path, index={"fields": ["text"]}) as store:
        newest = acknowledged[-1]
        assert len(store.search(("w",), limit=1_000_000)) >= newest + 1
        assert store.lexical_search(("w",), f"word{newest}")[0].key == f"{newest:07}"
        assert store.conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        store.conn.execute("INSERT INTO words(words) VALUES ('integrity-check')")


def test_two_stores_on_one_file_see_each_other(open_store: Open, clock: Clock) -> None:
    """A loaded index follows puts, updates, deletes and expiry made through another store."""
    reader, writer = open_store(), open_store()
    writer.put(("a",), "1", {"text": "aaa"})
    assert [i.key for i in reader.search((), query="aaa")] == ["1"]
    writer.put(("a",), "2", {"text": "aab"}, ttl=1)
    writer.put(("a",), "1", {"text": "bbb"})
    assert [i.key for i in reader.search((), query="aab", refresh_ttl=False)] == ["2", "1"]
    clock.move(50)
    writer.get(("a",), "2")
    clock.move(50)
    assert [i.key for i in reader.search((), query="aab", refresh_ttl=False)] == ["2", "1"]
    writer.delete(("a",), "1")
    clock.move(50)
    assert reader.search((), query="aab") == []


@pytest.mark.parametrize("places", [None, b"", b"123", "abc"])
def test_delete_reaches_loaded_scopes_above_it_only(open_store: Open, places: object) -> None:
    """Other scopes do not look for the item; where it is not known where it lay, all do."""
    store = open_store()
    scopes: list[tuple[str, ...]] = [("b",), ("a", "x"), ("a", "y"), ("_agentmem", "a")]
    for scope in scopes:
        store.put(scope, "1", {"text": "aaa"})
        assert len(store.search(scope, query="a")) == 1
    store.delete(("a", "x"), "1")
    assert [len(store.search(scope, query="a")) for scope in scopes] == [1, 0, 1, 1]
    assert store._engine is not None
    assert store._engine.index is not None
    asked = [each.root for each in store._engine.index.segments.all() if each._first is not None]
    assert asked == [encode(("a", "x"))]
    store.delete(("a", "y"), "1")
    store.conn.execute("UPDATE removed SET places = ?", (places,))
    assert [len(store.search(scope, query="a")) for scope in scopes] == [1, 0, 0, 1]
    assert len(store.search((), query="a")) == 1
    store.delete(("b",), "1")
    store.delete(("_agentmem", "a"), "1")
    assert [len(store.search(scope, query="a")) for scope in [(), *scopes]] == [0, 0, 0, 0, 0]


def test_many_changes_elsewhere_are_seen(open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that is too far behind reads anew, and finds the same."""
    monkeypatch.setattr("langchain_agentmem.stores._index._MAX_CATCH_UP", 3)
    monkeypatch.setattr("langchain_agentmem.stores._groups.RETENTION", 5)
    reader, writer = open_store(), open_store()
    writer.put(("a",), "0", {"text": "aaa"})
    assert len(reader.search(("a",), query="a")) == 1
    for n in range(12):
        writer.put(("a",), str(n), {"text": "aaa"})
        writer.delete(("a",), str(n - 1))
    assert [i.key for i in reader.search(("a",), query="a")] == ["11"]
    assert writer.conn.execute("SELECT count(*) FROM removed").fetchone()[0] < 12


def test_another_process_finds_what_was_put(tmp_path: Path) -> None:
    """A second process writes; a store whose index is loaded finds it without reopening."""
    path = tmp_path / "shared.db"
    code = (
        "import sys; from langchain_agentmem.stores import FaissSqliteStore\n"
        "with FaissSqliteStore(sys.argv[1], index={'fields': ['text']}) as store:\n"
        "    store.put(('a',), 'theirs', {'text': 'hello'})\n"
    )
    with FaissSqliteStore(path, index={"fields": ["text"]}) as store:
        store.put(("a",), "ours", {"text": "hello"})
        assert len(store.search(("a",), query="hello")) == 1
        subprocess.run([sys.executable, "-c", code, str(path)], check=True)
        assert [i.key for i in store.search(("a",), query="hello")] == ["theirs", "ours"]


def test_lock_of_another_program_is_waited_for(open_store: Open, tmp_path: Path) -> None:
    """A lock that is not given up within the time raises an error that says so."""
    store = open_store(busy_timeout_s=0.05)
    store.put(("a",), "k", {})
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    with pytest.raises(StorageError, match="busy_timeout_s"):
        store.put(("a",), "k2", {})
    assert time.monotonic() - started >= 0.04
    assert store.get(("a",), "k") is not None
    other.execute("ROLLBACK")
    other.close()
    store.put(("a",), "k2", {})


def test_directory_is_no_store(open_store: Open, tmp_path: Path) -> None:
    """A directory, and a file in a directory that is not there, raise StorageError."""
    with pytest.raises(StorageError, match="directory"):
        open_store(tmp_path).setup()
    with pytest.raises(StorageError, match="create the directory"):
        open_store(tmp_path / "none" / "store.db").setup()


def test_file_of_another_kind(open_store: Open, tmp_path: Path) -> None:
    """A file that is no database raises CorruptStoreError and stays as it was."""
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes. " * 100)
    with pytest.raises(CorruptStoreError, match="backup"):
        open_store(path).setup()
    assert path.read_text() == "These are my notes. " * 100


def test_database_of_another_program(open_store: Open, tmp_path: Path) -> None:
    """Another program's database is refused and not touched."""
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs(x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StorageError, match="another program"):
        open_store(path).setup()
    assert path.read_bytes() == before


def test_newer_schema_is_refused_untouched(open_store: Open, tmp_path: Path) -> None:
    """A file of a newer version says which versions are meant, and is not touched."""
    store = open_store()
    store.put(("a",), "k", {})
    store.conn.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    store.close()
    path = tmp_path / "store.db"
    before = path.read_bytes()
    with pytest.raises(SchemaVersionError, match=f"{SCHEMA_VERSION + 1}.*upgrade"):
        open_store().setup()
    assert path.read_bytes() == before


def test_read_only_file_can_be_read(
    open_store: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file without write permission is read and searched; a write raises StorageError."""
    store = open_store()
    store.put(("a",), "k", {"text": "abc"}, ttl=5)
    store.close()
    (tmp_path / "store.db").chmod(0o444)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))
    again = open_store()
    assert [i.key for i in again.search(("a",), query="abc")] == ["k"]
    assert again.get(("a",), "k") is not None
    with pytest.raises(StorageError, match="read-only"):
        again.put(("a",), "k2", {})
    assert again.get(("a",), "k") is not None


def test_closed_store_says_so(open_store: Open) -> None:
    """Closing twice is harmless; use after closing raises StorageError."""
    store = open_store()
    store.put(("a",), "k", {})
    store.close()
    store.close()
    with pytest.raises(StorageError, match="closed"):
        store.get(("a",), "k")
    unused = open_store()
    unused.close()
    with pytest.raises(StorageError, match="closed"):
        unused.get(("a",), "k")


class _Other(Letters):
    name = "other"


@pytest.mark.parametrize("change", ["dims", "fields", "distance_type", "embed"])
def test_other_index_is_refused_and_reindex_takes_over(
    open_store: Open, embedder: Letters, change: str
) -> None:
    """A file of another index is refused, naming both, until `reindex` embeds it anew."""
    store = open_store()
    store.put(("a",), "k", {"text": "abc", "other": "xyz"})
    store.put(("a",), "none", {"text": "abc"}, index=False)
    store.put(("a",), "own", {"text": "x", "mine": "abc"}, index=["mine"])
    store.close()
    index = {"dims": 36, "embed": embedder, "fields": ["text"]}
    changes: dict[str, dict[str, Any]] = {
        "dims": {"dims": 26, "embed": Letters(26)},
        "fields": {"fields": ["other"]},
        "distance_type": {"distance_type": "l2"},
        "embed": {"embed": _Other()},
    }
    other = open_store(index={**index, **changes[change]})
    for _ in range(2):
        with pytest.raises(IndexMismatchError, match=r"fields.*fields.*reindex"):
            other.get(("a",), "k")
    assert open_store().get(("a",), "k") is not None
    assert other.reindex() == 3
    query = "xyz" if change == "fields" else "abc"
    assert {i.key for i in other.search(("a",), query=query)} == {"k", "own"}
    assert other.search(("a",), query=query)[0].score == pytest.approx(
        0.0 if change == "distance_type" else 1.0
    )
    with pytest.raises(IndexMismatchError):
        open_store().setup()


def test_unnamed_embedders_are_compared_by_size(open_store: Open) -> None:
    """Two functions without a name are taken for the same model if their size agrees."""
    open_store(index={"dims": 2, "embed": lambda texts: [[1.0, 0.0] for _ in texts]}).setup()
    open_store(index={"dims": 2, "embed": lambda texts: [[0.0, 1.0] for _ in texts]}).setup()
    with pytest.raises(IndexMismatchError):
        open_store(index={"dims": 3, "embed": lambda texts: [[0.0] * 3 for _ in texts]}).setup()


def test_delete_namespace_erases_for_good(open_store: Open, tmp_path: Path) -> None:
    """A namespace is erased with all below it, and after a vacuum no file holds its text."""
    store = open_store()
    secret = "correcthorsebattery"  # noqa: S105 - a word to look for
    for namespace in [("u1",), ("u1", "x"), ("u10",)]:
        text = secret if namespace[0] == "u1" else "kept"
        for n in range(5):
            store.put(namespace, str(n), {"text": f"{text} {n}"}, ttl=5)
    store.search((), query=secret)
    assert store.delete_namespace(("u1",), vacuum=True) == 10
    assert store.list_namespaces() == [("u10",)]
    assert len(store.search((), query=secret, limit=100)) == 5
    assert store.conn.execute("SELECT count(*) FROM units").fetchone() == (5,)
    assert store.conn.execute("SELECT path FROM namespaces").fetchall() == [("u10\x1f",)]
    files = list(tmp_path.iterdir())
    assert len(files) >= 2
    for file in files:
        assert secret.encode() not in file.read_bytes()
    with pytest.raises(ValueError, match="empty prefix"):
        store.delete_namespace(())


def test_memory_budget_drops_segments(open_store: Open) -> None:
    """With no memory for them segments are loaded for each search, with the same results."""
    store = open_store(memory_budget_mb=0)
    for n in range(6):
        store.put((f"n{n % 2}",), str(n), {"text": "abc" + "d" * n})
    assert [i.key for i in store.search((), query="abc", limit=3)] == ["0", "1", "2"]
    assert store._engine is not None
    assert store._engine.index is not None
    assert len(store._engine.index.segments) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"index": "other"},
        {"synchronous": "off"},
        {"faiss_threads": 0},
        {"index": {"dims": 0, "embed": Letters()}},
        {"index": {"dims": 3, "embed": Letters(), "mode": "magic"}},
        {"index": {"dims": 3, "embed": Letters(), "distance_type": "hamming"}},
        {"index": {"dims": 3, "embed": Letters(), "dense_weight": -1}},
        {"index": {"fields": ["a"], "mode": "dense"}},
        {"index": {"dims": 3, "embed": "no-such-model"}},
    ],
)
def test_unusable_configuration(open_store: Open, options: dict[str, object]) -> None:
    """A configuration that cannot work is refused at once."""
    with pytest.raises(ConfigurationError):
        open_store(**options)


@pytest.mark.parametrize("distance", ["cosine", "inner_product", "l2"])
def test_threads_do_not_change_scores(
    open_store: Open, embedder: Letters, distance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan shared by threads gives the scores of one thread."""
    monkeypatch.setattr("langchain_agentmem.stores._vectors._PARALLEL_BYTES", 1)
    index = {"dims": 36, "embed": embedder, "fields": ["text"], "distance_type": distance}
    one, three = open_store(index=index), open_store(index=index, faiss_threads=3)
    for n in range(20):
        one.put(("a",), str(n), {"text": "ab" * n + "c" * (n % 5)})
    found = [[(i.key, i.score) for i in s.search((), query="abc", limit=20)] for s in (one, three)]
    assert found[0] == found[1]


def test_in_memory_store_works(embedder: Letters) -> None:
    """A store in memory reads, writes and searches."""
    index = {"dims": 36, "embed": embedder, "fields": ["text"]}
    with FaissSqliteStore.from_conn_string(":memory:", index=index) as store:  # type: ignore[arg-type]
        store.put(("a",), "k", {"text": "abc"})
        assert [i.key for i in store.search(("a",), query="abc")] == ["k"]


async def test_from_conn_string_is_an_async_context_manager_too(tmp_path: Path) -> None:
    """The same constructor opens a store for `async with`, without an index by default."""
    async with FaissSqliteStore.from_conn_string(str(tmp_path / "s.db")) as store:
        await store.aput(("a",), "k", {"text": "abc"})
        assert [i.score for i in await store.asearch(("a",), query="abc")] == [None]
        assert store.embeddings is None


def test_sweeper_thread_removes_expired_items(open_store: Open, clock: Clock) -> None:
    """The sweeper runs when started, and stops when told to, when cancelled and on close."""
    store = open_store(ttl={"sweep_interval_minutes": 1})
    store.put(("a",), "k", {}, ttl=1)
    clock.move(61)
    future = store.start_ttl_sweeper(0.01 / 60)
    assert store.start_ttl_sweeper() is future
    deadline = time.monotonic() + 5
    while store.conn.execute("SELECT count(*) FROM items").fetchone()[0]:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert store.stop_ttl_sweeper(5)
    assert future.result(1) is None
    assert store.start_ttl_sweeper(10).cancel()
    store.close()
