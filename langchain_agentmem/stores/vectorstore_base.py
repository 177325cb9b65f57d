"""`VectorStoreBaseStore`: any LangChain vector store as a LangGraph store."""

from __future__ import annotations

import json
import logging
import math
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    Op,
    PutOp,
    Result,
    SearchItem,
    get_text_at_path,
)

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.stores._calls import Call, Turns, Work, adrive, drive
from langchain_agentmem.stores._filters import Filter, compile_filter
from langchain_agentmem.stores._indexing import check_fields
from langchain_agentmem.stores._lifecycle import Closing
from langchain_agentmem.stores._ops import StoreOp, StoreSearchOp, check_op
from langchain_agentmem.stores.faiss_sqlite import FaissSqliteStore

_LEDGER: Final = ("_agentmem", "vectors")
_ID_SPACE: Final = uuid.UUID("5f1c1d0e-61a5-4c52-9d3a-6a3b7f3e8a10")
_FIRST_PAGE: Final = 50
_LARGEST_FIRST_PAGE: Final = 1000
_GROWTH: Final = 4
_ITEMS_AT_ONCE: Final = 500

logger = logging.getLogger(__name__)

Place = tuple[tuple[str, ...], str]


@dataclass(slots=True)
class _Vectors:
    """The documents of one put.

    Attributes:
        documents: The texts to embed, by their id in the vector store.
        paths: Where in the value the texts are, if not where the store's `fields` say.
        former: The ids the item had.
    """

    documents: dict[str, Document]
    paths: list[str] | None = None
    former: list[str] = field(default_factory=list)


