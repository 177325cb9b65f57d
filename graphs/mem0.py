"""The steps of `Mem0` as graphs of their own; without a model they keep the words and say so."""

from langchain_agentmem.memories import Mem0
from langchain_agentmem.surfaces.agent import configured_model

memory = Mem0(model=configured_model())
recall = memory.recall_graph()
remember = memory.remember_graph()
