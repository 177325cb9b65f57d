"""`StoreRetriever`: the search of a LangGraph store as a LangChain retriever."""

from __future__ import annotations

import json
from typing import Any, Final

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.store.base import BaseStore, SearchItem
from pydantic import ConfigDict, field_validator

from langchain_agentmem.stores._calls import Call, Work, adrive, drive, require_store

_TEXT_FIELDS: Final = ("content", "page_content", "text")


class StoreRetriever(BaseRetriever):
    """Searches a namespace of a LangGraph store, and everything below it, for documents.

    The text of a document is the item's first string among `content`, `page_content` and `text`,
    or its value as JSON. The other fields are its metadata, beside `namespace`, `key` and `score`.

    Args:
        store: The LangGraph store.
        namespace: Where to search.
        k: How many documents to return at most.
        filter: The store's filter on the values.
        min_score: Leave out items that score less.

    Example:
        ```python
        from langchain_agentmem import FaissSqliteStore
        from langchain_agentmem.stores import StoreRetriever

        store = FaissSqliteStore(":memory:")
        store.put(("docs",), "1", {"content": "Ada plays the cello"})
        StoreRetriever(store=store, namespace=("docs",), k=1).invoke("cello")
        ```
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    store: Any
    namespace: tuple[str, ...]
    k: int = 4
    filter: dict[str, Any] | None = None
    min_score: float | None = None

    @field_validator("store")
    @classmethod
    def _check_store(cls, store: object) -> BaseStore:
        return require_store(store)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain's signature
        k: int | None = None,
    ) -> list[Document]:
        """Return the best documents; `k` overrides the retriever's own."""
        return drive(self._search(query, k))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain's signature
        k: int | None = None,
    ) -> list[Document]:
        """Do what `_get_relevant_documents` does without blocking the loop."""
        return await adrive(self._search(query, k))

    def _search(self, query: str, k: int | None) -> Work[list[Document]]:
        options = {"query": query, "filter": self.filter, "limit": self.k if k is None else k}
        items = yield Call(self.store, "search", (self.namespace,), options)
        return [_document(item) for item in items if self._is_good(item)]

    def _is_good(self, item: SearchItem) -> bool:
        return self.min_score is None or (item.score is not None and item.score >= self.min_score)


def _document(item: SearchItem) -> Document:
    metadata = dict(item.value)
    name = next((name for name in _TEXT_FIELDS if isinstance(metadata.get(name), str)), None)
    text = json.dumps(item.value, ensure_ascii=False) if name is None else metadata.pop(name)
    metadata |= {"namespace": list(item.namespace), "key": item.key, "score": item.score}
    return Document(page_content=text, metadata=metadata)
