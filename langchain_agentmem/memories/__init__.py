"""The architectures: one file each, which reads like its paper."""

from langchain_agentmem.memories.a_mem import AMem
from langchain_agentmem.memories.base import EVERYTHING, Memory
from langchain_agentmem.memories.hierarchical import HierarchicalSummaryMemory
from langchain_agentmem.memories.langmem import LangMem
from langchain_agentmem.memories.langmem_extractor import LangMemExtractor
from langchain_agentmem.memories.mem0 import Mem0
from langchain_agentmem.memories.memgpt import MemGPT
from langchain_agentmem.memories.rag import RAGMemory
from langchain_agentmem.memories.reading import Reading, SlidingWindowReader
from langchain_agentmem.memories.short_term import BufferMemory, TokenBufferMemory, WindowMemory
from langchain_agentmem.memories.state import ConsolidationReport, MemoryState, Recall
from langchain_agentmem.memories.summary import SummaryBufferMemory, SummaryMemory
from langchain_agentmem.memories.working import WorkingMemory
from langchain_agentmem.steps.core_memory import CoreBlock
from langchain_agentmem.steps.grouping import Grouping, by_calendar

__all__ = [
    "EVERYTHING",
    "AMem",
    "BufferMemory",
    "ConsolidationReport",
    "CoreBlock",
    "Grouping",
    "HierarchicalSummaryMemory",
    "LangMem",
    "LangMemExtractor",
    "Mem0",
    "MemGPT",
    "Memory",
    "MemoryState",
    "RAGMemory",
    "Reading",
    "Recall",
    "SlidingWindowReader",
    "SummaryBufferMemory",
    "SummaryMemory",
    "TokenBufferMemory",
    "WindowMemory",
    "WorkingMemory",
    "by_calendar",
]
