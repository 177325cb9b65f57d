"""`RAGMemory`: what was said, word for word, found again by words, meaning, time and speaker.

The baseline of every comparison and a good default: turns are stored verbatim with speaker, time
and session, and recalled by hybrid retrieval in the context of their session. No model call
anywhere. Recall follows the general recipe of `langchain_agentmem.retrieval.rank`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final

from langchain_core.messages import AnyMessage
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from langchain_agentmem.items import MemoryOperation, StoredMemory
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.memories.state import RecallState
from langchain_agentmem.messages import encodable, last_human_text
from langchain_agentmem.parameters import Parameters, described
from langchain_agentmem.rendering import render_line, render_memories
from langchain_agentmem.retrieval.budget import count_tokens, excerpt, fit
from langchain_agentmem.retrieval.context import Session
from langchain_agentmem.retrieval.rank import DEFAULT_WEIGHTS, POOL_DEPTH, Weights
from langchain_agentmem.retrieval.rules import without_names
from langchain_agentmem.retrieval.text import query_terms
from langchain_agentmem.steps import recall, turns
from langchain_agentmem.steps.effects import Emit, Get, Now, Setting, Steps
from langchain_agentmem.steps.flow import Flow, Step
from langchain_agentmem.steps.recall import Pool
from langchain_agentmem.steps.turns import Log, Turn

_SHOWN_WHOLE: Final = 300
"""Up to so many tokens, or half of the budget, or a quarter of a large one, a memory is whole."""


@dataclass(frozen=True, kw_only=True)
class RAGParameters(Parameters):
    """Parameters of `RAGMemory`.

    Attributes:
        limit: Most memories to recall.
        max_tokens: Most tokens of the recalled text. The worst memories are left out whole; of one
            that would take over a quarter of the budget, the text shows an excerpt.
        neighbors: So many turns before and after each hit are recalled with it.
        pool: How many of the store's best matches are ranked in their context.
        weights: Weights of the ranking; see `langchain_agentmem.retrieval.rank.Weights`.
    """

    limit: int = described(10, "Most memories to recall.")
    max_tokens: int = described(2000, "Most tokens of the recalled text.")
    neighbors: int = described(0, "Turns before and after each hit to recall with it.")
    pool: int = described(POOL_DEPTH, "Matches of the store that are ranked in their context.")
    weights: Weights = DEFAULT_WEIGHTS

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        self.require(least={"limit": 0, "max_tokens": 1, "neighbors": 0, "pool": 1})


class RAGRememberState(TypedDict, total=False):
    """State of the remember graph."""

    messages: Annotated[list[AnyMessage], add_messages]
    turns: Annotated[list[dict[str, Any]], UntrackedValue]
    memory_operations: Annotated[list[dict[str, Any]], UntrackedValue]


class RAGMemory(Memory):
    """Verbatim turns with speaker, time and session, found by hybrid retrieval in context.

    Recall also finds what tools saved in the bare namespace, and reads the levels of
    `read_namespaces`.

    Example:
        ```python
        memory = RAGMemory(store=FaissSqliteStore("memory.sqlite"))
        ann = {"configurable": {"user_id": "ann"}}
        memory.remember("My dog is called Rex.", config=ann)
        memory.recall("What is my dog's name?", config=ann).items[0].content
        ```
    """

    architecture: ClassVar[str] = "rag"
    remember_asks: ClassVar[bool] = False
    Parameters: ClassVar[type[Parameters]] = RAGParameters

    def recall_flow(self) -> Flow:
        """Return the steps `retrieve`, `add_neighbors` and `assemble`."""
        return Flow(
            Step("retrieve", self._retrieve),
            Step("add_neighbors", self._add_neighbors),
            Step("assemble", self._assemble),
            state=RecallState,
        )

    def _retrieve(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Rank the best matches of every level the call may read."""
        params: RAGParameters = yield from self.settings()
        query = _question(state)
        moment = yield from recall.moment_of(state)
        given = state.get("limit")
        limit = params.limit if given is None else given
        pools: list[Pool] = []
        sessions: dict[str, Session] = {}
        for level in (yield from self.levels()):
            log = Log((*level, self.architecture))
            asked = without_names(query, (yield from turns.participants(log)))
            depth = max(params.pool, limit) if query else limit
            matches = yield from recall.search_each(
                [(log.turns, asked), (level, query)], depth, moment
            )
            pools += matches
            sessions.update((yield from recall.sessions_of(matches[0], log)))
        if query:
            order = yield from recall.ranked(query, pools, sessions, params.weights)
            found = yield from recall.first(order, pools, limit, moment)
        else:
            newest = [each for pool in pools for each in pool.found]
            found = sorted(newest, key=recall.when_said, reverse=True)[:limit]
        return {"memories": [each.to_dict() for each in found]}

    def _add_neighbors(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Put the turns around each hit behind it, if the call asks for them."""
        params: RAGParameters = yield from self.settings()
        if not params.neighbors:
            return {}
        moment = yield from recall.moment_of(state)
        hits = [StoredMemory.from_dict(each) for each in state["memories"]]
        seen = {(hit.namespace, hit.key) for hit in hits}
        together: list[StoredMemory] = []
        for hit in hits:
            together.append(hit)
            near = [
                ref for ref in (yield from turns.around(hit, params.neighbors)) if ref not in seen
            ]
            seen.update(near)
            together += [
                replace(one, parts={"neighbor": 1.0})
                for one in (yield from Get(near))
                if one is not None and moment.shows(one)
            ]
        return {"memories": [each.to_dict() for each in together]}

    def _assemble(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Cut to the token budget and render; of a very long memory an excerpt is shown."""
        params: RAGParameters = yield from self.settings()
        found = [(StoredMemory.from_dict(each), each) for each in state["memories"]]
        asked = set(query_terms(_question(state)))
        longest = max(params.max_tokens // 4, min(params.max_tokens // 2, _SHOWN_WHOLE), 1)
        shown = [(each, excerpt(each.text, asked, longest), data) for each, data in found]
        kept = fit(shown, params.max_tokens, text=lambda one: render_line(*one[:2]))
        if len(kept) < len(found):
            yield from Emit("over_budget", {"left_out": len(found) - len(kept)})
        text = render_memories([each for each, _, _ in kept], [said for _, said, _ in kept])
        return {
            "memories": [data for _, _, data in kept],
            "memory_context": text,
            "tokens": count_tokens(text),
        }

    def remember_flow(self) -> Flow:
        """Return the steps `split_turns` and `store_turns`."""
        return Flow(
            Step("split_turns", self._split_turns),
            Step("store_turns", self._store_turns),
            state=RAGRememberState,
        )

    def _split_turns(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Take what people and the assistant said, with speaker, time and session."""
        now = yield from Now()
        thread = str((yield from Setting("thread_id", "")))
        read = (
            Turn.of(message, position, thread, now)
            for position, message in enumerate(state.get("messages", []))
        )
        return {"turns": [turn.to_dict() for turn in read if turn is not None]}

    def _store_turns(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Store new turns with their sessions; known ones are left alone."""
        scope = yield from self.scope()
        said = [Turn.from_dict(turn) for turn in state["turns"]]
        operations = yield from turns.store_turns(Log((*scope, self.architecture)), said)
        return {"memory_operations": [op.to_dict() for op in operations]}

    def on_erased(self, erased: Sequence[MemoryOperation]) -> Steps[None]:
        """Take erased turns out of their sessions."""
        scope = yield from self.scope()
        log = Log((*scope, self.architecture))
        gone = [op.key for op in erased if op.namespace == log.turns]
        if gone:
            yield from turns.drop_from_sessions(log, gone)


def _question(state: Mapping[str, Any]) -> str:
    """Return what is asked: the query, or what the user said last."""
    return encodable(state.get("query") or last_human_text(state.get("messages", [])))
