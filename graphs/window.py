"""The steps of `WindowMemory` as graphs of their own; they need no model."""

from langchain_agentmem.memories import WindowMemory

memory = WindowMemory()
recall = memory.recall_graph()
remember = memory.remember_graph()
