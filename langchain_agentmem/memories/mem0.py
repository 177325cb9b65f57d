"""`Mem0`: facts extracted from each exchange, compared with what is known, kept consistent.

Source: "Mem0: Building Production-Ready AI Agents with Scalable Long-Term Memory", arXiv
2504.19413, sections 2.1 and appendix B, and the two generations of its code: 1.x (`crud`) and 2.x
(`additive`). The default mode `supersede` keeps the conflict handling that 2.x gave up, and closes
a contradicted fact where 1.x destroyed it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final, Literal

from langgraph.channels import UntrackedValue

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.items import Cause, MemoryOperation, StoredMemory
from langchain_agentmem.memories.written import (
    WriteState,
    WrittenMemory,
    limit_of,
    query_of,
)
from langchain_agentmem.messages import text_of
from langchain_agentmem.parameters import Parameters, described
from langchain_agentmem.rendering import rendered_in
from langchain_agentmem.retrieval.budget import fit
from langchain_agentmem.scopes import closed
from langchain_agentmem.steps import (
    arms,
    entities,
    extraction,
    facts,
    fused,
    origin,
    ring,
    summary,
)
from langchain_agentmem.steps.effects import Emit, HasModel, List, Now, Steps
from langchain_agentmem.steps.extraction import (
    Decision,
    Handles,
    as_lines,
    dated,
    memory_row,
    message_row,
)
from langchain_agentmem.steps.facts import Change, Fact, Proposed
from langchain_agentmem.steps.flow import END, Flow, Step
from langchain_agentmem.steps.intake import turns_of
from langchain_agentmem.steps.proposals import Extracted, Operations
from langchain_agentmem.steps.recall import moment_of
from langchain_agentmem.steps.turns import Turn

EXTRACT: Final = """You keep the long-term memory of an assistant. From the new messages, extract \
every fact worth knowing in later conversations: about the people (identity, relations, \
preferences, plans, experiences, opinions, work, health, possessions) and what the assistant \
promised, recommended or found out.
- Take facts from the new messages only; earlier messages and the summary just explain them.
- One fact, one short sentence that is understood alone: name who it is about, never a pronoun.
- Replace relative dates ("yesterday", "next May") by real ones, counted from the date of the \
message they stand in.
- Leave out greetings, questions without information, general knowledge, and whatever a speaker \
does not want to be remembered.
- `attributed_to` is the speaker who said it, as written in the messages; `related` are handles of \
known memories on the same matter, if any are shown.
- Nothing worth knowing: an empty list.
{language} Today is {today}."""

DECIDE: Final = """You keep the long-term memory of an assistant consistent. Compare the new \
facts with the known memories and list the changes needed.
- UPDATE, with the handle and the complete new text: a fact adds to or corrects a known memory, \
and the new text says more than the old one.
- DELETE, with the handle: a fact contradicts a known memory, which therefore holds no longer.
- NOOP, with the handle: a known memory already says what the fact says.
- ADD: nothing known is about it. Facts you do not list are added.
`fact` is the index of the fact that causes the change. Use only handles that are shown, each at \
most once. {language}"""

_MAX_ATTEMPTS: Final = 100


@dataclass(frozen=True, kw_only=True)
class Mem0Parameters(Parameters):
    """Parameters of `Mem0`; presets `paper`, `reference_v1` and `reference_v2`.

    Attributes:
        mode: `crud` rewrites and archives, `additive` keeps both, `supersede` closes and adds.
        recent_messages: So many earlier messages are shown to the extraction.
        recent_tokens: Most tokens of them together; the oldest are left out first.
        candidates: So many known facts are compared with each new one.
        decide: One decision for all facts, or one for each.
        use_summary: Show the conversation's summary, which `consolidate` refreshes.
        infer: False stores each message word for word, without a model.
        top_k: Most facts to recall.
        threshold: Least cosine of the semantic arm.
        fusion: How the arms are added up.
        entity_merge: Least cosine of two names of one entity.
        entity_match: Least cosine of a query's entity and a known one.
        max_tokens: Most tokens of the recalled text.
        show_expired: Also recall what has expired.
        include_superseded: Also recall closed facts.
        filters: See `langchain_agentmem.retrieval.filters`.
        metadata: The caller's own fields of new facts; never identity.
    """

    mode: Literal["crud", "additive", "supersede"] = described(
        "supersede", "crud, additive or supersede."
    )
    recent_messages: int = described(10, "Earlier messages shown to the extraction.")
    recent_tokens: int = described(1000, "Most tokens of those messages together.")
    candidates: int = described(10, "Known facts compared with each new one.")
    decide: Literal["batched", "per_fact"] = described("batched", "batched or per_fact.")
    use_summary: bool = described(
        default=True, description="Show the conversation's summary to the extraction."
    )
    infer: bool = described(
        default=True, description="False stores messages word for word, without a model."
    )
    top_k: int = described(20, "Most facts to recall.")
    threshold: float = described(0.1, "Least cosine of the semantic arm.")
    fusion: Literal["mem0", "rrf"] = described("mem0", "mem0 or rrf.")
    entity_merge: float = described(0.95, "Least cosine of two names of one entity.")
    entity_match: float = described(0.5, "Least cosine of a query's entity and a known one.")
    max_tokens: int = described(2000, "Most tokens of the recalled text.")
    show_expired: bool = described(default=False, description="Also recall what has expired.")
    include_superseded: bool = described(default=False, description="Also recall closed facts.")
    filters: Mapping[str, Any] | None = described(
        None, "Only facts that these filters let through."
    )
    metadata: Mapping[str, Any] | None = described(None, "Fields of your own for new facts.")

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "default": {},
        "paper": {"mode": "crud", "decide": "per_fact"},
        "reference_v1": {
            "mode": "crud",
            "recent_messages": 0,
            "candidates": 5,
            "use_summary": False,
            "top_k": 100,
            "threshold": -1.0,
        },
        "reference_v2": {"mode": "additive", "use_summary": False},
    }

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        self.require(
            least={
                "recent_messages": 0,
                "recent_tokens": 0,
                "candidates": 1,
                "top_k": 0,
                "max_tokens": 1,
            },
            choices={
                "mode": ("crud", "additive", "supersede"),
                "decide": ("batched", "per_fact"),
                "fusion": ("mem0", "rrf"),
            },
        )


class Mem0State(WriteState, total=False):
    """State of the remember graph; nothing of it but the conversation enters a checkpoint."""

    recent: Annotated[list[Any], UntrackedValue]
    summary: Annotated[str, UntrackedValue]
    facts: Annotated[list[Any], UntrackedValue]
    near: Annotated[list[Any], UntrackedValue]
    candidates: Annotated[list[Any], UntrackedValue]
    proposed: Annotated[list[Any], UntrackedValue]
    changes: Annotated[list[Any], UntrackedValue]
    cause: Annotated[Any, UntrackedValue]
    failed: Annotated[bool, UntrackedValue]
    conflicted: Annotated[bool, UntrackedValue]
    attempt: Annotated[int, UntrackedValue]


class Mem0(WrittenMemory):
    """Short facts, extracted by a model, kept consistent, recalled by meaning, words and entities.

    At most two model calls a turn (one for a turn without known candidates), none to recall. Every
    recalled fact has the parts of its score. On a store that cannot search words, such as
    `InMemoryStore`, the words are looked for among the facts that are nearest by meaning.

    Example:
        ```python
        memory = Mem0(model="openai:gpt-4o-mini", store=FaissSqliteStore("memory.sqlite"))
        ann = {"configurable": {"user_id": "ann"}}
        memory.remember("I moved from Oslo to Rome last week.", config=ann)
        memory.recall("Where does Ann live?", config=ann).text
        ```
    """

    architecture: ClassVar[str] = "mem0"
    after_apply: ClassVar[str] = "save_messages"
    Parameters: ClassVar[type[Parameters]] = Mem0Parameters

    def remember_flow(self) -> Flow:
        """Return `load_context, extract, retrieve, decide, validate, apply, save_messages`."""
        return self._flow(Mem0State)

    def _needs_model(self) -> Steps[bool]:
        params: Mem0Parameters = yield from self.settings()
        return params.infer

    def write_steps(self) -> tuple[Step, ...]:
        """Return the steps in the paper's order."""
        return (
            Step("load_context", self._load_context),
            Step("extract", self._extract, _after_extract, ("retrieve", "save_messages", END)),
            Step("retrieve", self._retrieve),
            Step("decide", self._decide, _after_decide, ("validate", END)),
            Step("validate", self._validate),
            Step("apply", self._apply, _after_apply, ("retrieve", "save_messages")),
            Step("save_messages", self._save_messages),
        )

    def _load_context(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Read the messages before these and the summary; in `additive`, the known facts too."""
        params: Mem0Parameters = yield from self.settings()
        said = turns_of(state["turns"])
        new = {turn.message_id for turn in said}
        kept = yield from ring.latest((yield from self.home("messages")))
        recent = [each for each in kept if each.item.source_message_ids[0] not in new]
        told = (yield from self._told()) if params.use_summary else ""
        known: list[StoredMemory] = []
        if params.mode == "additive" and params.infer:
            known = yield from self._known("\n".join(turn.content for turn in said), params)
        return {
            "recent": _latest(recent, params),
            "summary": told,
            "candidates": known,
            "attempt": 0,
        }

    def _told(self) -> Steps[str]:
        found = yield from summary.current((yield from self.home("summary")))
        return found.text if found else ""

    def _extract(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Ask for the facts of the new messages (call 1)."""
        params: Mem0Parameters = yield from self.settings()
        said = turns_of(state["turns"])
        metadata = yield from origin.callers_fields(params.metadata, self.namespace.variables)
        if not params.infer:
            told = [origin.verbatim(turn, metadata) for turn in said]
            return {"facts": told, "cause": origin.cause(said)}
        known = Handles(state["candidates"])
        language = yield from extraction.language_rule()
        today = dated((yield from Now()))
        decision: Decision[Extracted] = yield from extraction.decide(
            Extracted,
            purpose="extract",
            instructions=EXTRACT.format(language=language, today=today),
            data=_extract_data(state, said, known),
        )
        if decision.value is None:
            kept = yield from self.keep_unread(state, decision)
            return {"failed": True, "facts": [], "memory_operations": kept}
        found = [
            origin.located(each, said, known, metadata, self.clean) for each in decision.value.facts
        ]
        for _ in (fact for fact in found if not fact.text):
            yield from Emit("operation_rejected", {"event_kind": "ADD", "why": "the text is empty"})
        facts = [fact for fact in found if fact.text]
        if found and not facts:
            kept = yield from self.keep_turns(state)
            return {"failed": True, "facts": [], "memory_operations": kept}
        return {"facts": facts, "cause": origin.cause(said, decision), "failed": False}

    def _retrieve(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Find the known facts nearest to each new one."""
        params: Mem0Parameters = yield from self.settings()
        if params.mode == "additive" or not params.infer:
            return {}
        near: list[list[StoredMemory]] = []
        for fact in state["facts"]:
            near += [(yield from self._known(fact.text, params))]
        found = {each.key: each for each in itertools.chain.from_iterable(near)}
        return {"near": near, "candidates": list(found.values())}

    def _known(self, text: str, params: Mem0Parameters) -> Steps[list[StoredMemory]]:
        """Return the live facts nearest to a text, and what tools or imports put beside them."""
        found: list[StoredMemory] = []
        for home in ((yield from self.home("facts")), (yield from self.scope())):
            found += yield from arms.nearest(home, text, params.candidates)
        return arms.ranked(found)[: params.candidates]

    def _decide(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Ask what the facts mean for the known ones (call 2); nothing to ask without any."""
        params: Mem0Parameters = yield from self.settings()
        known: list[StoredMemory] = state["candidates"]
        if params.mode == "additive" or not params.infer or not known:
            return {"proposed": [], "failed": False}
        if params.decide == "batched":
            return (yield from self._decide_on(state, known, dict(enumerate(state["facts"]))))
        proposed: list[Proposed] = []
        update: dict[str, Any] = {"failed": False}
        for index, (fact, near) in enumerate(zip(state["facts"], state["near"], strict=True)):
            update = yield from self._decide_on(state, near, {index: fact})
            if update["failed"]:
                return update
            proposed += update["proposed"]
        return {**update, "proposed": proposed}

    def _decide_on(
        self, state: Mapping[str, Any], known: Sequence[StoredMemory], asked: Mapping[int, Fact]
    ) -> Steps[dict[str, Any]]:
        handles = Handles(known)
        language = yield from extraction.language_rule()
        decision: Decision[Operations] = yield from extraction.decide(
            Operations,
            purpose="decide",
            instructions=DECIDE.format(language=language),
            data=_decide_data(handles, asked),
        )
        if decision.value is None:
            kept = yield from self.keep_unread(state, decision)
            return {"failed": True, "memory_operations": kept}
        alone = next(iter(asked)) if len(asked) == 1 else None
        proposed = [
            Proposed(
                event=each.event,
                fact=each.fact if each.fact in asked else alone,
                handle=each.handle,
                target=handles.get(each.handle),
                text=self.clean(each.text or ""),
            )
            for each in decision.value.operations
        ]
        cause = replace(state["cause"], model=decision.model, prompt_hash=decision.prompt_hash)
        return {"proposed": proposed, "cause": cause, "failed": False}

    def _validate(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Keep what is safe and report the rest; no model's word is taken for a key."""
        home = yield from self.home("facts")
        recalled = "\n".join(rendered_in(text_of(each)) for each in state.get("messages", []))
        prompts = "" if state["cause"].model is None else f"{EXTRACT}\n{DECIDE}"
        changes, refused = facts.checked(
            state["facts"],
            state["candidates"],
            state["proposed"],
            forbidden=facts.normalized(f"{prompts}\n{recalled}"),
        )
        for each in refused:
            yield from Emit("operation_rejected", {"event_kind": each.event, "why": each.reason})
        reported = [each.operation(home, state["cause"]).to_dict() for each in refused]
        return {"changes": changes, "memory_operations": reported}

    def _apply(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Write facts, entities and journal in one batch; other writers are waited out.

        A target that was changed meanwhile is decided again once, then its update is an addition.
        """
        changes: list[Change] = state["changes"]
        for _ in range(_MAX_ATTEMPTS):
            try:
                applied = yield from self._write(changes, state["cause"])
            except ConflictError as conflict:
                lost = {key for _, key in conflict.conflicts}
                if not any(each.target and each.target.key in lost for each in changes):
                    continue
                if not state["attempt"]:
                    return {"conflicted": True, "attempt": 1}
                changes = [facts.without_target(each, lost) for each in changes]
            else:
                done = [*state["memory_operations"], *(op.to_dict() for op in applied)]
                return {"conflicted": False, "memory_operations": done}
        msg = "Other writers changed the same facts a hundred times in a row; try again later."
        raise RuntimeError(msg)

    def _write(self, changes: Sequence[Change], cause: Cause) -> Steps[list[MemoryOperation]]:
        params: Mem0Parameters = yield from self.settings()
        home = yield from self.home("facts")
        now = yield from Now()
        style: facts.Style = "crud" if params.mode == "crud" else "supersede"
        planned = yield from facts.planned(home, changes, style=style, cause=cause, now=now)
        named = yield from entities.mention(
            (yield from self.home("entities")), planned, merge=params.entity_merge
        )
        return (
            yield from self.apply(named.operations, cause, also=named.puts, expect=named.expect)
        )

    def _save_messages(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Keep the last messages as context for the next exchange."""
        params: Mem0Parameters = yield from self.settings()
        home = yield from self.home("messages")
        yield from ring.push(home, turns_of(state["turns"]), params.recent_messages)
        return {}

    # --- recall ------------------------------------------------------------------------------

    def _search(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Fuse the arms over everything the call may see, then take the best."""
        params: Mem0Parameters = yield from self.settings()
        question = fused.Question(
            query=query_of(state),
            limit=limit_of(state, params.top_k),
            moment=(yield from moment_of(state)),
            threshold=params.threshold,
            fusion=params.fusion,
            entity_match=params.entity_match,
            filters=params.filters,
            show_expired=params.show_expired,
            include_superseded=params.include_superseded,
        )
        levels = yield from self.levels()
        found = yield from fused.search(question, [self._place(level) for level in levels])
        return {"memories": [each.to_dict() for each in found]}

    def _place(self, level: tuple[str, ...]) -> fused.Place:
        homes = self.homes(level, "facts")
        return fused.Place(homes, facts=homes[0], entities=(*level, self.architecture, "entities"))

    # --- consolidate and forget --------------------------------------------------------------

    def consolidate_flow(self) -> Flow:
        """Return the steps `refresh_summary` and `drop_closed`."""
        return Flow(
            Step("refresh_summary", self._refresh_summary),
            Step("drop_closed", self._drop_closed),
            state=Mem0State,
        )

    def _refresh_summary(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:  # noqa: ARG002 - a step
        """Write the summary anew from the earlier one and the last messages."""
        params: Mem0Parameters = yield from self.settings()
        if not params.use_summary or not (yield from HasModel()):
            return {"memory_operations": []}
        kept = yield from ring.latest((yield from self.home("messages")))
        home = yield from self.home("summary")
        operations = yield from summary.refresh(home, kept, self.clean)
        return {"memory_operations": [op.to_dict() for op in operations]}

    def _drop_closed(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:  # noqa: ARG002 - a step
        """Take closed facts out of the entities that mention them."""
        hidden = yield from List(closed((yield from self.home("facts"))))
        gone = [each.key for each in hidden]
        yield from entities.drop_mentions((yield from self.home("entities")), gone)
        return {}

    def on_erased(self, erased: Sequence[MemoryOperation]) -> Steps[None]:
        """Take erased facts out of the entities that mention them."""
        home = yield from self.home("facts")
        gone = [op.key for op in erased if op.namespace == home]
        if gone:
            yield from entities.drop_mentions((yield from self.home("entities")), gone)


def _latest(messages: Sequence[StoredMemory], params: Mem0Parameters) -> list[StoredMemory]:
    """Return the last messages that fit, in their order."""
    newest_first = messages[::-1][: params.recent_messages]
    return fit(newest_first, params.recent_tokens, text=lambda each: each.text)[::-1]


def _after_extract(state: Mapping[str, Any]) -> str:
    if state.get("failed"):
        return END
    return "retrieve" if state["facts"] else "save_messages"


def _after_decide(state: Mapping[str, Any]) -> str:
    return END if state.get("failed") else "validate"


def _after_apply(state: Mapping[str, Any]) -> str:
    return "retrieve" if state.get("conflicted") else "save_messages"


def _extract_data(state: Mapping[str, Any], said: Sequence[Turn], known: Handles) -> str:
    """Return what the extraction is shown; every text stays inside of its own line."""
    told = [{"summary": state["summary"]}] if state["summary"] else []
    parts = {
        "Summary of the conversation so far": told,
        "Earlier messages": [message_row(each) for each in state["recent"]],
        "Known memories": [memory_row(handle, each) for handle, each in known],
    }
    shown = [f"{name}:\n{as_lines(rows)}" for name, rows in parts.items() if rows]
    return "\n\n".join([*shown, f"New messages:\n{extraction.said_lines(said)}"])


def _decide_data(known: Handles, asked: Mapping[int, Fact]) -> str:
    rows = as_lines(memory_row(handle, each) for handle, each in known)
    new = as_lines({"index": index, "text": fact.text} for index, fact in asked.items())
    return f"Known memories:\n{rows}\n\nNew facts:\n{new}"
