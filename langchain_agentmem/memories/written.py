"""`WrittenMemory`: what memories whose content a model writes have in common."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from langchain_core.messages import AnyMessage
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from langchain_agentmem.items import Cause, MemoryOperation, StoredMemory
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.memories.state import RecallState
from langchain_agentmem.messages import last_human_text
from langchain_agentmem.rendering import render_line, render_memories
from langchain_agentmem.retrieval.budget import count_tokens, fit
from langchain_agentmem.steps import arms, cursor, journal, turns
from langchain_agentmem.steps.effects import Emit, HasModel, Put, Ref, Steps
from langchain_agentmem.steps.extraction import Decision
from langchain_agentmem.steps.flow import END, Flow, Step
from langchain_agentmem.steps.intake import Redact, hear, redacted, turns_of
from langchain_agentmem.steps.recall import moment_of
from langchain_agentmem.steps.turns import Log

logger = logging.getLogger(__name__)


class WriteState(TypedDict, total=False):
    """State of a remember graph, to be extended by each architecture."""

    messages: Annotated[list[AnyMessage], add_messages]
    turns: Annotated[list[dict[str, Any]], UntrackedValue]
    is_written: Annotated[bool, UntrackedValue]
    model_ready: Annotated[bool, UntrackedValue]
    usage: Annotated[dict[str, Any], UntrackedValue]
    memory_operations: Annotated[list[dict[str, Any]], UntrackedValue]


class WrittenMemory(Memory):
    """Base of memories whose content a chat model writes.

    Subclasses write through `apply`. A background run that is begun again after its writes goes on
    at the step `after_apply`.

    Without a model the turns are stored word for word, `no_model_configured` is emitted, and
    nothing else is done. Where a reply cannot be used even after its repair, they are too.

    Args:
        redact: Called with every text before it is shown to the model or stored; returns what may
            be kept of it, None for nothing.
        **given: As for `Memory`.
    """

    after_apply: ClassVar[str] = END

    def __init__(self, *, redact: Redact | None = None, **given: Any) -> None:  # noqa: ANN401 - Memory's own
        super().__init__(**given)
        self.redact = redact

    def recall_flow(self) -> Flow:
        """Return the steps `search` and `assemble`; no model call."""
        return Flow(
            Step("search", self._search), Step("assemble", self._assemble), state=RecallState
        )

    @abstractmethod
    def _search(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Find `memories` for a query."""

    @abstractmethod
    def write_steps(self) -> tuple[Step, ...]:
        """Return the steps from `turns` to `memory_operations`, in the paper's order."""

    def _flow(self, state: type) -> Flow:
        """Return `listen`, then the own steps, or `keep_verbatim` without a model."""
        own = self.write_steps()
        first = own[0].name

        def route(update: Mapping[str, Any]) -> str:
            if not update["turns"]:
                return END
            if update["is_written"]:
                return self.after_apply
            return first if update["model_ready"] else "keep_verbatim"

        to = tuple(dict.fromkeys([first, "keep_verbatim", self.after_apply, END]))
        return Flow(
            Step("listen", self._listen, route=route, to=to),
            Step("keep_verbatim", self._keep_verbatim, route=lambda _: END, to=(END,)),
            *own,
            state=state,
        )

    def apply(
        self,
        operations: Sequence[MemoryOperation],
        cause: Cause,
        *,
        also: Sequence[Put] = (),
        expect: Mapping[Ref, int | None] | None = None,
    ) -> Steps[list[MemoryOperation]]:
        """Write operations, their journal, and for a background run that they are written.

        Raises:
            ConflictError: One of the memories was changed since it was read; nothing was written.
        """
        puts, unmarked = yield from cursor.marks((yield from self.scope()), cause.message_ids)
        known = {**(expect or {}), **unmarked}
        return (yield from journal.apply(operations, also=[*also, *puts], expect=known))

    def _needs_model(self) -> Steps[bool]:
        """Tell whether this call needs a model; an architecture may have modes that do not."""
        yield from ()
        return True

    def _listen(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Take what may be remembered of the messages and was not written by this very run."""
        said = yield from hear(state.get("messages", []), self.redact)
        new = yield from cursor.unwritten((yield from self.scope()), said)
        ready = (yield from HasModel()) or not (yield from self._needs_model())
        return {
            "turns": [turn.to_dict() for turn in new or said],
            "is_written": not new,
            "model_ready": ready,
            "memory_operations": [],
        }

    def _keep_verbatim(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Store the turns word for word, since there is no model to write anything."""
        yield from Emit("no_model_configured", {"architecture": self.architecture})
        operations = yield from turns.store_turns((yield from self.log()), turns_of(state["turns"]))
        return {"memory_operations": [op.to_dict() for op in operations]}

    def keep_unread(
        self, state: Mapping[str, Any], decision: Decision[Any]
    ) -> Steps[list[dict[str, Any]]]:
        """Store the turns word for word, since no usable reply came even after the repair.

        Returns:
            The reported operation of the reply, and one for each turn that was kept.
        """
        return [*unusable(decision), *(yield from self.keep_turns(state))]

    def keep_turns(self, state: Mapping[str, Any]) -> Steps[list[dict[str, Any]]]:
        """Store the turns word for word, since nothing that the model wrote of them can be."""
        logger.warning("A reply of the model cannot be used; the turn is kept word for word.")
        kept = yield from turns.store_turns((yield from self.log()), turns_of(state["turns"]))
        yield from Emit("kept_verbatim", {"turns": len(kept)})
        return [op.to_dict() for op in kept]

    def _assemble(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Cut to the token budget and render."""
        params = yield from self.settings()
        found = [StoredMemory.from_dict(each) for each in state["memories"]]
        return assembled(found, params.max_tokens)

    def log(self) -> Steps[Log]:
        """Return where turns are kept word for word."""
        return Log((*(yield from self.scope()), self.architecture))

    def home(self, collection: str) -> Steps[tuple[str, ...]]:
        """Return the namespace of one of the memory's own collections."""
        return (*(yield from self.scope()), self.architecture, collection)

    def homes(self, level: tuple[str, ...], *collections: str) -> list[tuple[str, ...]]:
        """Return what is searched of one level: collections, turns kept verbatim, what tools put.

        Args:
            level: Namespace of the level.
            *collections: The memory's own, the first of them first.
        """
        own = (*level, self.architecture)
        return [*((*own, name) for name in (*collections, "turns")), level]

    def best_of_levels(
        self, state: Mapping[str, Any], *collections: str, query: str, limit: int
    ) -> Steps[list[StoredMemory]]:
        """Return the most similar memories of every level the call may read, best first."""
        moment = yield from moment_of(state)
        found: list[StoredMemory] = []
        for level in (yield from self.levels()):
            for home in self.homes(level, *collections):
                found += yield from arms.best(home, query, limit, moment)
        return arms.ranked(found)[:limit]

    def clean(self, text: str) -> str:
        """Return what may be stored of a text a model wrote."""
        return redacted(text.strip(), self.redact).strip()


def query_of(state: Mapping[str, Any]) -> str:
    """Return what a recall asks: its query, else the user's last message."""
    return str(state.get("query") or last_human_text(state.get("messages", [])))


def limit_of(state: Mapping[str, Any], default: int) -> int:
    """Return how many memories a recall may return."""
    given = state.get("limit")
    return default if given is None else int(given)


def unusable(decision: Decision[Any]) -> list[dict[str, Any]]:
    """Return the reported operation of a reply that held nothing usable, even when repaired."""
    reason = f"the model's reply cannot be used: {' '.join(decision.problems)}"
    op = MemoryOperation(event="NOOP", namespace=(), key="", cause=decision.cause())
    return [op.rejected(reason).to_dict()]


def assembled(found: list[StoredMemory], max_tokens: int) -> dict[str, Any]:
    """Return the state update of recalled memories: cut to the budget, and rendered."""
    kept = fit(found, max_tokens, text=render_line)
    text = render_memories(kept)
    return {
        "memories": [each.to_dict() for each in kept],
        "memory_context": text,
        "tokens": count_tokens(text),
    }
