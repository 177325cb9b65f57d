"""Parameters and state of the optimizer graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.parameters import Parameters, described

CUSTOM: Final = "custom"
STRATEGIES: Final = ("gradient", "metaprompt", "prompt_memory", "evolutionary")
APPROVALS: Final = ("auto", "interrupt", "never")


@dataclass(frozen=True, kw_only=True)
class OptimizerParameters(Parameters):
    """Parameters of the optimizer graph; a call's context or config may set each of them.

    Attributes:
        strategy: `gradient`, `metaprompt`, `prompt_memory`, `evolutionary`, or `custom` for the
            one that the graph was built with.
        min_trajectories: Fewer new conversations than this: nothing is done.
        since_version: Learn from conversations held with this version or newer ones; 0 for the
            active version only. Conversations that name no version always count.
        holdout: Share of the conversations kept for the evaluation where no examples are given.
        max_calls: Most model calls of the whole run, for all prompts together.
        max_tokens: No further model call once so many tokens are used; 0 for any number.
        max_reflection_steps: Most rounds of reflection of `gradient` and `metaprompt`.
        min_reflection_steps: Fewest of these rounds.
        max_growth: How many times as long as the active text a candidate may be; texts under
            400 characters count as 400.
        accept_margin: A candidate must score better than the active text by more than this.
        min_evaluations: With fewer scored examples no candidate is accepted automatically.
        approval: `auto`, `interrupt` (a person decides) or `never` (a dry run).
        population: How many texts of `evolutionary` live at a time.
        generations: How many times it breeds.
        mutation_rate: Share of its offspring that have one parent instead of two.
        minibatch: Examples by which it scores its texts.
    """

    strategy: Literal["gradient", "metaprompt", "prompt_memory", "evolutionary", "custom"] = (
        described("gradient", "How texts are proposed; evolutionary needs an evaluator.")
    )
    min_trajectories: int = described(3, "Fewer new conversations than this: nothing is done.")
    since_version: int = described(0, "Oldest version to learn from; 0 for the active one only.")
    holdout: float = described(0.5, "Share of the conversations kept for the evaluation.")
    max_calls: int = described(20, "Most model calls of the whole run.")
    max_tokens: int = described(0, "No further call after so many tokens; 0 for any number.")
    max_reflection_steps: int = described(5, "Most rounds of reflection.")
    min_reflection_steps: int = described(1, "Fewest rounds of reflection.")
    max_growth: float = described(2.0, "Most growth of a text, times its length.")
    accept_margin: float = described(0.0, "A candidate must be better by more than this.")
    min_evaluations: int = described(3, "Fewest scored examples for an automatic decision.")
    approval: Literal["auto", "interrupt", "never"] = described(
        "auto", "Who decides: the scores, a person, or nobody."
    )
    population: int = described(4, "Texts that live at a time (evolutionary).")
    generations: int = described(2, "How many times they breed (evolutionary).")
    mutation_rate: float = described(0.5, "Share of offspring of one parent (evolutionary).")
    minibatch: int = described(8, "Examples that score each text (evolutionary).")

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        self.require(
            least={"max_calls": 0, "max_reflection_steps": 1, "population": 2, "minibatch": 1},
            choices={"strategy": (*STRATEGIES, CUSTOM), "approval": APPROVALS},
        )
        for name in ("holdout", "mutation_rate"):
            if not 0 <= getattr(self, name) <= 1:
                msg = f"{name} is a share from 0 to 1, not {getattr(self, name)}."
                raise ConfigurationError(msg)


Record = dict[str, Any]
"""Everything about one prompt in a run, as plain JSON."""


def merged(before: Mapping[str, Record] | None, after: Mapping[str, Record]) -> dict[str, Record]:
    """Replace the records of some prompts: parallel proposals do not touch each other's."""
    return {**(before or {}), **after}


class OptimizerInput(TypedDict, total=False):
    """Conversations to learn from; without any, those that were recorded in the store."""

    trajectories: Annotated[
        list[Any],
        Field(
            description="Conversations with feedback or a score; empty for the recorded ones.",
            examples=[
                [
                    {
                        "messages": [{"role": "user", "content": "Do you ship to Oslo?"}],
                        "feedback": "too long",
                        "score": 0.2,
                    }
                ]
            ],
        ),
    ]
    names: Annotated[list[str], Field(description="Prompts to improve; without any, all.")]


class OptimizerOutput(TypedDict, total=False):
    """What the graph returns."""

    report: Annotated[
        list[Record],
        Field(description="For each prompt: decision, reason, version, diff, scores, calls."),
    ]
    prompts: Annotated[dict[str, str], Field(description="Each prompt's active text afterwards.")]
    calls: Annotated[int, Field(description="Model calls of the run.")]
    tokens: Annotated[int, Field(description="Tokens of the run.")]


class OptimizerState(OptimizerInput, OptimizerOutput, total=False):
    """State of the graph: what it is given and returns, and the work in between."""

    work: Annotated[
        dict[str, Record],
        Field(description="What is known about each prompt so far, by name."),
        merged,
    ]
    spent: Annotated[Record, Field(description="Budget of the calls that concern all prompts.")]


class ProposeInput(TypedDict):
    """What one `propose` task is given."""

    record: Annotated[Record, Field(description="What is known about the prompt.")]
