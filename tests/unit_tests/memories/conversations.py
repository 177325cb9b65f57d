"""Conversations full of facts, and a summarizer that keeps every fact it is shown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_agentmem.steps.tree import Node
from langchain_agentmem.testing import ScriptedChatModel
from langchain_agentmem.windows import count_tokens

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_core.runnables import RunnableConfig

    from langchain_agentmem.items import MemoryOperation
    from langchain_agentmem.memories.base import Memory, Selector
    from langchain_agentmem.memories.state import Recall
    from langchain_agentmem.messages import Conversation

FACT = re.compile(r"FACT\d{3}")
CHAT: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "monday"}}
T = TypeVar("T")


def facts_in(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the facts named in messages, each once, in order."""
    return list(dict.fromkeys(FACT.findall("\n".join(str(each.content) for each in messages))))


def summarizer() -> ScriptedChatModel:
    """Return a model that replies with every fact it is shown."""
    return ScriptedChatModel(replies=lambda messages: " ".join(facts_in(messages)) or "nothing")


def conversation(turns: int, start: int = 0, words: int = 180) -> list[AnyMessage]:
    """Return turns of about 240 tokens, each with one fact of the user."""
    said: list[AnyMessage] = []
    for number in range(start, start + turns):
        text = " ".join([f"FACT{number:03d}", *["word"] * words])
        said.append(HumanMessage(text, id=f"h{number}"))
        said.append(AIMessage("I will remember that fact.", id=f"a{number}"))
    return said


def tool_turn(name: str, rounds: int = 1) -> list[AnyMessage]:
    """Return a turn in which the assistant calls two tools at once, so many times, and answers."""
    said: list[AnyMessage] = [HumanMessage(f"question {name}", id=f"{name}-q")]
    for number in range(rounds):
        ids = (f"{name}-{number}-x", f"{name}-{number}-y")
        calls = [{"name": "look", "args": {"at": each}, "id": each} for each in ids]
        said.append(AIMessage("", tool_calls=calls, id=f"{name}-{number}-call"))
        said += [ToolMessage(f"seen {each}", tool_call_id=each, id=f"r-{each}") for each in ids]
    return [*said, AIMessage(f"answer {name}", id=f"{name}-a")]


def lost(count: int, model: ScriptedChatModel, view: Sequence[BaseMessage]) -> set[str]:
    """Return the facts that were neither shown to the summarizer nor are in the view."""
    shown = {fact for each in model.requests for fact in facts_in(each.messages)}
    return {f"FACT{number:03d}" for number in range(count)} - shown - set(facts_in(view))


def input_sizes(model: ScriptedChatModel) -> list[int]:
    """Return the tokens of every input of a model."""
    return [count_tokens(each.messages) for each in model.requests]


def view_of(recalled: Recall) -> list[AnyMessage]:
    """Return the view, which a short-term memory always has."""
    assert recalled.messages is not None
    return recalled.messages


def nodes_in(recalled: Recall) -> list[Node]:
    """Return the nodes of a tree of summaries that were recalled."""
    return [Node.of(each.key) for each in recalled.items if each.namespace[-1] == "tree"]


@dataclass
class Calls:
    """The calls of memories, all sync or all async."""

    later: bool

    def do(self, sync: Callable[[], T], later: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Make one call in this way."""
        return asyncio.run(later()) if self.later else sync()

    def remember(
        self, memory: Memory, said: Conversation, config: RunnableConfig = CHAT
    ) -> list[MemoryOperation]:
        """Remember."""
        return self.do(
            lambda: memory.remember(said, config=config),
            lambda: memory.aremember(said, config=config),
        )

    def recall(
        self,
        memory: Memory,
        said: Conversation = (),
        config: RunnableConfig = CHAT,
        as_of: datetime | None = None,
    ) -> Recall:
        """Recall."""
        return self.do(
            lambda: memory.recall(said, config=config, as_of=as_of),
            lambda: memory.arecall(said, config=config, as_of=as_of),
        )

    def view(
        self, memory: Memory, said: Conversation = (), config: RunnableConfig = CHAT
    ) -> list[AnyMessage]:
        """Recall and return the view."""
        return view_of(self.recall(memory, said, config))

    def forget(
        self, memory: Memory, selector: Selector, config: RunnableConfig = CHAT
    ) -> list[MemoryOperation]:
        """Forget."""
        return self.do(
            lambda: memory.forget(selector, config=config),
            lambda: memory.aforget(selector, config=config),
        )


def at_once(work: Callable[[int], object], count: int) -> None:
    """Run a function of a number in so many threads at once."""
    threads = [Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
