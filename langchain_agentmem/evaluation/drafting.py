"""Questions about the user's own conversations, drafted by a model and marked as drafted.

A drafted question is about the few turns it was drafted from, so it favors systems that find words;
read the questions before you trust the figures. The file they are kept in can be edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pydantic import Field

from langchain_agentmem.evaluation.data import Dataset, Question, Turn
from langchain_agentmem.steps import extraction
from langchain_agentmem.steps.drivers import run
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.steps.extraction import Decision, Proposal

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

DRAFT_PROMPT: Final = """You write test questions for the memory of an assistant. From the turns \
shown, write one question that somebody could ask months later and that only these turns answer.
- Name who it is about; never say "this conversation" or "the text". Use other words than the \
turns where you can.
- `answer`: a few words, no sentence. `evidence`: the numbers of the turns that are needed.
- Write in the language of the turns. If they say nothing worth asking, leave `question` empty."""
_WINDOW: Final = 6


class Draft(Proposal):
    """One question about a few turns."""

    question: str
    answer: str = ""
    evidence: list[int] = Field(default_factory=list, description="numbers of turns")


def draft(model: BaseChatModel, dataset: Dataset, count: int) -> dict[str, list[Question]]:
    """Return up to `count` questions about each conversation.

    The windows of turns they are drafted from lie evenly over the conversation. A draft without a
    usable question or evidence is left out.

    Args:
        model: The chat model.
        dataset: The conversations.
        count: Most questions a conversation.
    """
    env = Environment(model=model)
    drafted: dict[str, list[Question]] = {}
    for scope in dataset.scopes:
        found = []
        for window in _windows(scope.turns, count):
            data = "\n".join(
                f"[{at}] {turn.observed_at or ''} {turn.speaker or turn.role}: {turn.content}"
                for at, turn in enumerate(window)
            )
            decision: Decision[Draft] = run(
                extraction.decide(Draft, purpose="draft", instructions=DRAFT_PROMPT, data=data), env
            )
            question = _question(decision.value, window)
            if question is not None:
                found.append(question)
        drafted[scope.name] = found
    return drafted


def _windows(turns: Sequence[Turn], count: int) -> list[Sequence[Turn]]:
    """Return windows that lie evenly over the turns."""
    room = max(len(turns) - _WINDOW, 0)
    starts = dict.fromkeys(round(room * at / max(count - 1, 1)) for at in range(count))
    return [turns[start : start + _WINDOW] for start in starts]


def _question(drafted: Draft | None, window: Sequence[Turn]) -> Question | None:
    if drafted is None or not drafted.question.strip():
        return None
    evidence = {window[at].key for at in drafted.evidence if 0 <= at < len(window)}
    if not evidence:
        return None
    return Question(
        text=drafted.question.strip(),
        answers=(drafted.answer.strip(),) if drafted.answer.strip() else (),
        evidence=frozenset(evidence),
        category="drafted",
        drafted=True,
    )
