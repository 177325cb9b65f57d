"""What the drivers perform effects with: store, model, clock, randomness, scope and stream."""

from __future__ import annotations

import logging
import random
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.scopes import Scope, current_scope, running
from langchain_agentmem.steps.effects import (
    Ask,
    CallConfig,
    Draw,
    Effect,
    Emit,
    Guard,
    HasModel,
    HasWiderSearch,
    ModelName,
    NewId,
    Now,
    P,
    Put,
    Ref,
    Resolve,
    Search,
    Setting,
    Settings,
    Spent,
    StoreEmbeddings,
)

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import Runnable
    from langgraph.store.base import Op

V = TypeVar("V")
Clock = Callable[[], datetime]
Emitter = Callable[[dict[str, Any]], None]

logger = logging.getLogger(__name__)

DRY_RUN: Final = "dry_run"
"""Name of the setting of a call that writes nothing and tells what it would write."""


def utc_now() -> datetime:
    """Return the present time, aware, in UTC: the default clock."""
    return datetime.now(UTC)


@lru_cache(maxsize=16)
def _chat_model(name: str, temperature: float | None = None) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    if temperature is None:
        return init_chat_model(name)
    return init_chat_model(name, temperature=temperature)


@dataclass(frozen=True, slots=True, eq=False)
class _Same(Generic[V]):
    """Something that equals itself alone, whether it can be hashed or not."""

    value: V

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@lru_cache(maxsize=64)
def _structured(
    model: _Same[BaseChatModel], schema: _Same[Mapping[str, Any]]
) -> Runnable[Any, Any]:
    """Bind a model to a schema by its own means; one without any is asked in words alone.

    What LangChain puts behind the bound model, to parse its reply, is left out: replies are read
    here, and running both in parallel costs more than all else.
    """
    from langchain_core.runnables import RunnableParallel, RunnableSequence

    try:
        bound = model.value.with_structured_output(deepcopy(dict(schema.value)), include_raw=True)
    except NotImplementedError:
        return model.value
    if isinstance(bound, RunnableSequence) and isinstance(bound.first, RunnableParallel):
        return bound.first.steps__.get("raw", bound)
    return bound


def _name_of(model: BaseChatModel | str | None) -> str | None:
    if model is None or isinstance(model, str):
        return model
    for attribute in ("model_name", "model", "model_id"):
        found = getattr(model, attribute, None)
        if isinstance(found, str) and found:
            return found
    return type(model).__name__


