"""Consolidation in real processes: killed in the middle, and two at once over one scope."""

import json
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.consolidation import (
    LocalConsolidator,
    MemoryQueue,
    create_consolidation_graph,
)
from langchain_agentmem.memories import AMem, LangMem, Mem0
from langchain_agentmem.testing import ScriptedChatModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
MEMORIES: dict[str, Any] = {"Mem0": Mem0, "AMem": AMem, "LangMem": LangMem}
CHILD = """
import json, os, sys, time
from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.consolidation import *
from langchain_agentmem.consolidation.queue import MemoryQueue
from langchain_agentmem.memories import Mem0
from tests.integration_tests.test_consolidation_processes import (
    at, logged_model, memory_of, model, worker_of)

path, name, point = sys.argv[1:]
store = FaissSqliteStore(path, index=None)

def block(*_):
    print("blocked", flush=True)
    time.sleep(600)

if point == "before_done":
    MemoryQueue.done_steps = block
elif point == "before_save_messages":
    Mem0._save_messages = block
if point == "share":
    worker = worker_of(store, memory_of(name, logged_model(path + ".log"), store), None)
    print("ready", flush=True)
    sys.stdin.readline()
    until = time.monotonic() + 60
    while worker.queue.stats()["pending"] and time.monotonic() < until:
        worker.run_due()
else:
    worker_of(store, memory_of(name, model("first"), store), at(0)).run_due()
"""


def at(minutes: float) -> Any:  # noqa: ANN401 - a clock
    """Return a clock that stands still."""
    return lambda: NOW + timedelta(minutes=minutes)


def model(words: str) -> ScriptedChatModel:
    """Return a model that words every fact in its own way, whatever the architecture asks."""

    def answer(messages: list[Any]) -> Any:  # noqa: ANN401 - what a scripted model takes
        prompt = "\n".join(str(each.content) for each in messages)
        if "`related` are handles" in prompt:
            return {"facts": [{"text": f"Ann, {words}: moved to Rome"}]}
        if '"index"' in prompt:
            return {"operations": []}
        if "`action` is one of" in prompt:
            content = f"Ann, {words}: moved to Rome"
            return {"memories": [{"action": "create", "content": content}]}
        if "Earlier notes" in prompt:
            return {"should_evolve": False}
        if "You describe a piece" in prompt:
            return {"keywords": [words], "context": words, "tags": [words]}
        return "Ann moved to Rome."

    return ScriptedChatModel(replies=answer)


def logged_model(log: str) -> ScriptedChatModel:
    """Return a model that notes in a file when it is asked about which conversation."""

    def note(**what: Any) -> None:  # noqa: ANN401 - any JSON
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(json.dumps(what) + "\n")

    def answer(messages: list[Any]) -> Any:  # noqa: ANN401 - what a scripted model takes
        row = str(messages[-1].content).strip().splitlines()[-1]
        said = json.loads(row)["text"]
        note(said=said, event="begin", at=time.time())
        time.sleep(0.2)
        note(said=said, event="end", at=time.time())
        return {"memories": [{"action": "create", "content": f"Fact of {said}"}]}

    return ScriptedChatModel(replies=answer)


def memory_of(name: str, chat: ScriptedChatModel, store: FaissSqliteStore) -> Any:  # noqa: ANN401 - a memory
    """Return a memory."""
    return MEMORIES[name](model=chat, store=store, clock=at(0))


def worker_of(store: FaissSqliteStore, memory: Any, clock: Any) -> LocalConsolidator:  # noqa: ANN401 - as above
    """Return a worker over the queue of a store."""
    queue = MemoryQueue(store=store, after_seconds=0, lease_seconds=60, clock=clock)
    return LocalConsolidator(queue, create_consolidation_graph(memory))


def started(path: Path, name: str, point: str) -> subprocess.Popen[str]:
    """Start a child and wait for its first line."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), name, point],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdout is not None
    assert child.stdout.readline().strip() in {"blocked", "ready"}
    return child


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A memory file with one waiting conversation of two messages."""
    made = tmp_path / "memory.sqlite"
    submit(made)
    return made


