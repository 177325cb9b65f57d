"""The classic conversation memories, as thin views on the short-term memories of this package.

Without `store=` a memory lasts only as long as the process. With one, a new object for the same
session continues exactly where the last one stopped. Whatever falls out of a limit stays in the
session's archive until `clear()` or `archive_ttl`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, SystemMessage
from langgraph.store.base import BaseStore
from pydantic import Field

from langchain_agentmem.memories.short_term import BufferMemory, TokenBufferMemory, WindowMemory
from langchain_agentmem.memories.short_term_base import ShortTermMemory
from langchain_agentmem.memories.summary import SummaryBufferMemory, SummaryMemory
from langchain_agentmem.steps.archive import SUMMARY_MARK
from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.steps.environment import Clock, utc_now
from langchain_agentmem.surfaces.chains._base import StoredChainMemory, in_memory_store
from langchain_agentmem.transcripts import transcript


class _ConversationMemory(StoredChainMemory):
    """Base of the memories of one conversation.

    Attributes:
        store: A LangGraph store; by default one that is not persistent.
        namespace: Where the sessions lie.
        archive_ttl: Minutes after which messages that fell out of the limit expire.
        clock: Gives the present time.
        rng: Source of the messages' ids.
    """

    store: BaseStore = Field(default_factory=in_memory_store)
    namespace: tuple[str, ...] = ("chats", "{session_id}")
    archive_ttl: float | None = None
    clock: Clock = utc_now
    rng: Random | None = None

    def _load(self, question: str) -> Steps[Any]:  # noqa: ARG002 - a conversation is not searched
        final = yield from self._memory.recall_flow().drive({"messages": [], "query": ""})
        view: list[AnyMessage] = final["view"]
        summaries = [each for each in view if SUMMARY_MARK in each.additional_kwargs]
        said = [each for each in view if each not in summaries]
        if self.return_messages:
            return [*(SystemMessage(each.content) for each in summaries), *said]
        kept = [each["value"]["content"] for each in final["memories"][: len(summaries)]]
        lines = [transcript(said, human=self.human_prefix, ai=self.ai_prefix)] if said else []
        return "\n".join([*kept, *lines])

    def _common(self) -> dict[str, Any]:
        return {
            "store": self.store,
            "namespace": self.namespace,
            "archive_ttl": self.archive_ttl,
            "clock": self.clock,
            "rng": self.rng,
        }


class ConversationBufferMemory(_ConversationMemory):
    """The whole conversation, or its newest messages.

    Attributes:
        max_messages: Most messages that are loaded, by whole turns; None for all.

    Example:
        ```python
        memory = ConversationBufferMemory(store=store, session_id="ann")
        ConversationChain(llm=llm, memory=memory)
        ```
    """

    max_messages: int | None = None

    def _make_memory(self) -> ShortTermMemory:
        return BufferMemory(max_messages=self.max_messages, **self._common())


class ConversationStringBufferMemory(ConversationBufferMemory):
    """The whole conversation as a text."""

    return_messages: bool = False


class ConversationBufferWindowMemory(_ConversationMemory):
    """The last turns.

    Attributes:
        k: How many.
    """

    k: int = 5

    def _make_memory(self) -> ShortTermMemory:
        return WindowMemory(k=self.k, **self._common())


class ConversationTokenBufferMemory(_ConversationMemory):
    """The newest whole turns within a limit of tokens.

    Attributes:
        max_token_limit: The limit.
        token_counter: Counts the tokens of messages; by default LangChain's estimate.
        llm: Accepted as the classic class has it; nothing here needs a model.
    """

    max_token_limit: int = 2000
    token_counter: Callable[[Sequence[Any]], int] | None = None
    llm: BaseChatModel | None = None

    def _make_memory(self) -> ShortTermMemory:
        return TokenBufferMemory(
            max_tokens=self.max_token_limit, token_counter=self.token_counter, **self._common()
        )


class ConversationSummaryMemory(_ConversationMemory):
    """A running summary; a turn is saved first and then summarized.

    When the summarizer fails, the turn stays word for word until it succeeds.

    Attributes:
        llm: The summarizer.
        summarize_every: So many turns are summarized together.
    """

    llm: BaseChatModel
    summarize_every: int = 1

    def _make_memory(self) -> ShortTermMemory:
        return SummaryMemory(model=self.llm, summarize_every=self.summarize_every, **self._common())


class ConversationSummaryBufferMemory(_ConversationMemory):
    """A running summary and the newest turns.

    Attributes:
        llm: The summarizer.
        max_token_limit: Most tokens of both together.
        token_counter: Counts the tokens of messages; by default LangChain's estimate.
    """

    llm: BaseChatModel
    max_token_limit: int = 2000
    token_counter: Callable[[Sequence[Any]], int] | None = None

    def _make_memory(self) -> ShortTermMemory:
        return SummaryBufferMemory(
            model=self.llm,
            max_tokens=self.max_token_limit,
            token_counter=self.token_counter,
            **self._common(),
        )
