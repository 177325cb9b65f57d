"""The graphs on a real LangGraph development server, through the API that Studio uses."""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

if importlib.util.find_spec("langgraph_api") is None:
    pytest.skip("the extra 'studio' is not installed", allow_module_level=True)

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

ROOT = Path(__file__).parents[2]
GRAPHS: list[str] = sorted(json.loads((ROOT / "langgraph.json").read_text("utf-8"))["graphs"])
FACT = "My sister Ingrid adopted a parrot called Pixel."
QUESTION = "What is the name of my sister's parrot?"
NODES = {
    "a_mem_recall": {"search", "expand_links", "format"},
    "a_mem_remember": {"construct", "find_neighbours", "evolve", "apply", "persist"},
    "agent": {"recall:retrieve", "recall:assemble", "model", "tools", "remember:store_turns"},
    "consolidate": {"load_messages", "remember:extract", "remember:apply", "report"},
    "mem0_recall": {"search", "assemble"},
    "mem0_remember": {"load_context", "extract", "retrieve", "decide", "validate", "apply"},
    "prompt_optimizer": {"collect", "assign_credit", "propose", "guard", "evaluate", "decide"},
    "rag_recall": {"retrieve", "add_neighbors", "assemble"},
    "rag_remember": {"split_turns", "store_turns"},
}
SETTINGS = {
    "a_mem_recall": ("recall_k", 10),
    "a_mem_remember": ("recall_k", 10),
    "consolidate": ("top_k", 20),
    "mem0_recall": ("top_k", 20),
    "mem0_remember": ("top_k", 20),
    "prompt_optimizer": ("max_calls", 20),
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@dataclass(frozen=True, slots=True)
class Server:
    """A running development server.

    Attributes:
        url: Where it listens.
        process: Its process.
        log: What it writes.
    """

    url: str
    process: subprocess.Popen[bytes]
    log: Path


def free_port() -> int:
    """Return a port that nobody listens on."""
    with contextlib.closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start(folder: Path) -> Server:
    """Start a server in a folder and wait until it answers."""
    port, log = free_port(), folder / "server.log"
    command = [str(Path(sys.executable).parent / "langgraph"), "dev", "--no-browser", "--no-reload"]
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "AGENTMEM_DB": str(folder / "data" / "memory.sqlite"),
    }
    with log.open("ab") as file:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    server = Server(f"http://127.0.0.1:{port}", process, log)
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{server.url}/ok").status_code == httpx.codes.OK:
                return server
        time.sleep(0.2)
    process.kill()
    pytest.fail(log.read_text("utf-8", "replace"))


def stop(server: Server, number: signal.Signals = signal.SIGTERM) -> None:
    """End a server by its own process id."""
    server.process.send_signal(number)
    server.process.wait(timeout=30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the configuration and the graphs, as a user's project has them."""
    made = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "langgraph.json", made)
    shutil.copytree(ROOT / "graphs", made / "graphs")
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """A server on the graphs, without any key."""
    running = start(folder)
    yield running
    stop(running)


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    """A client of the server."""
    async with get_client(url=server.url) as connected:
        yield connected


def said(text: str) -> Any:  # noqa: ANN401 - the server's input of any graph
    """Return one message of the user as a run's input."""
    return {"messages": [{"role": "user", "content": text}]}


async def ask(client: LangGraphClient, text: str, user: str, **context: int) -> dict[str, Any]:
    """Run the agent once in a thread of its own and return its state."""
    thread = await client.threads.create()
    state = await client.runs.wait(
        thread["thread_id"],
        "agent",
        input=said(text),
        context={"user_id": user, **context},
    )
    assert isinstance(state, dict)
    return state


