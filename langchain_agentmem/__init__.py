"""Every published agent-memory architecture for LangChain and LangGraph behind one interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_agentmem._lazy import lazy_names
from langchain_agentmem._version import __version__

if TYPE_CHECKING:
    from langchain_agentmem.errors import AgentMemoryError as AgentMemoryError
    from langchain_agentmem.errors import ConfigurationError as ConfigurationError
    from langchain_agentmem.errors import ConflictError as ConflictError
    from langchain_agentmem.items import MemoryItem as MemoryItem
    from langchain_agentmem.items import MemoryOperation as MemoryOperation
    from langchain_agentmem.items import StoredMemory as StoredMemory
    from langchain_agentmem.memories.base import Memory as Memory
    from langchain_agentmem.memories.rag import RAGMemory as RAGMemory
    from langchain_agentmem.memories.state import MemoryState as MemoryState
    from langchain_agentmem.memories.state import Recall as Recall
    from langchain_agentmem.scopes import NamespaceTemplate as NamespaceTemplate
    from langchain_agentmem.stores.faiss_sqlite import FaissSqliteStore as FaissSqliteStore
    from langchain_agentmem.stores.open import open_store as open_store
    from langchain_agentmem.surfaces.middleware import (
        AgentMemoryMiddleware as AgentMemoryMiddleware,
    )
    from langchain_agentmem.surfaces.tools import (
        create_manage_memory_tool as create_manage_memory_tool,
    )
    from langchain_agentmem.surfaces.tools import (
        create_search_memory_tool as create_search_memory_tool,
    )

_HOMES = {
    "AgentMemoryError": "errors",
    "AgentMemoryMiddleware": "surfaces.middleware",
    "ConfigurationError": "errors",
    "ConflictError": "errors",
    "FaissSqliteStore": "stores.faiss_sqlite",
    "Memory": "memories.base",
    "MemoryItem": "items",
    "MemoryOperation": "items",
    "MemoryState": "memories.state",
    "NamespaceTemplate": "scopes",
    "RAGMemory": "memories.rag",
    "Recall": "memories.state",
    "StoredMemory": "items",
    "create_manage_memory_tool": "surfaces.tools",
    "create_search_memory_tool": "surfaces.tools",
    "open_store": "stores.open",
}

__all__ = [
    "AgentMemoryError",
    "AgentMemoryMiddleware",
    "ConfigurationError",
    "ConflictError",
    "FaissSqliteStore",
    "Memory",
    "MemoryItem",
    "MemoryOperation",
    "MemoryState",
    "NamespaceTemplate",
    "RAGMemory",
    "Recall",
    "StoredMemory",
    "__version__",
    "create_manage_memory_tool",
    "create_search_memory_tool",
    "open_store",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
