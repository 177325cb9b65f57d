"""`MemoryRetriever`: a memory as a LangChain retriever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict, Field

from langchain_agentmem.items import StoredMemory, to_timestamp
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.stores._filters import compile_filter
from langchain_agentmem.surfaces._budget import without_budget

if TYPE_CHECKING:
    from langchain_agentmem.steps.effects import Steps
    from langchain_agentmem.steps.environment import Environment

_POOL: Final = 10
"""So many times the wanted number is recalled where a filter chooses among it."""


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
    k: Annotated[int, Field(ge=0)] = 4
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
        return run(self._search(query, k), self._environment(scope))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain's signature
        k: int | None = None,
        scope: RunnableConfig | None = None,
    ) -> list[Document]:
        return await arun(self._search(query, k), self._environment(scope))

    def _environment(self, scope: RunnableConfig | None) -> Environment:
        return self.memory.environment(scope, None, without_budget(self.memory))

    def _search(self, query: str, k: int | None) -> Steps[list[Document]]:
        """Recall more and more, until the filter leaves enough or there is no more."""
        limit = self.k if k is None else k
        test = compile_filter(self.filter)
        pool = limit if test is None else limit * _POOL
        while True:
            found = yield from self.memory._recall_steps(query, pool, None)  # noqa: SLF001 - those of `recall`
            kept = [each for each in found.items if test is None or test(each.item.to_value())]
            if len(kept) >= limit or test is None or len(found.items) < pool:
                break
            pool *= _POOL
        least = self.min_score
        good = [each for each in kept if least is None or (each.score or 0) >= least]
        return [document_of(each) for each in good[:limit]]


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
