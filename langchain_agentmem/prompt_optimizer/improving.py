"""From a task to valid candidates: propose within the budget, guard, and repair once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from langgraph.errors import GraphBubbleUp

from langchain_agentmem.errors import AgentMemoryError
from langchain_agentmem.prompt_optimizer import guards
from langchain_agentmem.prompt_optimizer.budget import Budget, BudgetExhaustedError, metered
from langchain_agentmem.prompt_optimizer.guards import Limits
from langchain_agentmem.prompt_optimizer.strategies import KEEP_RULES, NewPrompt, Strategy, lines
from langchain_agentmem.prompt_optimizer.values import Candidate, Task
from langchain_agentmem.steps.effects import Emit, Steps
from langchain_agentmem.steps.extraction import decide

logger = logging.getLogger(__name__)

EXHAUSTED: Final = "budget_exhausted"
_REPAIR: Final = (
    "You correct a new version of a prompt. You are shown the original, the new version and what "
    f"is wrong with the new version. Write the whole new version with only that put right. "
    f"{KEEP_RULES}"
)


@dataclass(slots=True, kw_only=True)
class Guarded:
    """What the guards left of some candidates.

    Attributes:
        valid: What may be accepted.
        refused: What may not, each with the text and the reasons.
        unchanged: How many were the original again.
    """

    valid: list[Candidate] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    unchanged: int = 0

    @property
    def reason(self) -> str:
        """Why nothing is left."""
        if self.refused:
            return " ".join(self.refused[0]["reasons"])
        return "the candidate is the active text again" if self.unchanged else "no candidate"


def propose(strategy: Strategy, task: Task, budget: Budget) -> Steps[tuple[list[Candidate], str]]:
    """Return a strategy's candidates, and why there are none.

    Whatever a strategy, a delegate or the model raises keeps the prompt and is reported: one
    prompt's failure must not end the run of the others.
    """
    try:
        found = yield from metered(strategy.propose(task, budget), budget)
    except GraphBubbleUp:
        raise
    except BudgetExhaustedError:
        return [], EXHAUSTED
    except AgentMemoryError as error:
        return (yield from _failed(strategy, task, str(error)))
    except Exception as error:
        logger.exception("The strategy %s failed; the prompt is kept.", strategy.name)
        return (yield from _failed(strategy, task, f"{type(error).__name__}: {error}"))
    return found, "" if found else "no change was proposed"


def _failed(strategy: Strategy, task: Task, why: str) -> Steps[tuple[list[Candidate], str]]:
    reason = f"{strategy.name} failed: {why}"[:500]
    yield from Emit("proposal_failed", {"prompt": task.prompt["name"], "reason": reason})
    return [], reason


def guarded(
    candidates: Sequence[Candidate], task: Task, limits: Limits, budget: Budget
) -> Steps[Guarded]:
    """Pass candidates through the guards; variables may be repaired with one call in all."""
    result = Guarded()
    repaired = False
    for given in candidates:
        candidate = given
        if isinstance(candidate.text, str) and guards.is_unchanged(candidate.text, task.text):
            result.unchanged += 1
            continue
        problems = task.refusals(candidate.text)
        broken = _broken(candidate, task, limits)
        if broken and not repaired and budget.calls_left:
            repaired = True
            result.refused.append({"text": candidate.text, "reasons": list(problems)})
            candidate = yield from _repaired(candidate, task, broken, budget)
            problems = task.refusals(candidate.text)
            if not problems:
                result.refused.pop()
        if problems:
            result.refused.insert(0, {"text": candidate.text, "reasons": list(problems)})
        elif not guards.is_unchanged(candidate.text, task.text):
            result.valid.append(candidate)
    return result


def _broken(candidate: Candidate, task: Task, limits: Limits) -> list[str]:
    """Return what is wrong with a candidate's variables, which a model can put right."""
    if guards.text_problems(candidate.text):
        return []
    return guards.variable_problems(candidate.text, task.text, limits.template_format)


def _repaired(
    candidate: Candidate, task: Task, problems: Sequence[str], budget: Budget
) -> Steps[Candidate]:
    """Ask once for a candidate with its variables put right; return it as it is if that fails."""
    rows = [{"original": task.text}, {"new_version": candidate.text}, {"wrong": " ".join(problems)}]
    asking = decide(NewPrompt, purpose="repair", instructions=_REPAIR, data=lines(rows))
    try:
        found = yield from metered(asking, budget)
    except AgentMemoryError as error:
        reason = f"repair failed: {error}"[:500]
        yield from Emit("proposal_failed", {"prompt": task.prompt["name"], "reason": reason})
        return candidate
    if found.value is None:
        return candidate
    return replace(candidate, text=found.value.new_prompt)
