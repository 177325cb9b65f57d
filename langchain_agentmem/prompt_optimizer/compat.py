"""LangMem's `create_prompt_optimizer` and `create_multi_prompt_optimizer`, under their names.

Inputs and outputs are LangMem's: a text in, a text out; a list of prompts in, the same list out,
in order, with untouched prompts as they were. The guards are ours: what they refuse, or what the
model does not answer properly, leaves the prompt as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from langchain_core.runnables import Runnable

from langchain_agentmem.errors import AgentMemoryError, ConfigurationError
from langchain_agentmem.parameters import checked_model, must_be, needed
from langchain_agentmem.prompt_optimizer import credit, guards, improving
from langchain_agentmem.prompt_optimizer.budget import Budget, share
from langchain_agentmem.prompt_optimizer.guards import Limits
from langchain_agentmem.prompt_optimizer.strategies import (
    Gradient,
    Metaprompt,
    PromptMemoryStrategy,
    Strategy,
)
from langchain_agentmem.prompt_optimizer.values import (
    Prompt,
    Task,
    TemplateFormat,
    Trajectory,
    as_prompt,
    as_trajectories,
)
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Emit, Steps
from langchain_agentmem.steps.environment import Environment

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import RunnableConfig

MAX_CALLS: Final = 20


def create_prompt_optimizer(
    model: BaseChatModel | str,
    /,
    *,
    kind: str = "gradient",
    config: Mapping[str, Any] | None = None,
) -> PromptOptimizer:
    """Return an optimizer of one prompt: `{"trajectories", "prompt"}` in, the new text out.

    Args:
        model: A chat model or its name for `init_chat_model`.
        kind: `"gradient"`, `"metaprompt"` or `"prompt_memory"`.
        config: `max_reflection_steps`, `min_reflection_steps`, and further instructions as
            `gradient_prompt` and `metaprompt`. Braces in these are ordinary text.

    Raises:
        ConfigurationError: There is no such kind or setting.

    Example:
        ```python
        optimizer = create_prompt_optimizer("openai:gpt-4.1-mini", kind="prompt_memory")
        optimizer.invoke({"trajectories": [(messages, "too long")], "prompt": "Be helpful."})
        ```
    """
    return PromptOptimizer(model, _strategy(kind, config or {}))


def create_multi_prompt_optimizer(
    model: BaseChatModel | str,
    /,
    *,
    kind: str = "gradient",
    config: Mapping[str, Any] | None = None,
) -> MultiPromptOptimizer:
    """Return an optimizer of several prompts: `{"trajectories", "prompts"}` in, the list out.

    Args:
        model: A chat model or its name for `init_chat_model`.
        kind: See `create_prompt_optimizer`.
        config: See `create_prompt_optimizer`.

    Raises:
        ConfigurationError: There is no such kind or setting.
    """
    return MultiPromptOptimizer(model, _strategy(kind, config or {}))


def _strategy(kind: str, config: Mapping[str, Any]) -> Strategy:
    steps = {"max_reflection_steps", "min_reflection_steps"}
    known = {
        "gradient": (Gradient, steps | {"gradient_prompt", "metaprompt"}),
        "metaprompt": (Metaprompt, steps | {"metaprompt"}),
        "prompt_memory": (PromptMemoryStrategy, set[str]()),
    }
    if kind not in known:
        msg = f"kind is one of {sorted(known)}, not {kind!r}."
        raise ConfigurationError(msg)
    made, allowed = known[kind]
    unknown = sorted(set(config) - allowed)
    if unknown:
        msg = f"Unknown setting {unknown[0]!r} for kind {kind!r}; it has {sorted(allowed)}."
        raise ConfigurationError(msg)
    names = {"gradient_prompt": "guidance", "metaprompt": "guidance"}
    if kind == "gradient":
        names["metaprompt"] = "edit_guidance"
    strategy: Strategy = made(**{names.get(name, name): value for name, value in config.items()})
    return strategy


class _Optimizer:
    """What both optimizers are made of.

    Args:
        model: The chat model.
        strategy: How texts are proposed.
    """

    def __init__(self, model: BaseChatModel | str, strategy: Strategy) -> None:
        self._model = checked_model(model, is_needed=True)
        self._strategy = strategy

    def _environment(self) -> Environment:
        return Environment(model=self._model)

    def _improved(
        self, prompt: Prompt, trajectories: Sequence[Trajectory], budget: Budget
    ) -> Steps[str]:
        """Return the new text of one prompt, or its text as it is."""
        limits = Limits(template_format=_format_of(prompt["prompt"]))

        def refusals(text: object) -> list[str]:
            return guards.refusals(text, prompt["prompt"], limits=limits, trajectories=trajectories)

        task = Task(prompt=prompt, trajectories=trajectories, refusals=refusals)
        found, _ = yield from improving.propose(self._strategy, task, budget)
        kept = yield from improving.guarded(found, task, limits, budget)
        if kept.valid:
            return kept.valid[0].text
        yield from Emit("prompt_kept", {"prompt": prompt["name"], "reason": kept.reason})
        return prompt["prompt"]


def _format_of(text: str) -> TemplateFormat:
    """Return how a text's variables are written; one that is no template has none."""
    try:
        guards.variables(text, "f-string")
    except ValueError:
        return "none"
    return "f-string"


