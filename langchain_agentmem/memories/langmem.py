"""`LangMem`: memories of the caller's own schemas, kept by extraction over what is known.

Source: langchain-ai/langmem 0.0.30 (its store manager), with its options and its place in the
store: memories lie in the bare namespace, so existing ones are read and updated. What it loses is
kept here: unknown schemas are shown, deletes archive, updates are checked against the version that
the model saw, all phases are one write, and everything that was refused is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Protocol

from langgraph.channels import UntrackedValue
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_agentmem.errors import ConfigurationError, ConflictError
from langchain_agentmem.items import MemoryOperation, StoredMemory
from langchain_agentmem.memories.written import (
    WriteState,
    WrittenMemory,
    limit_of,
    query_of,
    unusable,
)
from langchain_agentmem.parameters import Parameters, described
from langchain_agentmem.steps import arms, drafts, extraction, journal, origin
from langchain_agentmem.steps._parsing import shape_of
from langchain_agentmem.steps.drafts import Action, Draft, ProposedMemories, Rules, Schema
from langchain_agentmem.steps.effects import Call, CallConfig, Emit, Steps
from langchain_agentmem.steps.extraction import Decision, Proposal, as_lines, said_lines
from langchain_agentmem.steps.flow import END, Flow, Step
from langchain_agentmem.steps.intake import turns_of
from langchain_agentmem.steps.turns import Turn

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import RunnableConfig

INSTRUCTIONS: Final = (
    "Keep what will matter in later conversations: facts about the people, their preferences, "
    "plans and experiences, and what was agreed. Each memory is understood alone."
)
PHASE_INSTRUCTIONS: Final = (
    "Put the known memories in order: join those that say the same, complete what is scattered, "
    "and take out what others contradict."
)
EXTRACT: Final = """You keep the long-term memory of an assistant. Read what you are shown, the \
conversation and the known memories, and list the changes the memory needs; an empty list if none.
{instructions}
- `action` is one of: {actions}.
- `id` is the handle of the known memory to change; a new memory has none.
- `content` is the complete new content{kinds}.
Never repeat what is known already. {language}"""
QUERY: Final = """Write the queries to search a memory with, so that everything is found that this \
conversation may change or repeat: each like a short memory that might be stored, about one \
matter. {language}"""

DEFAULT_KEY: Final = "default"
_ATTEMPTS: Final = 100
_WINDOWS: Final = 4
_MOST_QUERIES: Final = 8

Default = str | dict[str, Any] | BaseModel


class Phase(TypedDict, total=False):
    """One further pass over the memories, as LangMem names its options.

    Attributes:
        instructions: What to do in it.
        include_messages: Whether it sees the conversation too; False by default.
        enable_inserts: Whether it may add memories; True by default.
        enable_updates: Whether it may change them; True by default.
        enable_deletes: Whether it may archive them; True by default.
    """

    instructions: str
    include_messages: bool
    enable_inserts: bool
    enable_updates: bool
    enable_deletes: bool


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
        phases: Further passes over the same memories, see `Phase`; one call each, one write.
        limit: Most memories to recall.
        max_tokens: Most tokens of the recalled text.
    """

    schemas: tuple[Schema, ...] = (str,)
    instructions: str = described(INSTRUCTIONS, "What to keep.")
    enable_inserts: bool = described(default=True, description="The model may add memories.")
    enable_updates: bool = described(default=True, description="It may change known ones.")
    enable_deletes: bool = described(default=False, description="It may archive known ones.")
    query_limit: int = described(5, "Known memories shown to the extraction.")
    phases: tuple[Phase, ...] = ()
    limit: int = described(10, "Most memories to recall.")
    max_tokens: int = described(2000, "Most tokens of the recalled text.")

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        self.require(least={"query_limit": 1, "limit": 0, "max_tokens": 1})
        known = Phase.__annotations__
        unknown = sorted({name for each in self.phases for name in each if name not in known})
        if unknown:
            msg = f"Unknown setting {unknown[0]!r} of a phase; it has {sorted(known)}."
            raise ConfigurationError(msg)

    def pass_number(self, number: int) -> Pass:
        """Return what the extraction (0) or a phase (1, 2, ...) may see and do."""
        if number == 0:
            flags = (self.enable_inserts, self.enable_updates, self.enable_deletes)
            return Pass(self.instructions, _permitted(*flags))
        phase = self.phases[number - 1]
        names = ("enable_inserts", "enable_updates", "enable_deletes")
        return Pass(
            phase.get("instructions", PHASE_INSTRUCTIONS),
            _permitted(*(bool(phase.get(name, True)) for name in names)),
            sees_messages=phase.get("include_messages", False),
        )


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the memories.

    Attributes:
        instructions: What to do.
        actions: What it may propose.
        sees_messages: Whether it sees the conversation.
    """

    instructions: str
    actions: tuple[Action, ...]
    sees_messages: bool = True


def _permitted(*flags: bool) -> tuple[Action, ...]:
    actions: tuple[Action, ...] = ("create", "update", "delete")
    return tuple(name for name, allowed in zip(actions, flags, strict=True) if allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one extraction is about.

    Attributes:
        shown: The known memories; their handles are "0", "1", ...
        said: The conversation; empty where it is not shown.
        instructions: What to do.
        rules: What may be proposed.
        purpose: Name of the call in the ledger.
    """

    shown: Sequence[Draft]
    said: Sequence[Turn]
    instructions: str
    rules: Rules
    purpose: str = "extract"


