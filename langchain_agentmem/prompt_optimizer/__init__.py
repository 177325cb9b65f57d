"""Prompts that learn from conversations: proposed, guarded, measured, and with a way back."""

from langchain_agentmem.prompt_optimizer.budget import Budget, BudgetExhaustedError
from langchain_agentmem.prompt_optimizer.compat import (
    MultiPromptOptimizer,
    PromptOptimizer,
    create_multi_prompt_optimizer,
    create_prompt_optimizer,
)
from langchain_agentmem.prompt_optimizer.evolution import Evolutionary
from langchain_agentmem.prompt_optimizer.graph import create_prompt_optimizer_graph
from langchain_agentmem.prompt_optimizer.langmem import LangMemStrategy
from langchain_agentmem.prompt_optimizer.prompt_memory import PromptMemory
from langchain_agentmem.prompt_optimizer.settings import OptimizerParameters
from langchain_agentmem.prompt_optimizer.strategies import (
    CallableStrategy,
    Gradient,
    Metaprompt,
    PromptMemoryStrategy,
    Strategy,
)
from langchain_agentmem.prompt_optimizer.values import Candidate, Prompt, Task, Trajectory
from langchain_agentmem.prompt_optimizer.versions import PromptVersion, SupersededError

__all__ = [
    "Budget",
    "BudgetExhaustedError",
    "CallableStrategy",
    "Candidate",
    "Evolutionary",
    "Gradient",
    "LangMemStrategy",
    "Metaprompt",
    "MultiPromptOptimizer",
    "OptimizerParameters",
    "Prompt",
    "PromptMemory",
    "PromptMemoryStrategy",
    "PromptOptimizer",
    "PromptVersion",
    "Strategy",
    "SupersededError",
    "Task",
    "Trajectory",
    "create_multi_prompt_optimizer",
    "create_prompt_optimizer",
    "create_prompt_optimizer_graph",
]
