"""`WorkingMemory`: what a conversation has recalled stays at hand for its next turns.

Only references are kept, never texts: whatever is shown was read a moment ago, so that a changed
memory is shown as it is now and a forgotten one is gone at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from langchain_agentmem.errors import ConflictError, StorageError
from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.memories.changes import One
from langchain_agentmem.memories.forgetting import Everything, Selector
from langchain_agentmem.memories.state import RecallState
from langchain_agentmem.memories.written import assembled, query_of
from langchain_agentmem.parameters import Parameters, described
from langchain_agentmem.scopes import NamespaceTemplate, reserved
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.effects import Emit, Get, Put, Ref, Resolve, Setting, Steps, Write
from langchain_agentmem.steps.flow import Flow, Step
from langchain_agentmem.steps.recall import moment_of

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_KEY: Final = "set"
_THREAD: Final = NamespaceTemplate(("thread-{thread_id}",))
_NO_THREAD: Final = ("no-thread",)


@dataclass(frozen=True, kw_only=True)
class WorkingParameters(Parameters):
    """Parameters of `WorkingMemory`.

    Attributes:
        max_items: Most memories that are kept, and recalled.
        max_tokens: Most tokens of the recalled text.
        decay: What is left of a memory's score after each turn that did not recall it again.
    """

    max_items: int = described(20, "Most memories that are kept.")
    max_tokens: int = described(1000, "Most tokens of the recalled text.")
    decay: float = described(0.8, "What is left of a score after a turn without recall.")

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        self.require(least={"max_items": 1, "max_tokens": 1, "decay": 0})


@dataclass(frozen=True, slots=True)
class Held:
    """A memory at hand.

    Attributes:
        ref: Where it lies.
        score: Its score when it was last recalled, relative to the best of that recall.
        used: The turn in which it was last recalled.
    """

    ref: Ref
    score: float
    used: int


class WorkingMemory(Memory):
    """A long-term memory whose recalled items stay at hand for the rest of the conversation.

    Recall asks the long-term memory and adds what earlier turns of the thread recalled. A memory
    stays while it is recalled again; of the others, those with the least product of score and
    recency leave first. Remembering, consolidating and forgetting are the long-term memory's own.

    Args:
        memory: The long-term memory; its store, model, clock and scope are used.
        preset: Named set of parameters.
        **parameters: See `WorkingParameters`.

    Example:
        ```python
        memory = WorkingMemory(RAGMemory(store=store), max_items=10)
        agent = create_agent(model, middleware=[AgentMemoryMiddleware(memory)])
        ```
    """

    architecture: ClassVar[str] = "working"
    Parameters: ClassVar[type[Parameters]] = WorkingParameters

    def __init__(
        self,
        memory: Memory,
        *,
        preset: str = "default",
        **parameters: Any,  # noqa: ANN401 - checked against the architecture's own fields
    ) -> None:
        super().__init__(
            model=memory.model,
            namespace=memory.namespace,
            read_namespaces=memory.read_namespaces,
            store=memory.store,
            embeddings=memory.embeddings,
            clock=memory.clock,
            rng=memory.rng,
            preset=preset,
            **parameters,
        )
        self.memory = memory

    @property
    def remember_asks(self) -> bool:  # type: ignore[override]  # as the long-term memory's
        """Whether the long-term memory's `remember` asks the chat model."""
        return self.memory.remember_asks

    def recall_flow(self) -> Flow:
        """Return the steps `recall`, `keep` and `assemble`."""
        return Flow(
            Step("recall", self._recall),
            Step("keep", self._keep),
            Step("assemble", self._assemble),
            state=RecallState,
        )

    def remember_flow(self) -> Flow:
        """Return the long-term memory's steps."""
        return self.memory.remember_flow()

    def remember_graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Return the long-term memory's graph."""
        return self.memory.remember_graph()

    def consolidate_flow(self) -> Flow | None:
        """Return the long-term memory's steps."""
        return self.memory.consolidate_flow()

    def _recall(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Ask the long-term memory."""
        final = yield from self.memory.recall_flow().drive(state)
        return {"memories": final.get("memories", [])}

    def _keep(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Add what is at hand, and keep the best of both; recall of the past leaves it alone."""
        moment = yield from moment_of(state)
        if moment.past:
            return {}
        params: WorkingParameters = yield from self.settings()
        found = [StoredMemory.from_dict(each) for each in state["memories"]]
        (stored,) = yield from Get([(yield from self._ref())])
        turn, held = _read(stored, _digest(query_of(state)))
        now = {(each.namespace, each.key): each for each in found}
        absent = [each.ref for each in held if each.ref not in now]
        again = [each for each in (yield from Get(absent)) if each and moment.shows(each)]
        known = {**now, **{(each.namespace, each.key): each for each in again}}
        fresh = _held(found, turn)
        old = [each for each in held if each.ref in known and each.ref not in now]
        best = sorted([*fresh, *old], key=lambda each: -_weight(each, turn, params.decay))
        kept = best[: params.max_items]
        yield from self._save(stored, kept, turn, _digest(query_of(state)))
        shown = [known[each.ref].scored(_weight(each, turn, params.decay)) for each in kept]
        return {"memories": [each.to_dict() for each in shown]}

    def _assemble(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Cut to the limits and render."""
        params: WorkingParameters = yield from self.settings()
        found = [StoredMemory.from_dict(each) for each in state["memories"]]
        limit = state.get("limit")
        return assembled(found if limit is None else found[:limit], params.max_tokens)

    def _ref(self) -> Steps[Ref]:
        scope = yield from self.scope()
        thread = yield from Setting("thread_id", None)
        label = _NO_THREAD if thread is None else (yield from Resolve(_THREAD))
        return reserved("counters", (*scope, self.architecture, *label)), _KEY

    def _save(
        self, stored: StoredMemory | None, kept: Sequence[Held], turn: int, question: str
    ) -> Steps[None]:
        """Write what is at hand; where that fails, only this turn's own memories are recalled."""
        version = stored.item.version if stored else 0
        rows = [[list(each.ref[0]), each.ref[1], each.score, each.used] for each in kept]
        item = MemoryItem(
            content={"turn": turn, "question": question, "held": rows},
            kind="record",
            version=version + 1,
        )
        home, key = yield from self._ref()
        try:
            yield from Write([Put(home, key, item.to_value())], {(home, key): version or None})
        except (ConflictError, StorageError) as error:
            yield from Emit("working_set_not_kept", {"error": type(error).__name__})

    def _erase(self, selector: Selector | One | Sequence[One]) -> Steps[list[MemoryOperation]]:
        erased = yield from self.memory._erase(selector)  # noqa: SLF001 - a `Memory` as this one
        if isinstance(selector, Everything):
            own = (*(yield from self.scope()), self.architecture)
            yield from journal.erase_below(own, cause=Cause(surface="forget"))
        return erased


def _read(stored: StoredMemory | None, question: str) -> tuple[int, list[Held]]:
    """Return the turn that a question belongs to, and what is at hand in it."""
    content: Any = stored.content if stored else {"turn": 0, "question": "", "held": []}
    turn = content["turn"] + (content["question"] != question)
    rows = content["held"]
    return turn, [Held((tuple(home), key), score, used) for home, key, score, used in rows]


def _held(found: Sequence[StoredMemory], turn: int) -> list[Held]:
    """Return what a recall found, scored relative to its best; by rank where it has no scores."""
    best = max((each.score or 0.0 for each in found), default=0.0)
    return [
        Held(
            (each.namespace, each.key),
            max((each.score or 0.0) / best, 0.0) if best > 0 else 1 / rank,
            turn,
        )
        for rank, each in enumerate(found, start=1)
    ]


def _weight(held: Held, turn: int, decay: float) -> float:
    return held.score * decay ** (turn - held.used)


def _digest(question: str) -> str:
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()