class Extractor(Protocol):
    """Proposes changes in place of `LangMem`'s own call, such as a `LangMemExtractor`."""

    def propose(self, request: Request) -> Steps[Decision[ProposedMemories]]:
        """Return what should change; a value of None where nothing usable came."""


class Queries(Proposal):
    """What a model would search the memory with."""

    queries: list[str]


class LangMemState(WriteState, total=False):
    """State of the remember graph."""

    queries: Annotated[list[str], UntrackedValue]
    drafts: Annotated[list[Any], UntrackedValue]
    phase: Annotated[int, UntrackedValue]
    phases_left: Annotated[int, UntrackedValue]
    proposed: Annotated[Any, UntrackedValue]
    cause: Annotated[Any, UntrackedValue]


class LangMem(WrittenMemory):
    """Memories of your own schemas, written by one model call a conversation.

    A `query_model` costs one call more, and so does each phase.

    Args:
        query_model: A model, or its name, that writes the queries to search known memories with;
            without one the last 1, 2, 4 messages and the whole conversation are the queries.
        default: What to keep under the key `default` in a namespace that holds nothing yet.
        default_factory: Makes the default from the config of the call.
        extractor: Proposes the changes in place of the memory's own model call.
        **given: As for `WrittenMemory`, and the parameters of `LangMemParameters`.

    Raises:
        ConfigurationError: Both kinds of default are given, or a parameter is wrong.

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

    def __init__(
        self,
        *,
        query_model: BaseChatModel | str | None = None,
        default: Default | None = None,
        default_factory: Callable[[RunnableConfig], Default] | None = None,
        extractor: Extractor | None = None,
        **given: Any,  # noqa: ANN401 - Memory's own
    ) -> None:
        if "schemas" in given:
            given["schemas"] = tuple(given["schemas"])
        if default is not None and default_factory is not None:
            msg = "Give default or default_factory, not both."
            raise ConfigurationError(msg)
        super().__init__(**given)
        self.query_model = query_model
        self.default_factory = default_factory
        self.default = default
        self.extractor = extractor

    def remember_flow(self) -> Flow:
        """Return `query, recall, take_default, extract, validate, phase, apply`."""
        return self._flow(LangMemState)

    def write_steps(self) -> tuple[Step, ...]:
        """Return the steps of a consolidation; `phase` and `validate` once for each phase."""
        return (
            Step("query", self._query),
            Step("recall", self._recall),
            Step("take_default", self._take_default),
            Step("extract", self._extract, _after_extract, ("validate", END)),
            Step("validate", self._validate, _after_validate, ("phase", "apply")),
            Step("phase", self._phase, lambda _: "validate", ("validate",)),
            Step("apply", self._apply),
        )

    def _query(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Write what to search known memories with."""
        return {"queries": (yield from self.queries(turns_of(state["turns"])))}

    def queries(self, said: Sequence[Turn]) -> Steps[list[str]]:
        """Return what to search a memory with for a conversation: by the query model, if any."""
        if self.query_model is not None:
            language = yield from extraction.language_rule()
            decision: Decision[Queries] = yield from extraction.decide(
                Queries,
                purpose="query",
                instructions=QUERY.format(language=language),
                data=said_lines(said),
                model=self.query_model,
            )
            written = decision.value.queries if decision.value else []
            queries = [each for each in dict.fromkeys(written) if each.strip()]
            if queries:
                return queries[:_MOST_QUERIES]
        return _windows(said)

    def _recall(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Find what is known, taking the best of each query in turn."""
        params: LangMemParameters = yield from self.settings()
        home = yield from self.scope()
        found: list[list[StoredMemory]] = []
        for query in state["queries"]:
            found += [(yield from arms.nearest(home, query, params.query_limit))]
        known: dict[str, StoredMemory] = {}
        for rank in range(params.query_limit):
            for each in (ranking[rank] for ranking in found if rank < len(ranking)):
                known.setdefault(each.key, each)
        return {"drafts": [Draft.of(each) for each in known.values()][: params.query_limit]}

    def _take_default(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Begin with the default where nothing is known; it is written with the rest."""
        default = None if state["drafts"] else (yield from self._default())
        return {"phase": 0, **({"drafts": [default]} if default else {})}

    def _default(self) -> Steps[Draft | None]:
        """Return the default's draft, as stored if it is; None without one, or if it was closed.

        Raises:
            ConfigurationError: The default fits no schema.
        """
        default = self.default
        if self.default_factory is not None:
            config = yield from CallConfig()
            default = yield from Call(self.default_factory, (config,))
        if default is None:
            return None
        params: LangMemParameters = yield from self.settings()
        (stored,) = yield from journal.read([((yield from self.scope()), DEFAULT_KEY)])
        if stored is None:
            return _coerced(default, self._rules(params))
        return Draft.of(stored) if stored.item.status == "active" else None

    def _rules(self, params: LangMemParameters, actions: Sequence[Action] = ()) -> Rules:
        return Rules(schemas=params.schemas, actions=actions, clean=self.clean)

    def _extract(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Ask for changes; one that names an unknown memory is repaired once."""
        decision = yield from self._asked(state, 0)
        cause = origin.cause(turns_of(state["turns"]), decision)
        if decision.value is None:
            kept = yield from self.keep_unread(state, decision)
            return {"proposed": None, "memory_operations": kept}
        return {"proposed": decision.value, "cause": cause}

    def _phase(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Ask once more over the memories as they are now; a useless reply changes nothing."""
        number = state["phase"] + 1
        decision = yield from self._asked(state, number)
        failed = unusable(decision) if decision.value is None else []
        return {
            "phase": number,
            "proposed": decision.value or ProposedMemories(memories=[]),
            "memory_operations": [*state["memory_operations"], *failed],
        }

    def _asked(self, state: Mapping[str, Any], number: int) -> Steps[Decision[ProposedMemories]]:
        params: LangMemParameters = yield from self.settings()
        current = params.pass_number(number)
        request = Request(
            shown=drafts.shown(state["drafts"]),
            said=turns_of(state["turns"]) if current.sees_messages else [],
            instructions=current.instructions,
            rules=self._rules(params, current.actions),
            purpose="phase" if number else "extract",
        )
        if not request.shown and not request.said:
            return Decision(value=ProposedMemories(memories=[]))
        propose = self.extractor.propose if self.extractor else _propose
        return (yield from propose(request))

    def _validate(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Put permitted changes into the drafts, one a memory; report the rest."""
        params: LangMemParameters = yield from self.settings()
        home = yield from self.scope()
        rules = self._rules(params, params.pass_number(state["phase"]).actions)
        proposed: ProposedMemories = state["proposed"]
        kept, refused = drafts.edited(state["drafts"], proposed.memories, rules)
        for each in refused:
            yield from Emit("operation_rejected", {"event_kind": each.action, "why": each.reason})
        reported = [each.operation(home, state["cause"]).to_dict() for each in refused]
        is_first = not state["phase"] and len(refused) == len(proposed.memories)
        if is_first and any(each.action in rules.actions for each in refused):
            reported += yield from self.keep_turns(state)
        return {
            "drafts": kept,
            "memory_operations": [*state["memory_operations"], *reported],
            "phases_left": len(params.phases) - state["phase"],
        }

    def _apply(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Write all in one batch; a memory changed meanwhile is read and changed once more."""
        home = yield from self.scope()
        kept: list[Draft] = list(state["drafts"])
        said_at = turns_of(state["turns"])[-1].observed_at
        retried: set[str] = set()
        rejected: list[MemoryOperation] = []
        for _ in range(_ATTEMPTS):
            operations = yield from drafts.operations(home, kept, state["cause"], said_at)
            try:
                applied = yield from self.apply(operations, state["cause"])
            except ConflictError as conflict:
                fixed = {each.origin.key if each.origin else each.key for each in kept}
                lost = {key for _, key in conflict.conflicts if key in fixed}
                rejected += [
                    op.rejected("it was changed meanwhile, twice")
                    for op in operations
                    if op.key in lost & retried
                ]
                kept = yield from drafts.reread(home, kept, lost, twice=retried)
                retried |= lost
            else:
                done = [*state["memory_operations"], *(op.to_dict() for op in applied)]
                return {"memory_operations": [*done, *(op.to_dict() for op in rejected)]}
        msg = "Other writers changed the same memories a hundred times in a row; try again later."
        raise RuntimeError(msg)

    def _search(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Find the most similar memories of every level the call may read."""
        params: LangMemParameters = yield from self.settings()
        limit = limit_of(state, params.limit)
        best = yield from self.best_of_levels(state, query=query_of(state), limit=limit)
        return {"memories": [each.to_dict() for each in best]}


def _after_extract(state: Mapping[str, Any]) -> str:
    return "validate" if state["proposed"] is not None else END


def _after_validate(state: Mapping[str, Any]) -> str:
    return "phase" if state["phases_left"] else "apply"


def _windows(said: Sequence[Turn]) -> list[str]:
    """Return the texts of the last 1, 2, 4, ... messages, and of the whole conversation."""
    sizes = [1 << power for power in range(_WINDOWS - 1) if 1 << power < len(said)]
    texts = [turn.content for turn in said]
    return list(dict.fromkeys("\n".join(texts[-size:]) for size in (*sizes, len(said))))


def _coerced(default: Default, rules: Rules) -> Draft:
    """Return a default as a draft under its key.

    Raises:
        ConfigurationError: It fits no schema.
    """
    if isinstance(default, BaseModel):
        content, kind = default.model_dump(mode="json"), type(default).__name__
        return Draft(content=content, kind=kind, key=DEFAULT_KEY)
    if isinstance(default, str) and str in rules.schemas:
        return Draft(content=default, key=DEFAULT_KEY)
    for model in rules.models.values():
        try:
            content = model.model_validate(default).model_dump(mode="json")
        except ValueError:
            continue
        return Draft(content=content, kind=model.__name__, key=DEFAULT_KEY)
    names = [each.__name__ for each in rules.schemas]
    msg = f"The default {str(default)[:80]!r} fits none of the schemas {names}."
    raise ConfigurationError(msg)


def _propose(request: Request) -> Steps[Decision[ProposedMemories]]:
    """Ask the memory's own model."""
    language = yield from extraction.language_rule()
    rules = request.rules
    return (
        yield from extraction.decide(
            ProposedMemories,
            purpose=request.purpose,
            instructions=EXTRACT.format(
                instructions=request.instructions,
                actions=", ".join(rules.actions),
                kinds=_kinds(rules.models.values()),
                language=language,
            ),
            data=_data(request),
            check=lambda value: drafts.problems(request.shown, value.memories, rules),
        )
    )


def _kinds(models: Iterable[type[BaseModel]]) -> str:
    shapes = "; ".join(f"{each.__name__}: {shape_of(each)}" for each in models)
    return f", of one of these kinds, named in `kind`: {shapes}" if shapes else ", as text"


def _data(request: Request) -> str:
    rows = as_lines(
        {"id": str(number), "kind": each.kind, "content": each.content}
        for number, each in enumerate(request.shown)
    )
    parts = {"Known memories": rows, "Conversation": said_lines(request.said)}
    return "\n\n".join(f"{name}:\n{shown}" for name, shown in parts.items() if shown)
