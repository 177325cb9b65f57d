"""The steps of `TokenBufferMemory` as graphs of their own; they need no model."""

from langchain_agentmem.memories import TokenBufferMemory

memory = TokenBufferMemory()
recall = memory.recall_graph()
remember = memory.remember_graph()
