"""MemGPT's queue: the messages in the prompt, headed by a recursive summary of those before them.

Every message lies in recall storage from its arrival; the queue is a bound in their order. So a
flush moves one number, together with the summary, and loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AnyMessage

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.scopes import reserved
from langchain_agentmem.steps import archive, journal
from langchain_agentmem.steps.archive import Archive, Archived
from langchain_agentmem.steps.contention import insist
from langchain_agentmem.steps.effects import Emit, Get, HasModel, Put, Ref, Steps, Write
from langchain_agentmem.steps.folding import Folding, SummaryFailedError, fold, parts_of
from langchain_agentmem.windows import TokenCounter, Unit, calls_tools

if TYPE_CHECKING:
    from langchain_agentmem.memories.memgpt import MemGPTParameters

_KEY: Final = "queue"
_SUMMARY: Final = "summary"
_UNSUMMARIZED: Final = "[Not summarized: "
_GROWTH: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The stored record of a queue.

    Attributes:
        bound: Number of the first message in the queue.
        warned: Whether the model was warned since the last flush.
        due: Whether it has yet to see the warning.
        turns: How many messages of the user have arrived.
        version: Version of the record; 0 before the first one.
    """

    bound: int = 0
    warned: bool = False
    due: bool = False
    turns: int = 0
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The queue of one scope.

    Attributes:
        recall: Where all messages lie.
        tokens: Counts the tokens of messages.
        window: Tokens of the model's context.
        params: The parameters of the call.
    """

    recall: Archive
    tokens: TokenCounter
    window: int
    params: MemGPTParameters

    @property
    def limit(self) -> float:
        """The most tokens of a prompt."""
        return self.params.flush_at * self.window

    @property
    def _ref(self) -> Ref:
        return reserved("counters", (*self.recall.root, "queue")), _KEY

    @property
    def _summary_ref(self) -> Ref:
        return (*self.recall.root, "summary"), _SUMMARY

    def mark(self) -> Steps[Mark]:
        """Return the stored record."""
        (found,) = yield from Get([self._ref])
        if found is None or not isinstance(found.content, dict):
            return Mark()
        return Mark(**found.content, version=found.item.version)

    def summary(self) -> Steps[StoredMemory | None]:
        """Return the recursive summary; None before the first flush."""
        (found,) = yield from Get([self._summary_ref])
        return found

    def take_in(self, messages: Sequence[AnyMessage]) -> Steps[tuple[list[MemoryOperation], range]]:
        """Write messages to recall storage; return the operations, and the numbers of new turns."""
        said = [each for each in messages if each.type != "system"]
        operations = yield from archive.append(self.recall, said)
        added = [op.after for op in operations if op.event == "ADD" and op.after]
        count = sum(archive.role_of(item) == "human" for item in added)
        mark = yield from self._changed(turns=count)
        return operations, range(mark.turns - count + 1, mark.turns + 1)

    def warn(self) -> Steps[None]:
        """Note that the model is to be warned once, and not again before the next flush."""
        mark = yield from self.mark()
        if not mark.warned:
            yield from self._changed(warned=True, due=True)
            yield from Emit("memory_pressure", {"window": self.window})

    def told(self) -> Steps[None]:
        """Note that the model has seen the warning."""
        yield from self._changed(due=False)

    def messages(self) -> Steps[list[Archived]]:
        """Return the queue, oldest first; the question of an open turn is always in it."""
        mark = yield from self.mark()
        end = yield from archive.size(self.recall)
        found = yield from archive.load(self.recall, before=end, down_to=mark.bound)
        if found and not any(each.message.type == "human" for each in found):
            found = [*(yield from archive.last_question(self.recall, mark.bound)), *found]
        return found

    def flush(self, tokens: int) -> Steps[list[MemoryOperation] | None]:
        """Evict the oldest messages and take them into the recursive summary.

        Args:
            tokens: Tokens of the whole prompt.

        Returns:
            The applied operations; None where nothing can be evicted.
        """
        mark = yield from self.mark()
        queue = yield from self.messages()
        evicted = self.oldest([each for each in queue if each.number >= mark.bound], tokens)
        if not evicted:
            return None
        asked = [each for each in queue if each.number < mark.bound]
        old = yield from self.summary()
        text = yield from self._summarized(old.text if old else "", [*asked, *evicted])
        moved = replace(mark, bound=evicted[-1].number + 1, warned=False, due=False)
        op = self._operation(old, text, evicted)
        try:
            return (
                yield from journal.apply(
                    [op], also=[self._put(moved)], expect={self._ref: mark.version or None}
                )
            )
        except ConflictError:
            yield from Emit("flush_postponed", {"reason": "another writer was quicker"})
            return []

    def oldest(self, queue: Sequence[Archived], tokens: int) -> list[Archived]:
        """Return the messages to evict: whole groups, until enough of the tokens are gone.

        A group is a message of the user, or one of the assistant with the results of its calls.
        The last `keep_last` messages, the user's last one, and calls whose results the model has
        not seen stay.
        """
        groups = _groups(queue)
        free = groups[: _first_kept(groups, self.params.keep_last)]
        if free and all(each.message.type != "human" for each in _flat(groups[len(free) :])):
            free = free[: _behind_question(free)]
        total = self._size(queue)
        share = self.params.evict_fraction
        while True:
            gone = self._until(free, share * total)
            if (
                share >= 1
                or len(gone) == len(free)
                or tokens - self._size(_flat(gone)) < self.limit
            ):
                return _flat(gone)
            share += _GROWTH

    def _until(self, groups: Sequence[list[Archived]], least: float) -> list[list[Archived]]:
        """Return the oldest groups that measure at least so many tokens together."""
        gone: list[list[Archived]] = []
        for group in groups:
            if gone and self._size(_flat(gone)) >= least:
                break
            gone.append(group)
        return gone

    def _size(self, messages: Sequence[Archived]) -> int:
        return self.tokens([each.message for each in messages])

    def _summarized(self, old: str, evicted: Sequence[Archived]) -> Steps[str]:
        """Return the new summary; without one, the old one and where to find the rest."""
        folding = Folding(
            max_summary_tokens=self.params.max_summary_tokens,
            budget=self.params.summarizer_budget,
        )
        parts, text = parts_of([Unit((each.message,), 0) for each in evicted]), old
        if not (yield from HasModel()):
            yield from Emit("no_model_configured", {"purpose": "summarize"})
            return _listing(old, evicted)
        while parts:
            try:
                text, parts = yield from fold(text, parts, folding)
            except SummaryFailedError as failure:
                yield from Emit("summary_failed", {"reason": str(failure)})
                return _listing(text, evicted)
        return text

    def _operation(
        self, old: StoredMemory | None, text: str, evicted: Sequence[Archived]
    ) -> MemoryOperation:
        last = evicted[-1]
        cause = Cause(message_ids=tuple(str(each.message.id) for each in evicted))
        item = MemoryItem(
            kind="summary",
            content=text,
            metadata={"_memgpt": {"last_evicted": last.stored.key}},
            observed_at=last.stored.observed_at,
            source_message_ids=cause.message_ids,
        )
        return journal.successor(self._summary_ref, old.item if old else None, item, cause)

    def drop(self, keys: Sequence[str]) -> Steps[bool]:
        """Take erased messages out; erase the summary, and say so, if it covered one of them."""
        mark = yield from self.mark()
        numbers = yield from archive.drop(self.recall, keys)
        covered = any(number < mark.bound for number in numbers)
        if covered:
            yield from journal.erase([self._summary_ref], cause=Cause(surface="forget"))
        return covered

    def _changed(
        self, *, turns: int = 0, warned: bool | None = None, due: bool | None = None
    ) -> Steps[Mark]:
        """Change the record; others' changes of other fields are kept."""

        def change() -> Steps[Mark]:
            mark = yield from self.mark()
            new = replace(
                mark,
                turns=mark.turns + turns,
                warned=mark.warned if warned is None else warned,
                due=mark.due if due is None else due,
            )
            if new != mark:
                yield from Write([self._put(new)], {self._ref: mark.version or None})
            return new

        return (yield from insist(change))

    def _put(self, mark: Mark) -> Put:
        content: dict[str, Any] = {
            "bound": mark.bound,
            "warned": mark.warned,
            "due": mark.due,
            "turns": mark.turns,
        }
        item = MemoryItem(content=content, kind="record", version=mark.version + 1)
        return Put(*self._ref, item.to_value())


