"""The steps of `LangMem` as graphs of their own; without a model they keep the words and say so."""

from langchain_agentmem.memories import LangMem
from langchain_agentmem.surfaces.agent import configured_model

memory = LangMem(model=configured_model())
recall = memory.recall_graph()
remember = memory.remember_graph()
