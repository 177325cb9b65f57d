"""The prompt optimizer and the memory tools on a real LangGraph development server."""

import importlib.util
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

if importlib.util.find_spec("langgraph_api") is None:
    pytest.skip("the extra 'studio' is not installed", allow_module_level=True)

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.integration_tests.dev_server import Server, project, start, stop

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

GRAPH = '''
"""An optimizer whose model follows a script and whose evaluator blocks, as users' functions do."""

import time

from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from langchain_agentmem import (
    RAGMemory,
    create_manage_memory_tool,
    create_search_memory_tool,
)
from langchain_agentmem.prompt_optimizer import PromptMemory, create_prompt_optimizer_graph
from langchain_agentmem.surfaces import create_memory_agent
from langchain_agentmem.testing import ScriptedChatModel

PROMPT = {"name": "support", "prompt": "Answer {q}."}
ANSWER = {"update_prompt": True, "new_prompt": "Answer {q} in one sentence."}


def evaluator(text, example):
    time.sleep(0.01)
    return float("one sentence" in text)


graph = create_prompt_optimizer_graph(
    ScriptedChatModel(replies=lambda _: ANSWER),
    prompts=PROMPT,
    strategy="prompt_memory",
    evaluator=evaluator,
    examples=[1, 2, 3],
)
agent = create_memory_agent(
    RAGMemory(),
    model=ScriptedChatModel(replies=lambda told: str(told[0].content).splitlines()[0]),
    prompt=PromptMemory(prompts=PROMPT),
    tools=False,
).compile(name="obedient")


def keep(messages):
    """Save what is told, search for what is asked, and repeat what the tool answered."""
    last = messages[-1]
    if last.type == "tool":
        return AIMessage(last.text)
    asked = last.text.endswith("?")
    name, given = ("search", "query") if asked else ("manage", "content")
    call = {"name": f"{name}_memory", "args": {given: last.text}, "id": "call-1"}
    return AIMessage("", tool_calls=[call])


keeper = create_agent(
    ScriptedChatModel(replies=keep),
    [create_manage_memory_tool(("team", "facts")), create_search_memory_tool(("team", "facts"))],
)
'''
TALKS: list[Any] = [
    {"id": str(number), "messages": [{"role": "user", "content": f"Question {number}"}]}
    for number in range(3)
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on one more graph than the project's own optimizer."""
    folder = project(tmp_path_factory.mktemp("project"))
    (folder / "graphs" / "scripted.py").write_text(GRAPH, "utf-8")
    config = json.loads((folder / "langgraph.json").read_text("utf-8"))
    own = config["graphs"]["prompt_optimizer"]
    config["graphs"] = {
        "prompt_optimizer": own,
        "scripted": "./graphs/scripted.py:graph",
        "obedient": "./graphs/scripted.py:agent",
        "keeper": "./graphs/scripted.py:keeper",
    }
    (folder / "langgraph.json").write_text(json.dumps(config), "utf-8")
    running = start(folder)
    yield running
    stop(running)
    assert running.complaints() == []


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    """A client of that server."""
    async with get_client(url=server.url) as connected:
        yield connected


async def test_optimizer_without_a_model_says_so(client: LangGraphClient) -> None:
    """The project's own graph runs without a key, changes nothing, and reports why."""
    result: Any = await client.runs.wait(
        None, "prompt_optimizer", input={"trajectories": TALKS}, context={"user_id": "ann"}
    )
    assert result["report"][0]["reason"] == "no model is configured"
    assert result["calls"] == 0


async def test_approval_in_the_middle_of_a_run(client: LangGraphClient) -> None:
    """The run stops with the diff, goes on with a person's answer, and the version is stored."""
    thread = (await client.threads.create())["thread_id"]
    context = {"user_id": "bea", "approval": "interrupt"}
    await client.runs.wait(thread, "scripted", input={"trajectories": TALKS}, context=context)
    state = await client.threads.get_state(thread)
    (task,) = [each for each in state["tasks"] if each["interrupts"]]
    assert task["name"] == "decide"
    assert "+Answer {q} in one sentence." in task["interrupts"][0]["value"]["diff"]
    result: Any = await client.runs.wait(
        thread, "scripted", command={"resume": "accept"}, context=context
    )
    assert result["report"][0]["decision"] == "accepted"
    home = ("memories", "bea", "prompts", "support")
    stored: Any = await client.store.get_item(home, "2")
    assert stored["value"]["content"]["text"] == "Answer {q} in one sentence."


async def test_the_agent_is_told_what_the_optimizer_has_learned(client: LangGraphClient) -> None:
    """An accepted version is served by the agent's very next run, for this user alone."""

    async def told(user: str) -> list[Any]:
        given: Any = {"messages": [{"role": "user", "content": "Hello?"}]}
        state: Any = await client.runs.wait(
            None, "obedient", input=given, context={"user_id": user}
        )
        return [state["messages"][-1]["content"], state["prompt_versions"]]

    assert await told("eve") == ["Answer {q}.", {"support": 1}]
    await client.runs.wait(
        None, "scripted", input={"trajectories": TALKS}, context={"user_id": "eve"}
    )
    assert await told("eve") == ["Answer {q} in one sentence.", {"support": 2}]
    assert await told("fay") == ["Answer {q}.", {"support": 1}]


async def test_a_parameter_of_the_form_changes_the_run(client: LangGraphClient) -> None:
    """What is set in the context's form holds for that run: a dry run writes nothing."""
    result: Any = await client.runs.wait(
        None,
        "scripted",
        input={"trajectories": TALKS},
        context={"user_id": "cid", "approval": "never"},
    )
    assert result["report"][0]["decision"] == "would_be_accepted"
    names = await client.store.list_namespaces(prefix=["memories", "cid"])
    assert names["namespaces"] == []


async def test_steps_are_streamed(client: LangGraphClient) -> None:
    """Every step is seen as it runs, a blocking evaluator included."""
    seen = []
    async for part in client.runs.stream(
        None,
        "scripted",
        input={"trajectories": TALKS},
        context={"user_id": "dan"},
        stream_mode=["updates", "custom"],
    ):
        if part.event == "updates":
            seen += list(part.data)
    steps = ["collect", "assign_credit", "propose", "guard", "evaluate", "decide", "commit"]
    assert seen == [*steps, "report"]


async def test_memory_tools_work_behind_the_servers_mcp_endpoint(server: Server) -> None:
    """An agent that the server exports by MCP saves in one call and finds in the next."""

    async def call(client: httpx.AsyncClient, method: str, **params: Any) -> Any:  # noqa: ANN401 - JSON
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = await client.post("/mcp", json=body)
        return answer.json()["result"]

    def saying(text: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": text}]
        return {"name": "keeper", "arguments": {"messages": messages}}

    headers = {"Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
        listed = await call(client, "tools/list")
        assert "keeper" in [each["name"] for each in listed["tools"]]
        saved = await call(client, "tools/call", **saying("Rex is a poodle."))
        assert "created memory" in str(saved)
        found = await call(client, "tools/call", **saying("Who is Rex?"))
    assert "Rex is a poodle." in str(found)