class VectorStoreBaseStore(Closing, BaseStore):
    """A LangGraph `BaseStore` that ranks with any LangChain `VectorStore`.

    Items live in a small embedded catalog, which is the truth: it answers reads, filters and
    listings, and commits a batch as one whole. The vector store holds one document for each indexed
    text, under a UUID made of namespace, key and text, with namespace, key and value in its
    metadata. A query takes hits from the vector store in growing pages until `limit` items match
    scope and filter, so that a filter never returns fewer than exist; hits the catalog does not
    know any more are ignored. Time to live is not supported.

    Two stores may share a vector store only if they share the catalog file too. Where a vector
    store was lost, or does not outlive the process, `reindex` fills one from the catalog.

    Args:
        vectorstore: The vector store; it must be able to delete by id.
        catalog: The catalog's file, `":memory:"`, or a `FaissSqliteStore` without index.
        fields: Paths of what is embedded; none at all for a store without search by query.
        scores: `"similarity"` if a higher score of the vector store is better, `"distance"` if a
            lower one is; distances are negated.
        parallel: Whether the vector store may be used by several threads or tasks at once, as the
            client of a server can. One that keeps its index in this process may be spoiled by
            that, as community FAISS is, so that they take turns unless this is True.

    Raises:
        ConfigurationError: If an argument cannot be used.

    Example:
        ```python
        from langchain_core.vectorstores import InMemoryVectorStore

        from langchain_agentmem.embeddings import default_embeddings
        from langchain_agentmem.stores import VectorStoreBaseStore

        store = VectorStoreBaseStore(InMemoryVectorStore(default_embeddings()))
        store.put(("users", "ada"), "1", {"text": "plays the cello"})
        store.search(("users",), query="cello")
        ```
    """

    supports_ttl = False

    def __init__(
        self,
        vectorstore: VectorStore,
        *,
        catalog: str | Path | FaissSqliteStore = ":memory:",
        fields: Sequence[str] = ("$",),
        scores: Literal["similarity", "distance"] = "similarity",
        parallel: bool = False,
    ) -> None:
        if not isinstance(vectorstore, VectorStore):
            msg = f"A LangChain VectorStore is needed, not {type(vectorstore).__name__}."
            raise ConfigurationError(msg)
        if scores not in ("similarity", "distance"):
            msg = f"scores must be 'similarity' or 'distance', not {scores!r}."
            raise ConfigurationError(msg)
        if isinstance(catalog, FaissSqliteStore):
            self.catalog = catalog
        else:
            self.catalog = FaissSqliteStore(catalog, index=None)
        self.vectorstore = vectorstore
        self._fields = check_fields(list(fields))
        self._sign = 1.0 if scores == "similarity" else -1.0
        self._turns = None if parallel else Turns()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run ops as one whole: its reads see the state before, then its puts apply.

        Raises:
            ValueError: If an op is not acceptable; nothing was written.
            TypeError: If a value holds something JSON does not know; nothing was written.
        """
        given = list(ops)
        turns = self._turns if _uses_vectors(given) else None
        return (turns.drive if turns else drive)(self._run(given))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does without blocking the loop."""
        given = list(ops)
        turns = self._turns if _uses_vectors(given) else None
        return await (turns.adrive if turns else adrive)(self._run(given))

    def reindex(self) -> int:
        """Embed what the vector store has lost of the catalog, and return how many texts.

        Where the vector store cannot say what it holds (`get_by_ids`), it must be empty.
        """
        return (self._turns.drive if self._turns else drive)(self._reindex())

    async def areindex(self) -> int:
        """Do what `reindex` does without blocking the loop."""
        return await (self._turns.adrive if self._turns else adrive)(self._reindex())

    def setup(self) -> None:
        """Open the catalog; done by the first use too, and harmless twice."""
        self.catalog.setup()

    def close(self) -> None:
        """Close the catalog; harmless twice."""
        self.catalog.close()

    def _run(self, ops: list[Op]) -> Work[list[Result]]:
        checked = [check_op(op) for op in ops]
        if any(isinstance(op, PutOp) and op.ttl is not None for op in checked):
            msg = "VectorStoreBaseStore does not support a time to live."
            raise NotImplementedError(msg)
        queries = {
            n: op
            for n, op in enumerate(checked)
            if isinstance(op, StoreSearchOp) and op.query and self._fields
        }
        tests = {n: compile_filter(op.filter) for n, op in queries.items()}
        plain = [op for n, op in enumerate(checked) if n not in queries]
        puts = yield from self._prepare(checked)
        ranked: dict[int, Any] = {}
        for n, op in queries.items():
            ranked[n] = yield from self._rank(op, tests[n])
        yield from self._add(puts)
        results = yield from self._commit(plain, puts)
        rest = iter(results)
        merged = [ranked[n] if n in queries else next(rest) for n in range(len(checked))]
        yield from self._remove(puts)
        return merged

    def _prepare(self, ops: Sequence[StoreOp]) -> Work[dict[Place, _Vectors]]:
        """Extract the texts of the surviving puts, and look up the ids their items had."""
        puts: dict[Place, _Vectors] = {}
        for op in ops:
            if isinstance(op, PutOp):
                documents = dict(self._documents(op))
                paths = list(op.index) if documents and op.index else None
                puts[op.namespace, op.key] = _Vectors(documents, paths)
        if not puts:
            return puts
        found = yield Call(self.catalog, "batch", ([_ledger_get(place) for place in puts],))
        for vectors, entry in zip(puts.values(), found, strict=True):
            vectors.former = [] if entry is None else entry.value["ids"]
        return puts

    def _documents(self, op: PutOp) -> Iterator[tuple[str, Document]]:
        if op.index is not None and op.index is not False:
            check_fields(op.index)
        if op.value is None or op.index is False or not self._fields:
            return
        value = json.dumps(op.value, ensure_ascii=False)
        metadata = {"namespace": json.dumps(op.namespace), "key": op.key, "value": value}
        for path in self._fields if op.index is None else op.index:
            for text in get_text_at_path(op.value, path):
                if text.strip():
                    name = json.dumps([op.namespace, op.key, text])
                    identity = str(uuid.uuid5(_ID_SPACE, name))
                    yield identity, Document(id=identity, page_content=text, metadata=metadata)

    def _add(self, puts: Mapping[Place, _Vectors]) -> Work[None]:
        """Embed what is new; until the catalog is written, nobody sees it."""
        new = {
            identity: document
            for vectors in puts.values()
            for identity, document in vectors.documents.items()
            if identity not in vectors.former
        }
        if new:
            options = {"ids": list(new)}
            yield Call(self.vectorstore, "add_documents", (list(new.values()),), options)

    def _commit(self, ops: Sequence[StoreOp], puts: Mapping[Place, _Vectors]) -> Work[list[Result]]:
        """Write items and ledger as one batch; on failure take the new vectors back."""
        ledger = [_ledger_put(place, vectors) for place, vectors in puts.items()]
        try:
            results = yield Call(self.catalog, "batch", ([*ops, *ledger],))
        except Exception:
            new = [i for v in puts.values() for i in v.documents if i not in v.former]
            if new:
                yield Call(self.vectorstore, "delete", (new,))
            raise
        return list(results[: len(ops)])

    def _remove(self, puts: Mapping[Place, _Vectors]) -> Work[None]:
        stale = [i for v in puts.values() for i in v.former if i not in v.documents]
        if stale:
            yield Call(self.vectorstore, "delete", (stale,))

    def _rank(self, op: StoreSearchOp, test: Any) -> Work[list[SearchItem]]:  # noqa: ANN401
        """Fetch growing pages of hits until enough items match or the hits are exhausted."""
        wanted = op.limit + op.offset
        size = min(max(_FIRST_PAGE, wanted), _LARGEST_FIRST_PAGE)
        search = "similarity_search_with_score"
        while True:
            try:
                hits = yield Call(self.vectorstore, search, (op.query,), {"k": size})
            except ValueError as err:
                # langchain-core's own raises this where the vector of the query, or of every text,
                # is zero, as that of a text in a script which the bundled model does not know.
                if "NaN" not in str(err):
                    raise
                return (yield from self._unranked(op))
            if not hits:
                yield from self._warn_if_lost(tuple(op.namespace_prefix))
            found = yield from self._match(op, test, hits)
            if len(found) >= wanted or len(hits) < size:
                return found[op.offset : wanted]
            size *= _GROWTH

    def _unranked(self, op: StoreSearchOp) -> Work[list[SearchItem]]:
        """Return the newest indexed items with the score 0, where no text has a direction."""
        found: list[SearchItem] = []
        page = replace(op, query=None, limit=_ITEMS_AT_ONCE, offset=0)
        while len(found) < op.limit + op.offset:
            (items,) = yield Call(self.catalog, "batch", ([page],))
            places = [(tuple(item.namespace), item.key) for item in items]
            entries = yield Call(self.catalog, "batch", ([_ledger_get(each) for each in places],))
            found += [_scored(i, 0.0) for i, e in zip(items, entries, strict=True) if e is not None]
            if len(items) < _ITEMS_AT_ONCE:
                break
            page = replace(page, offset=page.offset + len(items))
        return found[op.offset : op.offset + op.limit]

    def _warn_if_lost(self, prefix: tuple[str, ...]) -> Work[None]:
        """Say so if the vector store is empty although the catalog knows of vectors."""
        op = StoreSearchOp((*_LEDGER, *prefix), limit=1)
        (entries,) = yield Call(self.catalog, "batch", ([op],))
        if entries:
            logger.warning(
                "The vector store is empty, but its catalog has indexed items below %s; "
                "call reindex() to embed them again.",
                prefix,
            )

    def _reindex(self) -> Work[int]:
        count = offset = 0
        while True:
            page = StoreSearchOp((), limit=_ITEMS_AT_ONCE, offset=offset)
            (items,) = yield Call(self.catalog, "batch", ([page],))
            if not items:
                return count
            count += yield from self._embed_missing(items)
            offset += len(items)

    def _embed_missing(self, items: Sequence[SearchItem]) -> Work[int]:
        """Add the documents of indexed items that the vector store does not hold."""
        places = [(tuple(item.namespace), item.key) for item in items]
        entries = yield Call(self.catalog, "batch", ([_ledger_get(place) for place in places],))
        puts: dict[Place, _Vectors] = {}
        for place, item, entry in zip(places, items, entries, strict=True):
            if entry is not None:
                paths = entry.value.get("paths")
                documents = dict(self._documents(PutOp(*place, item.value, paths)))
                puts[place] = _Vectors(documents, paths)
        wanted = [identity for vectors in puts.values() for identity in vectors.documents]
        try:
            found = yield Call(self.vectorstore, "get_by_ids", (wanted,))
        except NotImplementedError:
            found = []
        held = {str(document.id) for document in found}
        for vectors in puts.values():
            vectors.former = [identity for identity in vectors.documents if identity in held]
        yield from self._add(puts)
        yield from self._commit([], puts)
        return len(wanted) - len(held)

    def _match(
        self,
        op: StoreSearchOp,
        test: Filter | None,
        hits: Sequence[tuple[Document, float]],
    ) -> Work[list[SearchItem]]:
        """Return the live items of hits in scope, each with its best score, best first."""
        prefix = tuple(op.namespace_prefix)
        scores: dict[Place, float] = {}
        ids: dict[Place, set[str]] = {}
        for document, score in hits:
            place = _place(document)
            if place[0][: len(prefix)] == prefix and not math.isnan(score):
                scores[place] = max(self._sign * float(score), scores.get(place, -float("inf")))
                ids.setdefault(place, set()).add(str(document.id))
        reads = [read for place in scores for read in (GetOp(*place), _ledger_get(place))]
        found = yield Call(self.catalog, "batch", (reads,))
        items = []
        for place, item, entry in zip(scores, found[::2], found[1::2], strict=True):
            live = item is not None and entry is not None and ids[place] & set(entry.value["ids"])
            if live and (test is None or test(item.value)):
                items.append(_scored(item, scores[place]))
        return sorted(items, key=lambda item: (item.score, item.updated_at), reverse=True)


def _ledger_get(place: Place) -> GetOp:
    return GetOp((*_LEDGER, *place[0]), place[1])


def _ledger_put(place: Place, vectors: _Vectors) -> PutOp:
    if not vectors.documents:
        return PutOp((*_LEDGER, *place[0]), place[1], None)
    entry: dict[str, Any] = {"ids": list(vectors.documents)}
    if vectors.paths is not None:
        entry["paths"] = vectors.paths
    return PutOp((*_LEDGER, *place[0]), place[1], entry)


def _uses_vectors(ops: Sequence[Op]) -> bool:
    return any(isinstance(op, PutOp) or getattr(op, "query", None) for op in ops)


def _place(document: Document) -> Place:
    namespace = document.metadata.get("namespace")
    if not isinstance(namespace, str):
        return (), ""
    return tuple(json.loads(namespace)), str(document.metadata.get("key", ""))


def _scored(item: Item, score: float) -> SearchItem:
    return SearchItem(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        created_at=item.created_at,
        updated_at=item.updated_at,
        score=score,
    )
