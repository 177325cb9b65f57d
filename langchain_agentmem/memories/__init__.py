"""The architectures: one file each, which reads like its paper."""

from langchain_agentmem.memories.base import EVERYTHING, Memory
from langchain_agentmem.memories.rag import RAGMemory
from langchain_agentmem.memories.state import ConsolidationReport, MemoryState, Recall

__all__ = ["EVERYTHING", "ConsolidationReport", "Memory", "MemoryState", "RAGMemory", "Recall"]
