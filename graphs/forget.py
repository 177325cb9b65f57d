"""Forgetting what the agent remembers, once a person has agreed."""

from langchain_agentmem import RAGMemory
from langchain_agentmem.surfaces import create_forget_graph

memory = RAGMemory()
graph = create_forget_graph(memory)
