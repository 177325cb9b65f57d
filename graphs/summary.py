"""The steps of `SummaryMemory` as graphs of their own; without a model nothing is summarized."""

from langchain_agentmem.memories import SummaryMemory
from langchain_agentmem.surfaces.agent import configured_model

memory = SummaryMemory(model=configured_model())
recall = memory.recall_graph()
remember = memory.remember_graph()