@pytest.mark.parametrize("name", GRAPHS)
async def test_each_graph_has_a_form_and_a_drawing(client: LangGraphClient, name: str) -> None:
    """Every graph is listed, has all four schemas with descriptions, and shows its steps."""
    (assistant,) = await client.assistants.search(graph_id=name)
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    for part in ("input_schema", "output_schema", "state_schema", "context_schema"):
        assert schemas.get(part), part
    fields = (schemas["context_schema"] or {})["properties"]
    setting, default = SETTINGS.get(name, ("limit", 10))
    assert {"user_id", "preset", setting} <= set(fields)
    assert all(field.get("description") for field in fields.values())
    assert fields[setting]["default"] == default
    drawing = await client.assistants.get_graph(assistant["assistant_id"], xray=True)
    assert NODES[name] <= {node["id"] for node in drawing["nodes"]}
    assert (
        await client.assistants.get_subgraphs(assistant["assistant_id"], recurse=True) is not None
    )


async def test_the_agent_remembers_across_threads_and_not_across_users(
    client: LangGraphClient,
) -> None:
    """A second thread of the same user recalls; another user's recalls nothing."""
    await ask(client, FACT, "ann")
    state = await ask(client, QUESTION, "ann", limit=1)
    assert FACT in state["messages"][-1]["content"]
    assert len(state["memories"]) == 1
    other = await ask(client, QUESTION, "bob")
    assert "Pixel" not in json.dumps(other)


async def test_inner_steps_are_streamed(client: LangGraphClient) -> None:
    """The steps of recall and remember are seen as they run, under their node's name."""
    seen = set()
    async for part in client.runs.stream(
        None,
        "agent",
        input=said("Good morning!"),
        context={"user_id": "cleo"},
        stream_mode=["updates", "custom"],
        stream_subgraphs=True,
    ):
        kind, _, namespace = part.event.partition("|")
        seen.add((kind, namespace.partition(":")[0]))
    assert {("updates", "recall"), ("updates", "remember"), ("custom", "")} <= seen


async def test_time_travel(client: LangGraphClient) -> None:
    """The history of a thread can be read, and a run continued from an earlier point."""
    thread = (await client.threads.create())["thread_id"]
    given: dict[str, Any] = {
        "input": said("I play chess."),
        "context": {"user_id": "dora"},
    }
    await client.runs.wait(thread, "agent", interrupt_before=["remember"], **given)
    paused = await client.threads.get_state(thread)
    assert paused["next"] == ["remember"]
    await client.runs.wait(thread, "agent", context={"user_id": "dora"})
    history = await client.threads.get_history(thread)
    point = next(each for each in history if each["next"] == ["model"])
    again = await client.runs.wait(
        thread, "agent", checkpoint=point["checkpoint"], context={"user_id": "dora"}
    )
    assert isinstance(again, dict)
    assert [message["type"] for message in again["messages"]] == ["human", "ai"]


async def test_the_store_is_open_to_its_api(client: LangGraphClient) -> None:
    """What a graph wrote can be listed, read and searched through the server."""
    await ask(client, "My boat is moored at Sandvika.", "erik")
    found = await client.store.search_items(("memories", "erik", "rag", "turns"), query="boat")
    assert found["items"][0]["value"]["content"] == "My boat is moored at Sandvika."
    names = await client.store.list_namespaces(prefix=["memories", "erik"])
    assert ["memories", "erik", "rag", "turns"] in names["namespaces"]


async def test_memories_survive_a_killed_server(folder: Path) -> None:
    """After SIGKILL a new server on the same file recalls, and no log holds an error."""
    first = start(folder)
    async with get_client(url=first.url) as client:
        await ask(client, "The spare key lies under the third flower pot.", "finn")
    stop(first, signal.SIGKILL)
    second = start(folder)
    try:
        async with get_client(url=second.url) as client:
            state = await ask(client, "Where is the spare key?", "finn")
    finally:
        stop(second)
    assert "under the third flower pot" in state["messages"][-1]["content"]
    log = second.log.read_text("utf-8", "replace")
    assert not [line for line in log.splitlines() if "BlockingError" in line or "[error" in line]
