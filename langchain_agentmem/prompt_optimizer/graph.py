"""`create_prompt_optimizer_graph`: the loop around the strategies, as a LangGraph graph."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.parameters import checked_model, context_schema, with_model
from langchain_agentmem.prompt_optimizer import guards
from langchain_agentmem.prompt_optimizer.choosing import (
    Choices,
    Evaluators,
    Examples,
    own_strategy,
)
from langchain_agentmem.prompt_optimizer.guards import Limits
from langchain_agentmem.prompt_optimizer.nodes import Nodes
from langchain_agentmem.prompt_optimizer.prompt_memory import PromptMemory
from langchain_agentmem.prompt_optimizer.settings import (
    CUSTOM,
    OptimizerInput,
    OptimizerOutput,
    OptimizerParameters,
    OptimizerState,
    ProposeInput,
)
from langchain_agentmem.prompt_optimizer.values import TemplateFormat
from langchain_agentmem.steps.flow import as_node

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.store.base import BaseStore

    from langchain_agentmem.memories.base import Template
    from langchain_agentmem.prompt_optimizer.strategies import Proposer, Strategy
    from langchain_agentmem.steps.environment import Clock, Environment


def create_prompt_optimizer_graph(
    model: BaseChatModel | str | None = None,
    *,
    prompts: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | PromptMemory,
    strategy: str | Strategy | Proposer = "gradient",
    evaluator: Evaluators = None,
    examples: Examples = None,
    namespace: Template = ("memories", "{user_id}"),
    read_namespaces: Sequence[Template] = (),
    store: BaseStore | None = None,
    template_format: TemplateFormat = "f-string",
    must_keep: Sequence[str] = (),
    must_not_contain: Sequence[str] = (),
    clock: Clock | None = None,
    rng: random.Random | None = None,
    **parameters: Any,  # noqa: ANN401 - checked against OptimizerParameters
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build a graph that improves prompts from conversations, within a budget and with a way back.

    It takes `trajectories`, or reads those recorded with `PromptMemory.record`, and returns
    `report`, `prompts`, `calls` and `tokens`. The call budget is shared out before anything is
    proposed, equally; prompts that no part is left for are reported as `not_reached`.

    Args:
        model: A chat model or its name for `init_chat_model`; a call's `model` wins over it.
            Without any, nothing is changed and the report says so.
        prompts: Prompts with a name, one bare text named "prompt", or a `PromptMemory`.
        strategy: `"gradient"`, `"metaprompt"`, `"prompt_memory"`, `"evolutionary"`, a strategy
            object such as `LangMemStrategy`, or a function.
        evaluator: `evaluator(prompt_text, example)` gives a score, or a score and why; plain or
            async; one for all prompts or one by name. Without it candidates that pass the guards
            are accepted and marked as `unevaluated`.
        examples: What to evaluate on, for all prompts or by name; without them, a part of the
            conversations that is never shown to the strategy. `evolutionary` breeds with half of
            the examples and decides with the other half.
        namespace: Where versions and conversations lie.
        read_namespaces: Further levels that prompts are read from, most specific first.
        store: A LangGraph store; without it the running graph's store is used.
        template_format: How the prompts' variables are written; `"none"` if they have none.
        must_keep: Texts that every candidate must hold.
        must_not_contain: Texts that no candidate may hold.
        clock: Gives the present time, aware.
        rng: Source of randomness.
        **parameters: See `OptimizerParameters`.

    Returns:
        A graph without store and checkpointer. `approval="interrupt"` needs a checkpointer: add it
        to a graph that has one, or compile `graph.builder` with one.

    Raises:
        ConfigurationError: A parameter is wrong, a prompt cannot be parsed in its format, or
            `evolutionary` has no evaluator.

    Example:
        ```python
        prompt = {"name": "support", "prompt": "Answer {question} politely."}
        graph = create_prompt_optimizer_graph("openai:gpt-4.1-mini", prompts=prompt, store=store)
        graph.invoke({"trajectories": [(messages, "too long"), ...]}, config)["report"]
        ```
    """
    checked_model(model)
    if not isinstance(prompts, PromptMemory):
        prompts = PromptMemory(
            prompts=prompts,
            namespace=namespace,
            read_namespaces=read_namespaces,
            store=store,
            clock=clock,
        )
    named = strategy if isinstance(strategy, str) else CUSTOM
    nodes = Nodes(
        memory=prompts,
        parameters=OptimizerParameters.of(strategy=named, **parameters),
        choices=Choices(own=own_strategy(strategy, model), evaluators=evaluator, examples=examples),
        limits=Limits(
            template_format=template_format, must_keep=must_keep, must_not_contain=must_not_contain
        ),
    )
    return _checked_and_compiled(nodes, model, rng)


def _checked_and_compiled(
    nodes: Nodes, model: BaseChatModel | str | None, rng: random.Random | None
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Refuse what could only fail later, and compile the rest.

    Raises:
        ConfigurationError: See `create_prompt_optimizer_graph`.
    """
    if not nodes.memory.prompts:
        msg = "There is no prompt to optimize: PromptMemory(prompts=[...])."
        raise ConfigurationError(msg)
    for name, prompt in nodes.memory.prompts.items():
        nodes.choices.strategy(nodes.parameters, name)
        try:
            guards.variables(prompt["prompt"], nodes.limits.template_format)
        except ConfigurationError:
            raise
        except ValueError as error:
            msg = f"Prompt {name!r}: {error} Escape it, or pass template_format='none'."
            raise ConfigurationError(msg) from error
    return _compiled(nodes, model, rng or random.Random())  # noqa: S311 - ids and sampling, not secrets


def _compiled(
    nodes: Nodes, model: BaseChatModel | str | None, rng: random.Random
) -> CompiledStateGraph[Any, Any, Any, Any]:
    from langgraph.graph import END, START, StateGraph

    def environment(config: RunnableConfig) -> Environment:
        env = nodes.memory.node_environment(config)
        return replace(env, model=env.scope.resolve("model", None) or model, rng=rng)

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        OptimizerState,
        context_schema=_context_schema(nodes),
        input_schema=OptimizerInput,
        output_schema=OptimizerOutput,
    )
    order = ("guard", "evaluate", "decide", "commit", "report")
    for name in ("collect", "assign_credit", *order):
        builder.add_node(name, as_node(getattr(nodes, name), environment))
    builder.add_node("propose", as_node(nodes.propose, environment), input_schema=ProposeInput)
    builder.add_edge(START, "collect")
    builder.add_edge("collect", "assign_credit")
    builder.add_conditional_edges("assign_credit", nodes.route, ["propose", "report"])
    for before, after in zip(("propose", *order), (*order, END), strict=True):
        builder.add_edge(before, after)
    return builder.compile(name="prompt_optimizer")


def _context_schema(nodes: Nodes) -> type:
    """Return the described dataclass of what a call may set: scope, parameters and model."""
    name = "PromptOptimizer"
    base = context_schema(name, nodes.parameters, nodes.memory.variables, preset="default")
    return with_model(base, f"{name}Context")
