"""`MemoryRetriever`: a memory as a LangChain retriever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict

from langchain_agentmem.items import StoredMemory, to_timestamp
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.memories.state import Recall
from langchain_agentmem.stores._filters import compile_filter

_FILTER_POOL = 10


class MemoryRetriever(BaseRetriever):
    """Recalls memories as documents; whose they are comes from the call's config.

    A document's `page_content` is the memory's content, its `id` the memory's key, its metadata
    say where it lies, its kind, score and times. Only active and valid memories are found.

    Attributes:
        memory: The memory.
        k: Most documents; `retriever.invoke(query, k=2)` changes it for one call.
        filter: Conditions on the stored values, as in a store search.
        min_score: Leave out memories with a lower score.

    Example:
        ```python
        retriever = MemoryRetriever(memory=RAGMemory(store=store), k=4)
        retriever.invoke("Who is Rex?", {"configurable": {"user_id": "ann"}})
        ```
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Memory
    k: int = 4
    filter: Mapping[str, Any] | None = None
    min_score: float | None = None

    def invoke(
        self,
        input: str,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[Document]:
        """Recall documents for a query, in the scope of the config."""
        return super().invoke(input, config, **{**kwargs, "scope": config})

    async def ainvoke(
        self,
        input: str,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[Document]:
        """Recall documents for a query; the async twin of `invoke`."""
        return await super().ainvoke(input, config, **{**kwargs, "scope": config})

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain's signature
        k: int | None = None,
        scope: RunnableConfig | None = None,
    ) -> list[Document]:
        limit = self.k if k is None else k
        return self._documents(
            self.memory.recall(query, config=scope, limit=self._pool(limit)), limit
        )

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain's signature
        k: int | None = None,
        scope: RunnableConfig | None = None,
    ) -> list[Document]:
        limit = self.k if k is None else k
        found = await self.memory.arecall(query, config=scope, limit=self._pool(limit))
        return self._documents(found, limit)

    def _pool(self, limit: int) -> int:
        """Return how many memories to recall, so that enough are left by the filter."""
        return limit * _FILTER_POOL if self.filter else limit

    def _documents(self, found: Recall, limit: int) -> list[Document]:
        test = compile_filter(self.filter)
        least = self.min_score
        kept = [
            each
            for each in found.items
            if (test is None or test(each.item.to_value()))
            and (least is None or (each.score or 0) >= least)
        ]
        return [document_of(each) for each in kept[:limit]]


def document_of(memory: StoredMemory) -> Document:
    """Return a memory as a document."""
    item = memory.item
    times = {
        name: to_timestamp(found) if (found := getattr(item, name)) else None
        for name in ("observed_at", "valid_from", "valid_to")
    }
    return Document(
        id=memory.key,
        page_content=memory.text,
        metadata={
            "key": memory.key,
            "namespace": list(memory.namespace),
            "kind": item.kind,
            "score": memory.score,
            **times,
        },
    )
