"""What a run writes down about each conversation: raw results, from which all measures follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

_COSTS: Final = ("writes", "consolidations")


@dataclass(slots=True, kw_only=True)
class Cost:
    """What one call of a memory cost.

    Attributes:
        seconds: How long it took; None where replies were replayed, which take no time.
        calls: Model calls.
        input_tokens: Tokens the model read.
        output_tokens: Tokens the model wrote.
    """

    seconds: float | None = None
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(slots=True, kw_only=True)
class Asked:
    """What became of one question.

    Attributes:
        results: The keys of the turns behind each result, best first.
        tokens: Tokens of the recalled text, as a prompt would hold it.
        cost: What the recall cost.
        answer: What the answering model said; None without one.
        answer_cost: What that cost.
        verdicts: What the judge said, one verdict a round.
        control: Whether the judge accepted a vague, wrong answer.
        error: Why it failed; such a question counts as wrong.
    """

    results: list[list[str]] = field(default_factory=list)
    tokens: int = 0
    cost: Cost = field(default_factory=Cost)
    answer: str | None = None
    answer_cost: Cost = field(default_factory=Cost)
    verdicts: list[bool] = field(default_factory=list)
    control: bool | None = None
    error: str | None = None


@dataclass(slots=True, kw_only=True)
class Unit:
    """One system on one conversation: what writing it and asking about it gave.

    Attributes:
        system: Name of the system.
        dataset: Name of the data set.
        scope: Name of the conversation.
        turns: Turns that were written.
        writes: What each call of `remember` cost.
        consolidations: What each run of background work cost, one after each session.
        items: Memories that are stored in the end.
        nbytes: Bytes that are stored in the end, an empty store left out.
        asked: One entry for each question, in the order of the data set.
        write_errors: Why calls of `remember` failed.
    """

    system: str
    dataset: str
    scope: str
    turns: int = 0
    writes: list[Cost] = field(default_factory=list)
    consolidations: list[Cost] = field(default_factory=list)
    items: int = 0
    nbytes: int = 0
    asked: list[Asked] = field(default_factory=list)
    write_errors: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether nothing failed, so that it need not be run again."""
        return not self.write_errors and not any(each.error for each in self.asked)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        asked = [
            Asked(
                **{
                    **each,
                    "cost": Cost(**each["cost"]),
                    "answer_cost": Cost(**each["answer_cost"]),
                }
            )
            for each in data["asked"]
        ]
        costs = {name: [Cost(**each) for each in data[name]] for name in _COSTS}
        return cls(**{**data, "asked": asked, **costs})
