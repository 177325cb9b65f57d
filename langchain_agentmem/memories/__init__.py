"""The architectures: one file each, which reads like its paper."""

from langchain_agentmem.memories.base import EVERYTHING, Memory
from langchain_agentmem.memories.rag import RAGMemory
from langchain_agentmem.memories.short_term import BufferMemory, TokenBufferMemory, WindowMemory
from langchain_agentmem.memories.state import ConsolidationReport, MemoryState, Recall
from langchain_agentmem.memories.summary import SummaryBufferMemory, SummaryMemory

__all__ = [
    "EVERYTHING",
    "BufferMemory",
    "ConsolidationReport",
    "Memory",
    "MemoryState",
    "RAGMemory",
    "Recall",
    "SummaryBufferMemory",
    "SummaryMemory",
    "TokenBufferMemory",
    "WindowMemory",
]
