"""Many turns of one user at the same time: the facts of each, each once."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from langchain_agentmem.consolidation import (
    LocalConsolidator,
    MemoryQueue,
    create_consolidation_graph,
)
from langchain_agentmem.memories import AMem, LangMem, Mem0
from tests.unit_tests.scripted import STORES, Scripted, make_store

TURNS = 12
HOMES = {Mem0: ("mem0", "facts"), AMem: ("a_mem", "notes"), LangMem: ()}


def fact(number: int) -> str:
    """Return the one fact of a turn."""
    return f"Ann knows fact number {number:03}"


def answer(prompt: str) -> Any:  # noqa: ANN401 - what a scripted model takes
    """Answer any of the three architectures with the fact of the turn in the prompt."""
    asked = prompt.rsplit("New messages:", maxsplit=1)[-1].rsplit("Conversation:", maxsplit=1)[-1]
    text = next((fact(n) for n in range(TURNS) if f"fact number {n:03}" in asked), "nothing")
    if "`related` are handles" in prompt:
        return {"facts": [{"text": text}]}
    if '"index"' in prompt:
        return {"operations": []}
    if "`action` is one of" in prompt:
        return {"memories": [{"action": "create", "content": text}]}
    if "Earlier notes" in prompt:
        return {"should_evolve": False}
    if "You describe a piece" in prompt:
        return {"keywords": ["k"], "context": "C.", "tags": ["t"]}
    return "A summary."


def config_of(number: int) -> RunnableConfig:
    """Return the config of a conversation of the user."""
    return {"configurable": {"user_id": "ann", "thread_id": f"t{number}"}}


def said(number: int) -> list[HumanMessage]:
    """Return a turn."""
    return [HumanMessage(fact(number), id=f"m{number}")]


def texts(store: Any, memory: Any) -> list[str]:  # noqa: ANN401 - a store and a class
    """Return what is remembered."""
    home = ("memories", "ann", *HOMES[memory])
    found = store.search(home, limit=1000)
    return sorted(one.value["content"] for one in found if one.namespace == home)


@pytest.mark.parametrize("way", ["sync", "async", "queue"])
@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("architecture", [Mem0, AMem, LangMem])
def test_parallel_turns_of_one_user_leave_the_facts_of_each_once(
    architecture: Callable[..., Any], kind: str, way: str, tmp_path: Path
) -> None:
    """Threads, tasks, or a queue over as many conversations: nothing lost, nothing twice."""
    store = make_store(kind, tmp_path)
    memory = architecture(model=Scripted(answer), store=store)
    if way == "sync":
        with ThreadPoolExecutor(TURNS) as pool:
            list(pool.map(lambda n: memory.remember(said(n), config=config_of(n)), range(TURNS)))
    elif way == "async":
        asyncio.run(_together(memory))
    else:
        queue = MemoryQueue(store=store, after_seconds=0)
        with ThreadPoolExecutor(TURNS) as pool:
            list(pool.map(lambda n: queue.submit(said(n), config=config_of(n)), range(TURNS)))
        worker = LocalConsolidator(queue, create_consolidation_graph(memory))
        assert worker.run_due() == TURNS
        worker.close()
    assert texts(store, type(memory)) == [fact(n) for n in range(TURNS)]
    journal = store.search(("_agentmem", "journal", "memories", "ann"), limit=1000)
    added = [one for one in journal if one.value["event"] == "ADD" and is_fact(one, store)]
    assert len(added) == TURNS


def is_fact(entry: Any, store: Any) -> bool:  # noqa: ANN401 - an item and a store
    """Tell whether a journal entry is about a fact."""
    item = store.get(entry.namespace[2:], entry.key.rpartition("@")[0])
    return str(item.value["content"]).startswith("Ann knows")


async def _together(memory: Any) -> None:  # noqa: ANN401 - a memory
    calls = (memory.aremember(said(n), config=config_of(n)) for n in range(TURNS))
    await asyncio.gather(*calls)


class JobsEndMeanwhile(LocalConsolidator):
    """A worker whose running job always ends just after the next could not be claimed."""

    def _begin_due(self) -> int:
        begun = super()._begin_due()
        while self._jobs:
            time.sleep(0.001)
        return begun


def test_run_due_goes_on_when_a_job_ends_while_it_claims(tmp_path: Path) -> None:
    """The scope that this frees is looked at once more: both turns of one user are worked off."""
    store = make_store("memory", tmp_path)
    queue = MemoryQueue(store=store, after_seconds=0)
    for number in range(2):
        queue.submit(said(number), config=config_of(number))
    graph = create_consolidation_graph(LangMem(model=Scripted(answer), store=store))
    with JobsEndMeanwhile(queue, graph) as worker:
        assert worker.run_due() == 2
