"""A development server's background runs, how it is started, and what a restart leaves."""

import asyncio
import importlib.util
import re
import shlex
import shutil
import signal
import time
from pathlib import Path

import pytest

if importlib.util.find_spec("langgraph_api") is None:
    pytest.skip("the extra 'studio' is not installed", allow_module_level=True)

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.integration_tests.dev_server import BIN, GRAPHS, ROOT, project, start, stop
from tests.integration_tests.test_studio import Given, ask

START_SECONDS = 15.0
EVERY_SECOND = "* * * * * *"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def batch(text: str) -> Given:
    """Return a piece of conversation to consolidate; its id makes it the same in every run."""
    return {"messages": [{"role": "user", "content": text, "id": text}]}


async def remembered(client: LangGraphClient, user: str) -> list[str]:
    """Return what is stored for a user."""
    found = await client.store.search_items(("memories", user), limit=50)
    return [str(item["value"]["content"]) for item in found["items"]]


async def appears(client: LangGraphClient, user: str, text: str) -> float:
    """Wait until a text is stored and return for how long that was, in seconds."""
    begun = time.monotonic()
    while text not in await remembered(client, user):
        assert time.monotonic() < begun + 60, f"{text!r} was never stored"
        await asyncio.sleep(0.2)
    return time.monotonic() - begun


async def test_a_delayed_run_consolidates_later(client: LangGraphClient) -> None:
    """A run with `after_seconds` returns at once, and has remembered when its time has come."""
    submitted = await client.runs.create(
        None,
        "consolidate",
        input=batch("I keep bees."),
        context={"user_id": "bea"},
        after_seconds=2,
    )
    assert submitted["status"] == "pending"
    assert await remembered(client, "bea") == []
    assert await appears(client, "bea", "I keep bees.") > 1


async def test_a_cron_consolidates_again_and_again(client: LangGraphClient) -> None:
    """A cron's runs remember, and a batch that comes again is remembered once."""
    thread = str((await client.threads.create())["thread_id"])
    cron: Given = await client.crons.create_for_thread(
        thread,
        "consolidate",
        schedule=EVERY_SECOND,
        input=batch("I row on Sundays."),
        context={"user_id": "carl"},
    )
    await appears(client, "carl", "I row on Sundays.")
    while len(await client.runs.list(thread, status="success")) < 2:  # noqa: ASYNC110 - the server's doing
        await asyncio.sleep(0.5)
    await client.crons.delete(cron["cron_id"])
    assert (await remembered(client, "carl")).count("I row on Sundays.") == 1


async def test_memories_survive_a_killed_server(tmp_path: Path) -> None:
    """After SIGKILL a new server recalls and does not complain; a start takes no 15 seconds."""
    first = start(project(tmp_path))
    async with get_client(url=first.url) as client:
        await ask(client, "The spare key lies under the third flower pot.", "finn")
    stop(first, signal.SIGKILL)
    second = start(tmp_path)
    try:
        async with get_client(url=second.url) as client:
            state = await ask(client, "Where is the spare key?", "finn")
    finally:
        stop(second)
    assert "under the third flower pot" in state["messages"][-1]["content"]
    assert second.complaints() == []
    assert min(first.seconds, second.seconds) < START_SECONDS


def documented() -> list[str]:
    """Return the command of the README's section about Studio."""
    text = (ROOT / "README.md").read_text("utf-8")
    section = text.partition("## LangGraph Studio")[2].partition("\n## ")[0]
    (command,) = re.findall(r"```bash\n(.*?)\n```", section, re.DOTALL)
    return shlex.split(command)


async def test_the_readmes_command_opens_studio(tmp_path: Path) -> None:
    """What the README says to type starts the server, with every graph."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")

    def command(options: str) -> list[str]:
        program, *words = documented()
        installed = ["-o", ".venv/integration.stamp", f"BIN={BIN}"]
        return [program, *installed, *words, f"ARGS={options}"]

    folder = project(tmp_path)
    shutil.copy(ROOT / "Makefile", folder)
    running = start(folder, command)
    try:
        async with get_client(url=running.url) as client:
            found = await client.assistants.search(limit=1000)
    finally:
        stop(running)
    assert {each["graph_id"] for each in found} == set(GRAPHS)
