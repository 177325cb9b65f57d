"""`StoreChatMessageHistory`: the messages of a session in a LangGraph store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage

from langchain_agentmem.memories.forgetting import OWN
from langchain_agentmem.memories.short_term import BufferMemory
from langchain_agentmem.steps import archive
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.surfaces._recording import with_new_ids

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.store.base import BaseStore

    from langchain_agentmem.steps.environment import Environment


class StoreChatMessageHistory(BaseChatMessageHistory):
    """A chat message history for `RunnableWithMessageHistory`, or for use alone.

    Messages lie in the same archive that the chain memories of the session use. They are in the
    order in which they were added; adding a message with a known id again changes nothing.

    With `RunnableWithMessageHistory`, pass `history_messages_key`: without it that class itself
    loses messages of the user when runs of one session overlap.

    Args:
        store: A LangGraph store.
        namespace: Where the sessions lie.
        session_id: The session.

    Example:
        ```python
        history = StoreChatMessageHistory(store, session_id="ann")
        history.add_user_message("Hello")
        ```
    """

    def __init__(
        self,
        store: BaseStore,
        namespace: tuple[str, ...] = ("chats", "{session_id}"),
        *,
        session_id: str,
    ) -> None:
        self._memory = BufferMemory(store=store, namespace=namespace)
        self._config: RunnableConfig = {"configurable": {"session_id": session_id}}

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # the base has an attribute
        """All messages of the session, in order."""
        return run(self._load(), self._environment())

    async def aget_messages(self) -> list[BaseMessage]:
        """Return all messages of the session, in order."""
        return await arun(self._load(), self._environment())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages, in one piece."""
        run(self._add(messages), self._environment())

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages, in one piece; the async twin of `add_messages`."""
        await arun(self._add(messages), self._environment())

    def clear(self) -> None:
        """Erase the session."""
        self._memory.forget(OWN, config=self._config)

    async def aclear(self) -> None:
        """Erase the session; the async twin of `clear`."""
        await self._memory.aforget(OWN, config=self._config)

    def _environment(self) -> Environment:
        return self._memory.environment(self._config)

    def _load(self) -> Steps[list[BaseMessage]]:
        where = yield from self._memory.archive()
        count = yield from archive.size(where)
        return [each.message for each in (yield from archive.load(where, before=count))]

    def _add(self, messages: Sequence[BaseMessage]) -> Steps[None]:
        where = yield from self._memory.archive()
        yield from archive.append(where, (yield from with_new_ids(messages)))
