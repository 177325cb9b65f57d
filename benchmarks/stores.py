"""How fast stores are, as ratios within one run, with the recall of their search beside it.

Run by hand: `python benchmarks/stores.py [--sizes 1000 10000 100000] [--dims 384]`. Every store
gets the same items in 50 namespaces, with the same random unit vectors, and the same queries.
Recall is measured against exact search. Absolute times depend on the machine; the ratios count.
Stores whose packages are missing, or that are hopeless at a size, are left out with the reason.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore
from numpy.typing import NDArray

from langchain_agentmem.stores import FaissSqliteStore

NAMESPACES: Final = 50
CHUNK: Final = 500
K: Final = 10
SLOW_ABOVE: Final = 10_000
"""Python-loop stores are left out above this many items."""


class Vectors(Embeddings):
    """Random unit vectors, the same for the same text."""

    name = "random"

    def __init__(self, dims: int) -> None:
        self.dims = dims

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        rng = np.random.default_rng(int(text.rpartition(" ")[2]))
        vector = rng.standard_normal(self.dims)
        return [float(x) for x in vector / np.linalg.norm(vector)]


class Subject(Protocol):
    """A store under measurement."""

    def fill(self, texts: Sequence[str]) -> None:
        """Add all items."""

    def put(self, text: str) -> None:
        """Add one item."""

    def search(self, query: str, scope: int | None) -> list[str]:
        """Return the texts nearest to a query, in one namespace or in all."""


class LangGraph:
    """A LangGraph store."""

    def __init__(self, store: BaseStore) -> None:
        self.store = store

    def fill(self, texts: Sequence[str]) -> None:
        """Put all items in batches."""
        for start in range(0, len(texts), CHUNK):
            self.store.batch([_op(text) for text in texts[start : start + CHUNK]])

    def put(self, text: str) -> None:
        """Put one item."""
        self.store.batch([_op(text)])

    def search(self, query: str, scope: int | None) -> list[str]:
        """Search a namespace."""
        prefix = ("all",) if scope is None else ("all", str(scope))
        return [item.value["text"] for item in self.store.search(prefix, query=query, limit=K)]


class LangChain:
    """A LangChain vector store; a namespace is a metadata field."""

    def __init__(self, store: Any, condition: Callable[[int], dict[str, Any]]) -> None:  # noqa: ANN401 - optional packages
        self.store = store
        self.condition = condition

    def fill(self, texts: Sequence[str]) -> None:
        """Add all documents in batches."""
        for start in range(0, len(texts), CHUNK):
            self.store.add_documents([_document(text) for text in texts[start : start + CHUNK]])

    def put(self, text: str) -> None:
        """Add one document."""
        self.store.add_documents([_document(text)])

    def search(self, query: str, scope: int | None) -> list[str]:
        """Search with a filter."""
        options = {} if scope is None else self.condition(scope)
        return [found.page_content for found in self.store.similarity_search(query, K, **options)]


def _scope(text: str) -> int:
    return int(text.rpartition(" ")[2]) % NAMESPACES


def _op(text: str) -> PutOp:
    return PutOp(("all", str(_scope(text))), text, {"text": text}, index=["text"])


def _document(text: str) -> Document:
    return Document(id=text, page_content=text, metadata={"scope": _scope(text)})


@contextmanager
def ours(folder: Path, model: Vectors) -> Iterator[Subject]:
    """`FaissSqliteStore`, with the durability of its default."""
    index: Any = {"dims": model.dims, "embed": model, "fields": ["text"]}
    with FaissSqliteStore(folder / "ours.sqlite", index=index) as store:
        yield LangGraph(store)


@contextmanager
def in_memory(_: Path, model: Vectors) -> Iterator[Subject]:
    """LangGraph's `InMemoryStore`."""
    yield LangGraph(InMemoryStore(index={"dims": model.dims, "embed": model, "fields": ["text"]}))


@contextmanager
def official_sqlite(folder: Path, model: Vectors) -> Iterator[Subject]:
    """LangGraph's `SqliteStore`."""
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        msg = "this Python's sqlite3 loads no extensions"
        raise ImportError(msg)
    from langgraph.store.sqlite import SqliteStore

    index: Any = {"dims": model.dims, "embed": model, "text_fields": ["text"]}
    with SqliteStore.from_conn_string(str(folder / "official.sqlite"), index=index) as store:
        store.setup()
        yield LangGraph(store)


@contextmanager
def community_faiss(_: Path, model: Vectors) -> Iterator[Subject]:
    """FAISS of langchain-community, flat, in memory."""
    import faiss
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

    store = FAISS(model, faiss.IndexFlatIP(model.dims), InMemoryDocstore(), {})
    # It filters after fetching, so it must fetch everything to be right.
    yield LangChain(
        store, lambda scope: {"filter": {"scope": scope}, "fetch_k": store.index.ntotal}
    )


