"""The steps of `AMem` as graphs of their own; without a model they keep the words and say so."""

from langchain_agentmem.memories import AMem
from langchain_agentmem.surfaces.agent import configured_model

memory = AMem(model=configured_model())
recall = memory.recall_graph()
remember = memory.remember_graph()
