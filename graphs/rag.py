"""The steps of `RAGMemory` as graphs of their own; they need no model."""

from langchain_agentmem.memories import RAGMemory

memory = RAGMemory()
recall = memory.recall_graph()
remember = memory.remember_graph()
