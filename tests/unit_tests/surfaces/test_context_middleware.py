"""Window and summary middleware: bounded views, whole tool groups, no fact lost."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import RAGMemory
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.surfaces import SummaryMiddleware, WindowMiddleware
from langchain_agentmem.testing import ScriptedChatModel
from langchain_agentmem.windows import count_tokens, is_whole
from tests.unit_tests.memories.conversations import (
    FACT,
    conversation,
    facts_in,
    input_sizes,
    summarizer,
    tool_turn,
)
from tests.unit_tests.surfaces.conftest import Invoke

THREAD: RunnableConfig = {"configurable": {"thread_id": "1", "user_id": "ann"}}


@pytest.fixture
def invoke(invoke: Invoke) -> Invoke:
    """Give every agent the messages of one thread, sync then async."""
    return lambda agent, said: invoke(agent, {"messages": said}, THREAD)


def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


def answering() -> ScriptedChatModel:
    """Return a model that always answers."""
    return ScriptedChatModel(replies=lambda _: "ok")


def agent_of(model: ScriptedChatModel, middleware: Any, **given: Any) -> Any:  # noqa: ANN401 - as LangGraph's own
    """Return an agent with one tool and a checkpointer."""
    return create_agent(
        model, [look], middleware=[middleware], checkpointer=InMemorySaver(), **given
    )


def new_parts(model: ScriptedChatModel) -> str:
    """Return all that was new in the summarizer's inputs."""
    return "".join(each.text.partition("<new_part>")[2] for each in model.requests)


def test_window_never_begins_with_a_tool_message(invoke: Invoke) -> None:
    """Two parallel calls and their results are shown together, with the question."""
    calls = [{"name": "look", "args": {"at": each}, "id": each} for each in "ab"]
    model = ScriptedChatModel(replies=[AIMessage("", tool_calls=calls), "done"])
    done = invoke(
        agent_of(model, WindowMiddleware(max_messages=3)), [*conversation(3), HumanMessage("q")]
    )
    shown = model.requests[1].messages
    assert [each.type for each in shown] == ["human", "ai", "tool", "tool"]
    assert is_whole(shown)
    assert len(done["messages"]) == 11


@pytest.mark.parametrize("limit", [{"max_turns": 2}, {"max_messages": 4}, {"max_tokens": 900}])
def test_window_keeps_the_newest_part(invoke: Invoke, limit: dict[str, Any]) -> None:
    """Every kind of limit bounds the view; system message and state stay."""
    model = answering()
    agent = agent_of(model, WindowMiddleware(**limit), system_prompt="Be kind.")
    done = invoke(agent, [*conversation(9), HumanMessage("question", id="q")])
    shown = model.requests[0].messages
    assert shown[0].content == "Be kind."
    assert shown[-1].id == "q"
    assert shown[1].type == "human"
    assert 3 <= len(shown) <= 8
    assert len(done["messages"]) == 20


def test_window_counts_system_message_and_tools() -> None:
    """A long system prompt leaves less room for the conversation."""
    sizes = []
    for prompt in ("short", "word " * 2000):
        model = answering()
        agent = agent_of(model, WindowMiddleware(max_tokens=3000), system_prompt=prompt)
        agent.invoke({"messages": [*conversation(12), HumanMessage("q")]}, THREAD)
        sizes.append(len(model.requests[0].messages))
    assert sizes[1] < sizes[0]


def test_window_without_a_limit_is_refused() -> None:
    """A window that limits nothing is a mistake."""
    given: list[dict[str, Any]] = [{}, {"max_turns": 0}]
    for wrong in given:
        with pytest.raises(ConfigurationError, match="max_turns"):
            WindowMiddleware(**wrong)


def test_question_larger_than_the_window_is_shown_whole(invoke: Invoke) -> None:
    """What is pinned is never cut."""
    model = answering()
    question = HumanMessage("word " * 2000, id="q")
    invoke(agent_of(model, WindowMiddleware(max_tokens=100)), [*conversation(2), question])
    assert [each.id for each in model.requests[0].messages] == ["q"]


