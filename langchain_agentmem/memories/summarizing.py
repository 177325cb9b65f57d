"""`SummarizingMemory`: what short-term memories that summarize have in common.

A summary and the message it reaches to, its *watermark*, are written together: a crash, a failing
summarizer or a parallel writer never leaves a message that is in neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.memories.short_term_base import (
    Conversation,
    ShortTermMemory,
    ShortTermParameters,
    ShortTermRememberState,
    Told,
)
from langchain_agentmem.messages import to_messages
from langchain_agentmem.parameters import described
from langchain_agentmem.steps import archive, journal
from langchain_agentmem.steps.archive import Archive, Archived
from langchain_agentmem.steps.effects import Emit, Get, HasModel, Ref, Steps
from langchain_agentmem.steps.flow import Flow, Step
from langchain_agentmem.steps.folding import (
    Folding,
    SummaryFailedError,
    check_budget,
    fold,
    parts_of,
    summary_message,
)
from langchain_agentmem.steps.recall import Moment
from langchain_agentmem.windows import (
    Split,
    Unit,
    leading_system,
    newest_within,
    units_of,
    with_questions,
)

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

_KEY: Final = "summary"
_OWN: Final = "_summary"
_MAX_ATTEMPTS: Final = 20


@dataclass(frozen=True, kw_only=True)
class SummarizingParameters(ShortTermParameters):
    """Parameters of memories with a summary.

    Attributes:
        max_summary_tokens: Most tokens of the summary.
        summarizer_budget: Most tokens of one input of the summarizer.
        commit_each: Commit after each batch, so that a crash keeps the progress made.
    """

    max_summary_tokens: int = described(256, "Most tokens of the summary.")
    summarizer_budget: int = described(4000, "Most tokens of one input of the summarizer.")
    commit_each: bool = described(default=True, description="Commit the summary after each batch.")

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        super().__post_init__()
        self.require(least={"max_summary_tokens": 1})
        check_budget(
            Folding(max_summary_tokens=self.max_summary_tokens, budget=self.summarizer_budget)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """How far a conversation is summarized.

    Attributes:
        text: The running summary; empty before the first one.
        bound: Number of the first message that is not covered.
        watermark: Id of the last message that is covered.
        covered: How many messages are covered.
        stored: The stored summary; None before the first one.
    """

    text: str = ""
    bound: int = 0
    watermark: str | None = None
    covered: int = 0
    stored: StoredMemory | None = None

    @classmethod
    def of(cls, stored: StoredMemory | None) -> Self:
        """Read a stored summary."""
        if stored is None:
            return cls()
        own = stored.metadata[_OWN]
        return cls(
            text=stored.text,
            bound=int(own["number"]) + 1,
            watermark=own["watermark"],
            covered=int(own["covered"]),
            stored=stored,
        )


class SummarizingMemory(ShortTermMemory):
    """Base of the memories with a running summary."""

    remember_asks: ClassVar[bool] = True
    Parameters: ClassVar[type[Any]] = SummarizingParameters

    # --- what a memory decides -----------------------------------------------------------------

    def overflow(self, told: Told, params: Any) -> list[Unit]:  # noqa: ANN401 - as `select`
        """Return the units that are to be summarized now, oldest first.

        Args:
            told: What the summary does not cover yet.
            params: The parameters of the call.
        """
        raise NotImplementedError

    def cap(self, params: Any) -> int | None:  # noqa: ANN401 - the class's own parameters
        """Return the most tokens of the view; None for no limit."""
        return self.measure(params).window

    def select(self, told: Told, params: Any) -> Split:  # noqa: ANN401 - the class's own parameters
        """Keep all that is not summarized yet, or as much of the newest as the cap allows."""
        cap = self.cap(params)
        if cap is None:
            return Split([], list(told.units))
        return newest_within(told.units, cap - self.token_counter(told.fixed), self.token_counter)

    # --- recall ----------------------------------------------------------------------------------

    def running(self, where: Archive) -> Steps[Running]:
        """Return the running summary of the call's conversation."""
        (found,) = yield from Get([_ref(where)])
        return Running.of(found)

    def _conversation(
        self,
        where: Archive,
        messages: Sequence[AnyMessage],
        params: Any,  # noqa: ANN401, ARG002 - the base decides by them what to read
        moment: Moment,
    ) -> Steps[Conversation]:
        """Return the summary and what it does not cover, with the question of an open turn."""
        # A summary has no past: at an earlier time the conversation itself is shown instead.
        summary = Running() if moment.past else (yield from self.running(where))
        system, given = leading_system(messages)
        given = yield from archive.with_ids(where, given)
        before = yield from self._before(where, given)
        fresh = yield from _uncovered(where, given, summary)
        own = {each.id for each in given}
        loaded = yield from archive.load(where, before=before, down_to=summary.bound)
        stored = [
            each for each in loaded if each.message.id not in own and moment.shows(each.stored)
        ]
        tail = [*(each.message for each in stored), *fresh]
        if tail and not any(each.type == "human" for each in tail):
            asked = [each for each in given if each.type == "human"][-1:]
            fresh = [*asked, *fresh]
            if not asked:
                end = min(before, summary.bound)
                stored = [*(yield from archive.last_question(where, end)), *stored]
        return Conversation(
            system=system,
            stored=stored,
            given=fresh,
            summary=summary_message(summary.text) if summary.text else None,
            summary_item=summary.stored,
        )

    # --- remember --------------------------------------------------------------------------------

    def remember_flow(self) -> Flow:
        """Return the steps `archive`, `summarize` and `release`."""
        return Flow(
            Step("archive", self._archive),
            Step("summarize", self._summarize),
            Step("release", self._release),
            state=self.remember_state,
        )

    def consolidate_flow(self) -> Flow:
        """Return the step `summarize`: catches up where a summary had failed or was erased."""
        return Flow(Step("summarize", self._summarize), state=ShortTermRememberState)

    def _summarize(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Fold what overflows into the summary; when it fails, everything stays as it was."""
        params: SummarizingParameters = yield from self.settings()
        where = yield from self.archive()
        system, _ = leading_system(to_messages(state.get("messages", [])))
        done = list(state.get("memory_operations", []))
        for _ in range(_MAX_ATTEMPTS):
            try:
                operations = yield from self._catch_up(where, system, params)
            except ConflictError:
                continue
            return {"memory_operations": [*done, *(op.to_dict() for op in operations)]}
        yield from Emit("summary_postponed", {"reason": "other writers were quicker"})
        return {"memory_operations": done}

    def _catch_up(
        self,
        where: Archive,
        system: Sequence[AnyMessage],
        params: Any,  # noqa: ANN401 - the class's own parameters
    ) -> Steps[list[MemoryOperation]]:
        """Summarize what overflows now, batch by batch.

        Raises:
            ConflictError: Another writer was quicker; what was committed before stands.
        """
        summary = yield from self.running(where)
        fixed = [*system, *([summary_message(summary.text)] if summary.text else [])]
        pending, batches = yield from self._overflowing(where, summary, fixed, params)
        if not pending:
            return []
        if not (yield from HasModel()):
            yield from Emit("no_model_configured", {"purpose": "summarize"})
            return []
        return (yield from self._fold(where, summary, pending, batches, params))

    def _overflowing(
        self,
        where: Archive,
        summary: Running,
        fixed: Sequence[AnyMessage],
        params: Any,  # noqa: ANN401 - the class's own parameters
    ) -> Steps[tuple[list[Unit], list[list[Archived]]]]:
        """Return the units that are to be summarized now, and each as it is archived."""
        count = yield from archive.size(where)
        tail = yield from archive.load(where, before=count, down_to=summary.bound)
        units = units_of([each.message for each in tail])
        pending = with_questions(self.overflow(Told(units, fixed), params), units)
        by_id = {each.message.id: each for each in tail}
        return pending, [[by_id[each.id] for each in unit.messages] for unit in pending]

    def _fold(
        self,
        where: Archive,
        summary: Running,
        pending: Sequence[Unit],
        archived: Sequence[Sequence[Archived]],
        params: SummarizingParameters,
    ) -> Steps[list[MemoryOperation]]:
        folding = Folding(
            max_summary_tokens=params.max_summary_tokens,
            budget=params.summarizer_budget,
            tokens=self.token_counter,
        )
        parts = parts_of(pending)
        text, committed, operations = summary.text, 0, []
        while parts:
            try:
                text, parts = yield from fold(text, parts, folding)
            except SummaryFailedError as failure:
                yield from Emit("summary_failed", {"reason": str(failure)})
                break
            taken = len(pending) - sum(part.completes for part in parts)
            if taken > committed and (params.commit_each or not parts):
                covers = [each for unit in archived[committed:taken] for each in unit]
                op = yield from _commit(where, summary, text, covers)
                operations.append(op)
                summary = yield from self.running(where)
                committed = taken
        return operations

    def on_erased(self, erased: Sequence[MemoryOperation]) -> Steps[None]:
        """Hide a summary of erased messages at once; the next turn makes it anew."""
        where = yield from self.archive()
        summary = yield from self.running(where)
        gone = [op.key for op in erased if op.namespace == where.home]
        numbers = yield from archive.drop(where, gone)
        if any(number < summary.bound for number in numbers):
            yield from journal.erase([_ref(where)], cause=Cause(surface="forget"))
            yield from Emit("summary_erased", {"reason": "it covered an erased message"})


def _ref(where: Archive) -> Ref:
    return (*where.root, "summary"), _KEY


def _commit(
    where: Archive, summary: Running, text: str, covers: Sequence[Archived]
) -> Steps[MemoryOperation]:
    """Write the summary with its new watermark, if nobody changed it or what it covers."""
    last = covers[-1]
    own = {
        "watermark": last.message.id,
        "number": last.number,
        "covered": summary.covered + len(covers),
    }
    before = summary.stored.item if summary.stored else None
    base = before or MemoryItem(content="", kind="summary", version=0)
    ids = tuple(str(each.message.id) for each in covers)
    namespace, key = _ref(where)
    op = MemoryOperation(
        event="UPDATE" if before else "ADD",
        namespace=namespace,
        key=key,
        before=before,
        after=replace(
            base,
            content=text,
            metadata={_OWN: own},
            version=base.version + 1,
            source_message_ids=ids,
            observed_at=last.stored.observed_at,
        ),
        cause=Cause(message_ids=ids),
    )
    expect: dict[Ref, int | None] = {
        (where.home, each.stored.key): each.stored.item.version for each in covers
    }
    (applied,) = yield from journal.apply([op], expect=expect)
    return applied


def _uncovered(
    where: Archive, given: Sequence[AnyMessage], summary: Running
) -> Steps[list[AnyMessage]]:
    """Return the given messages that the summary does not cover."""
    ids = [each.id for each in given]
    if summary.watermark in ids:
        return list(given[ids.index(summary.watermark) + 1 :])
    if not given or not summary.bound:
        return list(given)
    found = yield from Get([(where.home, where.key(str(each))) for each in ids])
    return [
        message
        for message, stored in zip(given, found, strict=True)
        if stored is None or archive.number_in(stored) >= summary.bound
    ]
