"""Measure `FaissSqliteStore` against LangGraph's `InMemoryStore` and a flat FAISS scan.

All are measured in the same run, so that the ratios mean something; absolute times depend on the
machine. Vectors are random and made beforehand: no time of an embedding model is counted.

    python benchmarks/store.py [SIZE ...] [--dims 384] [--repeat 30]
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.stores import FaissSqliteStore

NAMESPACES = 100
BATCH = 1_000
IN_MEMORY_LIMIT = 10_000  # beyond this InMemoryStore needs minutes


class Prepared(Embeddings):
    """Looks vectors up that were made before."""

    name = "prepared"

    def __init__(self, texts: list[str], dims: int) -> None:
        matrix = np.random.default_rng(0).standard_normal((len(texts), dims), dtype=np.float32)
        self.matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
        self._rows = dict(zip(texts, self.matrix.tolist(), strict=True))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text."""
        return [self._rows[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return self._rows[text]


def main() -> None:
    """Print one table for each size."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[1_000, 10_000])
    parser.add_argument("--dims", type=int, default=384)
    parser.add_argument("--repeat", type=int, default=30)
    options = parser.parse_args()
    for size in options.sizes:
        measure(size, options.dims, options.repeat)


def measure(size: int, dims: int, repeat: int) -> None:
    """Load `size` items into both stores and time what users do."""
    texts = make_texts(size)
    model = Prepared(texts, dims)
    index: Any = {"dims": dims, "embed": model, "fields": ["text"]}
    ops = [
        PutOp(_namespace(n), str(n), {"text": text, "tag": n % 100}) for n, text in enumerate(texts)
    ]
    with tempfile.TemporaryDirectory() as folder:
        store = FaissSqliteStore(Path(folder) / "store.db", index=index)
        other = InMemoryStore(index=index) if size <= IN_MEMORY_LIMIT else None
        print(f"\n{size} items, {dims} dimensions")
        print(f"{'':26}{'ours ms':>10}{'InMemory':>11}{'ratio':>8}{'flat scan':>11}{'ratio':>8}")
        load = [None if each is None else _load(each, ops) for each in (store, other)]
        _row("bulk load", load[0], load[1], None)
        print(f"{'':10}= {size / (load[0] or 1) * 1000:,.0f} items/s")
        flat = _median(repeat, lambda n: _flat(model, n))
        for name, call in calls(texts).items():
            found = [_median(repeat, partial(call, s)) for s in (store, other) if s]
            is_plain = name in ("plain search", "hybrid search")
            _row(name, found[0], (*found, None)[1], flat if is_plain else None)
        store.close()


def calls(texts: list[str]) -> dict[str, Callable[[Any, int], object]]:
    """Return what is timed, by name."""
    return {
        "plain search": lambda s, n: s.search((), query=texts[n]),
        "1 % prefix": lambda s, n: s.search(_namespace(n), query=texts[n]),
        "1 % value filter": lambda s, n: s.search((), query=texts[n], filter={"tag": n % 100}),
        "hybrid search": lambda s, n: _with_mode(s, (), texts[n], "hybrid"),
        "lexical search": lambda s, n: _with_mode(s, (), texts[n], "lexical"),
        "hybrid, 1 % prefix": lambda s, n: _with_mode(s, _namespace(n), texts[n], "hybrid"),
        "list newest": lambda s, _: s.search(()),
        "list newest, 1 % prefix": lambda s, n: s.search(_namespace(n)),
        "get": lambda s, n: s.get(_namespace(n), str(n)),
        "put again": lambda s, n: s.put(_namespace(n), str(n), {"text": texts[n], "n": n}),
    }


def make_texts(size: int) -> list[str]:
    """Return texts of about 170 bytes whose words are as unevenly frequent as in a language."""
    rng = np.random.default_rng(1)
    ranks = np.minimum(rng.zipf(1.3, size=(size, 25)), 20_000)
    return [" ".join(f"w{rank}ord" for rank in row) + f" n{n}" for n, row in enumerate(ranks)]


def _namespace(n: int) -> tuple[str, ...]:
    return ("mem", f"g{n % 10}", f"u{n % NAMESPACES}")


def _with_mode(store: BaseStore, prefix: tuple[str, ...], query: str, mode: Any) -> object:  # noqa: ANN401 - a literal
    if isinstance(store, FaissSqliteStore):
        return store.search(prefix, query=query, mode=mode)
    return store.search(prefix, query=query)


def _load(store: BaseStore, ops: list[PutOp]) -> float:
    started = time.perf_counter()
    for start in range(0, len(ops), BATCH):
        store.batch(ops[start : start + BATCH])
    return 1000 * (time.perf_counter() - started)


def _flat(model: Prepared, n: int) -> object:
    return faiss.knn(model.matrix[n : n + 1], model.matrix, 10, metric=faiss.METRIC_INNER_PRODUCT)


def _median(repeat: int, call: Callable[[int], object]) -> float:
    """Return the median time of a call in milliseconds, the first call left out."""
    times: list[float] = []
    for n in range(repeat + 1):
        started = time.perf_counter()
        call(n)
        times.append(1000 * (time.perf_counter() - started))
    return float(np.median(times[1:]))


def _row(name: str, ours: float | None, memory: float | None, flat: float | None) -> None:
    cells: Iterable[str] = (
        f"{other:11.3f}{(ours or 0) / other:8.2f}" if other else f"{'-':>11}{'-':>8}"
        for other in (memory, flat)
    )
    print(f"{name:26}{ours:10.3f}{''.join(cells)}")


if __name__ == "__main__":
    faiss.omp_set_num_threads(1)
    sys.exit(main())