class PromptOptimizer(_Optimizer, Runnable[dict[str, Any], str]):
    """Improves one prompt; made by `create_prompt_optimizer`."""

    def invoke(
        self,
        input: dict[str, Any],  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,  # noqa: ARG002 - LangChain's signature
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> str:
        """Return the new text of `input["prompt"]`, or its text as it is."""
        return run(self._steps(input), self._environment())

    async def ainvoke(
        self,
        input: dict[str, Any],  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,  # noqa: ARG002 - LangChain's signature
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> str:
        """Return the new text; the async twin of `invoke`."""
        return await arun(self._steps(input), self._environment())

    async def __call__(self, trajectories: object, prompt: str | Mapping[str, Any]) -> str:
        """Return the new text, in LangMem's short form."""
        return await self.ainvoke({"trajectories": trajectories, "prompt": prompt})

    def _steps(self, given: Mapping[str, Any]) -> Steps[str]:
        text, held = needed(given, "prompt", "trajectories")
        prompt = as_prompt(text)
        trajectories = as_trajectories(held or [])
        if not trajectories:
            return prompt["prompt"]
        return (yield from self._improved(prompt, trajectories, Budget(max_calls=MAX_CALLS)))


class MultiPromptOptimizer(_Optimizer, Runnable[dict[str, Any], list[dict[str, Any]]]):
    """Improves those of several prompts that the feedback concerns."""

    def invoke(
        self,
        input: dict[str, Any],  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,  # noqa: ARG002 - LangChain's signature
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[dict[str, Any]]:
        """Return `input["prompts"]` in order, some with a new text."""
        return run(self._steps(input), self._environment())

    async def ainvoke(
        self,
        input: dict[str, Any],  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,  # noqa: ARG002 - LangChain's signature
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[dict[str, Any]]:
        """Return the prompts; the async twin of `invoke`."""
        return await arun(self._steps(input), self._environment())

    async def __call__(
        self, trajectories: object, prompts: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return the prompts, in LangMem's short form."""
        return await self.ainvoke({"trajectories": trajectories, "prompts": list(prompts)})

    def _steps(self, given: Mapping[str, Any]) -> Steps[list[dict[str, Any]]]:
        texts, held = needed(given, "prompts", "trajectories")
        must_be("prompts", texts, (list, tuple), "a list such as [{'name': ..., 'prompt': ...}]")
        originals: list[dict[str, Any]] = list(texts)
        prompts = [as_prompt(each) for each in originals]
        trajectories = as_trajectories(held or [])
        budget = Budget(max_calls=MAX_CALLS)
        concerned = yield from self._concerned(prompts, trajectories, budget)
        chosen = [each for each in prompts if each["name"] in concerned]
        budgets = share(budget, len(chosen), self._strategy.least_calls)
        changed = {}
        for prompt, part in zip(chosen, budgets, strict=False):
            ids = concerned[prompt["name"]]
            own = [each for each in trajectories if each["id"] in ids]
            text = yield from self._improved(prompt, own, part)
            if text != prompt["prompt"]:
                changed[prompt["name"]] = text
        return [
            {**each, "prompt": changed[each["name"]]} if each["name"] in changed else each
            for each in originals
        ]

    def _concerned(
        self, prompts: Sequence[Prompt], trajectories: Sequence[Trajectory], budget: Budget
    ) -> Steps[dict[str, set[str]]]:
        if not trajectories:
            return {}
        if len(prompts) == 1:
            return {prompts[0]["name"]: {each["id"] for each in trajectories}}
        try:
            return (yield from credit.assign(prompts, trajectories, budget))
        except AgentMemoryError as error:
            yield from Emit("credit_failed", {"reason": str(error)[:500]})
            return {}
