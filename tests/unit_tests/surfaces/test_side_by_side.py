"""The table of docs/classic_chains.md: each classic chain memory and ours, in one run."""

import asyncio
import os
import warnings
from pathlib import Path

import pytest
from langchain_classic import memory as classic
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.memories import Mem0, SummaryBufferMemory
from langchain_agentmem.surfaces.chains import ChainMemory
from langchain_agentmem.testing import CharacterEmbeddings, ScriptedChatModel
from tests.unit_tests.surfaces.side_by_side import PROBES, SHAPES, Disk, Probe, asked, mine, theirs

PAGE = Path(__file__).parents[3] / "docs/classic_chains.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
MARKS = {True: "✓", False: "✗", None: ""}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)
def test_ours_does_what_is_right(probe: Probe, name: str) -> None:
    """Whatever the classic class does, ours does it right."""
    assert asked(probe, name, mine) in (True, None)


@pytest.mark.parametrize("name", ["buffer", "window", "token buffer", "summary", "string buffer"])
def test_where_the_classic_class_is_right_the_text_is_the_same(name: str) -> None:
    """An ordinary conversation is loaded letter for letter as before."""
    loaded = []
    for side in (theirs, mine):
        memory = side(name, Disk())
        for said in ("FACT001 is so", "FACT002 is so"):
            memory.save_context({"input": said}, {"response": "I see"})
        loaded.append(memory.load_memory_variables({"input": "x"})["history"])
    assert loaded[1] == loaded[0].removeprefix("\n")  # the classic string buffer begins with one


def _table() -> str:
    head = ["| | " + " | ".join(SHAPES) + " |", "|---" * (len(SHAPES) + 1) + "|"]
    for probe in PROBES:
        cells = [
            " ".join(MARKS[asked(probe, name, side)] for side in (theirs, mine)).strip()
            for name in SHAPES
        ]
        head.append(f"| {str(probe.__doc__).rstrip('.')} | " + " | ".join(cells) + " |")
    return "\n".join(head) + "\n"


def test_the_table_of_the_documentation_is_what_a_run_gives() -> None:
    """The page shows this run: UPDATE_TABLE=1 writes it anew."""
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    shown, after = rest.split(END)
    measured = _table()
    if os.environ.get("UPDATE_TABLE"):
        PAGE.write_text(f"{before}{BEGIN}{measured}{END}{after}", "utf-8")
        shown = measured
    assert shown == measured


def test_what_takes_the_place_of_other_classes_remembers_in_async() -> None:
    """The classic entity and vector-token-buffer memories store nothing; their successors do."""
    config = {"user_id": "ann", "thread_id": "t"}
    kept = InMemoryStore()
    entities = ChainMemory(memory=Mem0(store=kept), config=config)
    buffer = ChainMemory(memory=SummaryBufferMemory(store=kept), config=config)
    model = ScriptedChatModel(replies=lambda _: "Ann")
    vectors = InMemoryVectorStore(CharacterEmbeddings())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their deprecation is not our subject
        classic_entities = classic.ConversationEntityMemory(llm=model)
        classic_buffer = classic.ConversationVectorStoreTokenBufferMemory(
            llm=model, retriever=vectors.as_retriever(), max_token_limit=1
        )

    for memory in (classic_entities, classic_buffer, entities, buffer):
        asyncio.run(memory.asave_context({"input": "FACT001 is Ann's"}, {"response": "I see"}))

    assert (classic_entities.entity_store.store, vectors.store) == ({}, {})  # type: ignore[attr-defined]  # an in-memory one
    for memory in (entities, buffer):
        loaded = asyncio.run(memory.aload_memory_variables({"input": "What is FACT001?"}))
        assert "FACT001" in loaded["history"]
