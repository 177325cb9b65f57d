"""`LangMem`: memories of the caller's own schemas, kept by one extraction over what is known.

Source: langchain-ai/langmem 0.0.30 (its store manager), with its options and its place in the
store: memories lie in the bare namespace, so existing ones are read and updated. What it loses is
kept here: unknown schemas are shown, deletes archive, updates are checked against the version that
the model saw, and everything that was refused is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from langgraph.channels import UntrackedValue
from pydantic import AliasChoices, BaseModel, Field, ValidationError

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.memories.written import (
    RecallState,
    WriteState,
    WrittenMemory,
    assembled,
    query_of,
)
from langchain_agentmem.parameters import Parameters, described
from langchain_agentmem.steps import arms, extraction, journal, origin
from langchain_agentmem.steps._parsing import shape_of
from langchain_agentmem.steps.effects import Emit, Steps
from langchain_agentmem.steps.extraction import Decision, Handles, Proposal, as_lines
from langchain_agentmem.steps.facts import key_for, normalized
from langchain_agentmem.steps.flow import END, Flow, Step
from langchain_agentmem.steps.intake import turns_of
from langchain_agentmem.steps.recall import moment_of
from langchain_agentmem.steps.turns import Turn

Schema: TypeAlias = type[str] | type[BaseModel]

INSTRUCTIONS: Final = (
    "Keep what will matter in later conversations: facts about the people, their preferences, "
    "plans and experiences, and what was agreed. Each memory is understood alone."
)
EXTRACT: Final = """You keep the long-term memory of an assistant. Read the conversation and the \
known memories, and list the changes the memory needs; an empty list if none.
{instructions}
- `action` is one of: {actions}.
- `id` is the handle of the known memory to change; a new memory has none.
- `content` is the complete new content{kinds}.
Never repeat what is known already. {language}"""

_ATTEMPTS: Final = 100


@dataclass(frozen=True, kw_only=True)
class LangMemParameters(Parameters):
    """Parameters of `LangMem`, under the names of its store manager.

    Attributes:
        schemas: What memories are made of: `str`, or pydantic models.
        instructions: What to keep.
        enable_inserts: Whether the model may add memories.
        enable_updates: Whether it may change known ones.
        enable_deletes: Whether it may archive known ones.
        query_limit: How many known memories it is shown, exactly, if there are so many.
        limit: Most memories to recall.
        max_tokens: Most tokens of the recalled text.
    """

    schemas: tuple[Schema, ...] = (str,)
    instructions: str = described(INSTRUCTIONS, "What to keep.")
    enable_inserts: bool = described(default=True, description="The model may add memories.")
    enable_updates: bool = described(default=True, description="It may change known ones.")
    enable_deletes: bool = described(default=False, description="It may archive known ones.")
    query_limit: int = described(5, "Known memories shown to the extraction.")
    limit: int = described(10, "Most memories to recall.")
    max_tokens: int = described(2000, "Most tokens of the recalled text.")

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        self.require(least={"query_limit": 1, "limit": 0, "max_tokens": 1})

    @property
    def actions(self) -> list[str]:
        """What the model may propose."""
        allowed = {
            "create": self.enable_inserts,
            "update": self.enable_updates,
            "delete": self.enable_deletes,
        }
        return [name for name, is_allowed in allowed.items() if is_allowed]


class ProposedMemory(Proposal):
    """One change a model proposes."""

    action: Literal["create", "update", "delete"]
    id: str | None = Field(None, validation_alias=AliasChoices("id", "handle"))
    kind: str | None = None
    content: Any = Field(None, description="text or object")


class ProposedMemories(Proposal):
    """All changes a model proposes."""

    memories: list[ProposedMemory]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """One proposal with its target looked up and its content read by its schema."""

    action: Literal["create", "update", "delete"]
    target: StoredMemory | None = None
    content: str | dict[str, Any] = ""
    kind: str = "text"
    problem: str | None = None


class LangMemState(WriteState, total=False):
    """State of the remember graph."""

    known: Annotated[list[Any], UntrackedValue]
    proposed: Annotated[Any, UntrackedValue]
    planned: Annotated[list[Any], UntrackedValue]
    cause: Annotated[Any, UntrackedValue]


class LangMem(WrittenMemory):
    """Memories of your own schemas, written by one model call a conversation.

    Example:
        ```python
        class Preference(BaseModel):
            about: str
            wish: str


        memory = LangMem(model="openai:gpt-4o-mini", schemas=(Preference,), store=store)
        memory.remember("Please answer briefly.", config={"configurable": {"user_id": "ann"}})
        ```
    """

    architecture: ClassVar[str] = "langmem"
    Parameters: ClassVar[type[Parameters]] = LangMemParameters

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - Memory's own
        if "schemas" in given:
            given["schemas"] = tuple(given["schemas"])
        super().__init__(**given)

    def remember_flow(self) -> Flow:
        """Return `recall, extract, plan, validate, apply`."""
        return self._flow(LangMemState)

    def write_steps(self) -> tuple[Step, ...]:
        """Return the steps of a consolidation."""
        return (
            Step("recall", self._recall),
            Step("extract", self._extract, _after_extract, ("plan", END)),
            Step("plan", self._plan),
            Step("validate", self._validate),
            Step("apply", self._apply),
        )

    def _recall(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Find what is known: by the last message and by the whole conversation in turn."""
        params: LangMemParameters = yield from self.settings()
        home = yield from self.scope()
        said = turns_of(state["turns"])
        queries = dict.fromkeys([said[-1].content, "\n".join(turn.content for turn in said)])
        found: list[list[StoredMemory]] = []
        for query in queries:
            found += [(yield from arms.nearest(home, query, params.query_limit))]
        known: dict[str, StoredMemory] = {}
        for rank in range(params.query_limit):
            for each in (ranking[rank] for ranking in found if rank < len(ranking)):
                known.setdefault(each.key, each)
        return {"known": list(known.values())[: params.query_limit]}

    def _extract(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Ask for changes; one that names an unknown memory is repaired once."""
        params: LangMemParameters = yield from self.settings()
        said = turns_of(state["turns"])
        handles = Handles(state["known"])
        language = yield from extraction.language_rule()
        decision: Decision[ProposedMemories] = yield from extraction.decide(
            ProposedMemories,
            purpose="extract",
            instructions=EXTRACT.format(
                instructions=params.instructions,
                actions=", ".join(params.actions),
                kinds=_kinds(params.schemas),
                language=language,
            ),
            data=_data(said, handles),
            check=lambda value: [
                problem
                for each in value.memories
                if (problem := self._planned(each, handles, params).problem)
            ],
        )
        cause = origin.cause(said, decision)
        if decision.value is None:
            op = MemoryOperation(event="NOOP", namespace=(), key="", cause=cause)
            reason = f"the model's reply cannot be used: {' '.join(decision.problems)}"
            return {"proposed": None, "memory_operations": [op.rejected(reason).to_dict()]}
        return {"proposed": decision.value, "cause": cause}

    def _plan(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Look the handles up and read each content by its schema."""
        params: LangMemParameters = yield from self.settings()
        handles = Handles(state["known"])
        proposed: ProposedMemories = state["proposed"]
        return {"planned": [self._planned(each, handles, params) for each in proposed.memories]}

    def _planned(
        self, each: ProposedMemory, handles: Handles, params: LangMemParameters
    ) -> _Planned:
        target = handles.get(each.id)
        planned = _Planned(action=each.action, target=target)
        if each.action != "create" and target is None:
            return replace(planned, problem=f"No memory was shown as {each.id!r}.")
        if each.action == "delete":
            return planned
        kind = each.kind or (target.item.kind if target else None)
        try:
            content, kind = self._read(each.content, kind, params.schemas, updating=bool(target))
        except ValueError as error:
            return replace(planned, problem=f"A content does not fit its schema: {error}.")
        return replace(planned, content=content, kind=kind)

    def _read(
        self,
        content: Any,  # noqa: ANN401 - any JSON
        kind: str | None,
        schemas: Sequence[Schema],
        *,
        updating: bool,
    ) -> tuple[str | dict[str, Any], str]:
        """Return a content in the form of its schema; an unknown kind may only be updated as is."""
        models = {each.__name__: each for each in schemas if issubclass(each, BaseModel)}
        chosen = models.get(kind or "")
        if chosen is None and len(schemas) == 1 and models and not (updating and kind):
            (chosen,) = models.values()
        if chosen is not None:
            try:
                value = chosen.model_validate(content).model_dump(mode="json")
            except ValidationError as error:
                raise ValueError(str(error.errors()[0]["msg"])) from error
            return self._clean_json(value), chosen.__name__
        if isinstance(content, dict) and (updating or str not in schemas):
            if not updating:
                msg = f"{kind!r} is none of {sorted(models)}"
                raise ValueError(msg)
            return self._clean_json(content), kind or "object"
        text = self.clean(str(content or ""))
        if not text:
            msg = "it is empty"
            raise ValueError(msg)
        return text, kind if updating and kind else "text"

    def _clean_json(self, value: dict[str, Any]) -> dict[str, Any]:
        return {
            name: self.clean(each) if isinstance(each, str) else each
            for name, each in value.items()
        }

    def _validate(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Keep permitted changes of known memories, one a memory; report the rest."""
        params: LangMemParameters = yield from self.settings()
        home = yield from self.scope()
        kept: list[_Planned] = []
        reported: list[dict[str, Any]] = []
        taken: set[str] = set()
        for each in state["planned"]:
            key = each.target.key if each.target else ""
            reason = each.problem
            if each.action not in params.actions:
                reason = f"{each.action} is not permitted"
            elif key in taken:
                reason = "the memory already has a change"
            if reason is None:
                kept.append(each)
                taken.update({key} - {""})
                continue
            yield from Emit("operation_rejected", {"event_kind": each.action, "why": reason})
            op = MemoryOperation(
                event=_EVENTS[each.action], namespace=home, key=key, cause=state["cause"]
            )
            reported.append(op.rejected(reason).to_dict())
        return {"planned": kept, "memory_operations": reported}

    def _apply(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Write all in one batch; a memory changed meanwhile is read and planned once more."""
        home = yield from self.scope()
        planned: list[_Planned] = list(state["planned"])
        said_at = turns_of(state["turns"])[-1].observed_at
        retried: set[str] = set()
        rejected: list[MemoryOperation] = []
        for _ in range(_ATTEMPTS):
            operations = yield from _operations(home, planned, state["cause"], said_at)
            try:
                applied = yield from journal.apply(operations)
            except ConflictError as conflict:
                lost = {key for _, key in conflict.conflicts}
                again = {each.target.key for each in planned if each.target} & lost
                rejected += [
                    op.rejected("it was changed meanwhile, twice")
                    for op in operations
                    if op.key in again & retried
                ]
                planned = yield from _reread(home, planned, again, dropped=retried)
                retried |= again
            else:
                done = [*state["memory_operations"], *(op.to_dict() for op in applied)]
                return {"memory_operations": [*done, *(op.to_dict() for op in rejected)]}
        msg = "Other writers changed the same memories a hundred times in a row; try again later."
        raise RuntimeError(msg)

    def recall_flow(self) -> Flow:
        """Return the steps `search` and `assemble`; no model call."""
        return Flow(
            Step("search", self._search), Step("assemble", self._assemble), state=RecallState
        )

    def _search(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Find the most similar memories of every level the call may read."""
        params: LangMemParameters = yield from self.settings()
        moment = yield from moment_of(state)
        given = state.get("limit")
        limit = params.limit if given is None else given
        found: list[StoredMemory] = []
        for level in (yield from self.levels()):
            for home in (level, (*level, self.architecture, "turns")):
                found += yield from arms.best(home, query_of(state), limit, moment)
        best = sorted(found, key=lambda each: -(each.score or 0.0))[:limit]
        return {"memories": [each.to_dict() for each in best]}

    def _assemble(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Cut to the token budget and render."""
        params: LangMemParameters = yield from self.settings()
        found = [StoredMemory.from_dict(each) for each in state["memories"]]
        return assembled(found, params.max_tokens)


_EVENTS: Final[Mapping[str, Literal["ADD", "UPDATE", "DELETE"]]] = {
    "create": "ADD",
    "update": "UPDATE",
    "delete": "DELETE",
}


def _after_extract(state: Mapping[str, Any]) -> str:
    return "plan" if state["proposed"] is not None else END


def _kinds(schemas: Iterable[Schema]) -> str:
    models = [each for each in schemas if issubclass(each, BaseModel)]
    shapes = "; ".join(f"{each.__name__}: {shape_of(each)}" for each in models)
    return f", of one of these kinds, named in `kind`: {shapes}" if shapes else ", as text"


def _data(said: Sequence[Turn], handles: Handles) -> str:
    rows = as_lines(
        {"id": handle, "kind": each.item.kind, "content": each.content} for handle, each in handles
    )
    known = f"Known memories:\n{rows}\n\n" if rows else ""
    return f"{known}Conversation:\n{extraction.said_lines(said)}"


def _operations(
    home: tuple[str, ...], planned: Sequence[_Planned], cause: Cause, said_at: datetime
) -> Steps[list[MemoryOperation]]:
    operations: dict[str, MemoryOperation] = {}
    for each in planned:
        op = (
            (yield from _added(home, each, cause, said_at))
            if each.target is None
            else _changed(each, cause)
        )
        operations.setdefault(op.key, op)
    return list(operations.values())


def _added(
    home: tuple[str, ...], each: _Planned, cause: Cause, said_at: datetime
) -> Steps[MemoryOperation]:
    item = MemoryItem(
        kind=each.kind,
        content=each.content,
        observed_at=said_at,
        source_message_ids=cause.message_ids,
    )
    key, known = yield from key_for(home, item.text)
    op = MemoryOperation(event="ADD", namespace=home, key=key, cause=cause)
    if known is not None:
        return replace(op, event="NOOP", before=known.item, reason="already remembered")
    return replace(op, after=item)


def _changed(each: _Planned, cause: Cause) -> MemoryOperation:
    if each.target is None:
        msg = "A change needs a target."
        raise ValueError(msg)
    old = each.target.item
    op = MemoryOperation(
        event=_EVENTS[each.action],
        namespace=each.target.namespace,
        key=each.target.key,
        before=old,
        cause=cause,
    )
    if each.action == "delete":
        return replace(op, after=replace(old, status="archived", version=old.version + 1))
    new = replace(
        old,
        kind=each.kind,
        content=each.content,
        version=old.version + 1,
        source_message_ids=tuple(dict.fromkeys([*old.source_message_ids, *cause.message_ids])),
    )
    if normalized(new.text) == normalized(old.text):
        return replace(op, event="NOOP", reason="already known")
    return replace(op, after=new)


def _reread(
    home: tuple[str, ...], planned: Sequence[_Planned], again: set[str], *, dropped: set[str]
) -> Steps[list[_Planned]]:
    """Return the plan with fresh targets, without those that were lost twice or are gone."""
    fresh: list[_Planned] = []
    for each in planned:
        if each.target is None or each.target.key not in again:
            fresh.append(each)
        elif each.target.key not in dropped:
            (stored,) = yield from journal.read([(home, each.target.key)])
            if stored is not None and stored.item.status == "active":
                fresh.append(replace(each, target=stored))
    return fresh
