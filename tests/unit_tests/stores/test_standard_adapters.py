"""LangChain's standard suites over the adapters, on LangGraph's in-memory store and on ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import (
    BaseStoreAsyncTests,
    BaseStoreSyncTests,
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)
from langgraph.store.base import BaseStore, ensure_embeddings
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.stores import (
    FaissSqliteStore,
    LangGraphByteStore,
    LangGraphVectorStore,
    StoreRetriever,
    VectorStoreBaseStore,
)
from langchain_agentmem.testing import (
    AsyncBaseStoreConformance,
    BaseStoreConformance,
    CharacterEmbeddings,
)

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore


def in_memory(index: Any = None) -> BaseStore:  # noqa: ANN401 - an index configuration
    """Return LangGraph's in-memory store."""
    return InMemoryStore(index=index)


def ours(index: Any = None) -> BaseStore:  # noqa: ANN401 - an index configuration
    """Return our store in memory."""
    return FaissSqliteStore(":memory:", index=index)


both = pytest.fixture(params=[in_memory, ours], ids=["InMemoryStore", "FaissSqliteStore"])


class _ByteStore:
    """What LangChain's two suites of byte stores ask for."""

    @both
    def kv_store(self, request: pytest.FixtureRequest) -> LangGraphByteStore:
        """An empty byte store."""
        return LangGraphByteStore(request.param(), ("bytes",))

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

    @both
    def vectorstore(self, request: pytest.FixtureRequest) -> VectorStore:
        """An empty vector store."""
        embedding = self.get_embeddings()
        index = {"dims": len(embedding.embed_query("x")), "embed": embedding, "fields": ["none"]}
        return LangGraphVectorStore(request.param(index), ("docs",))


class TestRetriever(RetrieversIntegrationTests):
    """LangChain's suite of retrievers."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        """The class under test."""
        return StoreRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        """A store with a few documents."""
        embedder = CharacterEmbeddings()
        store = ours({"dims": embedder.dims, "embed": embedder, "fields": ["content"]})
        for n in range(5):
            store.put(("docs",), str(n), {"content": f"document {n}"})
        return {"store": store, "namespace": ("docs",), "k": 3}

    @property
    def retriever_query_example(self) -> str:
        """A query that finds them."""
        return "document"


class _OverInMemoryVectorStore(BaseStoreConformance):
    """`VectorStoreBaseStore` over core's in-memory vector store."""

    dotted_filter_paths = True
    filter_extensions = True

    def create_store(self, where: Path, **options: Any) -> BaseStore:  # noqa: ANN401, ARG002 - by the kit
        """Return a new store; without an index configuration nothing is embedded."""
        index = options["index"]
        if index is None:
            return VectorStoreBaseStore(InMemoryVectorStore(CharacterEmbeddings()), fields=())
        embed = ensure_embeddings(index["embed"])
        fields = index.get("fields", ["$"])
        return VectorStoreBaseStore(InMemoryVectorStore(embed), fields=fields)

    @property
    def expected_failures(self) -> dict[str, str]:
        """What core's in-memory vector store does not do."""
        return {
            "test_v1_vector_of_the_wrong_length_is_refused": "core does not know the dimensions",
            "test_v_equal_texts_are_embedded_once": "one document for each item, one text each",
        }


class TestVectorStoreBaseStore(_OverInMemoryVectorStore):
    """The kit through the sync methods."""


class TestAsyncVectorStoreBaseStore(_OverInMemoryVectorStore, AsyncBaseStoreConformance):
    """The kit through the async methods."""
