"""Every way to recall over a store whose index knows words and has no embedding model."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from langchain_agentmem import FaissSqliteStore, create_search_memory_tool
from langchain_agentmem.memories import AMem, LangMem, Mem0, RAGMemory, WindowMemory
from langchain_agentmem.surfaces import MemoryRetriever
from langchain_agentmem.testing import ScriptedChatModel

ANN: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "t"}}
SAID = [("user", "I drink green tea."), ("ai", "Noted."), ("user", "I live in Oslo.")]


@pytest.fixture
def store() -> FaissSqliteStore:
    """A store that is searched by words alone."""
    return FaissSqliteStore(":memory:", index={"fields": ["$"]})


def _mem0(store: FaissSqliteStore) -> Mem0:
    facts = [{"text": "Ann drinks green tea.", "attributed_to": "user"}]
    model = ScriptedChatModel(
        replies=lambda shown: {"operations": []} if "operations" in str(shown) else {"facts": facts}
    )
    return Mem0(model=model, store=store)


@pytest.mark.parametrize(
    "make",
    [
        lambda store: RAGMemory(store=store),
        lambda store: WindowMemory(k=1, search_archive=1, store=store),
        lambda store: AMem(store=store),
        lambda store: LangMem(store=store),
        _mem0,
    ],
    ids=["rag", "window", "a_mem", "langmem", "mem0"],
)
def test_a_memory_over_an_index_of_words_recalls_by_words(
    store: FaissSqliteStore, make: Callable[[FaissSqliteStore], Any]
) -> None:
    """A search asked for vectors that the store does not have, and recall failed."""
    memory = make(store)
    for _ in range(2):
        memory.remember(SAID, config=ANN)
    for found in (
        memory.recall("tea", config=ANN),
        asyncio.run(memory.arecall("tea", config=ANN)),
    ):
        assert any("green tea" in item.text for item in found.items)


def test_tools_and_retriever_over_an_index_of_words_find_by_words(store: FaissSqliteStore) -> None:
    """They search as the memories do."""
    memory = RAGMemory(store=store)
    memory.remember(SAID, config=ANN)
    search = create_search_memory_tool(memory=memory)
    assert "green tea" in search.invoke({"query": "tea", "limit": 1}, ANN)
    found = MemoryRetriever(memory=memory, k=1).invoke("tea", ANN)
    assert found[0].page_content == "I drink green tea."
