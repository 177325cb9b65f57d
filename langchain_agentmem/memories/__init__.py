"""The architectures: one file each, which reads like its paper."""

from langchain_agentmem.memories.a_mem import AMem
from langchain_agentmem.memories.base import EVERYTHING, Memory
from langchain_agentmem.memories.mem0 import Mem0
from langchain_agentmem.memories.rag import RAGMemory
from langchain_agentmem.memories.state import ConsolidationReport, MemoryState, Recall

__all__ = [
    "EVERYTHING",
    "AMem",
    "ConsolidationReport",
    "Mem0",
    "Memory",
    "MemoryState",
    "RAGMemory",
    "Recall",
]
