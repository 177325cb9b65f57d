"""Chain memories that recall what is relevant to the question."""

from __future__ import annotations

import sys
from random import Random
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.store.base import BaseStore
from pydantic import Field, PrivateAttr

from langchain_agentmem.items import StoredMemory
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.memories.rag import RAGMemory
from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.steps.environment import Clock, Environment, utc_now
from langchain_agentmem.surfaces._background import Background
from langchain_agentmem.surfaces.chains._base import StoredChainMemory, in_memory_store
from langchain_agentmem.surfaces.retriever import document_of
from langchain_agentmem.transcripts import said, transcript_line
from langchain_agentmem.windows import calls_tools


class ChainMemory(StoredChainMemory):
    """Any architecture as the memory of a chain.

    Its scope is that of its namespace: the session is known to it as `session_id` and
    `thread_id`; everything else it names, such as `{user_id}`, comes from `config=` or the
    running config. `clear()` erases what the memory keeps there.

    Attributes:
        memory: The memory. One that keeps a conversation fills in its view, others what they
            recall for the question.
        recall_input: Recall for the `"last"` thing the user said, or for `"all"` of the input.
        limit: Most memories to recall; None for the memory's own limit.
        background: Queue each turn and remember it in the background, off the chain's way; what
            waits is worked off when the program ends.

    Example:
        ```python
        memory = ChainMemory(
            memory=RAGMemory(store=store), config={"user_id": "ann"}, session_id="monday"
        )
        ```
    """

    memory: Memory
    recall_input: Literal["last", "all"] = "last"
    limit: int | None = None
    background: bool = False

    _worker: Background = PrivateAttr()

    def _make_memory(self) -> Memory:
        self._worker = Background(self.memory)
        return self.memory

    def close(self, timeout: float = 10) -> None:
        """Work off what waits in the background, at most so many seconds, and stop."""
        self._worker.close(timeout)

    def _keep(self, messages: list[AnyMessage], env: Environment) -> Steps[None]:
        if self.background:
            yield from self._worker.submit(messages, env)
        else:
            yield from super()._keep(messages, env)

    def _question(self, inputs: Any) -> str:  # noqa: ANN401 - a chain's inputs
        said = self._asked(inputs)
        chosen = said if self.recall_input == "all" else said[-1:]
        return "\n".join(str(each.text) for each in chosen)

    def _load(self, question: str) -> Steps[Any]:
        state: dict[str, Any] = {"messages": [], "query": question, "limit": self.limit}
        final = yield from self._memory.recall_flow().drive(state)
        text = final.get("memory_context", "")
        if not self.return_messages:
            return text
        view = final.get("view")
        if view is not None:
            return list(view)
        return [HumanMessage(text)] if text else []


class VectorStoreRetrieverMemory(StoredChainMemory):
    """The messages of the session that are most relevant to the question.

    Attributes:
        k: How many.
        return_docs: True to fill in documents, however long, instead of a text for a prompt.
        store: A LangGraph store; by default one that is not persistent.
        namespace: Where the sessions lie.
        clock: Gives the present time.
        rng: Source of the messages' ids.
    """

    k: int = 4
    return_docs: bool = False
    store: BaseStore = Field(default_factory=lambda: in_memory_store(indexed=True))
    namespace: tuple[str, ...] = ("chats", "{session_id}")
    clock: Clock = utc_now
    rng: Random | None = None

    def _make_memory(self) -> Memory:
        bound: dict[str, Any] = {"max_tokens": sys.maxsize} if self.return_docs else {}
        return RAGMemory(
            store=self.store, namespace=self.namespace, clock=self.clock, rng=self.rng, **bound
        )

    def _keep(self, messages: list[AnyMessage], env: Environment) -> Steps[None]:
        yield from super()._keep([_spoken(each) for each in messages], env)

    def _load(self, question: str) -> Steps[Any]:
        state = {"messages": [], "query": question, "limit": self.k}
        final = yield from self._memory.recall_flow().drive(state)
        if self.return_messages:
            text = final["memory_context"]
            return [HumanMessage(text)] if text else []
        if not self.return_docs:
            return final["memory_context"]
        found = [StoredMemory.from_dict(each) for each in final["memories"]]
        documents: list[Document] = [document_of(each) for each in found]
        return documents


def _spoken(message: AnyMessage) -> AnyMessage:
    """Return what a tool was asked and saw as words of the assistant, so that it is found."""
    if message.type == "tool":
        return AIMessage(transcript_line(message), id=message.id)
    if calls_tools(message):
        return AIMessage(said(message), id=message.id)
    return message
