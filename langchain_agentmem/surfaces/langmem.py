"""LangMem's store manager under its own names: change the import, keep the code.

`create_memory_store_manager` gives a `MemoryStoreManager` with LangMem's arguments and methods, on
the memory `LangMem`. What differs is what LangMem loses: deletes archive, writes of other code are
not overwritten, and a memory's history and undo are there (`manager.memory`).
`create_memory_searcher` finds what concerns a conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from langchain_core.runnables import Runnable
from langgraph.store.base import Item, SearchItem
from pydantic import BaseModel, ValidationError

from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.memories.langmem import INSTRUCTIONS, Default, LangMem, Phase
from langchain_agentmem.messages import to_messages
from langchain_agentmem.parameters import needed
from langchain_agentmem.scopes import running
from langchain_agentmem.steps import arms, journal
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Get, Now, Search, Steps
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.steps.intake import hear

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import RunnableConfig
    from langgraph.store.base import BaseStore

_CAUSE: Final = Cause(surface="manager")


class Memory(BaseModel):
    """A memory in words, the schema where none is given."""

    content: str


def create_memory_store_manager(
    model: BaseChatModel | str,
    /,
    *,
    schemas: Sequence[type[BaseModel]] | None = None,
    instructions: str = INSTRUCTIONS,
    default: Default | None = None,
    default_factory: Callable[[RunnableConfig], Default] | None = None,
    enable_inserts: bool = True,
    enable_deletes: bool = False,
    query_model: BaseChatModel | str | None = None,
    query_limit: int = 5,
    namespace: tuple[str, ...] = ("memories", "{langgraph_user_id}"),
    store: BaseStore | None = None,
    phases: Sequence[Phase] | None = None,
) -> MemoryStoreManager:
    """Return a manager that keeps memories in a store up to date with conversations.

    Args:
        model: A chat model or its name for `init_chat_model`.
        schemas: What memories are made of; text where none is given.
        instructions: What to keep.
        default: What a namespace that holds nothing begins with, under the key `default`.
        default_factory: Makes the default from the config of the call.
        enable_inserts: Whether the model may add memories.
        enable_deletes: Whether it may archive them.
        query_model: Writes the queries that known memories are searched with.
        query_limit: How many known memories the model is shown.
        namespace: Where the memories lie.
        store: A LangGraph store; without it the running graph's.
        phases: Further passes over the memories.

    Raises:
        ConfigurationError: An argument is wrong.

    Example:
        ```python
        manager = create_memory_store_manager("openai:gpt-4o-mini", store=store)
        config = {"configurable": {"langgraph_user_id": "ann"}}
        manager.invoke({"messages": [{"role": "user", "content": "I like tea."}]}, config)
        manager.search(query="drinks", config=config)[0].value.content
        ```
    """
    memory = LangMem(
        model=model,
        schemas=tuple(schemas or (str,)),
        instructions=instructions,
        default=default,
        default_factory=default_factory,
        enable_inserts=enable_inserts,
        enable_deletes=enable_deletes,
        query_model=query_model,
        query_limit=query_limit,
        namespace=namespace,
        store=store,
        phases=tuple(phases or ()),
    )
    return MemoryStoreManager(memory)


def create_memory_searcher(
    model: BaseChatModel | str,
    *,
    namespace: tuple[str, ...] = ("memories", "{langgraph_user_id}"),
    store: BaseStore | None = None,
) -> MemorySearcher:
    """Return a searcher whose model writes the queries: a conversation in, its memories out.

    Args:
        model: The chat model that writes the queries, or its name.
        namespace: Where the memories lie.
        store: A LangGraph store; without it the running graph's.

    Example:
        ```python
        searcher = create_memory_searcher("openai:gpt-4o-mini", store=store)
        searcher.invoke({"messages": [{"role": "user", "content": "What do I like?"}]}, config)
        ```
    """
    return MemorySearcher(LangMem(query_model=model, namespace=namespace, store=store))


class MemorySearcher(Runnable[dict[str, Any], list[SearchItem]]):
    """Finds the memories that concern a conversation; made by `create_memory_searcher`.

    Args:
        memory: What is searched, with its query model.
        limit: Most memories for each query.
    """

    def __init__(self, memory: LangMem, *, limit: int = 10) -> None:
        self.memory = memory
        self.limit = limit

    def invoke(
        self,
        input: Mapping[str, Any],  # noqa: A002 - LangMem's name
        config: RunnableConfig | None = None,
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[SearchItem]:
        """Return the memories that concern `input["messages"]`, best first, each once."""
        return run(self._steps(input), self.memory.environment(config, _context()))

    async def ainvoke(
        self,
        input: Mapping[str, Any],  # noqa: A002 - LangMem's name
        config: RunnableConfig | None = None,
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[SearchItem]:
        """Return the memories that concern a conversation; the async twin of `invoke`."""
        return await arun(self._steps(input), self.memory.environment(config, _context()))

    def _steps(self, given: Mapping[str, Any]) -> Steps[list[SearchItem]]:
        (messages,) = needed(given, "messages")
        said = yield from hear(to_messages(messages))
        home = yield from self.memory.scope()
        best: dict[str, StoredMemory] = {}
        for query in (yield from self.memory.queries(said)) if said else []:
            for each in (yield from arms.nearest(home, query, self.limit)):
                known = best.get(each.key)
                if known is None or (each.score or 0.0) > (known.score or 0.0):
                    best[each.key] = each
        return [_item(each, each.item.to_value()) for each in arms.ranked(list(best.values()))]


class MemoryStoreManager(Runnable[dict[str, Any], list[dict[str, Any]]]):
    """Keeps memories up to date, and reads and writes them by key.

    Args:
        memory: The memory behind it, with `history`, `undo`, `forget` and graphs.
    """

    def __init__(self, memory: LangMem) -> None:
        self.memory = memory

    def invoke(
        self,
        input: Mapping[str, Any],  # noqa: A002 - LangMem's name
        config: RunnableConfig | None = None,
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[dict[str, Any]]:
        """Bring the memories up to date with `input["messages"]`.

        Returns:
            What was put: a `namespace`, a `key` and a `value` for each.

        Raises:
            ConfigurationError: The input has no `messages`.
        """
        (messages,) = needed(input, "messages")
        return _puts(self.memory.remember(messages, config=config, context=_context()))

    async def ainvoke(
        self,
        input: Mapping[str, Any],  # noqa: A002 - LangMem's name
        config: RunnableConfig | None = None,
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[dict[str, Any]]:
        """Bring the memories up to date; the async twin of `invoke`."""
        (messages,) = needed(input, "messages")
        return _puts(await self.memory.aremember(messages, config=config, context=_context()))

    async def __call__(self, messages: Sequence[Any]) -> list[dict[str, Any]]:
        """Bring the memories up to date, in LangMem's short form."""
        return await self.ainvoke({"messages": messages})

    def get(self, key: str, *, config: RunnableConfig | None = None) -> Item | None:
        """Return one memory, its value in its schema; None if there is none."""
        return run(self._get(key), self._environment(config))

    async def aget(self, key: str, *, config: RunnableConfig | None = None) -> Item | None:
        """Return one memory; the async twin of `get`."""
        return await arun(self._get(key), self._environment(config))

    def search(
        self,
        *,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangMem's name
        limit: int = 10,
        offset: int = 0,
        config: RunnableConfig | None = None,
    ) -> list[SearchItem]:
        """Return the best matches, their values in their schemas."""
        return run(self._search(query, filter, limit, offset), self._environment(config))

    async def asearch(
        self,
        *,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangMem's name
        limit: int = 10,
        offset: int = 0,
        config: RunnableConfig | None = None,
    ) -> list[SearchItem]:
        """Return the best matches; the async twin of `search`."""
        return await arun(self._search(query, filter, limit, offset), self._environment(config))

    def put(
        self,
        key: str,
        value: Mapping[str, Any],
        *,
        ttl: float | None = None,
        config: RunnableConfig | None = None,
    ) -> None:
        """Store a memory under a key; what was there stays in the history.

        Args:
            key: The key.
            value: `{"kind", "content"}`, `{"content"}` or any other JSON object.
            ttl: Minutes after which it is not shown any more.
            config: The call's config.

        Raises:
            ConflictError: Another writer changed it at the same moment.
        """
        run(self._put(key, value, ttl), self._environment(config))

    async def aput(
        self,
        key: str,
        value: Mapping[str, Any],
        *,
        ttl: float | None = None,
        config: RunnableConfig | None = None,
    ) -> None:
        """Store a memory under a key; the async twin of `put`."""
        await arun(self._put(key, value, ttl), self._environment(config))

    def delete(self, key: str, config: RunnableConfig | None = None) -> None:
        """Archive a memory: it is gone from reads and searches; `memory.forget` erases it."""
        run(self._delete(key), self._environment(config))

    async def adelete(self, key: str, config: RunnableConfig | None = None) -> None:
        """Archive a memory; the async twin of `delete`."""
        await arun(self._delete(key), self._environment(config))

    def _environment(self, config: RunnableConfig | None) -> Environment:
        return self.memory.environment(config, _context())

    def _get(self, key: str) -> Steps[Item | None]:
        (found,) = yield from Get([((yield from self.memory.scope()), key)])
        now = yield from Now()
        return self._item(found) if found is not None and found.item.is_current(now) else None

    def _search(
        self, query: str | None, condition: Mapping[str, Any] | None, limit: int, offset: int
    ) -> Steps[list[SearchItem]]:
        home = yield from self.memory.scope()
        wanted = Search(home, query, limit=limit, offset=offset, filter=condition)
        now = yield from Now()
        found = yield from wanted
        return [self._item(each) for each in found if each.item.is_current(now)]

    def _put(self, key: str, value: Mapping[str, Any], ttl: float | None) -> Steps[None]:
        home = yield from self.memory.scope()
        now = yield from Now()
        (stored,) = yield from journal.read([(home, key)])
        given = MemoryItem.from_value(value)
        item = MemoryItem(
            content=given.content,
            kind=given.kind,
            metadata=given.metadata,
            observed_at=given.observed_at or now,
            expires_at=None if ttl is None else now + timedelta(minutes=ttl),
        )
        op = journal.successor((home, key), stored.item if stored else None, item, _CAUSE)
        yield from journal.apply([op])

    def _delete(self, key: str) -> Steps[None]:
        home = yield from self.memory.scope()
        (stored,) = yield from Get([(home, key)])
        if stored is not None:
            after = replace(stored.item, status="archived", version=stored.item.version + 1)
            op = MemoryOperation(
                event="DELETE",
                namespace=home,
                key=key,
                before=stored.item,
                after=after,
                cause=_CAUSE,
            )
            yield from journal.apply([op])

    def _item(self, stored: StoredMemory) -> SearchItem:
        return _item(stored, self._value(stored))

    def _value(self, stored: StoredMemory) -> BaseModel | dict[str, Any]:
        """Return a value in its schema; as it is where it has none, or does not fit it."""
        schemas = self.memory.parameters.schemas  # type: ignore[attr-defined]  # LangMem's own
        models = {each.__name__: each for each in schemas if issubclass(each, BaseModel)}
        model = models.get(stored.item.kind)
        if model is None and isinstance(stored.content, str):
            return Memory(content=stored.content)
        try:
            return model.model_validate(stored.content) if model else stored.item.to_value()
        except ValidationError:
            return stored.item.to_value()


def _item(stored: StoredMemory, value: BaseModel | dict[str, Any]) -> SearchItem:
    return SearchItem(
        namespace=stored.namespace,
        key=stored.key,
        value=value,  # type: ignore[arg-type]  # as LangMem gives it
        created_at=stored.created_at,  # type: ignore[arg-type]  # a stored item has its times
        updated_at=stored.updated_at,  # type: ignore[arg-type]  # as above
        score=stored.score,
    )


def _context() -> Any:  # noqa: ANN401 - any context type is allowed by LangGraph
    """Return the context of the graph run that the manager is called in."""
    return getattr(running(), "context", None)


def _puts(operations: Sequence[MemoryOperation]) -> list[dict[str, Any]]:
    return [
        {"namespace": op.namespace, "key": op.key, "value": op.after.to_value()}
        for op in operations
        if op.status == "applied" and op.event in ("ADD", "UPDATE") and op.after is not None
    ]
