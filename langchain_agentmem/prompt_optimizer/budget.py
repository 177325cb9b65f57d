"""What a run may spend: model calls and tokens, counted before and after every call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self, TypeVar

from langchain_agentmem.errors import AgentMemoryError
from langchain_agentmem.steps.effects import Ask, Steps

R = TypeVar("R")


class BudgetExhaustedError(AgentMemoryError, RuntimeError):
    """The next model call would exceed the budget of the run; it was not made."""


@dataclass(slots=True, kw_only=True)
class Budget:
    """Model calls and tokens of one prompt's share of a run.

    Attributes:
        max_calls: Calls that may be made.
        max_tokens: Tokens, read and written, after which no call is begun; None for any number.
        calls: Calls made.
        tokens: Tokens used, as far as the model reports them.
        exhausted: Whether a call was refused.
    """

    max_calls: int
    max_tokens: int | None = None
    calls: int = 0
    tokens: int = 0
    exhausted: bool = False

    @property
    def calls_left(self) -> int:
        """How many calls can still be begun."""
        spent = self.max_tokens is not None and self.tokens >= self.max_tokens
        return 0 if spent else max(self.max_calls - self.calls, 0)

    def spend(self) -> None:
        """Count one call that is about to be made.

        Raises:
            BudgetExhaustedError: There is none left.
        """
        if not self.calls_left:
            self.exhausted = True
            msg = (
                f"The budget is used up ({self.calls} of {self.max_calls} calls, {self.tokens} "
                "tokens); raise max_calls or max_tokens, or give fewer prompts."
            )
            raise BudgetExhaustedError(msg)
        self.calls += 1

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, the form budgets have in graph state."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        return cls(**data)


def metered(steps: Steps[R], budget: Budget) -> Steps[R]:
    """Carry steps out within a budget.

    Raises:
        BudgetExhaustedError: Raised inside of the steps, at the call that would exceed it.
    """
    reply: Any = None
    error: Exception | None = None
    while True:
        try:
            asked = steps.throw(error) if error is not None else steps.send(reply)
        except StopIteration as finished:
            result: R = finished.value
            return result
        reply, error = None, None
        try:
            if isinstance(asked, Ask):
                budget.spend()
            reply = yield asked
        except Exception as raised:  # noqa: BLE001 - the steps decide, as in the drivers
            error = raised
        else:
            if isinstance(asked, Ask) and reply.usage_metadata:
                budget.tokens += reply.usage_metadata["total_tokens"]


def share(budget: Budget, wanted: int, least: int) -> list[Budget]:
    """Divide what is left among prompts, in their order.

    Each prompt that is reached gets at least `least` calls; where that is not possible, fewer
    prompts are reached, and the first one gets whatever there is.

    Args:
        budget: What is left of the run's budget.
        wanted: How many prompts want a share.
        least: The fewest calls with which the strategy can make a proposal.

    Returns:
        One budget for each prompt that is reached: the first so many.
    """
    left = budget.calls_left
    reached = min(wanted, max(left // max(least, 1), 1)) if left else 0
    tokens = None
    if budget.max_tokens is not None and reached:
        tokens = (budget.max_tokens - budget.tokens) // reached
    return [
        Budget(max_calls=left // reached + (at < left % reached), max_tokens=tokens)
        for at in range(reached)
    ]