@dataclass(slots=True)
class Ledger:
    """Counts what a run of steps cost.

    Attributes:
        calls: Model calls by purpose.
        input_tokens: Tokens the model read, as far as it reports them.
        output_tokens: Tokens the model wrote, as far as it reports them.
    """

    calls: Counter[str] = field(default_factory=Counter)
    input_tokens: int = 0
    output_tokens: int = 0

    def count(self, purpose: str, reply: AIMessage) -> None:
        """Add one model call."""
        self.calls[purpose] += 1
        if usage := reply.usage_metadata:
            self.input_tokens += usage["input_tokens"]
            self.output_tokens += usage["output_tokens"]

    def add(self, spent: Spent) -> None:
        """Add calls that another package made."""
        self.calls[spent.purpose] += spent.calls
        self.input_tokens += spent.input_tokens
        self.output_tokens += spent.output_tokens

    def added_to(self, usage: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the counts, added to those of earlier steps, as plain JSON for graph state."""
        before = usage or {}
        calls = Counter(before.get("calls", {})) + self.calls
        return {
            "calls": dict(calls),
            "input_tokens": before.get("input_tokens", 0) + self.input_tokens,
            "output_tokens": before.get("output_tokens", 0) + self.output_tokens,
        }


@dataclass(slots=True, kw_only=True)
class Environment:
    """Everything outside of a step: store, model, clock, randomness, scope, stream.

    Attributes:
        store: The LangGraph store of this call, or None.
        scope: Context and config of this call.
        model: The chat model, its name for `init_chat_model`, or None.
        embeddings: The embedding model of `Embed` effects, or None.
        clock: Gives the present time.
        rng: Gives randomness.
        emitter: Takes events; the graph's stream writer inside of a run.
        ledger: Counts the calls.
        guard: What must still hold for this call to write anything.
    """

    store: BaseStore | None = None
    scope: Scope = field(default_factory=Scope)
    model: BaseChatModel | str | None = None
    embeddings: Embeddings | None = None
    clock: Clock = utc_now
    rng: random.Random = field(default_factory=random.Random)
    emitter: Emitter | None = None
    ledger: Ledger = field(default_factory=Ledger)
    guard: Guard | None = None

    @classmethod
    def of_run(cls, model: BaseChatModel | str | None = None) -> Self:
        """Return what steps without a store run with: a model, and the running graph's scope.

        A call's context or config may name another model.
        """
        scope, emitter = current_scope(), getattr(running(), "stream_writer", None)
        return cls(model=scope.resolve("model", None) or model, scope=scope, emitter=emitter)

    @property
    def searches_exactly(self) -> bool:
        """Whether the store can search one namespace without those below it."""
        return hasattr(self.store, "search_op")

    def search_op(self, search: Search) -> Any:  # noqa: ANN401 - SearchOp or the store's own wider one
        """Return the store operation for a search, with the extensions the store has."""
        common: dict[str, Any] = {
            "filter": dict(search.filter) if search.filter else None,
            "limit": search.limit,
            "offset": search.offset,
            "query": search.query,
            "refresh_ttl": False,
        }
        make = getattr(self.store, "search_op", None)
        if make is not None:
            mode = search.mode if getattr(self.store, "embeddings", None) else "lexical"
            return make(search.namespace, mode=mode, exact=search.exact, **common)
        return SearchOp(search.namespace, **common)

    def get_op(self, ref: Ref) -> GetOp:
        """Return the store operation that reads one item without touching its expiry."""
        return GetOp(*ref, refresh_ttl=False)

    def namespaces_op(self, prefix: tuple[str, ...], limit: int, offset: int) -> ListNamespacesOp:
        """Return the store operation that lists the namespaces below a prefix."""
        conditions = (MatchCondition("prefix", prefix),) if prefix else None
        return ListNamespacesOp(match_conditions=conditions, limit=limit, offset=offset)

    def keeps_back(self, ops: Sequence[Op]) -> bool:
        """Tell whether operations write something although the call is a dry run."""
        writes = any(isinstance(op, PutOp) for op in ops)
        return writes and bool(self.scope.resolve(DRY_RUN, default=False))

    def put_op(self, put: Put, now: datetime) -> PutOp:
        """Return the store operation for a put.

        The store's time to live only collects what has expired; expiry itself is decided at read
        by the clock. A store without that ability simply keeps expired items longer.
        """
        ttl = None
        if put.expires_at is not None and getattr(self.store, "supports_ttl", False):
            ttl = max((put.expires_at - now).total_seconds() / 60, 1 / 60)
        value = dict(put.value) if put.value is not None else None
        return PutOp(put.namespace, put.key, value, index=put.index, ttl=ttl)

    def the_store(self) -> BaseStore:
        """Return the store.

        Raises:
            ConfigurationError: There is none.
        """
        if self.store is None:
            msg = (
                "No store: pass store=FaissSqliteStore('memory.sqlite') to the memory or tool, or "
                "compile the graph with one (builder.compile(store=store), "
                "create_agent(..., store=store))."
            )
            raise ConfigurationError(msg)
        return self.store

    def runnable(self, ask: Ask) -> Runnable[Any, Any]:
        """Return the model prepared for one call.

        Raises:
            ConfigurationError: There is no model.
        """
        given = self.model if ask.model is None else ask.model
        if given is None:
            msg = f"The step {ask.purpose!r} needs a chat model: pass model='provider:name'."
            raise ConfigurationError(msg)
        model = _chat_model(given, ask.temperature) if isinstance(given, str) else given
        if ask.tools:
            choice = {"tool_choice": ask.tool_choice} if ask.tool_choice else {}
            return model.bind_tools(list(ask.tools), **choice)
        if ask.response_schema is not None:
            return _structured(_Same(model), _Same(ask.response_schema))
        return model

    def received(self, ask: Ask, reply: Any) -> AIMessage:  # noqa: ANN401 - a message, or one in a dict
        """Count a reply, and return it without what structured output has put around it."""
        message: AIMessage = reply["raw"] if isinstance(reply, dict) else reply
        self.ledger.count(ask.purpose, message)
        return message

    def received_or_raised(self, ask: Ask, reply: Any) -> AIMessage | Exception:  # noqa: ANN401 - as above
        """Count a reply; what a call raised is returned as it is."""
        return reply if isinstance(reply, Exception) else self.received(ask, reply)

    def the_embeddings(self) -> Embeddings:
        """Return the embedding model: the one given, else the store's own.

        Raises:
            ConfigurationError: There is none.
        """
        found = self.embeddings or getattr(self.store, "embeddings", None)
        if found is None:
            msg = "This memory needs an embedding model: pass embeddings=... or an indexed store."
            raise ConfigurationError(msg)
        return found

    def perform_plain(self, effect: Effect[Any]) -> Any:  # noqa: ANN401, PLR0911 - one line an effect
        """Perform an effect that waits for nothing.

        Raises:
            TypeError: It is not an effect this driver knows.
        """
        match effect:
            case Now():
                return self.clock()
            case Resolve(template):
                return template.resolve(self.scope)
            case Setting(name, default):
                return self.scope.resolve(name, default)
            case NewId():
                return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
            case Draw(count):
                return [self.rng.random() for _ in range(count)]
            case Emit() | Spent() | Guard():
                return self._note(effect)
            case Settings(defaults, preset):
                return self._settings(defaults, preset)
            case HasModel() | HasWiderSearch() | ModelName() | CallConfig() | StoreEmbeddings():
                return self._tell(effect)
        msg = f"{effect!r} is not an effect the drivers know."
        raise TypeError(msg)

    def _note(self, effect: Emit | Spent | Guard) -> None:
        """Report an event, count model calls, or keep what writes rely on."""
        if isinstance(effect, Guard):
            self.guard = effect
        elif isinstance(effect, Spent):
            self.ledger.add(effect)
        else:
            self._emit({"event": effect.event, **effect.data})

    def _tell(self, effect: Effect[Any]) -> bool | str | dict[str, Any] | Embeddings | None:
        """Tell what this environment has."""
        match effect:
            case CallConfig():
                return {"configurable": dict(self.scope.configurable)}
            case HasModel():
                return self.model is not None
            case HasWiderSearch():
                return self.searches_exactly
            case StoreEmbeddings():
                return getattr(self.store, "embeddings", None)
        return _name_of(self.model)

    def _settings(self, defaults: P, own_preset: str) -> P:
        preset = self.scope.chosen("preset", own_preset) or own_preset
        base = defaults if preset == own_preset else type(defaults).of(str(preset))
        given: dict[str, Any] = {}
        for each in fields(base):
            found = self.scope.chosen(each.name, getattr(defaults, each.name))
            if found is not None:
                given[each.name] = base.fit(each.name, found)
        return replace(base, **given) if given else base

    def _emit(self, event: dict[str, Any]) -> None:
        logger.debug("%s", event)
        if self.emitter is not None:
            self.emitter(event)
