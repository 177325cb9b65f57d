"""A running summary that lives in a graph's own state: what the summary surfaces share."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AnyMessage

from langchain_agentmem import transcripts
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Emit, Steps
from langchain_agentmem.steps.folding import (
    Folding,
    SummaryFailedError,
    fold,
    parts_of,
    summary_message,
)
from langchain_agentmem.surfaces._fail_open import fail_open
from langchain_agentmem.surfaces._recording import record
from langchain_agentmem.windows import (
    Measure,
    Size,
    Unit,
    flat,
    leading_system,
    units_of,
    with_questions,
)

if TYPE_CHECKING:
    from langchain_agentmem.memories.base import Memory

_KEYS: Final = uuid.UUID("a3f5f0de-6a2f-5c2c-9f0c-5c8f3d5f2b61")


@dataclass(frozen=True, slots=True)
class Bounded:
    """A conversation as the model is to see it.

    Attributes:
        messages: System messages, the summary, and what it does not cover.
        kept: The running summary as plain JSON: `summary`, `summarized_message_ids`,
            `last_summarized_message_id`; None if it is as it was.
        dropped: Messages that were summarized just now.
    """

    messages: list[AnyMessage]
    kept: dict[str, Any] | None
    dropped: list[AnyMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSummary:
    """When and how to summarize.

    Attributes:
        name: Who does it, for events.
        clauses: The trigger.
        keep: What stays.
        folding: How to fold.
    """

    name: str
    clauses: Sequence[Mapping[str, float]]
    keep: Size
    folding: Folding

    def bound(
        self,
        messages: Sequence[AnyMessage],
        kept: Mapping[str, Any],
        *,
        overhead: int = 0,
        window: int | None = None,
    ) -> Steps[Bounded]:
        """Return what to show, summarizing first if it is time; a failure changes nothing.

        Args:
            messages: The conversation.
            kept: The running summary so far; empty before the first one.
            overhead: Tokens that the request has besides the messages.
            window: Tokens of the model's context.
        """
        system, said = leading_system(_with_ids(messages))
        tail = _not_summarized(said, kept)
        text = str(kept.get("summary", ""))
        overflow = yield from self._overflowing(text, tail, overhead, window)
        gone: list[AnyMessage] = []
        if overflow:
            text, taken = yield from self._fold(text, overflow)
            gone = flat(taken)
        if gone:
            kept = _extended(kept, text, gone)
            tail = _not_summarized(said, kept)
        summary = [summary_message(text)] if text else []
        return Bounded([*system, *summary, *tail], dict(kept) if gone else None, gone)

    def _overflowing(
        self, summary: str, tail: Sequence[AnyMessage], overhead: int, window: int | None
    ) -> Steps[list[Unit]]:
        """Return the units that are to be summarized now."""
        tokens = self.folding.tokens
        whole = Measure(lambda messages: tokens(messages) + overhead, window)
        shown = [*([summary_message(summary)] if summary else []), *tail]
        if not whole.exceeds(shown, self.clauses):
            return []
        units = units_of(tail)
        split = Measure(tokens, window).keep(units, self.keep)
        if split.over or not split.evicted:
            yield from Emit("over_budget", {"name": self.name})
        return with_questions(split.evicted, units)

    def _fold(self, text: str, units: Sequence[Unit]) -> Steps[tuple[str, list[Unit]]]:
        """Fold units into the summary; what could not be folded is not taken."""
        parts = parts_of(units)
        done, taken = text, 0
        while parts:
            try:
                text, parts = yield from fold(text, parts, self.folding)
            except SummaryFailedError as failure:
                yield from Emit("summary_failed", {"name": self.name, "reason": str(failure)})
                break
            if (complete := len(units) - sum(part.completes for part in parts)) > taken:
                done, taken = text, complete
        return done, list(units[:taken])


def offload(memory: Memory | None, dropped: Sequence[AnyMessage], name: str) -> None:
    """Remember what left the view, if that is wanted; it fails open, the state has it all."""
    if memory is not None and dropped:
        run(fail_open(name, "record", record(memory, dropped)), memory.environment())


async def aoffload(memory: Memory | None, dropped: Sequence[AnyMessage], name: str) -> None:
    """Remember what left the view; the async twin of `offload`."""
    if memory is not None and dropped:
        await arun(fail_open(name, "record", record(memory, dropped)), memory.environment())


def _extended(kept: Mapping[str, Any], summary: str, gone: Sequence[AnyMessage]) -> dict[str, Any]:
    ids = [str(each.id) for each in gone]
    before: Iterable[str] = kept.get("summarized_message_ids", ())
    return {
        "summary": summary,
        "summarized_message_ids": list(dict.fromkeys([*before, *ids])),
        "last_summarized_message_id": ids[-1],
    }


def _not_summarized(said: Sequence[AnyMessage], kept: Mapping[str, Any]) -> list[AnyMessage]:
    """Return what the summary does not cover, with the question of an open turn."""
    covered = set(kept.get("summarized_message_ids", ()))
    tail = [each for each in said if str(each.id) not in covered]
    if any(each.type == "human" for each in tail):
        return tail
    return [*[each for each in said if each.type == "human"][-1:], *tail]


def _with_ids(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return messages of which each has an id; a missing one follows from place and content."""
    return [
        each if each.id else each.model_copy(update={"id": _made_id(position, each)})
        for position, each in enumerate(messages)
    ]


def _made_id(position: int, message: AnyMessage) -> str:
    return str(uuid.uuid5(_KEYS, f"{position}\x1f{message.type}\x1f{transcripts.said(message)}"))
