"""`ServerConsolidator` on a real development server: runs, pauses, users, crons, failures."""

import asyncio
import importlib.util
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("langgraph_api") is None:
    pytest.skip("the extra 'studio' is not installed", allow_module_level=True)

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.consolidation import MemoryQueue, Record, ServerConsolidator
from langchain_agentmem.consolidation.server import thread_of
from tests.integration_tests.dev_server import Server, project, start, stop

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

GRAPHS = '''
"""A graph that only submits, and one that consolidates with a model that repeats what was said."""

import json

from langgraph.graph import StateGraph

from langchain_agentmem import MemoryState
from langchain_agentmem.consolidation import (
    MemoryQueue, ServerConsolidator, create_consolidation_graph, submit_node)
from langchain_agentmem.testing import ScriptedChatModel


def answer(messages):
    said = messages[-1].content.split("Conversation:")[-1].strip().splitlines()
    texts = [json.loads(row)["text"] for row in said]
    if "fail" in texts[-1]:
        raise OSError("the model is down")
    return {"memories": [{"action": "create", "content": text} for text in texts]}


queue = MemoryQueue(after_seconds=2, retry_seconds=0.1, max_attempts=2)
ServerConsolidator(queue, assistant_id="background")
builder = StateGraph(MemoryState)
builder.add_node("submit", submit_node(queue))
builder.set_entry_point("submit")
talk = builder.compile()
background = create_consolidation_graph(
    model=ScriptedChatModel(replies=answer),
    queue=MemoryQueue(after_seconds=2, retry_seconds=0.1, max_attempts=2),
)
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a graph that submits and one that consolidates."""
    folder = project(tmp_path_factory.mktemp("project"))
    (folder / "graphs" / "queued.py").write_text(GRAPHS, "utf-8")
    config = json.loads((folder / "langgraph.json").read_text("utf-8"))
    config["graphs"]["talk"] = "./graphs/queued.py:talk"
    config["graphs"]["background"] = "./graphs/queued.py:background"
    (folder / "langgraph.json").write_text(json.dumps(config), "utf-8")
    running = start(folder)
    yield running
    stop(running)


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    """A client of the server."""
    async with get_client(url=server.url) as connected:
        yield connected


async def talk(client: LangGraphClient, user: str, text: str) -> str:
    """Say something in the one conversation of a user; return the thread of its background runs."""
    thread = str(uuid.uuid5(uuid.NAMESPACE_URL, user))
    await client.threads.create(thread_id=thread, if_exists="do_nothing")
    given: Any = {"messages": [{"role": "user", "content": text, "id": text}]}
    await client.runs.wait(thread, "talk", input=given, context={"user_id": user})
    queue = MemoryQueue()
    scope = queue.namespace({"configurable": {"user_id": user}})
    return thread_of(Record.opened(scope, thread, 0, queue.clock()))


async def memories(client: LangGraphClient, user: str) -> list[str]:
    """Return what is stored for a user."""
    found = await client.store.search_items(("memories", user), limit=100)
    return sorted(str(item["value"]["content"]) for item in found["items"])


async def until(client: LangGraphClient, user: str, expected: list[str]) -> None:
    """Wait until just that is stored for a user."""
    end = time.monotonic() + 60
    while (found := await memories(client, user)) != expected:
        assert time.monotonic() < end, found
        await asyncio.sleep(0.3)


async def states(client: LangGraphClient, user: str) -> list[str]:
    """Return the states of the queue's records of a user."""
    found = await client.store.search_items(("_agentmem", "queue", "memories", user), limit=100)
    values = [item["value"] for item in found["items"]]
    return sorted(each["content"]["state"] for each in values if each["kind"] == "queue")


async def test_turns_of_two_users_are_consolidated_into_their_own_scopes(
    client: LangGraphClient,
) -> None:
    """A run waits in the thread of each, and what was said within the pause is one batch."""
    thread = await talk(client, "ann", "Ann keeps bees")
    (waiting,) = await client.runs.list(thread)
    assert waiting["status"] == "pending"
    await talk(client, "ann", "Ann rows")
    await talk(client, "bob", "Bob sings")
    assert len(await client.runs.list(thread)) == 1
    assert await memories(client, "ann") == []
    await until(client, "ann", ["Ann keeps bees", "Ann rows"])
    await until(client, "bob", ["Bob sings"])
    assert await states(client, "ann") == ["done"]
    state: Any = await client.threads.get_state(thread)
    (told,) = state["values"]["progress"].values()
    assert (told["state"], told["added"]) == ("done", 2)
    assert "bees" not in json.dumps(state["values"])


async def test_a_failing_model_is_tried_again_and_then_set_aside(client: LangGraphClient) -> None:
    """The record keeps the error and its messages, and the state of the run tells of both."""
    thread = await talk(client, "dan", "this will fail")
    end = time.monotonic() + 60
    while await states(client, "dan") != ["failed"]:
        assert time.monotonic() < end
        await asyncio.sleep(0.3)
    state: Any = await client.threads.get_state(thread)
    (told,) = state["values"]["progress"].values()
    assert (told["state"], told["attempts"]) == ("failed", 2)


async def test_a_program_outside_of_the_server_submits_by_sync_calls(server: Server) -> None:
    """It shares the store's file with the server, which does the work."""
    path = server.log.parent / "data" / "memory.sqlite"

    def submit() -> Any:  # noqa: ANN401 - a report in numbers
        with FaissSqliteStore(path) as store:
            queue = MemoryQueue(store=store, after_seconds=0)
            consolidator = ServerConsolidator(queue, assistant_id="background", url=server.url)
            ticket = queue.submit("Eve paints", config={"configurable": {"user_id": "eve"}})
            consolidator.close()
            return ticket.result(timeout=60)

    assert (await asyncio.to_thread(submit))["added"] == 1


async def test_a_cron_drains_whatever_is_due(server: Server, client: LangGraphClient) -> None:
    """Registered once however often it is asked for; its run takes what nobody else took."""
    path = server.log.parent / "data" / "memory.sqlite"
    with FaissSqliteStore(path) as store:
        queue = MemoryQueue(store=store, after_seconds=0)
        await queue.asubmit("Finn dives", config={"configurable": {"user_id": "finn"}})
        consolidator = ServerConsolidator(queue, assistant_id="background", client=client)
        cron = await consolidator.aschedule("* * * * * *")
        assert await consolidator.aschedule("* * * * * *") == cron
    await until(client, "finn", ["Finn dives"])
    await client.crons.delete(cron)


async def test_the_steps_are_nodes_and_nothing_blocks_the_loop(
    server: Server, client: LangGraphClient
) -> None:
    """Each step is drawn, and the log complains of nothing but the model that was down."""
    (assistant,) = await client.assistants.search(graph_id="background")
    drawing = await client.assistants.get_graph(assistant["assistant_id"], xray=True)
    names = {node["id"] for node in drawing["nodes"]}
    inner = ("load_messages", "remember:recall", "remember:extract", "remember:apply", "report")
    assert {"claim", *(f"consolidate:{name}" for name in inner)} <= names
    assert [line for line in server.complaints() if "blockingerror" in line.lower()] == []


async def test_a_server_that_cannot_be_reached_is_told_of(tmp_path: Path) -> None:
    """The record is set aside with its messages, for `retry`."""
    with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as store:
        queue = MemoryQueue(store=store)
        consolidator = ServerConsolidator(queue, url="http://127.0.0.1:9")
        ann: Any = {"configurable": {"user_id": "ann"}}
        ticket = await queue.asubmit("hello", config=ann)
        assert ticket.status() == "failed"
        (record,) = await queue.afailed()
        assert len(record.messages) == 1
        await consolidator.aclose()
