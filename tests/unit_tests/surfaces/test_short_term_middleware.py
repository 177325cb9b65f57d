"""Any short-term memory as an agent's view, and long tool results read window by window."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.memories import (
    BufferMemory,
    HierarchicalSummaryMemory,
    SlidingWindowReader,
    SummaryBufferMemory,
    SummaryMemory,
    TokenBufferMemory,
    WindowMemory,
)
from langchain_agentmem.memories.short_term_base import ShortTermMemory
from langchain_agentmem.surfaces import ShortTermMiddleware, SlidingWindowMiddleware
from langchain_agentmem.testing import ScriptedChatModel
from langchain_agentmem.windows import count_tokens, is_whole
from tests.unit_tests.memories.conversations import conversation, facts_in, lost, summarizer
from tests.unit_tests.surfaces.conftest import Invoke

THREAD: RunnableConfig = {"configurable": {"thread_id": "1", "user_id": "ann"}}
ARCHIVE = ("memories", "ann", "thread-1", "short_term", "archive")
SMALL = summarizer


@pytest.fixture
def invoke(invoke: Invoke) -> Invoke:
    """Give every agent the messages of one thread, sync then async."""
    return lambda agent, said: invoke(agent, {"messages": said}, THREAD)


def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


def agent_of(model: ScriptedChatModel, memory: ShortTermMemory, **given: Any) -> Any:  # noqa: ANN401 - as LangGraph's own
    """Return an agent with one tool, a checkpointer, and the middleware."""
    given = {"store": InMemoryStore(), "tools": [look], **given}
    middleware = [ShortTermMiddleware(memory)]
    return create_agent(model, middleware=middleware, checkpointer=InMemorySaver(), **given)


def answering() -> ScriptedChatModel:
    """Return a model that always answers."""
    return ScriptedChatModel(replies=lambda _: "ok")


@pytest.mark.parametrize(
    "make",
    [
        BufferMemory,
        lambda: WindowMemory(k=3),
        lambda: TokenBufferMemory(max_tokens=1000),
        lambda: SummaryMemory(model=SMALL()),
        lambda: SummaryBufferMemory(model=SMALL(), max_tokens=1000),
        lambda: HierarchicalSummaryMemory(model=SMALL(), budget=1000),
    ],
    ids=["buffer", "window", "tokens", "summary", "summary_buffer", "hierarchical"],
)
def test_every_short_term_memory_is_a_view(
    invoke: Invoke,
    make: Callable[[], ShortTermMemory],
) -> None:
    """The question is always shown, no pair is split, and every word is in the archive."""
    model, store = answering(), InMemoryStore()
    agent = agent_of(model, make(), store=store)
    for number in range(12):
        invoke(agent, [conversation(1, start=number)[0]])
        shown = model.requests[-1].messages
        assert f"FACT{number:03d}" in str(shown[-1].content)
        assert is_whole(shown)
    kept = store.search(ARCHIVE, limit=100)
    assert len(kept) == 24
    assert len({each.value["content"][:7] for each in kept if "FACT" in str(each.value)}) == 12


def test_no_fact_is_lost_and_the_state_is_untouched(invoke: Invoke) -> None:
    """With a running summary, every fact was summarized or is in view; the state has all."""
    model, small = answering(), summarizer()
    agent = agent_of(model, SummaryBufferMemory(model=small, max_tokens=2000))
    done = invoke(agent, [*conversation(60), HumanMessage("q", id="q")])
    shown = model.requests[-1].messages
    assert lost(60, small, shown) == set()
    assert count_tokens(shown) <= 2000
    assert len(done["messages"]) == 122


def test_rewrite_bounds_the_state(invoke: Invoke) -> None:
    """In rewrite mode the agent's own messages are bounded, after they are archived."""
    store = InMemoryStore()
    agent = agent_of(answering(), WindowMemory(k=2, mode="rewrite"), store=store)
    for number in range(10):
        done = invoke(agent, [conversation(1, start=number)[0]])
    assert len(done["messages"]) == 4
    assert len(store.search(ARCHIVE, limit=100)) == 20


def test_system_prompt_is_kept_and_counts(invoke: Invoke) -> None:
    """A long system prompt leaves less room; it is shown once."""
    sizes = []
    for prompt in ("short", "word " * 600):
        model = answering()
        agent = agent_of(model, TokenBufferMemory(max_tokens=1500), system_prompt=prompt)
        invoke(agent, [*conversation(9), HumanMessage("q", id="q")])
        shown = model.requests[-1].messages
        assert [each.type for each in shown].count("system") == 1
        sizes.append(len(shown))
    assert sizes[1] < sizes[0]


