"""LangGraph stores: the embedded SQLite and FAISS store, and the parts of its interface.

The heavy parts (FAISS, numpy, the embedding model) load when a store is first used.
"""

from langchain_agentmem.stores._ops import ScoredItem, StoreIndexConfig, StoreSearchOp
from langchain_agentmem.stores.faiss_sqlite import FaissSqliteStore

__all__ = ["FaissSqliteStore", "ScoredItem", "StoreIndexConfig", "StoreSearchOp"]
