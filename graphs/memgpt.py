"""`MemGPT` as graphs: the agent that pages its own memory, and its recall and remember."""

from langchain_agentmem.memories import MemGPT
from langchain_agentmem.surfaces.agent import configured_model

memory = MemGPT(model=configured_model())
agent = memory.agent_graph()
recall = memory.recall_graph()
remember = memory.remember_graph()
