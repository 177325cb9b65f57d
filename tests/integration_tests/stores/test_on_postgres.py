"""What the package does on LangGraph's store in memory, it does on PostgreSQL unchanged."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from langchain_tests.integration_tests import (
    BaseStoreAsyncTests,
    BaseStoreSyncTests,
    VectorStoreIntegrationTests,
)
from langgraph.store.base import PutOp

from langchain_agentmem.errors import ConflictError, StorageError
from langchain_agentmem.stores import (
    FaissSqliteStore,
    LangGraphByteStore,
    LangGraphVectorStore,
    open_store,
)
from langchain_agentmem.testing import CharacterEmbeddings
from tests.integration_tests.postgres import schema_uri, server_uri

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langchain_core.vectorstores import VectorStore

    from langchain_agentmem.stores.postgres import PooledPostgresStore

SUITES = {
    "memories": ("tests/unit_tests/memories/test_rag.py", "sync-memory-index"),
    "written": ("tests/unit_tests/written/test_mem0_remember.py", "memory-sync"),
    "surfaces": ("tests/unit_tests/surfaces/test_manage_tool.py", "memory"),
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("suite", SUITES)
def test_unit_tests_hold_on_postgres(suite: str) -> None:
    """The unit tests of each floor pass with PostgreSQL in the place of `InMemoryStore`."""
    pytest.importorskip("langgraph.store.postgres")
    server_uri()
    path, selected = SUITES[suite]
    options = [
        "-n",
        "0",
        "-q",
        "--force-enable-socket",
        "-p",
        "tests.integration_tests.on_postgres",
    ]
    command = [sys.executable, "-m", "pytest", *options, "--timeout", "120", path, "-k", selected]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PooledPostgresStore]:
    """A store in a schema of the test's own."""
    pytest.importorskip("langgraph.store.postgres")
    embedder = CharacterEmbeddings()
    index: Any = {"dims": embedder.dims, "embed": embedder, "fields": ["text"]}
    with open_store(schema_uri(tmp_path), index=index) as opened:
        yield opened  # type: ignore[misc]


def test_rankings_are_those_of_the_file(store: PooledPostgresStore) -> None:
    """Every mode gives the order and the scores that `FaissSqliteStore` gives."""
    index: Any = {**(store.index_config or {}), "distance_type": "cosine"}
    texts = ["red fish", "blue fish fish", "a red boat", "the sea", "Rote Grütze", "上海的红鱼"]
    with FaissSqliteStore(":memory:", index=index) as file:
        for each in (store, file):
            each.batch([PutOp(("a",), str(n), {"text": t, "n": n}) for n, t in enumerate(texts)])
        modes: tuple[Any, ...] = ("dense", "lexical", "hybrid")
        for mode in modes:
            for query in ("red fish", "红鱼", "grütze", "nothing like it"):
                options: Any = {"query": query, "mode": mode, "filter": {"n": {"$lt": 6}}}
                ours = [(i.key, i.score) for i in store.search(("a",), **options)]
                wanted = [(i.key, i.score) for i in file.search(("a",), **options)]
                assert [key for key, _ in ours] == [key for key, _ in wanted]
                assert [s for _, s in ours] == pytest.approx([s for _, s in wanted], abs=1e-4)


