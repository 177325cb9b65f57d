"""The steps of `HierarchicalSummaryMemory` as graphs; without a model nothing is summarized."""

from langchain_agentmem.memories import HierarchicalSummaryMemory
from langchain_agentmem.surfaces.agent import configured_model

memory = HierarchicalSummaryMemory(model=configured_model())
recall = memory.recall_graph()
remember = memory.remember_graph()
