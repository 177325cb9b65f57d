"""The ways in: graph nodes and tools over the same memories and the same store.

- `recall_node`, `remember_node`, `submit_node`: a memory's steps as nodes of your own graph.
- `create_manage_memory_tool`, `create_search_memory_tool`: the model itself writes and searches.
- `load_prompt_node`, `PromptMiddleware`: the active version of a learned prompt.
- `create_memory_agent`: a whole agent that recalls, answers and remembers.
- `create_forget_graph`: memories are erased once a person has seen which.
- `AgentMemoryMiddleware`: any memory in one line of `create_agent`.
- `WindowMiddleware`, `SummaryMiddleware`, `SummarizationNode`: bound what the model sees of a
  conversation; `ShortTermMiddleware` does so by any short-term memory, which keeps all of it.
- `SlidingWindowMiddleware`: reads tool results that are too long, window by window.
- `langchain_agentmem.surfaces.chains`: `memory=` of a classic chain (extra `[classic]`).
- `MemoryRetriever`, `StoreChatMessageHistory`: for code that is neither chain nor agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_agentmem._lazy import lazy_names

if TYPE_CHECKING:
    from langchain_agentmem.surfaces.agent import create_memory_agent as create_memory_agent
    from langchain_agentmem.surfaces.context_middleware import (
        SummaryMiddleware as SummaryMiddleware,
    )
    from langchain_agentmem.surfaces.context_middleware import WindowMiddleware as WindowMiddleware
    from langchain_agentmem.surfaces.forgetting import create_forget_graph as create_forget_graph
    from langchain_agentmem.surfaces.history import (
        StoreChatMessageHistory as StoreChatMessageHistory,
    )
    from langchain_agentmem.surfaces.middleware import (
        AgentMemoryMiddleware as AgentMemoryMiddleware,
    )
    from langchain_agentmem.surfaces.nodes import recall_node as recall_node
    from langchain_agentmem.surfaces.nodes import remember_node as remember_node
    from langchain_agentmem.surfaces.nodes import submit_node as submit_node
    from langchain_agentmem.surfaces.prompts import PromptMiddleware as PromptMiddleware
    from langchain_agentmem.surfaces.prompts import load_prompt_node as load_prompt_node
    from langchain_agentmem.surfaces.retriever import MemoryRetriever as MemoryRetriever
    from langchain_agentmem.surfaces.short_term_middleware import (
        ShortTermMiddleware as ShortTermMiddleware,
    )
    from langchain_agentmem.surfaces.short_term_middleware import (
        SlidingWindowMiddleware as SlidingWindowMiddleware,
    )
    from langchain_agentmem.surfaces.summarization import SummarizationNode as SummarizationNode
    from langchain_agentmem.surfaces.tools import (
        create_manage_memory_tool as create_manage_memory_tool,
    )
    from langchain_agentmem.surfaces.tools import (
        create_search_memory_tool as create_search_memory_tool,
    )

_HOMES = {
    "PromptMiddleware": "prompts",
    "AgentMemoryMiddleware": "middleware",
    "MemoryRetriever": "retriever",
    "ShortTermMiddleware": "short_term_middleware",
    "SlidingWindowMiddleware": "short_term_middleware",
    "StoreChatMessageHistory": "history",
    "SummarizationNode": "summarization",
    "SummaryMiddleware": "context_middleware",
    "WindowMiddleware": "context_middleware",
    "create_forget_graph": "forgetting",
    "create_manage_memory_tool": "tools",
    "create_memory_agent": "agent",
    "create_search_memory_tool": "tools",
    "load_prompt_node": "prompts",
    "recall_node": "nodes",
    "remember_node": "nodes",
    "submit_node": "nodes",
}

__all__ = [
    "AgentMemoryMiddleware",
    "MemoryRetriever",
    "PromptMiddleware",
    "ShortTermMiddleware",
    "SlidingWindowMiddleware",
    "StoreChatMessageHistory",
    "SummarizationNode",
    "SummaryMiddleware",
    "WindowMiddleware",
    "create_forget_graph",
    "create_manage_memory_tool",
    "create_memory_agent",
    "create_search_memory_tool",
    "load_prompt_node",
    "recall_node",
    "remember_node",
    "submit_node",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
