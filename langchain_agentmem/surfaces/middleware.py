"""`AgentMemoryMiddleware`: any memory in one line of `create_agent`.

Recall happens once a turn, before the model; what is recalled goes into the request to the model
only, never into the conversation or its checkpoints. After the turn, what was said is remembered.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, TypeVar, get_args

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.channels import UntrackedValue

from langchain_agentmem.errors import ConfigurationError, ModelCallError
from langchain_agentmem.items import StoredMemory
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.messages import text_of
from langchain_agentmem.parameters import must_be, one_of
from langchain_agentmem.rendering import render_line, render_memories
from langchain_agentmem.retrieval import budget
from langchain_agentmem.scopes import NamespaceTemplate
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Emit, HasModel, Setting, Steps
from langchain_agentmem.surfaces._budget import SEARCH_TOKENS
from langchain_agentmem.surfaces._fail_open import fail_open
from langchain_agentmem.surfaces._recording import new_messages, record
from langchain_agentmem.surfaces.tools import create_manage_memory_tool, create_search_memory_tool
from langchain_agentmem.windows import count_tokens

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from langgraph.runtime import Runtime

    from langchain_agentmem.consolidation import MemoryQueue
    from langchain_agentmem.memories.base import Template
    from langchain_agentmem.steps.environment import Environment
    from langchain_agentmem.surfaces._background import Background

logger = logging.getLogger(__name__)

Mode = Literal["static", "agent", "both"]
Query = Literal["last_human", "window"]
Inject = Literal["system", "human"]
Record = Literal["auto", "background", "sync", "off"]
OnError = Literal["warn", "raise"]
T = TypeVar("T")

MANAGE: Final = "manage_memory"
SEARCH: Final = "search_memory"


class AgentMemoryState(AgentState[Any]):
    """What the middleware adds to an agent's state; both keys are private to it.

    Attributes:
        agentmem_recalled: What was recalled in this turn, by middleware name; never checkpointed.
        agentmem_recorded: Id of the last message that was remembered, by middleware name.
    """

    agentmem_recalled: NotRequired[Annotated[dict[str, Any], UntrackedValue, PrivateStateAttr]]
    agentmem_recorded: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]


class AgentMemoryMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives an agent a memory: recall before the model, remember after the turn, or tools.

    The scope comes from the run's context or config, as everywhere.

    Args:
        memory: The memory; its own store wins over the agent's.
        namespace: Another namespace template than the memory's.
        mode: `"static"` recalls in every turn, `"agent"` gives the model the memory tools instead,
            `"both"` does both.
        query: What to recall for: the last message of the user, the last `query_messages`
            messages (`"window"`), or a function of the state.
        query_messages: How many messages `"window"` means.
        limit: Most memories.
        min_score: Leave out memories with a lower score.
        max_tokens: Most tokens of the recalled text; whole memories are cut, worst first.
        inject: `"system"` adds the text as the last block of the system message, behind every
            prompt-cache breakpoint; `"human"` puts it into a message of its own right before the
            last one of the user.
        record: When the turn is over, `"sync"` remembers it before the agent returns;
            `"background"` puts it into a queue and the agent returns at once; `"auto"` is
            `"background"` where remembering asks a model and else `"sync"`; `"off"` does not.
        queue: A queue of your own for the background, worked off by your own executor. Without
            it, one is worked off in this process and drained when the program ends.
        record_on_interrupt: Also remember what the user said before each call of the model, so
            that it is kept if the turn is interrupted and never resumed.
        on_error: `"warn"` goes on without the memory when it fails, logs and emits an event;
            `"raise"` raises. A wrong set-up, such as a missing store, always raises.
        tools: Tools to give the model instead of those that `mode` gives.
        trace_recall: False keeps the state out of the traces of this middleware's own steps.
        name: Name of the middleware; two in one agent need different ones.

    Raises:
        ConfigurationError: An option is wrong; at the first call: there is no store.

    Example:
        ```python
        agent = create_agent(
            model, tools, middleware=[AgentMemoryMiddleware(RAGMemory())], store=store
        )
        agent.invoke({"messages": [("user", "Hi")]}, {"configurable": {"user_id": "ann"}})
        ```
    """

    state_schema = AgentMemoryState

    def __init__(
        self,
        memory: Memory,
        *,
        namespace: Template | None = None,
        mode: Mode = "static",
        query: Query | Callable[[Any], str] = "last_human",
        query_messages: int = 4,
        limit: int = 10,
        min_score: float | None = None,
        max_tokens: int = 1000,
        inject: Inject = "system",
        record: Record = "auto",
        queue: MemoryQueue | None = None,
        record_on_interrupt: bool = False,
        on_error: OnError = "warn",
        tools: Sequence[BaseTool] | None = None,
        trace_recall: bool = True,
        name: str = "AgentMemory",
    ) -> None:
        super().__init__()
        must_be("memory", memory, Memory, "a memory, such as RAGMemory()")
        one_of("mode", mode, get_args(Mode))
        one_of("inject", inject, get_args(Inject))
        one_of("record", record, get_args(Record))
        one_of("on_error", on_error, get_args(OnError))
        if not callable(query):
            one_of("query", query, get_args(Query))
        self.memory = memory if namespace is None else _moved(memory, namespace)
        self._name = name
        self._recalls = mode != "agent"
        self._query = query
        self._query_messages = query_messages
        self._limit = limit
        self._min_score = min_score
        self._max_tokens = max_tokens
        self._inject = inject
        self._record = record
        self._records = record != "off"
        self._queue = queue
        self._background: Background | None = None
        self._starting = threading.Lock()
        self._records_early = self._records and record_on_interrupt
        self._raises = on_error == "raise"
        given = _tools(self.memory) if mode != "static" else []
        self.tools = list(given if tools is None else tools)
        if not trace_recall:
            self.trace_policy = _no_payload()

    @property
    def name(self) -> str:
        """Name of the middleware, and the beginning of its nodes' names."""
        return self._name

    # --- hooks -----------------------------------------------------------------------------------

    def before_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ANN401, ARG002 - LangChain's signature
        """Recall for this turn."""
        return run(self._begin(state), self.memory.environment())

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ANN401, ARG002 - LangChain's signature
        """Recall for this turn; the async twin of `before_agent`."""
        return await arun(self._begin(state), self.memory.environment())

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Show the model what was recalled."""
        env = self.memory.environment()
        return handler(run(self._shown(request, env), env))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Show the model what was recalled; the async twin of `wrap_model_call`."""
        env = self.memory.environment()
        return await handler(await arun(self._shown(request, env), env))

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ANN401, ARG002 - LangChain's signature
        """Remember the turn."""
        env = self.memory.environment()
        return run(self._end(state, env), env)

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ANN401, ARG002 - LangChain's signature
        """Remember the turn; the async twin of `after_agent`."""
        env = self.memory.environment()
        return await arun(self._end(state, env), env)

    # --- recall ----------------------------------------------------------------------------------

    def _begin(self, state: Mapping[str, Any]) -> Steps[dict[str, Any] | None]:
        """Recall, and keep the result for all calls of the model in this turn."""
        self._check_store()
        if not self._recalls:
            return None
        recalled = yield from self._recall(state, (yield from self._occasion(state)))
        return {
            "agentmem_recalled": {**(state.get("agentmem_recalled") or {}), self.name: recalled}
        }

    def _check_store(self) -> None:
        self.memory.environment().the_store()

    def _shown(self, request: ModelRequest[Any], env: Environment) -> Steps[ModelRequest[Any]]:
        """Return a request that shows what was recalled for its turn."""
        state: Mapping[str, Any] = request.state
        if self._records_early:
            yield from self._failing_open("record", self._handed_over(state, env))
        if not self._recalls:
            return request
        # What was recalled is in no checkpoint: after an interrupt, or when a tool has written
        # since, it is recalled anew here.
        occasion = yield from self._occasion(state)
        kept = (state.get("agentmem_recalled") or {}).get(self.name)
        if not kept or kept["occasion"] != occasion:
            kept = yield from self._recall(state, occasion)
        return self._injected(request, kept["text"])

    def _occasion(self, state: Mapping[str, Any]) -> Steps[str]:
        """Return what a recall belongs to: scope, question, and what tools wrote since."""
        scope = yield from self.memory.scope()
        messages: Sequence[AnyMessage] = state["messages"]
        asked = max((at for at, each in enumerate(messages) if each.type == "human"), default=0)
        question = messages[asked] if messages else HumanMessage("")
        names = {tool.name for tool in self.tools} | {MANAGE}
        wrote = sum(map(_wrote(names), messages[asked:]))
        parts = (*scope, str(question.id), text_of(question), str(wrote))
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()

    def _recall(self, state: Mapping[str, Any], occasion: str) -> Steps[dict[str, str]]:
        text = yield from self._failing_open("recall", self._recalled_text(state))
        return {"occasion": occasion, "text": text or ""}

    def _recalled_text(self, state: Mapping[str, Any]) -> Steps[str]:
        query = self._question(state)
        if not query.strip():
            return ""
        given = {"query": query, "messages": [HumanMessage(query)], "limit": self._limit}
        final = yield from self.memory.recall_flow().drive(given)
        found = [StoredMemory.from_dict(each) for each in final.get("memories", [])]
        least = self._min_score
        scored = [each for each in found if least is None or (each.score or 0) >= least]
        kept = budget.fit(scored[: self._limit], self._max_tokens, text=render_line)
        text = render_memories(kept)
        while kept and _tokens(text) > self._max_tokens:
            kept.pop()
            text = render_memories(kept)
        return text

    def _question(self, state: Mapping[str, Any]) -> str:
        if callable(self._query):
            return self._query(state)
        spoken = [each for each in state["messages"] if each.type in ("human", "ai")]
        if self._query == "window":
            return "\n".join(map(text_of, spoken[-self._query_messages :]))
        asked = [each for each in spoken if each.type == "human"]
        return text_of(asked[-1]) if asked else ""

    def _injected(self, request: ModelRequest[Any], text: str) -> ModelRequest[Any]:
        if not text:
            return request
        if self._inject == "system":
            system = with_block(request.system_message, text)
            return request.override(system_message=system)
        if any(each.content == text for each in request.messages):
            return request
        asked = [at for at, each in enumerate(request.messages) if each.type == "human"]
        at = asked[-1] if asked else len(request.messages)
        shown = [*request.messages[:at], HumanMessage(text), *request.messages[at:]]
        return request.override(messages=shown)

    # --- record ----------------------------------------------------------------------------------

    def close(self, timeout: float = 10) -> None:
        """Work off what waits in the background, at most so many seconds, and stop."""
        if self._background is not None:
            self._background.close(timeout)

    def _end(self, state: Mapping[str, Any], env: Environment) -> Steps[dict[str, Any] | None]:
        """Remember what is new since the last turn."""
        if not self._records or not state["messages"]:
            return None
        if (yield from self._failing_open("record", self._handed_over(state, env))) is None:
            return None
        last = str(state["messages"][-1].id)
        return {"agentmem_recorded": {**(state.get("agentmem_recorded") or {}), self.name: last}}

    def _handed_over(self, state: Mapping[str, Any], env: Environment) -> Steps[int]:
        """Remember now, or let it be done in the background."""
        messages = self._unrecorded(state, str((yield from Setting("thread_id", ""))))
        asks = self.memory.remember_asks and (yield from HasModel())
        if self._record == "sync" or (self._record == "auto" and not asks):
            return (yield from self._recorded(messages, env))
        background = self._the_background()
        return (yield from record(self.memory, messages, lambda new: background.submit(new, env)))

    def _recorded(self, messages: list[AnyMessage], env: Environment) -> Steps[int]:
        """Remember now; where the model fails, as without one, so that the turn is not lost."""
        try:
            return (yield from record(self.memory, messages))
        except ModelCallError as error:
            if self._raises:
                raise
            logger.warning("%s: the turn is kept without the model: %s", self.name, error)
            yield from Emit("kept_verbatim", {"name": self.name, "error": type(error).__name__})
            env.model = None
            return (yield from record(self.memory, messages))

    def _the_background(self) -> Background:
        with self._starting:
            if self._background is None:
                from langchain_agentmem.surfaces._background import Background

                self._background = Background(self.memory, self._queue)
            return self._background

    def _unrecorded(self, state: Mapping[str, Any], thread: str) -> list[AnyMessage]:
        last = (state.get("agentmem_recorded") or {}).get(self.name)
        own = {tool.name for tool in self.tools} | {MANAGE, SEARCH}
        return new_messages(state["messages"], last, own, thread)

    def _failing_open(self, what: str, steps: Steps[T]) -> Steps[T | None]:
        """Go on without the memory when it fails."""
        return fail_open(self.name, what, steps, raises=self._raises)


