"""Credit assignment: which prompts the feedback concerns, in one model call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from langchain_agentmem.prompt_optimizer.budget import Budget, metered
from langchain_agentmem.prompt_optimizer.strategies import lines
from langchain_agentmem.prompt_optimizer.values import Prompt, Trajectory, trajectory_rows
from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.steps.extraction import Proposal, decide

_CREDIT: Final = (
    "Several prompts make up one system. You are shown all of them, with the conditions under "
    "which each should be changed, and conversations with feedback. Name the prompts whose text "
    "led to what the feedback is about, and for each the numbers of the conversations that concern "
    "it. Name none where the feedback calls for no change."
)


class _Assignment(Proposal):
    name: str
    conversations: list[int] = Field(default_factory=list)


class _Credit(Proposal):
    reasoning: str = ""
    prompts: list[_Assignment] = Field(default_factory=list)


def assign(
    prompts: Sequence[Prompt], trajectories: Sequence[Trajectory], budget: Budget
) -> Steps[dict[str, set[str]]]:
    """Return the names of the prompts to change, each with the ids of what concerns it.

    A prompt that is named without conversations is concerned by all of them; a name that is not
    one of the prompts is left out.

    Raises:
        BudgetExhaustedError: There is no call left.
        ModelCallError: The model failed.
    """
    heads = [
        {
            "prompt_name": each["name"],
            "current_prompt": each["prompt"],
            "when_to_update": each.get("when_to_update"),
            "update_instructions": each.get("update_instructions"),
        }
        for each in prompts
    ]
    data = f"{lines(heads)}\n{lines(trajectory_rows(trajectories))}"
    asking = decide(_Credit, purpose="assign_credit", instructions=_CREDIT, data=data)
    found = (yield from metered(asking, budget)).value
    names = {each["name"] for each in prompts}
    everything = {each["id"] for each in trajectories}
    credit = {}
    for each in found.prompts if found else ():
        if each.name in names:
            numbers = [at for at in each.conversations if 0 <= at < len(trajectories)]
            credit[each.name] = {trajectories[at]["id"] for at in numbers} or everything
    return credit
