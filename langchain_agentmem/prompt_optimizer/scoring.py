"""Scores: a text on examples, and two texts on the same examples."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from langgraph.errors import GraphBubbleUp

from langchain_agentmem.steps.effects import Call, Emit, Steps

Score: TypeAlias = float | tuple[float, str]
Evaluator: TypeAlias = Callable[[str, Any], Score | Awaitable[Score]]
"""`evaluator(prompt_text, example)` gives a score, higher is better, and perhaps why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """One text on some examples.

    Attributes:
        scores: Score by position of the example; examples that failed are not there.
        feedback: What the evaluator said, by position.
        errors: What went wrong, by position.
    """

    scores: Mapping[int, float] = field(default_factory=dict)
    feedback: Mapping[int, str] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """Mean score; minus infinity where nothing was scored."""
        return sum(self.scores.values()) / len(self.scores) if self.scores else float("-inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A candidate against the active text, on the examples where both were scored.

    Attributes:
        baseline: Mean score of the active text.
        candidate: Mean score of the candidate.
        n: Number of pairs.
        dropped: Examples on which one of them failed.
    """

    baseline: float
    candidate: float
    n: int
    dropped: int = 0

    @property
    def difference(self) -> float:
        """Mean paired difference."""
        return self.candidate - self.baseline

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "baseline": self.baseline,
            "candidate": self.candidate,
            "n": self.n,
            "dropped": self.dropped,
        }

    @classmethod
    def of(cls, baseline: Graded, candidate: Graded) -> Self:
        """Pair the scores of two texts on the same examples."""
        both = sorted(baseline.scores.keys() & candidate.scores.keys())
        failed = baseline.errors.keys() | candidate.errors.keys()
        n = len(both)
        return cls(
            baseline=sum(baseline.scores[at] for at in both) / n if n else 0.0,
            candidate=sum(candidate.scores[at] for at in both) / n if n else 0.0,
            n=n,
            dropped=len(failed),
        )

    def objection(self, *, margin: float, least: int) -> str | None:
        """Return why the candidate is not accepted; None if it is.

        Args:
            margin: It must be better than the active text by more than this.
            least: Fewest pairs.
        """
        if self.dropped > self.n:
            return f"the evaluator failed on {self.dropped} of {self.n + self.dropped} examples"
        if self.difference <= margin:
            return f"it scored {self.candidate:.3f}, the active text {self.baseline:.3f}"
        if self.n < least:
            return f"only {self.n} of {least} needed evaluations"
        return None


def grade(evaluator: Evaluator, text: str, examples: Sequence[Any]) -> Steps[Graded]:
    """Score a text on each example; an example on which the evaluator fails has no score."""
    scores: dict[int, float] = {}
    feedback: dict[int, str] = {}
    errors: dict[int, str] = {}
    for at, example in enumerate(examples):
        try:
            scores[at], feedback[at] = _read((yield from Call(evaluator, (text, example))))
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 - one bad example must not end the run
            errors[at] = f"{type(error).__name__}: {error}"[:200]
            yield from Emit("evaluation_failed", {"example": at, "error": errors[at]})
    return Graded(scores=scores, feedback=feedback, errors=errors)


def _read(given: object) -> tuple[float, str]:
    score, why = given if isinstance(given, tuple) else (given, "")
    return float(score), str(why)