def test_every_fact_is_shown_to_the_summarizer_or_the_model(invoke: Invoke) -> None:
    """140 messages with 70 facts: all are summarized or in view, each summarized once."""
    model, small = answering(), summarizer()
    middleware = SummaryMiddleware(small, trigger=("tokens", 12_000), keep=("messages", 20))
    agent = agent_of(model, middleware)
    done = invoke(agent, [*conversation(70), HumanMessage("question", id="q")])
    shown = model.requests[0].messages
    assert set(facts_in(shown)) == {f"FACT{number:03d}" for number in range(70)}
    assert max(input_sizes(small)) <= 4000
    assert len(done["messages"]) == 142
    before = len(small.requests)
    invoke(agent, [*conversation(45, start=70), HumanMessage("again", id="q2")])
    assert len(small.requests) > before
    summarized = FACT.findall(new_parts(small))
    assert len(summarized) == len(set(summarized))
    shown = model.requests[1].messages
    assert set(facts_in(shown)) == {f"FACT{number:03d}" for number in range(115)}
    assert shown[-1].id == "q2"


def test_summary_is_private_plain_json(invoke: Invoke) -> None:
    """The running summary is no message; it is readable state in LangMem's form."""
    agent = agent_of(answering(), SummaryMiddleware(summarizer(), trigger=1000, keep=("turns", 1)))
    done = invoke(agent, [*conversation(9), HumanMessage("q", id="q")])
    assert "agentmem_summary" not in done
    kept = agent.get_state(THREAD).values["agentmem_summary"]["Summary"]
    assert set(kept) == {"summary", "summarized_message_ids", "last_summarized_message_id"}
    assert kept["last_summarized_message_id"] == "a8"
    assert len(kept["summarized_message_ids"]) == 18
    assert all("summary" not in str(each.content) for each in done["messages"])


def test_summary_is_not_made_again_without_need(invoke: Invoke) -> None:
    """Below the trigger the summary stays and nobody is asked."""
    small, model = summarizer(), answering()
    agent = agent_of(model, SummaryMiddleware(small, trigger=2000, keep=("turns", 2)))
    invoke(agent, [*conversation(9), HumanMessage("q", id="q")])
    made = len(small.requests)
    invoke(agent, [HumanMessage("short", id="q2")])
    assert len(small.requests) == made
    assert "FACT000" in str(model.requests[1].messages[0].content)


def test_failing_summary_leaves_the_view_and_no_text(invoke: Invoke) -> None:
    """The model is called with the whole view; no error text becomes history."""
    small = ScriptedChatModel(replies=lambda _: RuntimeError("overloaded"))
    model = answering()
    agent = agent_of(model, SummaryMiddleware(small, trigger=1000, keep=("turns", 1)))
    done = invoke(agent, [*conversation(9), HumanMessage("q", id="q")])
    assert len(model.requests[0].messages) == 19
    assert "overloaded" not in str(done)
    assert "agentmem_summary" not in agent.get_state(THREAD).values


def test_failing_summary_keeps_the_batches_made() -> None:
    """What was summarized before the failure is kept."""
    script = [False, True]

    def reply(messages: list[BaseMessage]) -> str | Exception:
        return RuntimeError("overloaded") if script.pop(0) else " ".join(facts_in(messages))

    model = answering()
    small = ScriptedChatModel(replies=reply)
    agent = agent_of(model, SummaryMiddleware(small, trigger=1000, keep=("turns", 1)))
    agent.invoke({"messages": [*conversation(30), HumanMessage("q", id="q")]}, THREAD)
    assert set(facts_in(model.requests[0].messages)) == {f"FACT{n:03d}" for n in range(30)}
    assert 1 < len(model.requests[0].messages) < 60


