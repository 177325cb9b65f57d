"""Background consolidation with `Mem0`: a piece of conversation in, a report out."""

from langchain_agentmem.consolidation import create_consolidation_graph
from langchain_agentmem.memories import Mem0
from langchain_agentmem.surfaces.agent import configured_model

graph = create_consolidation_graph(Mem0(model=configured_model()))
