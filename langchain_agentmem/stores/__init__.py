"""LangGraph stores: the embedded SQLite and FAISS store, the parts of its interface, and adapters.

The heavy parts (FAISS, numpy, the embedding model) load when a store is first used, the adapters
when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name may be asked for
    """Load an adapter at first use (PEP 562)."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
