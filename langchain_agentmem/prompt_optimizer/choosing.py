"""Which strategy, which evaluator and which examples a prompt gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.prompt_optimizer.evolution import Evolutionary
from langchain_agentmem.prompt_optimizer.langmem import LangMemStrategy
from langchain_agentmem.prompt_optimizer.scoring import Evaluator
from langchain_agentmem.prompt_optimizer.settings import CUSTOM, STRATEGIES, OptimizerParameters
from langchain_agentmem.prompt_optimizer.strategies import (
    CallableStrategy,
    Gradient,
    Metaprompt,
    PromptMemoryStrategy,
    Proposer,
    Strategy,
)
from langchain_agentmem.prompt_optimizer.values import split

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

Evaluators: TypeAlias = Evaluator | Mapping[str, Evaluator] | None
Examples: TypeAlias = Sequence[Any] | Mapping[str, Sequence[Any]] | None

_BREEDING_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the user gave for all prompts or for each by name.

    Attributes:
        own: A strategy of the user's, or None for the one that the parameters name.
        evaluators: Scores texts.
        examples: What to score them on, instead of held-out conversations.
    """

    own: Strategy | None = None
    evaluators: Evaluators = None
    examples: Examples = None

    def brings_model(self, params: OptimizerParameters) -> bool:
        """Tell whether the strategy is one of the user's own that calls models by itself."""
        own = isinstance(self.own, CallableStrategy | LangMemStrategy)
        return own and params.strategy == CUSTOM

    def evaluator(self, name: str) -> Evaluator | None:
        """Return the evaluator of a prompt."""
        if isinstance(self.evaluators, Mapping):
            return self.evaluators.get(name)
        return self.evaluators

    def given(self, name: str) -> Sequence[Any] | None:
        """Return the examples that were given for a prompt."""
        if isinstance(self.examples, Mapping):
            return self.examples.get(name)
        return self.examples

    def deciding(self, name: str, params: OptimizerParameters) -> Sequence[Any] | None:
        """Return those of the given examples that decide: none that texts were bred with."""
        given = self.given(name)
        if given is None or params.strategy != "evolutionary":
            return given
        return split(given, _BREEDING_SHARE).held_out

    def strategy(self, params: OptimizerParameters, name: str) -> Strategy:
        """Return the strategy of a prompt.

        Raises:
            ConfigurationError: `evolutionary` has no evaluator, or there is no `custom` one.
        """
        if params.strategy == CUSTOM:
            return self._custom()
        if params.strategy == "evolutionary":
            return self._evolutionary(params, name)
        if params.strategy == "prompt_memory":
            return PromptMemoryStrategy()
        kind = Gradient if params.strategy == "gradient" else Metaprompt
        return kind(
            max_reflection_steps=params.max_reflection_steps,
            min_reflection_steps=params.min_reflection_steps,
        )

    def _custom(self) -> Strategy:
        if self.own is None:
            msg = "strategy='custom' is the one a graph was built with; this one was built without."
            raise ConfigurationError(msg)
        return self.own

    def _evolutionary(self, params: OptimizerParameters, name: str) -> Evolutionary:
        evaluator, given = self.evaluator(name), self.given(name)
        if evaluator is None:
            msg = f"strategy='evolutionary' needs an evaluator for prompt {name!r}: evaluator=..."
            raise ConfigurationError(msg)
        return Evolutionary(
            evaluator=evaluator,
            examples=split(given, _BREEDING_SHARE).shown if given is not None else (),
            population=params.population,
            generations=params.generations,
            mutation_rate=params.mutation_rate,
            minibatch=params.minibatch,
        )


def own_strategy(
    given: str | Strategy | Proposer, model: BaseChatModel | str | None
) -> Strategy | None:
    """Return a strategy object for what a user gave; None for a strategy's name.

    A delegate without a model of its own gets the graph's.

    Raises:
        ConfigurationError: It is none of these.
    """
    if isinstance(given, str):
        return None
    if isinstance(given, LangMemStrategy):
        return given.with_model(model)
    if isinstance(given, Strategy):
        return given
    if callable(given):
        return CallableStrategy(given)
    msg = f"strategy is one of {list(STRATEGIES)} or a callable, not a {type(given).__name__}."
    raise ConfigurationError(msg)
