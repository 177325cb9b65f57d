"""Forgetting as a graph: nothing is erased before a person has agreed."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command

from langchain_agentmem import RAGMemory
from langchain_agentmem.surfaces import create_forget_graph

Run: TypeAlias = Callable[[Any], dict[str, Any]]
SECRET = "The key is under the pot."  # noqa: S105 - a word to look for
ANN: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "t"}}
BOB: RunnableConfig = {"configurable": {"user_id": "bob"}}


@pytest.fixture
def memory(any_store: BaseStore) -> RAGMemory:
    """A memory of two people."""
    made = RAGMemory(store=any_store)
    made.remember([("user", SECRET), ("user", "I like tea.")], config=ANN)
    made.remember("I like coffee.", config=BOB)
    return made


def _texts(memory: RAGMemory, config: RunnableConfig = ANN) -> set[str]:
    return {each.text for each in memory.recall("tea coffee key pot", config=config).items}


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def run(request: pytest.FixtureRequest, memory: RAGMemory) -> Run:
    """Run the graph for Ann, sync or async."""
    graph: CompiledStateGraph[Any, Any, Any, Any] = create_forget_graph(memory).builder.compile(
        checkpointer=InMemorySaver()
    )

    def call(given: Any) -> dict[str, Any]:  # noqa: ANN401 - an input or a command
        if request.param:
            return dict(asyncio.run(graph.ainvoke(given, ANN)))
        return dict(graph.invoke(given, ANN))

    return call


def _key(memory: RAGMemory) -> str:
    return memory.recall("key pot", config=ANN, limit=1).items[0].key


def test_what_a_person_accepts_is_erased(memory: RAGMemory, run: Run) -> None:
    """The run stops with what would be erased, and erases it once it is told to."""
    (asked,) = run({"keys": [_key(memory), "unknown"]})["__interrupt__"]
    assert asked.value["count"] == 1
    assert asked.value["memories"][0]["kind"] == "turn"
    assert _texts(memory) == {SECRET, "I like tea."}
    assert run(Command(resume="accept"))["forgotten"] == 1
    assert _texts(memory) == {"I like tea."}


@pytest.mark.parametrize("answer", ["reject", "", True, {"decision": "edit"}])
def test_every_other_answer_keeps_everything(memory: RAGMemory, run: Run, answer: object) -> None:
    """Only `accept` erases."""
    run({"everything": True})
    result = run(Command(resume=answer))
    assert (result["approved"], result["forgotten"]) == (False, 0)
    assert _texts(memory) == {SECRET, "I like tea."}


def test_everything_is_the_scopes_and_nobody_elses(memory: RAGMemory, run: Run) -> None:
    """All of Ann's memories go, Bob's stay."""
    assert run({"everything": True})["__interrupt__"][0].value["everything"]
    run(Command(resume="accept"))
    assert _texts(memory) == set()
    assert _texts(memory, BOB) == {"I like coffee."}


def test_a_filter_chooses_what_was_there_when_it_was_asked(memory: RAGMemory, run: Run) -> None:
    """What is remembered between question and answer was not agreed to, and stays."""
    run({"filter": {"kind": "turn"}})
    memory.remember("I like rain.", config=ANN)
    run(Command(resume="accept"))
    assert _texts(memory) == {"I like rain."}


@pytest.mark.parametrize("given", [{"keys": ["unknown"]}, {"keys": []}, {"filter": {}}, {}])
def test_nothing_chosen_is_not_asked_about(given: dict[str, Any], run: Run) -> None:
    """Without anything to erase the run ends at once."""
    result = run(given)
    assert "__interrupt__" not in result
    assert result["count"] == 0


def test_no_checkpoint_holds_what_is_forgotten(memory: RAGMemory, tmp_path: Path) -> None:
    """The question is saved, so it must not hold the text."""
    path = tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = create_forget_graph(memory).builder.compile(checkpointer=saver)
        graph.invoke({"everything": True}, ANN)
        graph.invoke(Command(resume="accept"), ANN)
    assert b"under the pot" not in b"".join(each.read_bytes() for each in tmp_path.iterdir())
