"""The active version of a prompt in a graph and in an agent."""

import asyncio
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.prompt_optimizer import PromptMemory
from langchain_agentmem.surfaces.prompts import PromptMiddleware, load_prompt_node
from langchain_agentmem.testing import ScriptedChatModel

Graph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]
Given: TypeAlias = Any
"""What a test hands through."""

ANN: RunnableConfig = {"configurable": {"user_id": "ann"}}
BOB: RunnableConfig = {"configurable": {"user_id": "bob"}}
PROMPT = "Help {name} politely."
ASK: Given = {"messages": [("user", "Hi")]}


class State(TypedDict, total=False):
    """State of a graph of the user's own."""

    prompts: dict[str, str]
    prompt_versions: dict[str, int]


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    """Whether the async path is taken."""
    return bool(request.param)


def _run(graph: Graph, given: Given, config: Given, *, is_async: bool) -> dict[str, Any]:
    if is_async:
        return dict(asyncio.run(graph.ainvoke(given, config)))
    return dict(graph.invoke(given, config))


def _agent(
    store: BaseStore | None, replies: Sequence[Any], **given: Given
) -> tuple[Graph, ScriptedChatModel]:
    model = ScriptedChatModel(replies=list(replies))
    options: dict[str, Any] = {"values": {"name": "Ann"}} | given
    system = options.pop("system_prompt", None)
    tools = options.pop("tools", [])
    middleware = PromptMiddleware(PromptMemory(prompts=PROMPT), **options)
    agent = create_agent(model, tools, middleware=[middleware], store=store, system_prompt=system)
    return agent, model


def _system(model: ScriptedChatModel, number: int = -1) -> str:
    first = model.requests[number].messages[0]
    assert isinstance(first, SystemMessage)
    return first.text


def test_node_loads_the_version_of_the_scope(any_store: BaseStore, is_async: bool) -> None:
    """The node puts the active text and its number into the state, for each user their own."""
    memory = PromptMemory(prompts=PROMPT)
    builder = StateGraph(State)
    builder.add_node("load_prompt", load_prompt_node(memory))
    builder.add_edge(START, "load_prompt")
    graph = builder.compile(store=any_store)
    handle = PromptMemory(prompts=PROMPT, store=any_store)
    handle.set("prompt", "Help {name} briefly.", config=ANN)
    found = _run(graph, {}, ANN, is_async=is_async)
    assert found["prompts"] == {"prompt": "Help {name} briefly."}
    assert found["prompt_versions"] == {"prompt": 2}
    assert _run(graph, {}, BOB, is_async=is_async)["prompts"] == {"prompt": PROMPT}


def test_node_needs_a_name() -> None:
    """Without prompts in the memory the node must be told which to load."""
    with pytest.raises(ConfigurationError, match="Name the prompts"):
        load_prompt_node(PromptMemory())


def test_new_version_takes_effect_at_the_next_call(any_store: BaseStore, is_async: bool) -> None:
    """The same agent object serves a new version without a restart, and says which it used."""
    agent, model = _agent(any_store, ["Hello.", "Hello again.", "Hello Bob."])
    first = _run(agent, ASK, ANN, is_async=is_async)
    handle = PromptMemory(prompts=PROMPT, store=any_store)
    handle.set("prompt", "Help {name} briefly.", config=ANN)
    second = _run(agent, ASK, ANN, is_async=is_async)
    _run(agent, ASK, BOB, is_async=is_async)
    shown = [_system(model, number) for number in range(3)]
    assert shown == ["Help Ann politely.", "Help Ann briefly.", "Help Ann politely."]
    assert [each["prompt_versions"] for each in (first, second)] == [{"prompt": 1}, {"prompt": 2}]


def test_recorded_run_teaches_about_the_version_it_used(any_store: BaseStore) -> None:
    """What the agent returns can be recorded as it is; the version comes along."""
    agent, _ = _agent(any_store, ["Hello."])
    result = agent.invoke(ASK, ANN)
    handle = PromptMemory(prompts=PROMPT, store=any_store)
    key = handle.record({**result, "feedback": "fine", "score": 1.0}, config=ANN)
    stored = any_store.get(("memories", "ann", "trajectories"), key)
    assert stored is not None
    assert stored.value["content"]["prompt_versions"] == {"prompt": 1}


def test_every_call_of_a_tool_loop_has_the_prompt(is_async: bool) -> None:
    """Each model call of one turn is shown the prompt, once."""

    def look() -> str:
        """Look something up."""
        return "found"

    call = {"name": "look", "args": {}, "id": "1", "type": "tool_call"}
    agent, model = _agent(
        InMemoryStore(), [AIMessage("", tool_calls=[call]), "Done."], tools=[look]
    )
    _run(agent, ASK, ANN, is_async=is_async)
    assert [_system(model, number) for number in (0, 1)] == ["Help Ann politely."] * 2


def test_prompt_of_the_agent_follows(is_async: bool) -> None:
    """A system prompt of the agent's own is kept behind the served one."""
    agent, model = _agent(InMemoryStore(), ["Hello."], system_prompt="You are on a boat.")
    _run(agent, ASK, ANN, is_async=is_async)
    text = _system(model)
    assert text.index("Help Ann politely.") < text.index("You are on a boat.")


def test_values_can_come_from_the_request() -> None:
    """A function of the request fills the variables; values with braces are not filled again."""
    agent, model = _agent(
        InMemoryStore(), ["Hello."], values=lambda request: {"name": f"{{{len(request.messages)}}}"}
    )
    agent.invoke(ASK, ANN)
    assert _system(model) == "Help {1} politely."


def test_missing_value_is_an_error() -> None:
    """A variable without a value fails with its name, not with a KeyError."""
    agent, _ = _agent(InMemoryStore(), ["Hello."], values=None)
    with pytest.raises(ConfigurationError, match="name"):
        agent.invoke(ASK, ANN)


def test_without_template_the_text_is_served_as_it_is() -> None:
    """With `template_format="none"` braces are text."""
    agent, model = _agent(InMemoryStore(), ["Hello."], template_format="none")
    agent.invoke(ASK, ANN)
    assert _system(model) == PROMPT


def test_agent_without_store_fails_with_advice() -> None:
    """Neither the memory nor the agent has a store: the error names `store=`."""
    agent, _ = _agent(None, ["Hello."])
    with pytest.raises(ConfigurationError, match="store="):
        agent.invoke(ASK, ANN)


def test_two_prompts_in_one_agent() -> None:
    """Two instances with names of their own serve two prompts, and both versions are noted."""
    memory = PromptMemory(
        prompts=[{"name": "tone", "prompt": "Be kind."}, {"name": "form", "prompt": "Be brief."}]
    )
    model = ScriptedChatModel(replies=["Hello."])
    middleware = [PromptMiddleware(memory, each, name=each) for each in ("tone", "form")]
    agent = create_agent(model, [], middleware=middleware, store=InMemoryStore())
    result: dict[str, Any] = agent.invoke(ASK, ANN)
    assert all(each in _system(model) for each in ("Be kind.", "Be brief."))
    assert result["prompt_versions"] == {"tone": 1, "form": 1}
