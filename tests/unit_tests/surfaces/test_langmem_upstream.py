"""Problems that users reported of LangMem's tools and summaries, inverted, by their issue.

Those of its store manager are in test_langmem_manager.py, those of agents' memories in
test_middleware_upstream.py.
"""

import json
import uuid
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from langchain_agentmem import create_manage_memory_tool, create_search_memory_tool
from langchain_agentmem.surfaces import SummarizationNode, SummaryMiddleware
from langchain_agentmem.surfaces.langmem import create_memory_store_manager
from langchain_agentmem.testing import ScriptedChatModel
from langchain_agentmem.windows import count_tokens, is_whole
from tests.unit_tests.memories.conversations import conversation, facts_in, summarizer
from tests.unit_tests.scripted import Scripted
from tests.unit_tests.surfaces.conftest import HOME, Invoke, Tools, id_in

THREAD: RunnableConfig = {"configurable": {"thread_id": "1", "user_id": "ann"}}


class State(TypedDict, total=False):
    """LangMem's state."""

    messages: Annotated[list[AnyMessage], add_messages]
    context: dict[str, Any]
    summarized_messages: list[AnyMessage]


def test_36_permitted_actions_may_be_a_list(tools: Tools) -> None:
    """Reported: with the documented list form every call of the tool fails."""
    options = {"actions_permitted": ["create", "update"]}

    assert tools.manage(content="x", options=options).status == "success"
    assert tools.manage(action="delete", id="x", options=options).status == "error"


def test_37_a_store_can_be_given_outside_of_a_graph(tools: Tools) -> None:
    """Reported: without a running graph there is no way to name the store."""
    model = Scripted([{"memories": [{"action": "create", "content": "Ann lives in Oslo"}]}])
    manager = create_memory_store_manager(model, namespace=HOME, store=tools.store)

    manager.invoke({"messages": [HumanMessage("I live in Oslo")]})

    assert "Oslo" in str([each.value for each in tools.store.search(HOME)])


@pytest.mark.parametrize("action", ["update", "delete"])
def test_42_an_id_that_does_not_exist_is_no_success(tools: Tools, action: str) -> None:
    """Reported: the tool says "updated memory" for any UUID, and stores a new memory under it."""
    key = id_in(tools.manage(content="Ann lives in Oslo"))

    message = tools.manage(action=action, id=str(uuid.UUID(int=7)), content="Ann lives in Rome")

    assert message.status == "error"
    assert [each.key for each in tools.store.search(HOME)] == [key]


def test_91_138_140_tools_and_background_read_what_the_other_wrote(tools: Tools) -> None:
    """Reported: the manager raises KeyError on a tool's memory, and the tool shows its envelope."""
    tools.manage(content="Ann lives in Oslo")
    tools.store.put(HOME, "theirs", {"kind": "Memory", "content": {"content": "Ann likes tea"}})
    foreign = {"type": "note", "session_id": "s", "text": "Ann has a dog"}
    tools.store.put(HOME, "foreign", foreign, index=["text"])
    model = Scripted([{"memories": [{"action": "create", "content": "Ann has a cat"}]}])
    manager = create_memory_store_manager(model, namespace=HOME, store=tools.store)

    manager.invoke({"messages": [HumanMessage("I have a cat")]})

    found = json.loads(tools.search(query="Ann").content)
    contents = [each["value"]["content"] for each in found]
    assert {"Ann lives in Oslo", "Ann likes tea", "Ann has a cat"} <= {
        each for each in contents if isinstance(each, str)
    }
    assert foreign in contents


def test_113_schemas_are_valid_in_strict_mode() -> None:
    """Reported: a strict provider refuses the tools, as arguments are listed nowhere."""
    for tool in (create_manage_memory_tool("m"), create_search_memory_tool("m")):
        parameters = convert_to_openai_tool(tool, strict=True)["function"]["parameters"]
        assert set(parameters["required"]) == set(parameters["properties"])
        assert parameters["additionalProperties"] is False


