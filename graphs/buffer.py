"""The steps of `BufferMemory` as graphs of their own; they need no model."""

from langchain_agentmem.memories import BufferMemory

memory = BufferMemory()
recall = memory.recall_graph()
remember = memory.remember_graph()