def with_block(system: SystemMessage | None, text: str) -> SystemMessage:
    """Return a system message with a text as its last block; what was there stays as it is."""
    if system is None:
        return SystemMessage(text)
    if isinstance(system.content, str):
        content: list[Any] = [{"type": "text", "text": system.content}]
    else:
        content = list(system.content)
    block = {"type": "text", "text": text}
    if block in content:
        return system
    return system.model_copy(update={"content": [*content, block]})


def _wrote(names: set[str]) -> Callable[[AnyMessage], bool]:
    """Return a test for results of memory tools that have changed something."""

    def wrote(message: AnyMessage) -> bool:
        if message.type != "tool" or message.name not in names or message.name == SEARCH:
            return False
        return getattr(message, "status", "success") == "success"

    return wrote


def _tokens(text: str) -> int:
    """Return the larger of two estimates, so that a budget holds by either."""
    return max(budget.count_tokens(text), count_tokens([AIMessage(text)]))


def _tools(memory: Memory) -> list[BaseTool]:
    return [
        create_manage_memory_tool(memory=memory, name=MANAGE),
        create_search_memory_tool(memory=memory, name=SEARCH, max_tokens=SEARCH_TOKENS),
    ]


def _moved(memory: Memory, namespace: Template) -> Memory:
    """Return the same memory with another namespace."""
    moved = copy.copy(memory)
    moved.namespace = NamespaceTemplate(namespace)
    return moved


def _no_payload() -> Any:  # noqa: ANN401 - TracePolicy, which older versions do not have
    try:
        from langgraph.types import TracePolicy, omit_payload
    except ImportError as error:
        msg = "trace_recall=False needs a newer langgraph: pip install -U langgraph langchain"
        raise ConfigurationError(msg) from error
    return TracePolicy(process_inputs=omit_payload, process_outputs=omit_payload)
