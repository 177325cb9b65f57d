"""`SummarizationNode`: LangMem's state and arguments, and no fact lost."""

from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict

from langchain_agentmem import RAGMemory
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.surfaces import SummarizationNode
from langchain_agentmem.testing import ScriptedChatModel
from langchain_agentmem.windows import count_tokens, is_whole
from tests.unit_tests.memories.conversations import (
    conversation,
    facts_in,
    input_sizes,
    lost,
    summarizer,
    tool_turn,
)
from tests.unit_tests.surfaces.conftest import Invoke

THREAD: RunnableConfig = {"configurable": {"thread_id": "1", "user_id": "ann"}}


class State(TypedDict, total=False):
    """LangMem's state."""

    messages: Annotated[list[AnyMessage], add_messages]
    context: dict[str, Any]
    summarized_messages: list[AnyMessage]


@pytest.fixture
def invoke(invoke: Invoke) -> Invoke:
    """Run a node or a graph in one thread, sync then async."""
    return lambda runnable, given: invoke(runnable, given, THREAD)


def graph_of(node: SummarizationNode, shown: list[list[AnyMessage]]) -> Any:  # noqa: ANN401 - as LangGraph's own
    """Return a chat whose model sees what the node gives."""

    def answer(state: State) -> dict[str, Any]:
        shown.append(state["summarized_messages"])
        return {"messages": [AIMessage("I will remember that fact.")]}

    builder = StateGraph(State)
    builder.add_node("summarize", node)
    builder.add_node("answer", answer)
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "answer")
    return builder.compile(checkpointer=InMemorySaver())


def test_backlog_loses_no_fact(invoke: Invoke) -> None:
    """Where LangMem loses 45 of 60 facts, all are in the summary or in view."""
    model = summarizer()
    node = SummarizationNode(model=model, max_tokens=2000)
    done = invoke(node, {"messages": conversation(60)})
    assert lost(60, model, done["summarized_messages"]) == set()
    assert max(input_sizes(model)) <= 4000
    assert set(done["context"]["running_summary"]) == {
        "summary",
        "summarized_message_ids",
        "last_summarized_message_id",
    }


@pytest.mark.parametrize(
    "limits", [{"max_tokens": 2000}, {"max_tokens": 3000, "max_tokens_before_summary": 4000}]
)
def test_turn_by_turn_loses_no_fact_and_always_shows_the_question(
    invoke: Invoke,
    limits: dict[str, Any],
) -> None:
    """A hundred turns one by one: no prompt is without its question or an earlier fact."""
    model, shown = summarizer(), list[list[AnyMessage]]()
    graph = graph_of(SummarizationNode(model=model, **limits), shown)
    for number in range(100):
        question = conversation(1, start=number)[0]
        invoke(graph, {"messages": [question]})
        assert shown[-1][-1].id == question.id
        assert lost(number + 1, model, shown[-1]) == set()
    new = "".join(each.text.partition("<new_part>")[2] for each in model.requests)
    assert all(new.count(f"FACT{number:03d}") <= 1 for number in range(100))


def test_tool_calls_stay_with_their_results(invoke: Invoke) -> None:
    """LangMem #112: no half of a tool call in any view."""
    model = ScriptedChatModel(replies=lambda _: "so far")
    node = SummarizationNode(model=model, max_tokens=400, max_summary_tokens=50)
    said = tool_turn("a", rounds=12)[:-1]
    for end in range(4, len(said) + 1, 3):
        view = invoke(node, {"messages": said[:end]})["summarized_messages"]
        assert is_whole(view)
        assert any(each.id == "a-q" for each in view)


def test_failing_summary_leaves_the_view(invoke: Invoke) -> None:
    """No error text and no placeholder becomes history."""
    model = ScriptedChatModel(replies=lambda _: RuntimeError("overloaded"))
    done = invoke(SummarizationNode(model=model, max_tokens=2000), {"messages": conversation(20)})
    assert done == {"summarized_messages": conversation(20)}


def test_same_key_replaces_the_conversation_and_the_memory_has_the_rest(invoke: Invoke) -> None:
    """With one key the state is bounded; what left it is remembered, and summarized once."""
    memory, model = RAGMemory(store=InMemoryStore()), summarizer()
    node = SummarizationNode(
        model=model, max_tokens=1500, output_messages_key="messages", offload_to=memory
    )
    builder = StateGraph(State)
    builder.add_node("summarize", node)
    builder.add_edge(START, "summarize")
    graph = builder.compile(checkpointer=InMemorySaver())
    for number in range(0, 30, 3):
        done = invoke(graph, {"messages": conversation(3, start=number)})
    assert set(facts_in(done["messages"])) == {f"FACT{number:03d}" for number in range(30)}
    assert count_tokens(done["messages"]) <= 1500
    assert sum("conversation_summary" in str(each.content) for each in done["messages"]) == 1
    assert "FACT002" in memory.recall("FACT002", config=THREAD).items[0].text


def test_messages_without_ids_are_summarized_once(invoke: Invoke) -> None:
    """A growing list of plain messages needs no ids."""
    model = summarizer()
    node = SummarizationNode(model=model, max_tokens=1000)
    said = [each.model_copy(update={"id": None}) for each in conversation(12)]
    first = invoke(node, {"messages": said[:20]})
    made = len(model.requests)
    again = invoke(node, {"messages": said[:20], "context": first["context"]})
    assert len(model.requests) == made
    assert [each.content for each in again["summarized_messages"]] == [
        each.content for each in first["summarized_messages"]
    ]


def test_langmem_s_own_summary_is_read(invoke: Invoke) -> None:
    """A checkpoint that LangMem wrote goes on."""
    short_term = pytest.importorskip("langmem.short_term")
    said = conversation(3, words=1)
    running = short_term.RunningSummary(
        summary="They met.", summarized_message_ids={"h0", "a0"}, last_summarized_message_id="a0"
    )
    model = ScriptedChatModel(replies=[])
    node = SummarizationNode(model=model, max_tokens=2000)
    done = invoke(node, {"messages": said, "context": {"running_summary": running}})
    view = done["summarized_messages"]
    assert "They met." in view[0].content
    assert view[1:] == said[2:]


def test_system_messages_stay_first(invoke: Invoke) -> None:
    """The system message is never summarized."""
    node = SummarizationNode(model=summarizer(), max_tokens=1000)
    said = [SystemMessage("Rules.", id="s"), *conversation(9), HumanMessage("q", id="q")]
    view = invoke(node, {"messages": said})["summarized_messages"]
    assert [each.type for each in view[:2]] == ["system", "human"]
    assert "conversation_summary" in view[1].content


@pytest.mark.parametrize(
    "wrong", [{"max_tokens": 100}, {"max_tokens": 900, "summarizer_budget": 9}]
)
def test_wrong_limit_is_refused(wrong: dict[str, Any]) -> None:
    """Limits that leave no room are refused at once."""
    with pytest.raises(ConfigurationError):
        SummarizationNode(model=summarizer(), **wrong)
