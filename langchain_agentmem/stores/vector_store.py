"""`LangGraphVectorStore`: a LangGraph store as a LangChain vector store."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem, SearchOp

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.stores._calls import (
    Call,
    Work,
    adrive,
    as_namespace,
    drive,
    require_store,
)

_TEXT: Final = "page_content"
_MIN_PAGE: Final = 20


class LangGraphVectorStore(VectorStore):
    """A namespace of a LangGraph store, with an index, as a LangChain `VectorStore`.

    A document is the item `{**metadata, "page_content": text}` under its id, indexed by its text
    only, so that a `filter` on metadata is the store's own filter. The store embeds; a search by a
    vector instead of a text is not possible. Only this very namespace is read and written.

    Args:
        store: The LangGraph store; it needs an index for searches.
        namespace: Where the documents live; it must not be empty.
        embedding: The model for `max_marginal_relevance_search`; the store's own by default.

    Raises:
        ConfigurationError: If the store is no LangGraph store or the namespace is empty.

    Example:
        ```python
        from langchain_agentmem import FaissSqliteStore
        from langchain_agentmem.stores import LangGraphVectorStore

        documents = LangGraphVectorStore(FaissSqliteStore(":memory:"), ("docs",))
        documents.add_texts(["Ada plays the cello"], ids=["1"])
        documents.similarity_search("Who plays cello?", k=1)
        ```
    """

    def __init__(
        self, store: BaseStore, namespace: Sequence[str], embedding: Embeddings | None = None
    ) -> None:
        self.store = require_store(store)
        self.namespace = as_namespace(namespace, "LangGraphVectorStore")
        self._embedding = embedding or getattr(store, "embeddings", None)

    @property
    def embeddings(self) -> Embeddings | None:
        """The embedding model, if it is known."""
        return self._embedding

    @classmethod
    def from_texts(  # type: ignore[override]  # keyword-only options of its own
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        store: BaseStore,
        namespace: Sequence[str],
    ) -> Self:
        """Return a vector store with the texts added.

        Args:
            texts: The texts.
            embedding: The model for `max_marginal_relevance_search`; the store embeds by itself.
            metadatas: The metadata of each text.
            ids: The id of each text.
            store: The LangGraph store.
            namespace: Where the documents live.
        """
        documents = cls(store, namespace, embedding)
        documents.add_texts(texts, metadatas, ids=ids)
        return documents

    @classmethod
    async def afrom_texts(  # type: ignore[override]  # keyword-only options of its own
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        store: BaseStore,
        namespace: Sequence[str],
    ) -> Self:
        """Return a vector store with the texts added, as `from_texts` does."""
        documents = cls(store, namespace, embedding)
        await documents.aadd_texts(texts, metadatas, ids=ids)
        return documents

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[str]:
        """Add texts as one batch and return their ids; an existing id is overwritten.

        Args:
            texts: The texts.
            metadatas: The metadata of each text.
            ids: The id of each text; a new UUID where it is missing or None.

        Raises:
            ValueError: If the numbers differ, or a metadata field is named `page_content`.
        """
        return drive(self._add(list(texts), metadatas, ids))

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[str]:
        """Do what `add_texts` does without blocking the loop."""
        return await adrive(self._add(list(texts), metadatas, ids))

    def add_documents(self, documents: list[Document], **options: Any) -> list[str]:  # noqa: ANN401 - LangChain's
        """Add documents under their ids and return these; see `add_texts`."""
        return self.add_texts(*_parts(documents), **{"ids": _ids(documents), **options})

    async def aadd_documents(
        self,
        documents: list[Document],
        **options: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[str]:
        """Do what `add_documents` does without blocking the loop."""
        return await self.aadd_texts(*_parts(documents), **{"ids": _ids(documents), **options})

    def delete(self, ids: Sequence[str] | None = None, **_: Any) -> bool | None:  # noqa: ANN401 - LangChain's
        """Delete documents; missing ids are ignored.

        Raises:
            ValueError: If no ids are given.
        """
        return drive(self._delete(ids))

    async def adelete(self, ids: Sequence[str] | None = None, **_: Any) -> bool | None:  # noqa: ANN401 - LangChain's
        """Do what `delete` does without blocking the loop."""
        return await adrive(self._delete(ids))

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents of these ids; missing ones are left out."""
        return drive(self._get(ids))

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Do what `get_by_ids` does without blocking the loop."""
        return await adrive(self._get(ids))

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangChain's name
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[Document]:
        """Return the `k` best documents.

        Args:
            query: The text to search for.
            k: How many documents to return at most.
            filter: The store's filter, on metadata fields.

        Raises:
            ConfigurationError: If the store has no index.
        """
        return [document for document, _ in drive(self._search(query, k, filter))]

    async def asimilarity_search(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangChain's name
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[Document]:
        """Do what `similarity_search` does without blocking the loop."""
        return [document for document, _ in await adrive(self._search(query, k, filter))]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangChain's name
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[tuple[Document, float]]:
        """Return the `k` best documents with the store's scores, higher is better."""
        return drive(self._search(query, k, filter))

    async def asimilarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangChain's name
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[tuple[Document, float]]:
        """Do what `similarity_search_with_score` does without blocking the loop."""
        return await adrive(self._search(query, k, filter))

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangChain's name
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[Document]:
        """Return documents that are near the query and differ from each other.

        Args:
            query: The text to search for.
            k: How many documents to return at most.
            fetch_k: How many of the best documents to choose from; they are embedded anew.
            lambda_mult: From 0 for the most different to 1 for the nearest documents.
            filter: The store's filter, on metadata fields.

        Raises:
            ConfigurationError: If no embedding model is known.
        """
        return drive(self._diverse(query, k, fetch_k, lambda_mult, filter))

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangChain's name
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[Document]:
        """Do what `max_marginal_relevance_search` does without blocking the loop."""
        return await adrive(self._diverse(query, k, fetch_k, lambda_mult, filter))

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """Cut the store's scores to the range from 0 to 1."""
        return lambda score: min(1.0, max(0.0, score))

    def _batch(self, ops: list[Any]) -> Call:
        return Call(self.store, "batch", (ops,))

    def _add(
        self,
        texts: list[str],
        metadatas: Sequence[Mapping[str, Any]] | None,
        ids: Sequence[str | None] | None,
    ) -> Work[list[str]]:
        metadatas = [{}] * len(texts) if metadatas is None else list(metadatas)
        keys = [key or str(uuid.uuid4()) for key in ids or [None] * len(texts)]
        if not len(texts) == len(metadatas) == len(keys):
            counts = f"{len(texts)} texts, {len(metadatas)} metadatas and {len(keys)} ids"
            msg = f"{counts} were given; there must be as many of each."
            raise ValueError(msg)
        if any(_TEXT in metadata for metadata in metadatas):
            msg = f"A metadata field cannot be named {_TEXT!r}, which is where the text is kept."
            raise ValueError(msg)
        yield self._batch(
            [
                PutOp(self.namespace, key, {**metadata, _TEXT: text}, index=[_TEXT])
                for key, text, metadata in zip(keys, texts, metadatas, strict=True)
            ]
        )
        return keys

    def _delete(self, ids: Sequence[str] | None) -> Work[bool]:
        if ids is None:
            msg = "delete needs the ids of the documents."
            raise ValueError(msg)
        yield self._batch([PutOp(self.namespace, key, None) for key in ids])
        return True

    def _get(self, ids: Sequence[str]) -> Work[list[Document]]:
        found = yield self._batch([GetOp(self.namespace, key) for key in ids])
        return [_document(item) for item in found if item is not None]

    def _search(
        self, query: str, k: int, condition: Mapping[str, Any] | None
    ) -> Work[list[tuple[Document, float]]]:
        """Read pages until `k` documents of this namespace are found or nothing is left."""
        size, offset = max(k, _MIN_PAGE), 0
        found: dict[str, SearchItem] = {}
        while len(found) < k:
            filters = dict(condition) if condition else None
            op = SearchOp(self.namespace, filters, limit=size, offset=offset, query=query)
            (page,) = yield self._batch([op])
            for item in page:
                if item.namespace == self.namespace and (item.score is not None or not query):
                    found.setdefault(item.key, item)
            if len(page) < size:
                break
            offset += size
        if not found and query and _has_no_index(self.store):
            msg = (
                f"{type(self.store).__name__} has no index, so that no text is found; give it one, "
                "as FaissSqliteStore(path) has."
            )
            raise ConfigurationError(msg)
        return [(_document(item), item.score or 0.0) for item in list(found.values())[:k]]

    def _diverse(
        self,
        query: str,
        k: int,
        fetch_k: int,
        lambda_mult: float,
        condition: Mapping[str, Any] | None,
    ) -> Work[list[Document]]:
        if self._embedding is None:
            msg = "max_marginal_relevance_search needs an embedding model; give embedding=."
            raise ConfigurationError(msg)
        hits = yield from self._search(query, fetch_k, condition)
        documents = [document for document, _ in hits]
        texts = [document.page_content for document in documents]
        if not texts:
            return []
        vectors = yield Call(self._embedding, "embed_documents", (texts,))
        target = yield Call(self._embedding, "embed_query", (query,))
        import numpy as np
        from langchain_core.vectorstores.utils import maximal_marginal_relevance

        chosen = maximal_marginal_relevance(np.array(target), vectors, lambda_mult, k)
        return [documents[position] for position in chosen]


def _has_no_index(store: BaseStore) -> bool:
    """Say whether a store tells that it has no index; one that does not tell may have."""
    return getattr(store, "index_config", store) is None


def _parts(documents: Sequence[Document]) -> tuple[list[str], list[dict[str, Any]]]:
    return [d.page_content for d in documents], [d.metadata for d in documents]


def _ids(documents: Sequence[Document]) -> list[str | None]:
    return [document.id for document in documents]


def _document(item: Item) -> Document:
    metadata = dict(item.value)
    return Document(id=item.key, page_content=metadata.pop(_TEXT, ""), metadata=metadata)