def submit(path: Path) -> None:
    """Queue one conversation."""
    with FaissSqliteStore(path, index=None) as store:
        queue = MemoryQueue(store=store, after_seconds=0, clock=at(0))
        config: Any = {"configurable": {"user_id": "ann", "thread_id": "t"}}
        queue.submit([HumanMessage("I moved"), HumanMessage("to Rome")], config=config)


def contents(path: Path) -> dict[str, list[str]]:
    """Return everything remembered, with journal and summary, but not the queue."""
    found: dict[str, list[str]] = {}
    with FaissSqliteStore(path, index=None) as store:
        for prefix in (("memories",), ("_agentmem", "journal"), ("_agentmem", "closed")):
            for name in store.list_namespaces(prefix=prefix, limit=1000):
                items = [one for one in store.search(name, limit=1000) if one.namespace == name]
                told = [one.value.get("content", one.value.get("event")) for one in items]
                found["/".join(name)] = sorted(map(json.dumps, told))
    return found


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("Mem0", "before_save_messages"),
        ("Mem0", "before_done"),
        ("AMem", "before_done"),
        ("LangMem", "before_done"),
    ],
)
def test_a_process_killed_between_apply_and_done_leaves_each_fact_once(
    path: Path, name: str, point: str, tmp_path: Path
) -> None:
    """The next process finishes the record, even if its model would word the facts anew."""
    with started(path, name, point) as child:
        child.kill()
    with FaissSqliteStore(path, index=None) as store:
        worker = worker_of(store, memory_of(name, model("second"), store), at(2))
        assert worker.run_due() == 1
        assert worker.queue.stats()["failed"] == 0
        assert [each.state for each in worker.queue.records()] == ["done"]
        worker.close()
    undisturbed = tmp_path / "other.sqlite"
    submit(undisturbed)
    with FaissSqliteStore(undisturbed, index=None) as store:
        calm = worker_of(store, memory_of(name, model("first"), store), at(0))
        assert calm.run_due() == 1
        calm.close()
    assert without_keys(contents(path)) == without_keys(contents(undisturbed))


def without_keys(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return contents without the version numbers that a repeated summary counts up."""
    return {name: rows for name, rows in found.items() if not name.endswith("/summary")}


def test_two_processes_over_one_scope_give_one_result(tmp_path: Path) -> None:
    """Each record is run once, in one of them, and never two of a scope at the same time."""
    path = tmp_path / "memory.sqlite"
    with FaissSqliteStore(path, index=None) as store:
        queue = MemoryQueue(store=store, after_seconds=0)
        for user in ("ann", "bob"):
            for thread in range(5):
                config: Any = {"configurable": {"user_id": user, "thread_id": f"t{thread}"}}
                queue.submit([HumanMessage(f"{user} {thread}")], config=config)
    with started(path, "LangMem", "share") as one, started(path, "LangMem", "share") as other:
        for child in (one, other):
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        assert [child.wait(timeout=120) for child in (one, other)] == [0, 0]
    rows = [json.loads(row) for row in Path(f"{path}.log").read_text("utf-8").splitlines()]
    begun = Counter(row["said"] for row in rows if row["event"] == "begin")
    assert begun == {f"{user} {thread}": 1 for user in ("ann", "bob") for thread in range(5)}
    for user in ("ann", "bob"):
        own = sorted((row for row in rows if row["said"].startswith(user)), key=lambda r: r["at"])
        assert [row["event"] for row in own] == ["begin", "end"] * 5
    with FaissSqliteStore(path, index=None) as store:
        for user in ("ann", "bob"):
            found = store.search(("memories", user), limit=100)
            facts = sorted(one.value["content"] for one in found)
            assert facts == [f"Fact of {user} {thread}" for thread in range(5)]
        states = [each.state for each in MemoryQueue(store=store).records()]
        assert states == ["done"] * 10