def _groups(queue: Sequence[Archived]) -> list[list[Archived]]:
    groups: list[list[Archived]] = []
    for each in queue:
        if each.message.type in ("human", "ai") or not groups:
            groups.append([])
        groups[-1].append(each)
    return groups


def _first_kept(groups: Sequence[list[Archived]], keep_last: int) -> int:
    """Return the place of the first group that stays."""
    kept, last = 0, len(groups)
    while last > 0 and kept < keep_last:
        last -= 1
        kept += len(groups[last])
    if groups and calls_tools(groups[-1][0].message):
        last = min(last, len(groups) - 1)
    return last


def _behind_question(groups: Sequence[list[Archived]]) -> int:
    """Return how many groups leave; a last question alone, which would be shown again, does not."""
    return len(groups) - (groups[-1][0].message.type == "human")


def _flat(groups: Sequence[list[Archived]]) -> list[Archived]:
    return [each for group in groups for each in group]


def _listing(summary: str, evicted: Sequence[Archived]) -> str:
    """Return a summary with a plain line about what it does not cover."""
    kept = [line for line in summary.splitlines() if not line.startswith(_UNSUMMARIZED)]
    at = evicted[-1].stored.observed_at
    until = f"up to {at:%Y-%m-%d %H:%M} " if at else ""
    line = (
        f"{_UNSUMMARIZED}messages {until}were moved out of view; conversation_search finds them.]"
    )
    return "\n".join([*kept, line])
