"""The agent of LangGraph Studio: recall, model with memory tools, remember.

The chat model is `AGENTMEM_MODEL` (or the context's `model`); without one it quotes its memory.
"""

from langchain_agentmem import RAGMemory
from langchain_agentmem.surfaces.agent import configured_model, create_memory_agent

graph = create_memory_agent(RAGMemory(), model=configured_model()).compile(name="agent")