@contextmanager
def chroma(folder: Path, model: Vectors) -> Iterator[Subject]:
    """Chroma, on disk."""
    from langchain_chroma import Chroma

    space = {"hnsw:space": "cosine"}
    store = Chroma("bench", model, persist_directory=str(folder), collection_metadata=space)
    yield LangChain(store, lambda scope: {"filter": {"scope": scope}})


@contextmanager
def lancedb(folder: Path, model: Vectors) -> Iterator[Subject]:
    """LanceDB, on disk."""
    from langchain_community.vectorstores import LanceDB

    store = LanceDB(uri=str(folder / "lance"), embedding=model, distance="cosine")
    yield LangChain(store, lambda scope: {"filter": f"metadata.scope = {scope}", "prefilter": True})


SUBJECTS: Final = {
    "FaissSqliteStore": ours,
    "InMemoryStore": in_memory,
    "SqliteStore": official_sqlite,
    "community FAISS": community_faiss,
    "Chroma": chroma,
    "LanceDB": lancedb,
}
SLOW: Final = {"InMemoryStore", "SqliteStore"}


@dataclass
class Row:
    """What one store took at one size.

    Attributes:
        medians: Milliseconds of fill (per 1,000 items), put, search and scoped search.
        recall: Share of the exact nearest items that the searches returned.
    """

    medians: dict[str, float] = field(default_factory=dict)
    recall: dict[str, float] = field(default_factory=dict)


def median_ms(calls: Sequence[Callable[[], Any]]) -> tuple[float, list[Any]]:
    """Return the median time of calls in milliseconds, and their results."""
    times, results = [], []
    for call in calls:
        started = time.perf_counter()
        results.append(call())
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times), results


def nearest(model: Vectors, texts: Sequence[str], matrix: NDArray[Any], query: str) -> set[str]:
    """Return the texts an exact search returns."""
    order = np.argsort(-(matrix @ np.array(model.embed_query(query))))[:K]
    return {texts[n] for n in order}


def measure(subject: Subject, model: Vectors, size: int, rounds: int) -> Row:
    """Fill a store and time its calls."""
    row = Row()
    texts = [f"item {n}" for n in range(size)]
    started = time.perf_counter()
    subject.fill(texts)
    row.medians["fill / 1k"] = 1_000_000 * (time.perf_counter() - started) / size
    new = [f"item {size + n}" for n in range(rounds)]
    row.medians["put"], _ = median_ms([lambda text=text: subject.put(text) for text in new])
    texts += new
    matrix = np.array(model.embed_documents(texts))
    queries = [f"query {10**9 + n}" for n in range(rounds)]
    for name, scoped in (("search", False), ("scoped", True)):
        scopes = [n % NAMESPACES if scoped else None for n in range(rounds)]
        calls = [
            lambda query=query, scope=scope: subject.search(query, scope)
            for query, scope in zip(queries, scopes, strict=True)
        ]
        calls[0]()
        row.medians[name], found = median_ms(calls)
        hits = total = 0
        for query, scope, result in zip(queries, scopes, found, strict=True):
            rows = [n for n, t in enumerate(texts) if scope is None or _scope(t) == scope]
            exact = nearest(model, [texts[n] for n in rows], matrix[rows], query)
            hits, total = hits + len(exact & set(result)), total + len(exact)
        row.recall[name] = hits / total
    return row


def show(size: int, rows: dict[str, Row]) -> None:
    """Print one table: the time of each call, its ratio to ours, and the recall."""
    first = rows["FaissSqliteStore"]
    print(f"\n{size:,} items, median ms (ratio to FaissSqliteStore; recall@{K})")
    for name, row in rows.items():
        cells = []
        for call, value in row.medians.items():
            recall = f"; {row.recall[call]:.2f}" if call in row.recall else ""
            cells.append(f"{call} {value:9.2f} ({value / first.medians[call]:6.1f}x{recall})")
        print(f"{name:18}", "  ".join(cells))


def main() -> None:
    """Run the measurement that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--dims", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--only", nargs="+", choices=sorted(SUBJECTS), help="these beside ours")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)
    chosen = {"FaissSqliteStore", *(arguments.only or SUBJECTS)}
    for size in arguments.sizes:
        rows: dict[str, Row] = {}
        for name in (name for name in SUBJECTS if name in chosen):
            if name in SLOW and size > SLOW_ABOVE:
                print(f"{name} is left out at {size:,} items: it takes seconds a query.")
                continue
            model = Vectors(arguments.dims)
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                try:
                    subject = stack.enter_context(SUBJECTS[name](folder, model))
                except ImportError as err:
                    print(f"{name} is left out: {err}")
                    continue
                rows[name] = measure(subject, model, size, arguments.rounds)
        show(size, rows)


if __name__ == "__main__":
    main()
