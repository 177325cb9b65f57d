"""The optimizer of the agent's prompt: conversations with feedback in, guarded new versions out.

Without a model (`AGENTMEM_MODEL`, or the context's `model`) it changes nothing and says so.
"""

from langchain_agentmem.prompt_optimizer import create_prompt_optimizer_graph
from langchain_agentmem.surfaces.agent import PROMPT, configured_model

graph = create_prompt_optimizer_graph(
    configured_model(),
    prompts={"name": "agent", "prompt": PROMPT},
    template_format="none",  # the agent is told the text as it is
)
