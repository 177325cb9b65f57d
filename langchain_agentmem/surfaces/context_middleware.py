"""Middleware that bounds what the model sees of a conversation; the state keeps all of it.

Units of eviction and pins are those of the short-term memories: tool calls are never parted from
their results, and the last message of the user is always shown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.types import Command

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.parameters import checked_model
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Emit, Steps
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.steps.folding import Folding, check_budget
from langchain_agentmem.surfaces._running_summary import Bounded, StateSummary, aoffload, offload
from langchain_agentmem.windows import (
    Size,
    Split,
    TokenCounter,
    Trigger,
    checked_size,
    context_of,
    count_tokens,
    flat,
    last_turns,
    leading_system,
    newest_within,
    trigger_clauses,
    units_of,
)

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langchain_agentmem.memories.base import Memory

Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


def overhead(request: ModelRequest[Any], tokens: TokenCounter = count_tokens) -> int:
    """Return the tokens of a request's system message and tool schemas."""
    system = tokens([request.system_message]) if request.system_message else 0
    tools = count_tokens_approximately([], tools=list(request.tools)) if request.tools else 0
    return system + tools


class WindowMiddleware(AgentMiddleware[Any, Any, Any]):
    """Shows the model the newest part of the conversation.

    Args:
        max_turns: Most turns.
        max_tokens: Most tokens, system message and tool schemas included.
        max_messages: Most messages, by whole units.
        token_counter: Counts the tokens of messages; by default LangChain's estimate.
        name: Name of the middleware; two in one agent need different ones.

    Raises:
        ConfigurationError: No limit is given.

    Example:
        ```python
        create_agent(model, tools, middleware=[WindowMiddleware(max_turns=10)])
        ```
    """

    def __init__(
        self,
        *,
        max_turns: int | None = None,
        max_tokens: int | None = None,
        max_messages: int | None = None,
        token_counter: TokenCounter | None = None,
        name: str = "Window",
    ) -> None:
        super().__init__()
        limits = (max_turns, max_tokens, max_messages)
        if all(each is None for each in limits) or any(
            each is not None and each < 1 for each in limits
        ):
            msg = "WindowMiddleware needs max_turns, max_tokens or max_messages, each 1 or more."
            raise ConfigurationError(msg)
        self._max_turns = max_turns
        self._max_tokens = max_tokens
        self._max_messages = max_messages
        self._tokens = token_counter or count_tokens
        self._name = name

    @property
    def name(self) -> str:
        """Name of the middleware."""
        return self._name

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        """Show the model the window."""
        return handler(run(self._shown(request), Environment.of_run()))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: AsyncHandler
    ) -> ModelResponse[Any]:
        """Show the model the window; the async twin of `wrap_model_call`."""
        return await handler(await arun(self._shown(request), Environment.of_run()))

    def _shown(self, request: ModelRequest[Any]) -> Steps[ModelRequest[Any]]:
        system, said = leading_system(request.messages)
        split = Split([], units_of(said))
        if self._max_turns is not None:
            split = last_turns(split.kept, self._max_turns)
        if self._max_messages is not None:
            split = newest_within(split.kept, self._max_messages - len(system), len)
        if self._max_tokens is not None:
            room = self._max_tokens - overhead(request, self._tokens) - self._tokens(system)
            split = newest_within(split.kept, room, self._tokens)
        if split.over:
            yield from Emit("over_budget", {"name": self.name})
        return request.override(messages=[*system, *flat(split.kept)])


def _merged(
    old: dict[str, dict[str, Any]] | None, new: dict[str, dict[str, Any]] | None
) -> dict[str, dict[str, Any]]:
    return {**(old or {}), **(new or {})}


class SummaryState(AgentState[Any]):
    """What `SummaryMiddleware` adds to an agent's state; private to it.

    Attributes:
        agentmem_summary: By middleware name, the running summary as plain JSON: `summary`,
            `summarized_message_ids`, `last_summarized_message_id`.
    """

    agentmem_summary: NotRequired[Annotated[dict[str, dict[str, Any]], _merged, PrivateStateAttr]]


