"""Strategies: how a new text is found from an active one and what people said about it.

The names and the order of calls of `gradient`, `metaprompt` and `prompt_memory` are LangMem's;
prompts and code are our own. A strategy proposes and never decides: guards, evaluation and the
decision are the graph's. A prompt's text is only ever shown as data, so braces in it mean nothing
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeAlias, runtime_checkable

from pydantic import Field

from langchain_agentmem.prompt_optimizer.budget import Budget
from langchain_agentmem.prompt_optimizer.values import Candidate, Task, render
from langchain_agentmem.steps.effects import Call, Steps
from langchain_agentmem.steps.extraction import Proposal, as_lines, decide

Proposer: TypeAlias = Callable[..., Any]
"""`proposer(prompt, trajectories, *, budget)`, plain or async, gives texts or candidates."""

KEEP_RULES: Final = (
    "Keep every template variable exactly as it is written, and keep literal braces escaped as "
    "they are. Change only what the conversations call for. Never copy words, names, numbers or "
    "facts of a user into the prompt: it is used for everyone. Follow `update_instructions` where "
    "they are given."
)
_REFLECT: Final = (
    "You improve the prompt of an assistant. You are shown the current prompt and conversations "
    "that were held with it, with feedback. Think about where the assistant fell short and which "
    "words of the prompt, or which missing words, led to it; then criticize your own explanation. "
    "Set `done` when another round would add nothing."
)
_VERDICT: Final = (
    "You decide whether a prompt needs to be changed. You are shown the prompt, conversations with "
    "feedback, and reflections about them. Say whether a change is warranted by the evidence, your "
    "hypotheses about the causes, and what to change. Isolated bad luck warrants no change."
)
_EDIT: Final = (
    "You edit the prompt of an assistant according to recommendations, and write the whole new "
    f"prompt. {KEEP_RULES}"
)
_METAPROMPT: Final = (
    "You improve the prompt of an assistant from conversations that were held with it. Reflect on "
    "what went well and what did not. As soon as you are sure, write the whole new prompt as "
    f"`new_prompt`; until then leave it out. {KEEP_RULES}"
)
_FINISH: Final = f"Write the whole improved prompt that your reflections lead to. {KEEP_RULES}"
_PROMPT_MEMORY: Final = (
    "You maintain the instructions of an assistant. From conversations and feedback, decide "
    "whether the prompt should be updated, and if so write the whole new prompt; if not, say so "
    f"and leave `new_prompt` empty. {KEEP_RULES}"
)


@runtime_checkable
class Strategy(Protocol):
    """How candidates are proposed."""

    @property
    def name(self) -> str:
        """Name in history and report."""
        ...

    @property
    def least_calls(self) -> int:
        """The fewest model calls that lead to a candidate."""
        ...

    def propose(self, task: Task, budget: Budget) -> Steps[list[Candidate]]:
        """Return candidates, best first; none to keep the prompt."""
        ...


class _Reflection(Proposal):
    thought: str = ""
    critique: str = ""
    done: bool = False


class _Verdict(Proposal):
    warrants_adjustment: bool
    hypotheses: str = ""
    recommendations: str = ""


class NewPrompt(Proposal):
    """A whole new text."""

    new_prompt: str = Field(description="The whole new text of the prompt.")
    reasoning: str = ""


class _MetaStep(Proposal):
    reflection: str = ""
    new_prompt: str | None = Field(None, description="The whole new text, once you are sure.")


class _Update(Proposal):
    logic: str = ""
    update_prompt: bool = False
    new_prompt: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """Reflect on what went wrong, judge whether that calls for a change, then edit.

    Calls: one a reflection, one verdict, and one edit only if the verdict warrants it.

    Attributes:
        max_reflection_steps: Most rounds of reflection.
        min_reflection_steps: Fewest rounds of reflection.
        guidance: Further instructions for the reflection.
        edit_guidance: Further instructions for the edit.
    """

    name: ClassVar[str] = "gradient"
    least_calls: ClassVar[int] = 3
    max_reflection_steps: int = 5
    min_reflection_steps: int = 1
    guidance: str = ""
    edit_guidance: str = ""

    def propose(self, task: Task, budget: Budget) -> Steps[list[Candidate]]:
        """Return one candidate, or none if no change is warranted."""
        data = render(task.prompt, task.trajectories)
        notes = yield from self._reflect(data, budget)
        verdict = yield from decide(
            _Verdict, purpose="verdict", instructions=_VERDICT, data=f"{data}\n{lines(notes)}"
        )
        judged = verdict.value
        if judged is None or not judged.warrants_adjustment:
            return []
        advice = {"hypotheses": judged.hypotheses, "recommendations": judged.recommendations}
        data = f"{render(task.prompt, ())}\n{lines([advice])}"
        text = yield from _write(_with(_EDIT, self.edit_guidance), data)
        return candidates(text, judged.hypotheses, self.name, task)

    def _reflect(self, data: str, budget: Budget) -> Steps[list[dict[str, Any]]]:
        """Think in rounds, each seeing the ones before, and leave two calls for what follows."""
        notes: list[dict[str, Any]] = []
        for step in _rounds(self, budget):
            found = yield from decide(
                _Reflection,
                purpose="reflect",
                instructions=_with(_REFLECT, self.guidance),
                data=f"{data}\n{lines(notes)}",
            )
            if found.value is None:
                break
            notes.append({"thought": found.value.thought, "critique": found.value.critique})
            if found.value.done and step >= self.min_reflection_steps:
                break
        return notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Metaprompt:
    """Reflect and write the new prompt in the same call, as soon as the model is sure.

    Calls: one a reflection, and one to write the prompt if no reflection did.

    Attributes:
        max_reflection_steps: Most rounds of reflection.
        min_reflection_steps: Fewest rounds of reflection.
        guidance: Further instructions.
    """

    name: ClassVar[str] = "metaprompt"
    least_calls: ClassVar[int] = 2
    max_reflection_steps: int = 5
    min_reflection_steps: int = 1
    guidance: str = ""

    def propose(self, task: Task, budget: Budget) -> Steps[list[Candidate]]:
        """Return one candidate, or none if none was written."""
        data = render(task.prompt, task.trajectories)
        notes: list[dict[str, Any]] = []
        for step in _rounds(self, budget):
            found = yield from decide(
                _MetaStep,
                purpose="reflect",
                instructions=_with(_METAPROMPT, self.guidance),
                data=f"{data}\n{lines(notes)}",
            )
            if found.value is None:
                break
            draft = found.value.new_prompt or ""
            if draft.strip() and step >= self.min_reflection_steps:
                return candidates(draft, found.value.reflection, self.name, task)
            notes.append({"reflection": found.value.reflection, "draft": draft})
        text = yield from _write(_with(_FINISH, self.guidance), f"{data}\n{lines(notes)}")
        return candidates(text, str(notes[-1]["reflection"]) if notes else "", self.name, task)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMemoryStrategy:
    """Decide and write in one call.

    Attributes:
        guidance: Further instructions.
    """

    name: ClassVar[str] = "prompt_memory"
    least_calls: ClassVar[int] = 1
    guidance: str = ""

    def propose(self, task: Task, budget: Budget) -> Steps[list[Candidate]]:  # noqa: ARG002 - the protocol
        """Return one candidate, or none to keep the prompt."""
        found = yield from decide(
            _Update,
            purpose="prompt_memory",
            instructions=_with(_PROMPT_MEMORY, self.guidance),
            data=render(task.prompt, task.trajectories),
        )
        if found.value is None or not found.value.update_prompt:
            return []
        return candidates(found.value.new_prompt or "", found.value.logic, self.name, task)


@dataclass(frozen=True, slots=True)
class CallableStrategy:
    """A function of the user as a strategy.

    Its model calls are its own: it counts them with `budget.spend()` before each.

    Attributes:
        proposer: `proposer(prompt, trajectories, *, budget)`, plain or async; gives None, a text,
            a `Candidate`, or several of these.
    """

    proposer: Proposer
    least_calls: ClassVar[int] = 1

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.proposer, "__name__", type(self.proposer).__name__))

    def propose(self, task: Task, budget: Budget) -> Steps[list[Candidate]]:
        """Return what the function gives."""
        arguments = (task.prompt, list(task.trajectories))
        given = yield from Call(self.proposer, arguments, {"budget": budget})
        return _read(given, self.name, task)


def _rounds(strategy: Gradient | Metaprompt, budget: Budget) -> Iterator[int]:
    """Count the rounds of reflection, as long as the budget then has calls for what follows."""
    for number in range(1, strategy.max_reflection_steps + 1):
        if number > strategy.min_reflection_steps and budget.calls_left < strategy.least_calls:
            return
        yield number


def _write(instructions: str, data: str) -> Steps[str | None]:
    """Let the model write the whole new prompt; None if its answer could not be read."""
    edit = yield from decide(NewPrompt, purpose="edit", instructions=instructions, data=data)
    return edit.value.new_prompt if edit.value else None


def candidates(text: str | None, hypotheses: str, operator: str, task: Task) -> list[Candidate]:
    """Return a text as the only candidate, an empty one too: the guards refuse it and say so.

    Args:
        text: The whole new prompt; None if the model gave no answer that could be read.
        hypotheses: Why it should be better.
        operator: What made it.
        task: What it was made for.
    """
    if text is None:
        return []
    made = Candidate(text=text, hypotheses=hypotheses, operator=operator, parents=(task.text,))
    return [made]


def _read(given: object, name: str, task: Task) -> list[Candidate]:
    if given is None:
        return []
    if isinstance(given, Candidate):
        return [given]
    if isinstance(given, str):
        return [Candidate(text=given, operator=name, parents=(task.text,))]
    if isinstance(given, Iterable) and not isinstance(given, Mapping):
        return [each for one in given for each in _read(one, name, task)]
    msg = f"{name} gave a {type(given).__name__}; return texts or Candidates."
    raise TypeError(msg)


def _with(instructions: str, guidance: str) -> str:
    return f"{instructions}\n{guidance}" if guidance else instructions


def lines(rows: Iterable[dict[str, Any]]) -> str:
    """Return rows as JSON lines, without the fields that say nothing."""
    return as_lines({name: value for name, value in row.items() if value} for row in rows)
