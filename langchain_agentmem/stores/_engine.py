"""The store's work behind its public methods: one plan for a batch, run in any thread."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langgraph.store.base import GetOp, ListNamespacesOp, PutOp

from langchain_agentmem.errors import CorruptStoreError, IndexMismatchError
from langchain_agentmem.retrieval.text import terms
from langchain_agentmem.stores import _search, _vectors, _writes
from langchain_agentmem.stores._filters import Filter, compile_filter
from langchain_agentmem.stores._groups import GroupCommitter, Transaction
from langchain_agentmem.stores._index import MemoryIndex
from langchain_agentmem.stores._indexing import (
    IndexSettings,
    Put,
    Unit,
    embed,
    plan_puts,
    same_index,
)
from langchain_agentmem.stores._namespaces import encode
from langchain_agentmem.stores._ops import StoreOp, StoreSearchOp, check_op
from langchain_agentmem.stores._schema import Database

_EMBED_CHUNK = 256

Vectors = Sequence[Sequence[float]]


@dataclass(slots=True)
class Plan:
    """A checked batch on its way.

    Attributes:
        ops: The ops, in the caller's order.
        puts: What is to be written, one entry for each key.
        filters: The compiled filters of the searches, by position.
        modes: How the searches with a query are ranked, by position.
        queries: The queries to embed, each once.
        documents: The texts to embed, each once.
        expected: The versions a conditional write depends on.
        known: What the file had under the keys of the puts.
    """

    ops: list[StoreOp]
    puts: list[Put]
    filters: dict[int, Filter | None]
    modes: dict[int, str]
    queries: list[str]
    documents: list[str] = field(default_factory=list)
    expected: _writes.Expected | None = None
    known: _writes.Known | None = None

    @property
    def units(self) -> list[Unit]:
        """The texts of all puts."""
        return [unit for put in self.puts for unit in put.units]


def plan(
    ops: Iterable[object], expected: _writes.Expected | None, settings: IndexSettings | None
) -> Plan:
    """Check a batch as a whole before any of it runs.

    Raises:
        ValueError: If an op, a filter or a path is not acceptable.
        TypeError: If a value holds something JSON does not know.
    """
    checked = [check_op(op) for op in ops]
    filters: dict[int, Filter | None] = {}
    modes: dict[int, str] = {}
    queries: dict[str, None] = {}
    for position, op in enumerate(checked):
        if isinstance(op, StoreSearchOp):
            filters[position] = compile_filter(op.filter)
            mode = _search.mode_of(op, settings)
            if mode is not None:
                modes[position] = mode
                if mode != "lexical":
                    queries[str(op.query)] = None
    puts = plan_puts([op for op in checked if isinstance(op, PutOp)], settings)
    return Plan(checked, puts, filters, modes, list(queries), expected=expected)


class Engine:
    """One open file with its index.

    Args:
        database: The database, opened.
        settings: The index; None for a store without search by query.
        clock: Returns the time in microseconds since 1970.
        omit_expired: Whether reads leave expired items out before they are swept.
        budget: How many bytes of vectors and words may stay in memory.
        threads: How many threads may share one large scan.
    """

    def __init__(
        self,
        database: Database,
        settings: IndexSettings | None,
        *,
        clock: Callable[[], int],
        omit_expired: bool,
        budget: int,
        threads: int,
    ) -> None:
        self.database = database
        self.committer = GroupCommitter(database)
        self.index = None if settings is None else MemoryIndex(settings, budget)
        self._settings = settings
        self._clock = clock
        self._omit_expired = omit_expired
        self._threads = threads

    def check_fingerprint(self) -> None:
        """Compare the file's index with the store's, or note it down in a new file.

        Raises:
            IndexMismatchError: If they differ.
        """
        if self._settings is None:
            return
        wanted = self._settings.fingerprint
        with self.database.reader() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'fingerprint'").fetchone()
        try:
            fits = row is None or same_index(json.loads(row[0]), wanted)
        except (ValueError, KeyError, TypeError) as err:
            msg = (
                f"{self.database.path} is damaged: what it was indexed with cannot be read; "
                "run 'agentmem doctor', which says what else is."
            )
            raise CorruptStoreError(msg) from err
        if not fits:
            msg = (
                f"{self.database.path} was indexed with {row[0]}, but the store is set up with "
                f"{json.dumps(wanted)}. Open it with the former index, or call reindex() "
                "(agentmem doctor --reembed) to embed its items anew. The file was not touched."
            )
            raise IndexMismatchError(msg)
        if row is None and not self.database.read_only:
            self.committer.run(self._note_fingerprint)

    def _note_fingerprint(self, transaction: Transaction) -> None:
        if self._settings is not None:
            transaction.connection.execute(
                "INSERT OR REPLACE INTO meta VALUES ('fingerprint', ?)",
                (json.dumps(self._settings.fingerprint),),
            )

    def reuse(self, batch: Plan) -> None:
        """Take over vectors of unchanged texts, and list the texts that must be embedded."""
        if not any(put.units for put in batch.puts):
            return
        with self.database.reader() as connection:
            batch.known = _writes.reuse_units(connection, batch.puts)
        if self._settings is not None and self._settings.embeddings is not None:
            batch.documents = list(
                dict.fromkeys(unit.text for unit in batch.units if unit.vector is None)
            )

    def run(self, batch: Plan) -> list[Any]:
        """Run a batch from start to end in the calling thread."""
        self.reuse(batch)
        vectors: tuple[Vectors, Vectors] = ([], [])
        if self._settings is not None and self._settings.embeddings is not None:
            vectors = embed(self._settings.embeddings, batch.documents, batch.queries)
        return self.finish(batch, *vectors)

    def finish(self, batch: Plan, documents: Vectors, queries: Vectors) -> list[Any]:
        """Run a batch whose texts are embedded: first its reads, then its writes.

        Args:
            batch: The batch.
            documents: The vectors of its `documents`.
            queries: The vectors of its `queries`.

        Returns:
            One result for each op.
        """
        self._complete(batch, documents)
        now = self._clock()
        results: list[Any] = [None] * len(batch.ops)
        refreshed = self._read(batch, self._query_vectors(batch, queries), now, results)
        if batch.puts or batch.expected or (refreshed and not self.database.read_only):
            self.committer.run(lambda transaction: self._write(transaction, batch, refreshed, now))
        return results

    def _complete(self, batch: Plan, documents: Vectors) -> None:
        """Give every new text its vector and its terms."""
        vectors: dict[str, bytes] = {}
        if self._settings is not None and self._settings.dims is not None and batch.documents:
            check_count(documents, batch.documents)
            matrix = _vectors.as_matrix(documents, self._settings.dims)
            vectors = dict(zip(batch.documents, _vectors.encode(matrix), strict=True))
        for unit in batch.units:
            if unit.vector is None:
                unit.vector = vectors.get(unit.text)
        analyze(batch.units)

    def _query_vectors(self, batch: Plan, queries: Vectors) -> dict[str, _vectors.Floats]:
        """Return the vectors of a batch's queries by text, checked before anything is read."""
        settings = self._settings
        if settings is None or settings.dims is None or not batch.queries:
            return {}
        return {
            text: _vectors.query_vector(query, settings.dims, settings.distance)
            for text, query in zip(batch.queries, queries, strict=True)
        }

    def _write(
        self, transaction: Transaction, batch: Plan, refreshed: Sequence[int], now: int
    ) -> None:
        if batch.expected:
            _writes.check_versions(transaction.connection, batch.expected, now)
        if refreshed:
            _writes.refresh(transaction, refreshed, now)
        _writes.apply_puts(
            *(transaction, batch.puts, now),
            omit_expired=self._omit_expired,
            known=batch.known,
        )

    def _read(
        self, batch: Plan, vectors: dict[str, _vectors.Floats], now: int, results: list[Any]
    ) -> list[int]:
        """Answer the reads of a batch from one snapshot; returns the items to refresh."""
        positions = [n for n, op in enumerate(batch.ops) if not isinstance(op, PutOp)]
        if not positions:
            return []
        refreshed: dict[int, None] = {}
        horizon = now if self._omit_expired else None
        with self.database.reader() as connection:
            views = self._views(connection, batch, horizon)
            stored = _stored(connection, batch.ops, horizon)
            for position in positions:
                op = batch.ops[position]
                if isinstance(op, ListNamespacesOp):
                    results[position] = _search.list_namespaces(connection, op, horizon)
                    continue
                if isinstance(op, GetOp):
                    found = stored[encode(op.namespace)].get(op.key)
                    hits = [] if found is None else [found]
                    results[position] = None if found is None else _search.plain_item(found)
                else:
                    hits = self._search(
                        *(connection, batch, position, views.get(position)),
                        vectors=vectors,
                        now=horizon,
                    )
                    results[position] = [hit.item for hit in hits]
                if cast("Any", op).refresh_ttl:
                    refreshed.update(dict.fromkeys(hit.identity for hit in hits if hit.has_ttl))
        return list(refreshed)

    def _views(
        self, connection: sqlite3.Connection, batch: Plan, now: int | None
    ) -> dict[int, _search.View]:
        """Select the rows of all ranked searches while the index equals the snapshot."""
        if not batch.modes or self.index is None:
            return {}
        with self.index.lock:
            self.index.catch_up(connection)
            views = {
                position: _search.view(
                    connection,
                    self.index,
                    cast("StoreSearchOp", batch.ops[position]),
                    batch.filters[position],
                    now=now,
                    mode=mode,
                )
                for position, mode in batch.modes.items()
            }
            self.index.trim()
            return views

    def _search(
        self,
        connection: sqlite3.Connection,
        batch: Plan,
        position: int,
        view: _search.View | None,
        *,
        vectors: dict[str, _vectors.Floats],
        now: int | None,
    ) -> list[_search.Hit]:
        op = cast("StoreSearchOp", batch.ops[position])
        if view is None or self._settings is None or self.index is None:
            return _search.newest(connection, op, batch.filters[position], now)
        mode = batch.modes[position]
        vector = None if mode == "lexical" else vectors.get(op.query or "")
        if mode != "dense":
            _search.find_words(connection, view, op)
        if vector is not None:
            _search.compare(
                *(connection, view, self.index, vector, self._settings), threads=self._threads
            )
        scores = _search.score(view, self._settings, mode)
        return _search.ranked(connection, self.index, scores, op)

    def reindex(self) -> int:
        """Extract, embed and analyze every item anew in one transaction; returns their number."""
        return self.committer.run(self._rebuild)

    def _rebuild(self, transaction: Transaction) -> int:
        connection = transaction.connection
        items = _writes.read_all_units(connection, self._settings)
        self._embed_units([unit for _, _, units in items for unit in units])
        _writes.replace_all_units(connection, items)
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'epoch'")
        self._note_fingerprint(transaction)
        return len(items)

    def _embed_units(self, units: Sequence[Unit]) -> None:
        settings = self._settings
        texts = list(dict.fromkeys(unit.text for unit in units))
        vectors: dict[str, bytes] = {}
        if settings is not None and settings.embeddings is not None and settings.dims is not None:
            for start in range(0, len(texts), _EMBED_CHUNK):
                chunk = texts[start : start + _EMBED_CHUNK]
                found, _ = embed(settings.embeddings, chunk, [])
                check_count(found, chunk)
                matrix = _vectors.as_matrix(found, settings.dims)
                vectors.update(zip(chunk, _vectors.encode(matrix), strict=True))
        for unit in units:
            unit.vector = vectors.get(unit.text)
            unit.terms = " ".join(terms(unit.text))


def _stored(
    connection: sqlite3.Connection, ops: Iterable[StoreOp], now: int | None
) -> dict[str, dict[str, _search.Hit]]:
    """Return what the gets of a batch ask for, by namespace and key."""
    wanted: dict[str, dict[str, None]] = {}
    for op in ops:
        if isinstance(op, GetOp):
            wanted.setdefault(encode(op.namespace), {})[op.key] = None
    return {path: _search.get(connection, path, [*keys], now) for path, keys in wanted.items()}


def analyze(units: Iterable[Unit]) -> None:
    """Give texts their index terms, unless they have them."""
    for unit in units:
        if not unit.terms:
            unit.terms = " ".join(terms(unit.text))


def check_count(vectors: Vectors, texts: Sequence[str]) -> None:
    """Refuse an embedder's answer of another length.

    Raises:
        ValueError: If there is not one vector for each text.
    """
    if len(vectors) != len(texts):
        msg = f"The embedder returned {len(vectors)} vectors for {len(texts)} texts."
        raise ValueError(msg)
