"""Evolutionary search for a prompt: a population, selection by examples, two operators.

Selection is that of GEPA (Agrawal et al. 2025, "GEPA: Reflective Prompt Evolution Can Outperform
Reinforcement Learning", arXiv:2507.19457, candidate selection): a text that is best on at least
one example and not dominated may have offspring, and is drawn in proportion to the number of
examples on which it is best. So a text that alone solves a rare case is not lost to a good average.

Operators: mutation reflects on the examples on which the parent did badly (GEPA's reflective
mutation). Crossover combines two parents and then changes the result a little, in one call, as
the genetic algorithm of EvoPrompt does (Guo et al. 2024, arXiv:2309.08532); the second parent is
drawn from those that are better than the first on some example.

Not taken over: GEPA's merge of separate modules, for one prompt has none; and EvoPrompt's initial
population of foreign prompts: ours is bred from the active text.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from langchain_agentmem.errors import ModelCallError
from langchain_agentmem.prompt_optimizer.budget import Budget, BudgetExhaustedError
from langchain_agentmem.prompt_optimizer.guards import is_unchanged
from langchain_agentmem.prompt_optimizer.scoring import Evaluator, Graded, grade
from langchain_agentmem.prompt_optimizer.strategies import KEEP_RULES, NewPrompt, lines
from langchain_agentmem.prompt_optimizer.values import Candidate, Task, render, shown
from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.steps.extraction import decide

_MUTATE: Final = (
    "You improve the prompt of an assistant. You are shown one version of it, examples on which "
    "this version did badly with their scores and what was said about them, and conversations. "
    "Find the general rule that these failures have in common and write a whole new version that "
    f"follows it. {KEEP_RULES}"
)
_CROSS: Final = (
    "You combine two versions of the prompt of an assistant. Each is shown with the examples on "
    "which it is the better one. First join what makes each of them good into one prompt, without "
    "contradictions or repetitions; then improve the wording where that helps. Write the whole "
    f"combined prompt. {KEEP_RULES}"
)
_SHOWN_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Individual:
    """One text of the population.

    Attributes:
        candidate: The text and how it was made.
        graded: Its scores on the minibatch.
    """

    candidate: Candidate
    graded: Graded

    @property
    def text(self) -> str:
        """The prompt."""
        return self.candidate.text


def frontier(scores: Sequence[Mapping[int, float]]) -> dict[int, int]:
    """Return who is best on some example, and on how many, without the dominated.

    One is dominated if another one is nowhere worse and somewhere better.

    Args:
        scores: For each individual, its score by example.
    """
    wins: Counter[int] = Counter()
    for example in sorted({each for one in scores for each in one}):
        reached = {at: one[example] for at, one in enumerate(scores) if example in one}
        best = max(reached.values())
        wins.update(at for at, score in reached.items() if score == best)
    return {
        at: count
        for at, count in sorted(wins.items())
        if not any(_dominates(scores[other], scores[at]) for other in wins)
    }


def _dominates(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    both = one.keys() & other.keys()
    return (
        other.keys() <= both
        and all(one[at] >= other[at] for at in both)
        and (any(one[at] > other[at] for at in both) or len(one) > len(other))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolutionary:
    """Breed a population from the active text and return its best member.

    Calls of the model: at most `population - 1 + generations * population`. Calls of the evaluator:
    at most `population * (generations + 1) * minibatch`.

    Attributes:
        evaluator: Scores a text on an example.
        examples: Examples to breed with; without any, the trajectories.
        population: How many texts live at a time.
        generations: How many times offspring are bred.
        mutation_rate: Share of offspring of one parent; the others have two.
        minibatch: So many examples, drawn once a run, score every text.
    """

    name: ClassVar[str] = "evolutionary"
    least_calls: ClassVar[int] = 1
    evaluator: Evaluator
    examples: Sequence[Any] = ()
    population: int = 4
    generations: int = 2
    mutation_rate: float = 0.5
    minibatch: int = 8

    def propose(self, task: Task, budget: Budget) -> Steps[list[Candidate]]:  # noqa: ARG002 - the protocol
        """Return the best text that was found, or none if none beats the active one."""
        search = _Search(self, task, random.Random(f"{task.seed}:{task.prompt['name']}"))  # noqa: S311 - sampling, not secrets
        try:
            yield from search.run()
        except (BudgetExhaustedError, ModelCallError):
            if len(search.living) <= 1:
                raise
        origin = search.origin
        if origin is None:
            return []
        best = max(search.living, key=lambda each: each.graded.mean)
        better = best is not origin and best.graded.mean > origin.graded.mean
        return [best.candidate] if better else []


class _Search:
    """One run of the search.

    Args:
        settings: Its parameters.
        task: What is improved.
        rng: Draws the minibatch, the operators and the parents.
    """

    def __init__(self, settings: Evolutionary, task: Task, rng: random.Random) -> None:
        self._settings = settings
        self._task = task
        self._rng = rng
        given = list(settings.examples or task.trajectories)
        count = min(settings.minibatch, len(given))
        self._examples = [given[at] for at in sorted(rng.sample(range(len(given)), count))]
        self.origin: Individual | None = None
        self.living: list[Individual] = []

    def run(self) -> Steps[None]:
        """Score the active text, fill the population by mutation, then breed generations."""
        active = Candidate(text=self._task.text, operator="active")
        self.origin = yield from self._graded(active)
        self.living = [self.origin]
        for _ in range(self._settings.population - 1):
            yield from self._born((yield from self._mutant(self.origin)))
        for _ in range(self._settings.generations):
            for _ in range(self._settings.population):
                yield from self._born((yield from self._offspring()))
            self._select()

    def _graded(self, candidate: Candidate) -> Steps[Individual]:
        graded = yield from grade(self._settings.evaluator, candidate.text, self._examples)
        return Individual(candidate=candidate, graded=graded)

    def _born(self, candidate: Candidate | None) -> Steps[None]:
        """Score a new text and let it live, unless it is refused or known."""
        if candidate is None or self._task.refusals(candidate.text):
            return
        if any(is_unchanged(candidate.text, each.text) for each in self.living):
            return
        self.living.append((yield from self._graded(candidate)))

    def _offspring(self) -> Steps[Candidate | None]:
        front = frontier([each.graded.scores for each in self.living])
        one = self._drawn(front)
        if self._rng.random() >= self._settings.mutation_rate:
            others = [at for at in front if at != one and self._wins(at, one)]
            if others:
                other = self._drawn({at: front[at] for at in others})
                return (yield from self._crossed(self.living[one], self.living[other]))
        return (yield from self._mutant(self.living[one]))

    def _drawn(self, front: Mapping[int, int]) -> int:
        """Draw one of the front, in proportion to the examples it is best on."""
        if not front:
            return 0
        return self._rng.choices(list(front), weights=list(front.values()))[0]

    def _wins(self, one: int, other: int) -> list[int]:
        """Return the examples on which one individual is better than another."""
        mine, theirs = (self.living[at].graded.scores for at in (one, other))
        return [at for at, score in mine.items() if score > theirs.get(at, float("-inf"))]

    def _mutant(self, parent: Individual) -> Steps[Candidate | None]:
        scores = parent.graded.scores
        worst = sorted(scores, key=lambda at: (scores[at], at))[: 2 * _SHOWN_EXAMPLES]
        picked = self._rng.sample(worst, min(len(worst), _SHOWN_EXAMPLES))
        shown_ones = self._rows(parent, picked)
        head = render({**self._task.prompt, "prompt": parent.text}, self._task.trajectories)
        return (yield from self._written("mutation", _MUTATE, f"{head}\n{shown_ones}", parent))

    def _crossed(self, one: Individual, other: Individual) -> Steps[Candidate | None]:
        first, second = self.living.index(one), self.living.index(other)
        pairs = ((one, self._wins(first, second)), (other, self._wins(second, first)))
        versions = [
            f"{lines([{'version': number, 'text': each.text}])}\n"
            f"{self._rows(each, wins[:_SHOWN_EXAMPLES])}"
            for number, (each, wins) in enumerate(pairs, start=1)
        ]
        return (yield from self._written("crossover", _CROSS, "\n".join(versions), one, other))

    def _rows(self, individual: Individual, positions: Sequence[int]) -> str:
        graded = individual.graded
        return lines(
            {
                "example": shown(str(self._examples[at])),
                "score": f"{graded.scores[at]:g}",
                "said_about_it": graded.feedback.get(at),
            }
            for at in positions
        )

    def _written(
        self, operator: str, instructions: str, data: str, *parents: Individual
    ) -> Steps[Candidate | None]:
        found = yield from decide(NewPrompt, purpose=operator, instructions=instructions, data=data)
        if found.value is None or not found.value.new_prompt.strip():
            return None
        return Candidate(
            text=found.value.new_prompt,
            hypotheses=found.value.reasoning,
            operator=operator,
            parents=tuple(each.text for each in parents),
        )

    def _select(self) -> None:
        """Keep the front, then the best on average, up to the population's size."""
        front = frontier([each.graded.scores for each in self.living])
        order = sorted(
            range(len(self.living)),
            key=lambda at: (at not in front, -self.living[at].graded.mean, at),
        )
        self.living = [self.living[at] for at in order[: self._settings.population]]
