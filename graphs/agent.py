"""The agent of LangGraph Studio: recall, model with memory tools, remember.

The chat model is `AGENTMEM_MODEL` (or the context's `model`); without one it quotes its memory. Its
prompt is the active version of the one that `graphs/prompt_optimizer.py` improves.
"""

from langchain_agentmem import RAGMemory
from langchain_agentmem.prompt_optimizer import PromptMemory
from langchain_agentmem.surfaces.agent import PROMPT, configured_model, create_memory_agent

prompt = PromptMemory(prompts={"name": "agent", "prompt": PROMPT})
agent = create_memory_agent(RAGMemory(), model=configured_model(), prompt=prompt)
graph = agent.compile(name="agent")
