"""LangMem's optimizers as a strategy, where the package is installed (extra `[langmem]`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from langchain_core.callbacks import BaseCallbackHandler

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.prompt_optimizer.budget import Budget
from langchain_agentmem.prompt_optimizer.strategies import candidates
from langchain_agentmem.prompt_optimizer.values import Candidate, Task
from langchain_agentmem.steps.effects import Call, Steps
from langchain_agentmem.steps.usage import tokens_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.language_models import BaseChatModel
    from langchain_core.outputs import LLMResult
    from langchain_core.runnables import Runnable

Kind: TypeAlias = Literal["gradient", "metaprompt"]


@dataclass(frozen=True, slots=True)
class LangMemStrategy:
    """Let LangMem propose; the guards, the evaluation and the history stay ours.

    Each of its model calls is counted before it is made. Whatever it raises, such as an IndexError
    on a null answer or a KeyError on braces, becomes "no candidate" with the reason.

    Attributes:
        kind: Which of its optimizers.
        model: Its model; None for the model that the graph was built with.
        config: Its own configuration.

    Raises:
        ConfigurationError: LangMem is not installed, or has no such optimizer.
    """

    kind: Kind = "gradient"
    model: BaseChatModel | str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Fail at construction, not in the middle of a run."""
        if self.kind not in {"gradient", "metaprompt"}:
            msg = f"LangMemStrategy delegates gradient and metaprompt, not {self.kind!r}."
            raise ConfigurationError(msg)
        if find_spec("langmem") is None:
            msg = "LangMemStrategy needs langmem: pip install 'langchain-agentmem[langmem]'."
            raise ConfigurationError(msg)

    @property
    def name(self) -> str:
        """Name in history and report."""
        return f"langmem_{self.kind}"

    @property
    def least_calls(self) -> int:
        """The fewest calls: LangMem's gradient reflects and edits, its metaprompt spends five."""
        return 2 if self.kind == "gradient" else 5

    def with_model(self, model: BaseChatModel | str | None) -> Self:
        """Return the same strategy with a model, if it has none of its own."""
        return self if self.model is not None else replace(self, model=model)

    def propose(self, task: Task, budget: Budget) -> Steps[list[Candidate]]:
        """Return what LangMem makes of the prompt."""
        optimizer = self._optimizer()
        pairs = [(each["messages"], each["feedback"]) for each in task.trajectories]
        given = {"prompt": dict(task.prompt), "trajectories": pairs}
        config = {"callbacks": [_Meter(budget)]}
        text = yield from Call(
            optimizer.invoke, (given,), {"config": config}, afunction=optimizer.ainvoke
        )
        return candidates(str(text or ""), "", self.name, task)

    def _optimizer(self) -> Runnable[Any, Any]:
        """Return its optimizer inside of a runnable that hands the callbacks down."""
        from langchain_core.runnables import RunnableLambda
        from langmem import create_prompt_optimizer  # type: ignore[import-untyped]  # published without annotations

        if self.model is None:
            msg = "LangMemStrategy has no model: LangMemStrategy(kind, model='provider:name')."
            raise ConfigurationError(msg)
        theirs: Runnable[Any, Any] = create_prompt_optimizer(
            self.model, kind=self.kind, config=dict(self.config) or None
        )
        return RunnableLambda(theirs.invoke, afunc=theirs.ainvoke)


class _Meter(BaseCallbackHandler):
    """Counts a delegate's model calls before they are made, and stops it at the budget.

    Args:
        budget: What it may spend.
    """

    raise_error = True
    run_inline = True

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - LangChain's signature
        """Count one call, or refuse it."""
        self._budget.spend()

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:  # noqa: ANN401 - LangChain's signature
        """Add the tokens of one call."""
        self._budget.tokens += sum(tokens_of(response))
