"""The steps of `SummaryBufferMemory` as graphs; without a model nothing is summarized."""

from langchain_agentmem.memories import SummaryBufferMemory
from langchain_agentmem.surfaces.agent import configured_model

memory = SummaryBufferMemory(model=configured_model())
recall = memory.recall_graph()
remember = memory.remember_graph()
