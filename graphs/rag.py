"""The steps of `RAGMemory` as graphs of their own."""

from langchain_agentmem import RAGMemory

recall = RAGMemory().recall_graph()
remember = RAGMemory().remember_graph()
