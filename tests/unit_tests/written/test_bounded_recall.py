"""Recall and candidates come from the store's index: no scope is read whole."""

from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp

from langchain_agentmem.items import MemoryItem, StoredMemory
from langchain_agentmem.memories import AMem, LangMem, Mem0
from tests.unit_tests.written.conftest import ANN, World
from tests.unit_tests.written.test_mem0_remember import ops, said

MANY = 1200
WANTED = "a quiet xylophone quartet"
HOMES: dict[type[Any], tuple[str, ...]] = {
    Mem0: ("memories", "ann", "mem0", "facts"),
    AMem: ("memories", "ann", "a_mem", "notes"),
    LangMem: ("memories", "ann"),
}


def filled(tmp_path: Path, memory: type[Any], mode: str) -> World:
    """Return a world with very many memories of Ann."""
    world = World("sqlite", tmp_path, is_async=mode == "async")
    texts = (f"fact {number} about {chr(97 + number % 26) * 3}" for number in range(MANY))
    items = [MemoryItem(content=text).to_value() for text in (*texts, WANTED)]
    world.store.batch(
        [PutOp(HOMES[memory], str(n), item, index=["content"]) for n, item in enumerate(items)]
    )
    return world


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[StoredMemory]:
    """Give a list of everything that is read from the store."""
    seen: list[StoredMemory] = []
    original = StoredMemory.from_store

    def noted(found: Any) -> StoredMemory:  # noqa: ANN401 - an item of a store
        seen.append(original(found))
        return seen[-1]

    monkeypatch.setattr(StoredMemory, "from_store", noted)
    return seen


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("memory", HOMES)
async def test_recall_reads_a_small_part_of_a_big_scope(
    tmp_path: Path, memory: type[Any], mode: str, read: list[StoredMemory]
) -> None:
    """Of 1,200 memories the arms read what they rank, and the best one is found."""
    world = filled(tmp_path, memory, mode)
    call = world.make(memory)
    found = await call("recall", "xylophone quartet?", config=ANN, limit=5)
    assert WANTED in [each.content for each in found.items]
    assert 5 <= len(read) < MANY / 4


async def test_candidates_of_a_new_fact_are_searched_not_listed(
    tmp_path: Path, read: list[StoredMemory]
) -> None:
    """The nearest ten of 1,200 are shown to the decision."""
    world = filled(tmp_path, Mem0, "sync")
    call = world.make(Mem0)
    world.model.extend(said("fact 777 about zzz"), ops())
    await call("remember", "777", config=ANN)
    assert world.model.prompt().count('{"handle"') == 10
    assert len(read) < MANY / 4


async def test_a_selective_filter_is_searched_for_to_the_end(tmp_path: Path) -> None:
    """The only fact that passes is the farthest of 1,200, and still found."""
    world = filled(tmp_path, Mem0, "sync")
    call = world.make(Mem0, threshold=-1.0)
    rare = MemoryItem(content="zzzz", metadata={"team": "a"})
    world.store.put(HOMES[Mem0], "rare", rare.to_value(), index=["content"])
    found = await call("recall", "fact about aaa", config=ANN, limit=5, filters={"team": "a"})
    assert [each.key for each in found.items] == ["rare"]
