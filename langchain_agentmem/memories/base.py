"""`Memory`: what every architecture offers, and what it gets for free."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from langgraph.store.base import BaseStore

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.items import Cause, MemoryOperation, StoredMemory
from langchain_agentmem.memories.changes import MemoryChanges, One, named, place_of
from langchain_agentmem.memories.forgetting import (
    EVERYTHING,
    Everything,
    Selector,
    cleaning,
    select,
)
from langchain_agentmem.memories.state import (
    ConsolidationReport,
    Recall,
    RecallInput,
    RecallOutput,
    RememberInput,
    RememberOutput,
    recall_input,
)
from langchain_agentmem.messages import to_messages
from langchain_agentmem.parameters import Parameters, checked_model, context_schema, with_model
from langchain_agentmem.scopes import NamespaceTemplate, Scope, current_scope, running
from langchain_agentmem.steps import erasure, journal
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Call, Ref, Resolve, Settings, Steps
from langchain_agentmem.steps.environment import (
    Clock,
    Environment,
    Ledger,
    utc_now,
)

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.runtime import Runtime

    from langchain_agentmem.messages import Conversation
    from langchain_agentmem.steps.flow import Flow

__all__ = ["EVERYTHING", "Memory", "Selector", "Template"]

Template: TypeAlias = "tuple[str, ...] | str | NamespaceTemplate"


class Memory(MemoryChanges):
    """One memory architecture: recall, remember, consolidate and forget for one scope at a time.

    Each of the first three is a LangGraph graph of visible steps (`recall_graph`,
    `remember_graph`, `consolidate_graph`) that can be added as a node to any graph, and a method
    that runs the same steps at once (`recall`, `arecall`, ...).

    Args:
        model: A chat model, or its name for `init_chat_model`; only for architectures that use one.
        namespace: Where this memory writes, e.g. `("memories", "{user_id}")`.
        read_namespaces: Further levels it may read, most specific first.
        store: A LangGraph store; without it the running graph's store is used.
        embeddings: An embedding model for architectures that embed by themselves.
        clock: Gives the present time, aware; every timestamp and expiry comes from it.
        rng: Source of randomness.
        preset: Named set of parameters.
        **parameters: The architecture's parameters, see its `Parameters`.

    Raises:
        ConfigurationError: A template, preset or parameter is wrong.
    """

    architecture: ClassVar[str]
    """Label of this architecture's namespaces."""
    graph_name: ClassVar[str | None] = None
    """Name of its graphs, where several classes share one architecture."""
    remember_asks: ClassVar[bool] = True
    """Whether `remember` asks the chat model, where there is one."""
    Parameters: ClassVar[type[Parameters]] = Parameters

    def __init__(
        self,
        *,
        model: BaseChatModel | str | None = None,
        namespace: Template = ("memories", "{user_id}"),
        read_namespaces: Sequence[Template] = (),
        store: BaseStore | None = None,
        embeddings: Embeddings | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        preset: str = "default",
        **parameters: Any,  # noqa: ANN401 - checked against the architecture's own fields
    ) -> None:
        self.namespace = NamespaceTemplate(namespace)
        self.read_namespaces = tuple(NamespaceTemplate(each) for each in read_namespaces)
        self.store = _checked_store(store)
        self.embeddings = embeddings
        self.clock = clock or utc_now
        self.rng = rng or random.Random()  # noqa: S311 - ids and sampling, not secrets
        self.preset = preset
        self.parameters = self.Parameters.of(preset, **parameters)
        self.model = checked_model(model)

    # --- what an architecture writes -------------------------------------------------------

    @abstractmethod
    def recall_flow(self) -> Flow:
        """Return the steps from a query or messages to `memories` and `memory_context`."""

    @abstractmethod
    def remember_flow(self) -> Flow:
        """Return the steps from messages to `memory_operations`."""

    def consolidate_flow(self) -> Flow | None:
        """Return the steps of background consolidation; None for an architecture without."""
        return None

    def erased_with(self, refs: Sequence[Ref]) -> Steps[list[Ref]]:  # noqa: ARG002 - a hook
        """Return what else is to be erased together with some memories, such as summaries."""
        yield from ()
        return []

    def on_erased(self, erased: Sequence[MemoryOperation]) -> Steps[None]:  # noqa: ARG002 - a hook
        """Clean the architecture's own records of erased memories (links, sessions, graphs)."""
        yield from ()

    # --- graphs ------------------------------------------------------------------------------

    def recall_graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Return recall as a graph: `messages` or `query` in, `memories` and text out."""
        return self._graph("recall", self.recall_flow(), RecallInput, RecallOutput, writes=False)

    def remember_graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Return remember as a graph: `messages` in, `memory_operations` out."""
        return self._graph("remember", self.remember_flow(), RememberInput, RememberOutput)

    def consolidate_graph(self) -> CompiledStateGraph[Any, Any, Any, Any] | None:
        """Return consolidation as a graph; None for an architecture without."""
        flow = self.consolidate_flow()
        if flow is None:
            return None
        return self._graph("consolidate", flow, RememberInput, RememberOutput)

    def _graph(
        self, verb: str, flow: Flow, input_schema: type, output_schema: type, *, writes: bool = True
    ) -> CompiledStateGraph[Any, Any, Any, Any]:
        return flow.graph(
            name=f"{self.graph_name or self.architecture}_{verb}",
            input_schema=input_schema,
            output_schema=output_schema,
            context_schema=self.context_schema(),
            environment=self.node_environment,
            guard=self.guard if writes else None,
        )

    def context_schema(self) -> type:
        """Return the described dataclass of what a call may set through its context."""
        templates = (self.namespace, *self.read_namespaces)
        variables = tuple(dict.fromkeys(name for each in templates for name in each.variables))
        name = type(self).__name__
        made = context_schema(name, self.parameters, variables, self.preset)
        return with_model(made, f"{name}Context") if self.remember_asks else made

    # --- calls -------------------------------------------------------------------------------

    def recall(
        self,
        query: Conversation,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
        limit: int | None = None,
        as_of: datetime | None = None,
        **settings: Any,  # noqa: ANN401 - checked against the architecture's own fields
    ) -> Recall:
        """Recall what is relevant to a query.

        Args:
            query: A question, or the conversation whose last user message is the question.
            config: The call's config; its `configurable` names the scope.
            context: The runtime context, which wins over the config.
            limit: At most this many memories.
            as_of: Recall what was known and held at that time, an aware datetime.
            **settings: Parameters of the architecture, for this call only.

        Raises:
            ConfigurationError: The scope, the store or a parameter is missing or wrong.
            TypeError: `limit` is no integer, or `as_of` no datetime.
            ValueError: `limit` is negative, or `as_of` has no time zone.
        """
        env = self.environment(config, context, settings)
        return run(self._recall_steps(query, limit, as_of), env)

    async def arecall(
        self,
        query: Conversation,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
        limit: int | None = None,
        as_of: datetime | None = None,
        **settings: Any,  # noqa: ANN401 - checked against the architecture's own fields
    ) -> Recall:
        """Recall what is relevant to a query; the async twin of `recall`."""
        env = self.environment(config, context, settings)
        return await arun(self._recall_steps(query, limit, as_of), env)

    def _recall_steps(
        self, query: Conversation, limit: int | None, as_of: datetime | None
    ) -> Steps[Recall]:
        state = recall_input(query, limit, as_of)
        final = yield from self.recall_flow().drive(state)
        return Recall(
            items=[StoredMemory.from_dict(each) for each in final.get("memories", [])],
            text=final.get("memory_context", ""),
            tokens=final.get("tokens", 0),
            messages=final.get("view"),
        )

    def remember(
        self,
        messages: Conversation,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
        **settings: Any,  # noqa: ANN401 - checked against the architecture's own fields
    ) -> list[MemoryOperation]:
        """Remember a piece of conversation.

        Args:
            messages: New messages; a bare string is one message of the user.
            config: The call's config; its `configurable` names the scope.
            context: The runtime context, which wins over the config.
            **settings: Parameters of the architecture, for this call only.

        Returns:
            What was done, applied or rejected.

        Raises:
            ConfigurationError: The scope, the store or a parameter is missing or wrong.
            ValueError: The messages hold no text, or a text that cannot be stored.
        """
        return run(self._remember_steps(messages), self.environment(config, context, settings))

    async def aremember(
        self,
        messages: Conversation,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
        **settings: Any,  # noqa: ANN401 - checked against the architecture's own fields
    ) -> list[MemoryOperation]:
        """Remember a piece of conversation; the async twin of `remember`."""
        env = self.environment(config, context, settings)
        return await arun(self._remember_steps(messages), env)

    def _remember_steps(self, messages: Conversation) -> Steps[list[MemoryOperation]]:
        if isinstance(messages, str) and not messages.strip():
            msg = "There is nothing to remember in an empty text."
            raise ValueError(msg)
        final = yield from self.remembering({"messages": to_messages(messages)})
        return [MemoryOperation.from_dict(each) for each in final.get("memory_operations", [])]

    def consolidate(
        self,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
    ) -> ConsolidationReport:
        """Run the architecture's background work for one scope now."""
        env = self.environment(config, context)
        return _report(run(self._consolidate_steps(), env), env.ledger)

    async def aconsolidate(
        self,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
    ) -> ConsolidationReport:
        """Run the architecture's background work; the async twin of `consolidate`."""
        env = self.environment(config, context)
        return _report(await arun(self._consolidate_steps(), env), env.ledger)

    def _consolidate_steps(self) -> Steps[list[MemoryOperation]]:
        flow = self.consolidate_flow()
        if flow is None:
            return []
        yield from self.guard()
        final = yield from flow.drive({})
        return [MemoryOperation.from_dict(each) for each in final.get("memory_operations", [])]

    def forget(
        self,
        selector: Selector | One | Sequence[One],
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
        vacuum: bool = False,
    ) -> list[MemoryOperation]:
        """Erase memories for good, everywhere: items, closed items, index, counters and journal.

        Conversation checkpoints of a graph are not the memory's and are not touched.

        Args:
            selector: A memory as `recall` gives it or its key, several of them, a filter on the
                stored values, or `EVERYTHING`: all that any architecture keeps at and below the
                namespace of the call, in a `FaissSqliteStore` in one write. A key that is not
                there is no error: nothing is erased, and nothing returned.
            config: The call's config; its `configurable` names the scope.
            context: The runtime context, which wins over the config.
            vacuum: Whether to rewrite the store's file, which takes as long as the file is big:
                no byte of the forgotten text stays in it, its `-wal` and `-shm`; backups made
                earlier are outside. Without it freed pages are overwritten over time
                (`secure_delete`), but until then remains may lie in the log and in freed pages.

        Returns:
            One applied `DELETE` for each memory that is gone; with a reason if it could not be
            read, as after damage.

        Raises:
            ConfigurationError: `vacuum` with a store that has no `vacuum()`, or a memory of
                another scope; nothing was erased.
            TypeError: The selector is something else, such as None; nothing was erased.
            ValueError: The filter selects by nothing; nothing was erased.
            StorageError: `vacuum` had to wait too long for other readers of the file.
        """
        env = self.environment(config, context)
        return run(self.forget_steps(selector, cleaning(env.the_store(), vacuum=vacuum)), env)

    async def aforget(
        self,
        selector: Selector | One | Sequence[One],
        *,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
        vacuum: bool = False,
    ) -> list[MemoryOperation]:
        """Erase memories for good, everywhere; the async twin of `forget`."""
        env = self.environment(config, context)
        clean = cleaning(env.the_store(), vacuum=vacuum)
        return await arun(self.forget_steps(selector, clean), env)

    # --- shared steps ------------------------------------------------------------------------

    def remembering(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Run the steps of `remember_flow`; nothing is written if the scope is erased meanwhile."""
        yield from self.guard()
        return (yield from self.remember_flow().drive(state))

    def guard(self, erasures: int | None = None) -> Steps[int]:
        """Refuse what this call writes once its scope is erased, see `steps.erasure.guard`."""
        return (yield from erasure.guard((yield from self.scope()), erasures))

    def scope(self) -> Steps[tuple[str, ...]]:
        """Return the namespace of this call, under which the memory writes its collections."""
        return (yield from Resolve(self.namespace))

    def levels(self) -> Steps[list[tuple[str, ...]]]:
        """Return the namespaces of all levels this memory may read, most specific first."""
        levels = []
        for template in (self.namespace, *self.read_namespaces):
            level = yield from Resolve(template)
            if level not in levels:
                levels.append(level)
        return levels

    def settings(self) -> Steps[Any]:
        """Return the parameters of this call."""
        return (yield from Settings(self.parameters, self.preset))

    def forget_steps(
        self, selector: Selector | One | Sequence[One], clean: Call | None
    ) -> Steps[list[MemoryOperation]]:
        """Return the steps of `forget`, with what cleans the store's file afterwards."""
        erased = yield from self._erase(selector)
        if clean is not None:
            yield from clean
        return erased

    def _erase(self, selector: Selector | One | Sequence[One]) -> Steps[list[MemoryOperation]]:
        scope = yield from self.scope()
        cause = Cause(surface="forget")
        own = (*scope, self.architecture)
        if isinstance(selector, Everything):
            # Before, so that what is being written is found or refused; after, so that what was
            # begun in between from a source that is gone now is refused too.
            yield from erasure.advance(scope)
            erased = yield from journal.erase_below(scope if selector.whole else own, cause=cause)
            if not selector.whole:
                erased += yield from journal.erase_below(scope, exact=True, cause=cause)
            yield from erasure.advance(scope)
            return erased
        if isinstance(selector, Mapping):
            refs = yield from select(selector, scope, own)
        else:
            memories, keys = named(selector)
            refs = [place_of(each, scope) for each in memories]
            refs += yield from select(keys, scope, own)
        refs = list(dict.fromkeys([*refs, *(yield from self.erased_with(refs))]))
        erased = yield from journal.erase(refs, cause=cause)
        yield from self.on_erased(erased)
        return erased

    def environment(
        self,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
        settings: Mapping[str, Any] | None = None,
    ) -> Environment:
        """Return what a call's steps run with; without arguments, the running graph's scope.

        Raises:
            ConfigurationError: A setting is no parameter of the architecture.
        """
        self.Parameters.of(self.preset, **(settings or {}))
        given = config is not None or context is not None
        scope = Scope.of(config, context) if given else current_scope()
        return self._environment(replace(scope, settings=dict(settings or {})), running())

    def node_environment(self, config: RunnableConfig) -> Environment:
        """Return what a graph node's steps run with."""
        runtime = running()
        return self._environment(Scope.of(config, getattr(runtime, "context", None)), runtime)

    def _environment(self, scope: Scope, runtime: Runtime[Any] | None) -> Environment:
        return Environment(
            store=self.store if self.store is not None else getattr(runtime, "store", None),
            scope=scope,
            model=scope.resolve("model", None) or self.model,
            embeddings=self.embeddings,
            clock=self.clock,
            rng=self.rng,
            emitter=getattr(runtime, "stream_writer", None),
        )


def _checked_store(store: object) -> BaseStore | None:
    """Return the store.

    Raises:
        ConfigurationError: It is something else, such as a LangChain `VectorStore`.
    """
    if store is None or isinstance(store, BaseStore):
        return store
    msg = (
        f"store= takes a LangGraph BaseStore, not a {type(store).__name__}. "
        "Use FaissSqliteStore('memory.sqlite')."
    )
    raise ConfigurationError(msg)


def _report(operations: list[MemoryOperation], ledger: Ledger) -> ConsolidationReport:
    return ConsolidationReport(
        operations=operations,
        calls=dict(ledger.calls),
        input_tokens=ledger.input_tokens,
        output_tokens=ledger.output_tokens,
    )