def test_59_a_summary_may_be_triggered_by_messages_and_keep_so_many(invoke: Invoke) -> None:
    """Reported: only tokens trigger, and how much stays word for word cannot be said."""
    small, model = summarizer(), ScriptedChatModel(replies=lambda _: "ok")
    middleware = SummaryMiddleware(small, trigger=("messages", 10), keep=("messages", 4))
    agent = create_agent(model, middleware=[middleware])

    for count in (4, 5):
        said = [*conversation(count), HumanMessage("and?", id="q")]
        invoke(agent, {"messages": said}, {"configurable": {"thread_id": str(count)}})

    assert len(small.requests) == 1
    assert [len(each.messages) for each in model.requests] == [9, 1 + 3]


def test_85_what_triggers_and_what_is_summarized_are_set_apart(invoke: Invoke) -> None:
    """Reported: one number says both when to summarize and how much of the oldest."""
    model = summarizer()
    node = SummarizationNode(
        model=model, max_tokens=1500, max_tokens_before_summary=3000, max_summary_tokens=100
    )

    below = invoke(node, {"messages": conversation(10)}, THREAD)
    above = invoke(node, {"messages": conversation(14)}, THREAD)

    assert len(below["summarized_messages"]) == 20
    assert 1000 < count_tokens(above["summarized_messages"]) <= 1500


def summarizing_agent(node: SummarizationNode, model: ScriptedChatModel, words: int) -> Any:  # noqa: ANN401 - a compiled graph
    """Return a graph whose model is shown what the node gives, with a tool of long results."""

    def call(state: State) -> dict[str, Any]:
        return {"messages": [model.invoke(state["summarized_messages"])]}

    def look(state: State) -> dict[str, Any]:
        (asked,) = state["messages"][-1].tool_calls  # type: ignore[union-attr]  # by the route
        text = f"FACT{int(str(asked['id'])):03d} " + "word " * words
        return {"messages": [ToolMessage(text, tool_call_id=asked["id"])]}

    def route(state: State) -> str:
        return "look" if getattr(state["messages"][-1], "tool_calls", None) else "__end__"

    builder = StateGraph(State)
    builder.add_node("summarize", node)
    builder.add_node("call", call)
    builder.add_node("look", look)
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "call")
    builder.add_conditional_edges("call", route)
    builder.add_edge("look", "summarize")
    return builder.compile(checkpointer=InMemorySaver())


def looking(times: int) -> list[AIMessage]:
    """Return the replies of a model that looks things up one by one, and answers."""
    calls = [{"name": "look", "args": {}, "id": str(number)} for number in range(times)]
    return [*(AIMessage("", tool_calls=[each]) for each in calls), AIMessage("Done.")]


@pytest.mark.parametrize("words", [30, 150])
def test_118_in_a_tool_loop_the_summary_takes_up_what_came_since(
    invoke: Invoke, words: int
) -> None:
    """Reported: the first summary stays as it was, so the model calls the same tools again."""
    model, small = ScriptedChatModel(replies=looking(12)), summarizer()
    node = SummarizationNode(model=small, max_tokens=600, max_summary_tokens=128)

    invoke(
        summarizing_agent(node, model, words),
        {"messages": [HumanMessage("Look everything up.", id="q")]},
        THREAD,
    )

    assert len(model.requests) == 13
    assert len(small.requests) > 1 or words < 150
    for number, request in enumerate(model.requests):
        assert facts_in(request.messages) == [f"FACT{each:03d}" for each in range(number)]
        assert any(each.id == "q" for each in request.messages)
        assert is_whole([each for each in request.messages if each.type != "system"])


def test_101_with_a_key_of_its_own_the_view_stays_bounded(invoke: Invoke) -> None:
    """Reported: the state keeps the conversation, and so the model is shown all of it again."""
    shown: list[list[AnyMessage]] = []
    model = summarizer()

    def answer(state: State) -> dict[str, Any]:
        shown.append(state["summarized_messages"])
        return {"messages": [AIMessage("I see.")]}

    builder = StateGraph(State)
    builder.add_node(
        "summarize", SummarizationNode(model=model, max_tokens=1500, max_summary_tokens=256)
    )
    builder.add_node("answer", answer)
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "answer")
    graph = builder.compile(checkpointer=InMemorySaver())
    for number in range(30):
        done = invoke(graph, {"messages": conversation(1, start=number)[:1]}, THREAD)

    assert len(done["messages"]) == 60
    assert max(map(count_tokens, shown)) <= 1500
    assert max(count_tokens(each.messages) for each in model.requests) <= 4000