def test_system_prompt_counts_towards_the_trigger() -> None:
    """A long system prompt triggers what a short one does not."""
    made = []
    for prompt in ("short", "word " * 2000):
        small = summarizer()
        middleware = SummaryMiddleware(small, trigger=2000, keep=("turns", 1))
        agent = agent_of(answering(), middleware, system_prompt=prompt)
        agent.invoke({"messages": [*conversation(4), HumanMessage("q")]}, THREAD)
        made.append(len(small.requests))
    assert made == [0, 1]


def test_tool_groups_of_a_long_turn_are_summarized_whole(invoke: Invoke) -> None:
    """In one very long turn, old groups leave whole and the question stays."""
    model = answering()
    agent = agent_of(model, SummaryMiddleware(summarizer(), trigger=300, keep=("messages", 4)))
    invoke(agent, tool_turn("a", rounds=8)[:-1])
    shown = model.requests[0].messages
    assert is_whole(shown)
    assert [each.id for each in shown][1:3] == ["a-q", "a-7-call"]


def test_names_of_langmem_are_accepted(invoke: Invoke) -> None:
    """`max_tokens` bounds summary and messages together; the other one triggers."""
    model = answering()
    middleware = SummaryMiddleware(
        summarizer(), max_tokens=1000, max_tokens_before_summary=3000, max_summary_tokens=200
    )
    invoke(agent_of(model, middleware), [*conversation(20), HumanMessage("q", id="q")])
    assert count_tokens(model.requests[0].messages) <= 1000


def test_what_leaves_the_view_can_be_remembered(invoke: Invoke) -> None:
    """`offload_to` hands dropped messages to a memory."""
    memory = RAGMemory(store=InMemoryStore())
    middleware = SummaryMiddleware(summarizer(), trigger=1000, keep=("turns", 1), offload_to=memory)
    invoke(agent_of(answering(), middleware), [*conversation(9), HumanMessage("q", id="q")])
    assert "FACT003" in memory.recall("FACT003", config=THREAD).items[0].text


def test_deleted_messages_are_harmless(invoke: Invoke) -> None:
    """A summarized message that is removed from the state changes nothing."""
    from langchain_core.messages import RemoveMessage

    model = answering()
    agent = agent_of(model, SummaryMiddleware(summarizer(), trigger=1000, keep=("turns", 1)))
    invoke(agent, [*conversation(9), HumanMessage("q", id="q")])
    invoke(agent, [RemoveMessage(id="h0"), RemoveMessage(id="a8"), HumanMessage("q2", id="q2")])
    assert "FACT000" in str(model.requests[1].messages[0].content)
    assert model.requests[1].messages[-1].id == "q2"


def test_messages_of_blocks_are_summarized_as_text() -> None:
    """List content is shown to the summarizer as words, images as a placeholder."""
    small = summarizer()
    blocks: Any = [
        {"type": "text", "text": "FACT500"},
        {"type": "image_url", "image_url": {"url": "x"}},
    ]
    said = [HumanMessage(blocks, id="b"), AIMessage("seen", id="c"), *conversation(5)]
    agent = agent_of(answering(), SummaryMiddleware(small, trigger=500, keep=("turns", 1)))
    agent.invoke({"messages": said}, THREAD)
    assert "Human: FACT500" in new_parts(small)
    assert "[image_url]" in new_parts(small)


def test_leading_system_messages_of_the_state_stay() -> None:
    """System messages of the conversation itself are shown first, before the summary."""
    model = answering()
    agent = agent_of(model, SummaryMiddleware(summarizer(), trigger=500, keep=("turns", 1)))
    said = [SystemMessage("Rules.", id="s"), *conversation(5), HumanMessage("q", id="q")]
    agent.invoke({"messages": said}, THREAD)
    assert [each.type for each in model.requests[0].messages] == ["system", "human", "human"]


@pytest.mark.parametrize(
    "wrong", [{}, {"trigger": ("words", 3)}, {"trigger": 100, "summarizer_budget": 50}]
)
def test_wrong_limit_is_refused(wrong: dict[str, Any]) -> None:
    """A summary without a usable trigger or budget is refused at once."""
    with pytest.raises(ConfigurationError):
        SummaryMiddleware(summarizer(), **wrong)
