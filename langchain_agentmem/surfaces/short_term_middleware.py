"""Middleware over the short-term memories: a persistent view, and long tool results read through.

`ShortTermMiddleware` lets any short-term memory decide what the model sees; all of the conversation
is archived and stays searchable, also after the agent's own state is gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.messages import AnyMessage, ToolMessage

from langchain_agentmem.memories.short_term_base import ShortTermMemory
from langchain_agentmem.messages import last_human_text, text_of
from langchain_agentmem.parameters import must_be, one_of
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Emit, Steps
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.surfaces._fail_open import fail_open
from langchain_agentmem.windows import leading_system

if TYPE_CHECKING:
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.runtime import Runtime
    from langgraph.types import Command

    from langchain_agentmem.memories.reading import Reading, SlidingWindowReader


def _merged(old: dict[str, str] | None, new: dict[str, str] | None) -> dict[str, str]:
    return {**(old or {}), **(new or {})}


class ShortTermState(AgentState[Any]):
    """What `ShortTermMiddleware` adds to an agent's state; private to it.

    Attributes:
        agentmem_archived: Id of the last message that was archived, by middleware name.
    """

    agentmem_archived: NotRequired[Annotated[dict[str, str], _merged, PrivateStateAttr]]


class ShortTermMiddleware(AgentMiddleware[Any, Any, Any]):
    """Shows the model what a short-term memory shows of the conversation.

    Before each call of the model, and when the turn is over, the conversation is archived (and
    summarized where the memory summarizes); only then does anything leave the view. A memory in
    `mode="rewrite"` also bounds the agent's state.

    Args:
        memory: A short-term memory; its own store wins over the agent's.
        on_error: `"warn"` shows the model the whole conversation when the memory fails, logs and
            emits an event; `"raise"` raises. A wrong set-up always raises.
        name: Name of the middleware; two in one agent need different ones.

    Raises:
        ConfigurationError: The memory is no short-term memory, or `on_error` is something else.

    Example:
        ```python
        memory = SummaryBufferMemory(model="openai:gpt-5-mini", max_tokens=8000)
        agent = create_agent(model, tools, middleware=[ShortTermMiddleware(memory)], store=store)
        ```
    """

    state_schema = ShortTermState

    def __init__(
        self,
        memory: ShortTermMemory,
        *,
        on_error: Literal["warn", "raise"] = "warn",
        name: str = "ShortTerm",
    ) -> None:
        super().__init__()
        wanted = "a short-term memory, such as SummaryBufferMemory(model=...)"
        must_be("memory", memory, ShortTermMemory, wanted)
        one_of("on_error", on_error, ("warn", "raise"))
        self.memory = memory
        self._raises = on_error == "raise"
        self._name = name

    @property
    def name(self) -> str:
        """Name of the middleware."""
        return self._name

    def before_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ANN401, ARG002 - LangChain's signature
        """Archive what is new."""
        return run(self._remember(state), self.memory.environment())

    async def abefore_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ANN401, ARG002 - LangChain's signature
        """Archive what is new; the async twin of `before_model`."""
        return await arun(self._remember(state), self.memory.environment())

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ANN401, ARG002 - LangChain's signature
        """Archive the answer."""
        return run(self._remember(state), self.memory.environment())

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ANN401, ARG002 - LangChain's signature
        """Archive the answer; the async twin of `after_agent`."""
        return await arun(self._remember(state), self.memory.environment())

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Show the model the view."""
        return handler(run(self._shown(request), self.memory.environment()))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Show the model the view; the async twin of `wrap_model_call`."""
        return await handler(await arun(self._shown(request), self.memory.environment()))

    def _remember(self, state: Mapping[str, Any]) -> Steps[dict[str, Any] | None]:
        if not state["messages"]:
            return None
        steps = self.memory.remembering({"messages": self._new(state)})
        done = yield from self._guarded("record", steps)
        if done is None:
            return None
        if self.memory.rewrites:
            return {"messages": done["messages"]}
        return {"agentmem_archived": {self.name: str(state["messages"][-1].id)}}

    def _new(self, state: Mapping[str, Any]) -> list[AnyMessage]:
        """Return what is not archived yet; where the state is bounded, all of it."""
        messages: list[AnyMessage] = list(state["messages"])
        last = (state.get("agentmem_archived") or {}).get(self.name)
        ids = [each.id for each in messages]
        if last not in ids or self.memory.rewrites:
            return messages
        system, said = leading_system(messages)
        return [*system, *said[max(ids.index(last) + 1 - len(system), 0) :]]

    def _shown(self, request: ModelRequest[Any]) -> Steps[ModelRequest[Any]]:
        system: Sequence[AnyMessage] = [request.system_message] if request.system_message else []
        steps = self.memory.recall_flow().drive({"messages": [*system, *request.messages]})
        done = yield from self._guarded("recall", steps)
        if done is None:
            return request
        return request.override(messages=done["view"][len(system) :])

    def _guarded(self, what: str, steps: Steps[dict[str, Any]]) -> Steps[dict[str, Any] | None]:
        return fail_open(self.name, what, steps, raises=self._raises)


class SlidingWindowMiddleware(AgentMiddleware[Any, Any, Any]):
    """Reads tool results that are too long for the prompt, window by window.

    The model sees what the reader found for the user's question; the whole result stays in the
    message's `artifact`. Windows that could not be read are named.

    Args:
        reader: The reader.
        max_tokens: Longer results are read through; by default the reader's window.
        name: Name of the middleware; two in one agent need different ones.

    Example:
        ```python
        reader = SlidingWindowReader("openai:gpt-5-mini", window=5000)
        agent = create_agent(model, [fetch_page], middleware=[SlidingWindowMiddleware(reader)])
        ```
    """

    def __init__(
        self,
        reader: SlidingWindowReader,
        *,
        max_tokens: int | None = None,
        name: str = "SlidingWindow",
    ) -> None:
        super().__init__()
        self._reader = reader
        self._max_tokens = reader.parameters.window if max_tokens is None else max_tokens
        self._name = name

    @property
    def name(self) -> str:
        """Name of the middleware."""
        return self._name

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Read the result if it is too long."""
        steps = self._read(request, handler(request))
        return run(steps, Environment.of_run(self._reader.model))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Read the result if it is too long; the async twin of `wrap_tool_call`."""
        steps = self._read(request, await handler(request))
        return await arun(steps, Environment.of_run(self._reader.model))

    def _read(
        self, request: ToolCallRequest, result: ToolMessage | Command[Any]
    ) -> Steps[ToolMessage | Command[Any]]:
        if not isinstance(result, ToolMessage):
            return result
        text = text_of(result)
        if self._reader.token_counter(text) <= self._max_tokens:
            return result
        asked = last_human_text(request.state["messages"])
        call = request.tool_call
        question = f"{asked}\n(The text is the result of the tool {call['name']}({call['args']}).)"
        reading = yield from self._reader.reading(text, question)
        if len(reading.missing) == len(reading.windows):
            yield from Emit("result_not_read", {"name": self.name})
            return result
        artifact = text if result.artifact is None else result.artifact
        return result.model_copy(update={"content": _told(reading), "artifact": artifact})


def _told(reading: Reading) -> str:
    missing = [f"{each.start} to {each.end}" for each in reading.missing]
    unread = f" Not read: characters {', '.join(missing)}." if missing else ""
    head = f"[The result was too long and was read in {len(reading.windows)} windows.{unread}]"
    return f"{head}\n{reading.answer}"