class SummaryMiddleware(AgentMiddleware[Any, Any, Any]):
    """Shows the model a running summary and the newest part of the conversation.

    Every message that leaves the view was shown to the summarizer, whole, once. A summary that
    fails leaves the view as it was, and is reported.

    Args:
        model: The summarizer, or its name for `init_chat_model`.
        trigger: When to summarize: tokens, `("messages", 50)`, `("turns", 20)`,
            `("fraction", 0.8)`, a mapping (all of its sizes) or a list (any of them). Tokens
            include system message and tool schemas.
        keep: The newest part that stays, as a size.
        window: Tokens of the model's context, for fractions; by default its profile's.
        max_tokens: As in LangMem's summarization: most tokens of summary and messages together;
            another way to give `keep`, and `trigger`.
        max_tokens_before_summary: As there; another way to give `trigger`.
        max_summary_tokens: Most tokens of the summary.
        summarizer_budget: Most tokens of one input of the summarizer.
        offload_to: A memory that remembers what leaves the view.
        token_counter: Counts the tokens of messages; by default LangChain's estimate.
        name: Name of the middleware; two in one agent need different ones.

    Raises:
        ConfigurationError: A limit is missing or wrong.

    Example:
        ```python
        create_agent(
            model, tools, middleware=[SummaryMiddleware("openai:gpt-5-mini", trigger=8000)]
        )
        ```
    """

    state_schema = SummaryState

    def __init__(
        self,
        model: BaseChatModel | str,
        *,
        trigger: Trigger | None = None,
        keep: int | Size | None = None,
        window: int | None = None,
        max_tokens: int | None = None,
        max_tokens_before_summary: int | None = None,
        max_summary_tokens: int = 256,
        summarizer_budget: int = 4000,
        offload_to: Memory | None = None,
        token_counter: TokenCounter | None = None,
        name: str = "Summary",
    ) -> None:
        super().__init__()
        given = trigger if trigger is not None else max_tokens_before_summary or max_tokens
        if given is None:
            msg = "SummaryMiddleware needs trigger=('tokens', 4000) or another trigger."
            raise ConfigurationError(msg)
        if keep is None:
            keep = ("messages", 20) if max_tokens is None else max_tokens - max_summary_tokens
        self._tokens = token_counter or count_tokens
        self._window = window
        self._model = checked_model(model, is_needed=True)
        folding = Folding(
            max_summary_tokens=max_summary_tokens, budget=summarizer_budget, tokens=self._tokens
        )
        check_budget(folding)
        self._summary = StateSummary(
            name=name, clauses=trigger_clauses(given), keep=checked_size(keep), folding=folding
        )
        self._offload_to = offload_to
        self._name = name

    @property
    def name(self) -> str:
        """Name of the middleware."""
        return self._name

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Handler
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Show the model the summary and the newest part, summarizing first if it is time."""
        view = run(self._bounded(request), Environment.of_run(self._model))
        offload(self._offload_to, view.dropped, self.name)
        return self._answer(handler(request.override(messages=view.messages)), view)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: AsyncHandler
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Show the model the summary and the newest part; the async twin of `wrap_model_call`."""
        view = await arun(self._bounded(request), Environment.of_run(self._model))
        await aoffload(self._offload_to, view.dropped, self.name)
        return self._answer(await handler(request.override(messages=view.messages)), view)

    def _bounded(self, request: ModelRequest[Any]) -> Steps[Bounded]:
        state: Mapping[str, Any] = request.state
        kept = (state.get("agentmem_summary") or {}).get(self.name) or {}
        return self._summary.bound(
            request.messages,
            kept,
            overhead=overhead(request, self._tokens),
            window=self._window or context_of(request.model),
        )

    def _answer(
        self, response: ModelResponse[Any], view: Bounded
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        if view.kept is None:
            return response
        update = {"agentmem_summary": {self.name: view.kept}}
        return ExtendedModelResponse(model_response=response, command=Command(update=update))