def test_tool_results_of_the_open_turn_are_shown(invoke: Invoke) -> None:
    """Between tool call and answer, the call and its result are in the view."""
    calls = [{"name": "look", "args": {"at": "moon"}, "id": "1"}]
    model = ScriptedChatModel(replies=[AIMessage("", tool_calls=calls), "done"])
    invoke(agent_of(model, WindowMemory(k=1)), [*conversation(3), HumanMessage("q", id="q")])
    assert [each.type for each in model.requests[1].messages] == ["human", "ai", "tool"]


def test_a_long_conversation_costs_no_more_than_a_short_one(invoke: Invoke) -> None:
    """Only what is new is read and written, not the whole state at every call of the model."""
    store = Counting()
    agent = agent_of(answering(), WindowMemory(k=2), store=store)
    invoke(agent, [*conversation(100, words=1), HumanMessage("q", id="q")])
    store.ops = 0
    invoke(agent, [HumanMessage("and now?", id="q2")])
    assert store.ops < 200
    assert len(store.search(ARCHIVE, limit=1000)) == 204


class Counting(InMemoryStore):
    """A store that counts what it is asked for."""

    ops = 0

    def batch(self, ops: Any) -> Any:  # noqa: ANN401 - LangGraph's signature
        """Count and do."""
        self.ops += len(ops := list(ops))
        return super().batch(ops)

    async def abatch(self, ops: Any) -> Any:  # noqa: ANN401 - LangGraph's signature
        """Count and do."""
        return self.batch(ops)


class Broken(InMemoryStore):
    """A store that fails."""

    def batch(self, ops: Any) -> Any:  # noqa: ANN401, ARG002 - LangGraph's signature
        """Fail."""
        msg = "the disk is gone"
        raise OSError(msg)

    async def abatch(self, ops: Any) -> Any:  # noqa: ANN401 - LangGraph's signature
        """Fail."""
        return self.batch(ops)


def test_failing_store_shows_the_whole_conversation(invoke: Invoke) -> None:
    """The agent answers without its memory."""
    model = answering()
    agent = agent_of(model, WindowMemory(k=1), store=Broken())
    done = invoke(agent, [*conversation(3), HumanMessage("q", id="q")])
    assert len(model.requests[0].messages) == 7
    assert done["messages"][-1].content == "ok"


def test_missing_store_is_refused(invoke: Invoke) -> None:
    """A wrong set-up is no failure to go on from."""
    none: BaseStore | None = None
    with pytest.raises(ConfigurationError, match="store"):
        invoke(agent_of(answering(), WindowMemory(), store=none), [HumanMessage("q")])


PAGE = "Nothing of note here. " * 500 + "FACT123 is the code. " + "Nothing of note here. " * 500


def fetch() -> str:
    """Fetch a page."""
    return PAGE


def asking() -> ScriptedChatModel:
    """Return a model that fetches a page and then answers."""
    call = {"name": "fetch", "args": {}, "id": "1"}
    return ScriptedChatModel(replies=[AIMessage("", tool_calls=[call]), "done"])


def test_long_tool_result_is_read_for_the_question(invoke: Invoke) -> None:
    """The model sees what the windows say; the whole result stays in the artifact."""
    model, small = asking(), summarizer()
    reader = SlidingWindowReader(small, window=1000)
    agent = create_agent(model, [fetch], middleware=[SlidingWindowMiddleware(reader)])
    done = invoke(agent, [HumanMessage("What is the code?")])
    shown = model.requests[1].messages[-1]
    assert "FACT123" in str(shown.content)
    assert count_tokens([shown]) < 100
    assert done["messages"][-2].artifact == PAGE
    assert "What is the code?" in small.requests[0].text
    assert "FACT123" in facts_in(small.requests[-1].messages)


def test_short_tool_result_is_left_alone(invoke: Invoke) -> None:
    """What fits is shown as it is, without a call."""
    model = asking()
    reader = SlidingWindowReader(ScriptedChatModel(replies=[]))
    middleware = SlidingWindowMiddleware(reader, max_tokens=100_000)
    invoke(create_agent(model, [fetch], middleware=[middleware]), [HumanMessage("q")])
    assert model.requests[1].messages[-1].content == PAGE


def test_unread_windows_are_named(invoke: Invoke) -> None:
    """A window that could not be read is told to the model; if none could, the result stays."""

    def partly(messages: list[BaseMessage]) -> str | Exception:
        return RuntimeError("no") if "FACT123" in str(messages[-1].content) else "nothing"

    for reply, expected in (
        (partly, "Not read: characters"),
        (lambda _: RuntimeError("no"), "Nothing of note here."),
    ):
        model = asking()
        reader = SlidingWindowReader(ScriptedChatModel(replies=reply), window=1000)
        agent = create_agent(model, [fetch], middleware=[SlidingWindowMiddleware(reader)])
        invoke(agent, [HumanMessage("q")])
        assert expected in str(model.requests[1].messages[-1].content)
