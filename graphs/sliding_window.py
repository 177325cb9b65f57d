"""`SlidingWindowReader`: a question about a long `document`, read window by window."""

from langchain_agentmem.memories import SlidingWindowReader
from langchain_agentmem.surfaces.agent import configured_model

reader = SlidingWindowReader(configured_model())
graph = reader.graph()
