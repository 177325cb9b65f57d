"""LangGraph stores: the embedded SQLite and FAISS store, the parts of its interface, and adapters.

The heavy parts (FAISS, numpy, the embedding model) load when a store is first used, the adapters
when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_agentmem._lazy import lazy_names
from langchain_agentmem.stores._ops import ScoredItem, StoreIndexConfig, StoreSearchOp
from langchain_agentmem.stores.faiss_sqlite import FaissSqliteStore

if TYPE_CHECKING:
    from langchain_agentmem.stores.byte_store import LangGraphByteStore as LangGraphByteStore
    from langchain_agentmem.stores.open import open_store as open_store
    from langchain_agentmem.stores.retriever import StoreRetriever as StoreRetriever
    from langchain_agentmem.stores.vector_store import (
        LangGraphVectorStore as LangGraphVectorStore,
    )
    from langchain_agentmem.stores.vectorstore_base import (
        VectorStoreBaseStore as VectorStoreBaseStore,
    )

_HOMES = {
    "LangGraphByteStore": "byte_store",
    "LangGraphVectorStore": "vector_store",
    "StoreRetriever": "retriever",
    "VectorStoreBaseStore": "vectorstore_base",
    "open_store": "open",
}

__all__ = [
    "FaissSqliteStore",
    "LangGraphByteStore",
    "LangGraphVectorStore",
    "ScoredItem",
    "StoreIndexConfig",
    "StoreRetriever",
    "StoreSearchOp",
    "VectorStoreBaseStore",
    "open_store",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
