"""Recall of `WorkingMemory` over the agent's memory; it remembers with that memory's graph."""

from langchain_agentmem.memories import RAGMemory, WorkingMemory

memory = WorkingMemory(RAGMemory())
recall = memory.recall_graph()