def test_conditional_writes_of_many_threads_lose_nothing(store: PooledPostgresStore) -> None:
    """A counter raised with `expect` by several threads counts every success."""
    place, done = (("c",), "counter"), list[int]()

    def count() -> None:
        while len(done) < 40:
            item = store.get(*place)
            version = None if item is None else item.value["version"]
            try:
                op = PutOp(*place, {"version": (version or 0) + 1})
                store.batch([op], expect={place: version})
            except ConflictError:
                continue
            done.append(1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    final = store.get(*place)
    assert final is not None
    assert final.value["version"] == len(done)


def test_conflict_changes_nothing(store: PooledPostgresStore) -> None:
    """An unmet expectation leaves the other puts of the batch unwritten, sync and async."""
    store.put(("a",), "k", {"version": 2})
    ops = [PutOp(("a",), "other", {"n": 1})]
    cases: tuple[Any, ...] = ({(("a",), "k"): 1}, {(("a",), "k"): None}, {(("a",), "none"): 1})
    for expected in cases:
        with pytest.raises(ConflictError):
            store.batch(ops, expect=expected)
        with pytest.raises(ConflictError):
            asyncio.run(store.abatch(ops, expect=expected))
    assert store.get(("a",), "other") is None


def test_unchanged_text_is_not_embedded_again(store: PooledPostgresStore) -> None:
    """A put whose text is the stored one keeps its vector."""
    embedder: Any = store.embeddings
    store.put(("a",), "k", {"text": "abc", "n": 1})
    embedder.document_calls.clear()
    store.put(("a",), "k", {"text": "abc", "n": 2})
    assert embedder.documents == []
    assert [item.value["n"] for item in store.search(("a",), query="abc")] == [2]


def test_database_of_the_official_store_is_read_and_written(tmp_path: Path) -> None:
    """What LangGraph's store has put is found by vectors, and it finds what ours has put."""
    postgres = pytest.importorskip("langgraph.store.postgres")
    embedder = CharacterEmbeddings()
    index: Any = {"dims": embedder.dims, "embed": embedder, "fields": ["text"]}
    uri = schema_uri(tmp_path)
    with postgres.PostgresStore.from_conn_string(uri, index=index) as official:
        official.setup()
        official.put(("a",), "theirs", {"text": "abc"})
        with open_store(uri, index=index) as ours:
            ours.put(("a",), "ours", {"text": "abd"})
            assert {i.key for i in ours.search(("a",), query="abc")} == {"theirs", "ours"}
        assert {i.key for i in official.search(("a",), query="abc")} == {"theirs", "ours"}


def test_reserved_root_is_out_of_sight(store: PooledPostgresStore) -> None:
    """`_agentmem` shows only to prefixes that begin with it."""
    store.put(("_agentmem", "x"), "hidden", {"text": "word"})
    store.put(("u",), "seen", {"text": "word"})
    for query in (None, "word"):
        assert [i.key for i in store.search((), query=query)] == ["seen"]
        assert [i.key for i in store.search(("_agentmem",), query=query)] == ["hidden"]
    assert store.list_namespaces() == [("u",)]


class _ByteStore:
    """What LangChain's two suites of byte stores ask for."""

    @pytest.fixture
    def kv_store(self, store: PooledPostgresStore) -> LangGraphByteStore:
        """An empty byte store."""
        return LangGraphByteStore(store, ("bytes",))

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        """Three values that differ."""
        return b"foo", b"\x00\xff", b""


class TestByteStore(_ByteStore, BaseStoreSyncTests[bytes]):
    """LangChain's suite of byte stores, sync."""


class TestAsyncByteStore(_ByteStore, BaseStoreAsyncTests[bytes]):
    """LangChain's suite of byte stores, async."""


class TestVectorStore(VectorStoreIntegrationTests):
    """LangChain's suite of vector stores."""

    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        """An empty vector store."""
        embedding = self.get_embeddings()
        dims = len(embedding.embed_query("x"))
        index: Any = {"dims": dims, "embed": embedding, "fields": ["none"]}
        with open_store(schema_uri(tmp_path), index=index) as opened:
            yield LangGraphVectorStore(opened, ("docs",))


def test_a_closed_store_and_too_large_numbers_raise_no_error_of_the_driver(
    store: PooledPostgresStore,
) -> None:
    """What a caller sees is the store's own error, as with a file."""
    store.put(("a",), "k", {"text": "abc"})
    assert len(store.search(("a",), limit=10**30)) == 1
    with pytest.raises(ValueError, match="at most 1e9"):
        store.put(("a",), "k", {"text": "abc"}, ttl=1e300)
    store.close()
    with pytest.raises(StorageError, match="already closed"):
        store.get(("a",), "k")


def test_connections_that_died_while_idle_cost_no_call(
    store: PooledPostgresStore, tmp_path: Path
) -> None:
    """After a restart of the server each of them failed one call, one after the other."""
    psycopg = pytest.importorskip("psycopg")
    threads = [threading.Thread(target=store.search, args=(("a",),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.put(("a",), "k", {"text": "abc"})
    with psycopg.connect(schema_uri(tmp_path), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    store.put(("a",), "l", {"text": "abd"})
    for _ in range(5):
        assert {item.key for item in store.search(("a",), query="abc")} == {"k", "l"}


def test_a_table_made_for_another_model_is_explained(
    store: PooledPostgresStore, tmp_path: Path
) -> None:
    """The server's error is in the store's own."""
    store.put(("a",), "k", {"text": "abc"})
    index: Any = {"dims": 3, "embed": lambda texts: [[1.0, 2.0, 3.0] for _ in texts]}
    with (
        open_store(schema_uri(tmp_path), index=index) as other,
        pytest.raises(StorageError, match="different vector dimensions"),
    ):
        other.search(("a",), query="abc")
