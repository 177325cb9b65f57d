"""`SummarizationNode`: LangMem's node of that name, without its losses.

Same arguments and state. Every message that leaves the view was shown to the summarizer, whole,
once; tool calls stay with their results; the last message of the user is always in the view.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AnyMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.messages import to_messages
from langchain_agentmem.parameters import checked_model
from langchain_agentmem.scopes import value_of
from langchain_agentmem.steps.archive import SUMMARY_MARK
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.steps.folding import Folding, check_budget
from langchain_agentmem.surfaces._running_summary import StateSummary, aoffload, offload
from langchain_agentmem.windows import TokenCounter, checked_size, count_tokens, trigger_clauses

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langchain_agentmem.memories.base import Memory

_FIELDS: Final = ("summary", "summarized_message_ids", "last_summarized_message_id")


class SummarizationNode(RunnableLambda[Any, dict[str, Any]]):
    """A node that gives the model a running summary and the newest part of the conversation.

    The state holds `context["running_summary"]`: plain JSON with LangMem's three fields; a
    `RunningSummary` object of LangMem is read too. A summary that fails leaves the view as it was,
    and is reported.

    Args:
        model: The summarizer, or its name for `init_chat_model`.
        max_tokens: Most tokens of summary and kept messages together.
        max_tokens_before_summary: Summarize when there are more tokens; `max_tokens` if left out.
        max_summary_tokens: Most tokens of the summary.
        summarizer_budget: Most tokens of one input of the summarizer.
        token_counter: Counts the tokens of messages; by default LangChain's estimate.
        input_messages_key: State key of the conversation.
        output_messages_key: State key that receives the view. The same key as the input replaces
            the conversation in the state: give `offload_to` then, or the words are gone.
        offload_to: A memory that remembers what leaves the view.
        name: Name of the node.

    Raises:
        ConfigurationError: A limit makes no sense.

    Example:
        ```python
        builder.add_node("summarize", SummarizationNode(model="openai:gpt-5-mini", max_tokens=4000))
        ```
    """

    def __init__(
        self,
        *,
        model: BaseChatModel | str,
        max_tokens: int,
        max_tokens_before_summary: int | None = None,
        max_summary_tokens: int = 256,
        summarizer_budget: int = 4000,
        token_counter: TokenCounter | None = None,
        input_messages_key: str = "messages",
        output_messages_key: str = "summarized_messages",
        offload_to: Memory | None = None,
        name: str = "summarization",
    ) -> None:
        if max_tokens <= max_summary_tokens:
            msg = (
                f"max_tokens={max_tokens} leaves no room for messages beside a summary of "
                f"max_summary_tokens={max_summary_tokens}; raise the one or lower the other."
            )
            raise ConfigurationError(msg)
        folding = Folding(
            max_summary_tokens=max_summary_tokens,
            budget=summarizer_budget,
            tokens=token_counter or count_tokens,
        )
        check_budget(folding)
        self._summary = StateSummary(
            name=name,
            clauses=trigger_clauses(max_tokens_before_summary or max_tokens),
            keep=checked_size(max_tokens - max_summary_tokens),
            folding=folding,
        )
        self._model = checked_model(model, is_needed=True)
        self._input, self._output = input_messages_key, output_messages_key
        self._offload_to = offload_to
        super().__init__(self._call, afunc=self._acall, name=name)

    def _call(self, state: Any, config: RunnableConfig) -> dict[str, Any]:  # noqa: ANN401, ARG002 - states are the user's
        update, dropped = run(self._update(state), Environment.of_run(self._model))
        offload(self._offload_to, dropped, self._summary.name)
        return update

    async def _acall(self, state: Any, config: RunnableConfig) -> dict[str, Any]:  # noqa: ANN401, ARG002 - as above
        update, dropped = await arun(self._update(state), Environment.of_run(self._model))
        await aoffload(self._offload_to, dropped, self._summary.name)
        return update

    def _update(self, state: Any) -> Steps[tuple[dict[str, Any], list[AnyMessage]]]:  # noqa: ANN401 - as above
        """Return the state update, and what left the view."""
        context = dict(value_of(state, "context") or {})
        given = to_messages(value_of(state, self._input) or [])
        own = [each for each in given if SUMMARY_MARK not in each.additional_kwargs]
        bounded = yield from self._summary.bound(own, _running(context))
        update: dict[str, Any] = {self._output: bounded.messages}
        if self._input == self._output:
            update[self._output] = [RemoveMessage(REMOVE_ALL_MESSAGES), *bounded.messages]
        if bounded.kept is not None:
            update["context"] = {**context, "running_summary": bounded.kept}
        return update, bounded.dropped


def _running(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the running summary of a context, ours or LangMem's, as plain JSON."""
    found = context.get("running_summary")
    if found is None or isinstance(found, Mapping):
        return dict(found or {})
    return {name: getattr(found, name) for name in _FIELDS}
