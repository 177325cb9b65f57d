"""The effects a step can ask for.

`found = yield from Search(...)` gives a typed result; `found = yield Search(...)` gives the same
value untyped, which is how a test drives a step by hand.

There are few *primitive* effects, which the drivers perform (`StoreCall`, `Ask`, `AskEach`,
`Embed`, `Call`, `Now`, `NewId`, `Draw`, `Emit`, `Spent`, `Resolve`, `Settings`), and *composite*
ones, which are written in terms of the primitive ones (`Search`, `Get`, `List`, `Namespaces`,
`Keys`, `Write`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.items import StoredMemory

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.store.base import Op, SearchItem

    from langchain_agentmem.parameters import Parameters
    from langchain_agentmem.scopes import NamespaceTemplate
    from langchain_agentmem.steps.environment import Environment

R = TypeVar("R")
P = TypeVar("P", bound="Parameters")
Namespace: TypeAlias = tuple[str, ...]
Ref: TypeAlias = tuple[Namespace, str]
"""Namespace and key of one stored item."""
_LEAF_PAGE = 50
SearchMode: TypeAlias = Literal["dense", "lexical", "hybrid"]


class Effect(Generic[R]):
    """Something a step needs from the outside; its result has type `R`."""

    __slots__ = ()

    def __iter__(self) -> Generator[Effect[Any], Any, R]:
        """Yield the effect itself and return what the driver sends back."""
        result: R = yield self
        return result


Steps: TypeAlias = Generator[Effect[Any], Any, R]
"""A step in progress: yields effects, receives their results, returns an `R`."""


class Composite(Effect[R]):
    """An effect that is carried out by yielding other effects."""

    __slots__ = ()

    def steps(self, env: Environment) -> Steps[R]:
        """Carry the effect out."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class StoreCall(Effect[list[Any]]):
    """One batch of store operations, applied together.

    Attributes:
        ops: LangGraph store operations.
        expect: Versions that items must still have for the batch to be applied; None means that
            the item must not exist.

    Raises:
        ConflictError: An item has another version; nothing was written.
    """

    ops: Sequence[Op]
    expect: Mapping[Ref, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ask(Effect[AIMessage]):
    """One call of the chat model.

    Attributes:
        messages: What the model is shown.
        purpose: Short name of the call, e.g. `"extract"`; calls and tokens are counted by it.
        tools: Tools or schemas to bind, in any form `bind_tools` takes.
        tool_choice: Passed on to `bind_tools` where the model must call a certain tool.
        response_schema: JSON schema of the reply. The model is bound to it by its own best means
            (native structured output, or a tool call), as far as it has one.
        model: Another chat model than the memory's own, or its name; None for its own.
        temperature: Temperature of a model that is given by its name; one that the user has made
            keeps its own.
    """

    messages: Sequence[BaseMessage]
    purpose: str
    tools: Sequence[Any] = ()
    tool_choice: str | None = None
    response_schema: Mapping[str, Any] | None = None
    model: BaseChatModel | str | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Spent(Effect[None]):
    """Model calls that another package made for this step, to be counted with the others.

    Attributes:
        purpose: Short name of the calls.
        calls: How many.
        input_tokens: Tokens the model read.
        output_tokens: Tokens the model wrote.
    """

    purpose: str
    calls: int
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class CallConfig(Effect[dict[str, Any]]):
    """The config of this call, `{"configurable": {...}}`, for functions that the user gave."""


@dataclass(frozen=True, slots=True)
class AskEach(Effect["list[AIMessage | Exception]"]):
    """Several calls of the chat model at once; each gives its reply, or what it raised.

    Attributes:
        prompts: What the model is shown, call by call.
        purpose: Short name of the calls.
        at_once: Most calls at the same time.
    """

    prompts: Sequence[Sequence[BaseMessage]]
    purpose: str
    at_once: int = 8


@dataclass(frozen=True, slots=True)
class HasModel(Effect[bool]):
    """Whether a chat model is configured."""


@dataclass(frozen=True, slots=True)
class ModelName(Effect[str | None]):
    """The name of the configured chat model, as far as it tells; None without a model."""


@dataclass(frozen=True, slots=True)
class HasWiderSearch(Effect[bool]):
    """Whether the store's search is wider than LangGraph's.

    Only then it lists the newest first without a query, and its filters compare text.
    """


@dataclass(frozen=True, slots=True)
class StoreEmbeddings(Effect[Embeddings | None]):
    """The embedding model of the store's index; None without one."""


@dataclass(frozen=True, slots=True)
class Embed(Effect[list[list[float]]]):
    """Embed texts with the memory's embedding model, one vector a text.

    Attributes:
        texts: The texts.
        query: True to embed them as queries instead of documents.
    """

    texts: Sequence[str]
    query: bool = False


@dataclass(frozen=True, slots=True)
class Call(Effect[Any]):
    """One call of a function that the user gave, such as an evaluator.

    A blocking call runs the function as it is; an async one awaits it, or runs a plain function
    in a thread, with the context of the call.

    Attributes:
        function: A plain or an async function.
        arguments: Its positional arguments.
        named: Its keyword arguments.
        afunction: What async calls use instead of `function`.

    Raises:
        ConfigurationError: A blocking call met an async function.
    """

    function: Callable[..., Any]
    arguments: Sequence[Any] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    afunction: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Now(Effect[datetime]):
    """The present time of the injected clock, aware, in UTC."""


@dataclass(frozen=True, slots=True)
class NewId(Effect[str]):
    """A new random UUID (version 4) from the injected random generator."""


@dataclass(frozen=True, slots=True)
class Draw(Effect[list[float]]):
    """Numbers in [0, 1) from the injected random generator.

    Attributes:
        count: How many.
    """

    count: int = 1


@dataclass(frozen=True, slots=True)
class Emit(Effect[None]):
    """Report something to whoever watches: the graph's custom stream, and the log.

    Attributes:
        event: Name of the event, e.g. `"no_model_configured"`.
        data: Small JSON details.
    """

    event: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resolve(Effect[Namespace]):
    """The namespace of a template for the scope of this call.

    Raises:
        ConfigurationError: A variable of the template is given nowhere.
    """

    template: NamespaceTemplate


@dataclass(frozen=True, slots=True)
class Guard(Effect[None]):
    """From now on this call writes only while one item has a version; else it writes nothing.

    Attributes:
        ref: The item.
        version: Its version; None means that it must not exist.
    """

    ref: Ref
    version: int | None


@dataclass(frozen=True, slots=True)
class Setting(Effect[Any]):
    """One value of this call, such as its `thread_id`.

    Attributes:
        name: Its name.
        default: Its value where neither names it.
    """

    name: str
    default: Any = None


@dataclass(frozen=True, slots=True)
class Settings(Effect[P]):
    """The memory's parameters for this call.

    A parameter that the context or the config of the call names is taken from there; so is a
    whole preset, if another one than the memory's own is named.

    Attributes:
        defaults: The memory's own parameters.
        preset: The memory's own preset.

    Raises:
        ConfigurationError: There is no such preset, or a value is of another type than the default.
    """

    defaults: P
    preset: str = "default"


@dataclass(frozen=True, slots=True)
class Search(Composite[list[StoredMemory]]):
    """The best matches in one namespace, best first.

    Attributes:
        namespace: Where to search.
        query: Plain text; None lists instead, in the store's own order.
        limit: At most this many.
        offset: Skip so many of the best.
        filter: A LangGraph store filter on the values.
        mode: Words, vectors or both, where the store knows modes; its own search elsewhere.
        exact: Only this very namespace (the default), or everything below it too.
    """

    namespace: Namespace
    query: str | None = None
    limit: int = 10
    offset: int = 0
    filter: Mapping[str, Any] | None = None
    mode: SearchMode = "hybrid"
    exact: bool = True

    def steps(self, env: Environment) -> Steps[list[StoredMemory]]:
        """Search, leaving out deeper namespaces by paging where the store cannot."""
        if env.searches_exactly or not self.exact:
            return (yield from _page(env, self))
        wanted = self.offset + self.limit
        kept: list[SearchItem] = []
        page = replace(self, limit=max(wanted, _LEAF_PAGE), offset=0)
        while len(kept) < wanted:
            (found,) = yield from StoreCall([env.search_op(page)])
            kept += [each for each in found if tuple(each.namespace) == self.namespace]
            if len(found) < page.limit:
                break
            page = replace(page, offset=page.offset + page.limit)
        return [StoredMemory.from_store(each) for each in kept[self.offset : wanted]]


@dataclass(frozen=True, slots=True)
class SearchEach(Composite[list[list[StoredMemory]]]):
    """The results of several searches, at once where the store can.

    Attributes:
        searches: The searches.
    """

    searches: Sequence[Search]

    def steps(self, env: Environment) -> Steps[list[list[StoredMemory]]]:
        """Search in one batch, or one after the other where a search takes several."""
        if not env.searches_exactly:
            found: list[list[StoredMemory]] = []
            for search in self.searches:
                found += [(yield from search)]
            return found
        each = yield from StoreCall([env.search_op(search) for search in self.searches])
        return [[StoredMemory.from_store(one) for one in results] for results in each]


def _page(env: Environment, search: Search) -> Steps[list[StoredMemory]]:
    (found,) = yield from StoreCall([env.search_op(search)])
    return [StoredMemory.from_store(each) for each in found]


@dataclass(frozen=True, slots=True)
class Get(Composite[list[StoredMemory | None]]):
    """The items under some keys, in the order asked; None where there is none.

    Attributes:
        refs: Namespace and key of each item.
    """

    refs: Sequence[Ref]

    def steps(self, env: Environment) -> Steps[list[StoredMemory | None]]:
        """Read all in one batch."""
        if not self.refs:
            return []
        found = yield from StoreCall([env.get_op(ref) for ref in self.refs])
        return [StoredMemory.from_store(each) if each else None for each in found]


@dataclass(frozen=True, slots=True)
class List(Composite[list[StoredMemory]]):
    """All items of one namespace, newest update first.

    Attributes:
        namespace: Where to look.
        filter: A LangGraph store filter on the values.
        exact: Only this very namespace (the default), or everything below it too.
        page: How many to read at a time.
    """

    namespace: Namespace
    filter: Mapping[str, Any] | None = None
    exact: bool = True
    page: int = 1000

    def steps(self, env: Environment) -> Steps[list[StoredMemory]]:
        """Page through everything."""
        page = Search(self.namespace, limit=self.page, filter=self.filter, exact=self.exact)
        items: dict[Ref, StoredMemory] = {}
        while True:
            found = yield from _page(env, page)
            for each in found:
                if not self.exact or each.namespace == self.namespace:
                    items[each.namespace, each.key] = each
            if len(found) < page.limit:
                return sorted(items.values(), key=_updated, reverse=True)
            page = replace(page, offset=page.offset + page.limit)


def _updated(memory: StoredMemory) -> datetime:
    return memory.updated_at or datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Namespaces(Composite[list[Namespace]]):
    """All namespaces at and below a prefix that hold an item.

    Attributes:
        prefix: Leading labels.
        page: How many to read at a time.
    """

    prefix: Namespace
    page: int = 1000

    def steps(self, env: Environment) -> Steps[list[Namespace]]:
        """Page through everything."""
        names: list[Namespace] = []
        while True:
            op = env.namespaces_op(self.prefix, self.page, len(names))
            (found,) = yield from StoreCall([op])
            names += [tuple(name) for name in found]
            if len(found) < self.page:
                return names


@dataclass(frozen=True, slots=True)
class Keys(Composite[list[Ref]]):
    """Where items lie whose values nobody may be able to read; nothing where no store can tell.

    Attributes:
        prefix: Namespace at and below which to look.
        exact: Only this very namespace.
    """

    prefix: Namespace
    exact: bool = False

    def steps(self, env: Environment) -> Steps[list[Ref]]:
        """Ask the store, if it can tell."""
        keys = getattr(env.the_store(), "all_keys", None)
        if not callable(keys):
            return []
        return list((yield from Call(keys, (self.prefix,), {"exact": self.exact})))


@dataclass(frozen=True, slots=True)
class Put:
    """One item to write; a value of None deletes it.

    Attributes:
        namespace: Where.
        key: Under which key.
        value: The JSON object, or None.
        index: Store paths to index; False for none.
        expires_at: When the item may be collected, where the store can collect.
    """

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    index: list[str] | Literal[False] = False
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Write(Composite[bool]):
    """Items written together: all of them or none.

    The result is False, and nothing was written, where the call's `Guard` does not hold any more:
    the scope was erased since the work began.

    Attributes:
        puts: What to write.
        expect: Versions that items must still have; None means that the item must not exist.

    Raises:
        ConflictError: An item has another version; nothing was written.
    """

    puts: Sequence[Put]
    expect: Mapping[Ref, int | None] = field(default_factory=dict)

    def steps(self, env: Environment) -> Steps[bool]:
        """Write in one batch."""
        if not self.puts:
            return True
        now = yield from Now()
        guard = {} if env.guard is None else {env.guard.ref: env.guard.version}
        ops = [env.put_op(put, now) for put in self.puts]
        try:
            yield from StoreCall(ops, {**self.expect, **guard})
        except ConflictError as conflict:
            if guard.keys().isdisjoint(conflict.conflicts):
                raise
            yield from Emit("erased_meanwhile", {"items": len(self.puts)})
            return False
        return True
