"""`MemoryRetriever`: documents of the call's own scope, with where they come from."""

import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import RAGMemory
from langchain_agentmem.surfaces import MemoryRetriever
from tests.unit_tests.surfaces.conftest import Invoke

ANN: RunnableConfig = {"configurable": {"user_id": "ann"}}
BOB: RunnableConfig = {"configurable": {"user_id": "bob"}}


@pytest.fixture
def memory() -> RAGMemory:
    """Give a memory with three messages of Ann and one of Bob."""
    memory = RAGMemory(store=InMemoryStore())
    said = ["My dog is called Rex.", "I like green tea.", "I live in Oslo."]
    memory.remember([HumanMessage(text, id=text) for text in said], config=ANN)
    memory.remember("My dog is called Max.", config=BOB)
    return memory


def test_documents_say_what_they_are(memory: RAGMemory, invoke: Invoke) -> None:
    """Content, key, namespace, kind and score are there."""
    document = invoke(MemoryRetriever(memory=memory), "What is my dog called?", ANN)[0]
    assert document.page_content == "My dog is called Rex."
    assert document.id == document.metadata["key"]
    assert document.metadata["namespace"] == ["memories", "ann", "rag", "turns"]
    assert document.metadata["kind"] == "turn"
    assert document.metadata["score"] > 0
    assert document.metadata["observed_at"] is not None


def test_scope_is_that_of_the_call(memory: RAGMemory, invoke: Invoke) -> None:
    """One retriever serves every user, each with their own memories."""
    retriever = MemoryRetriever(memory=memory)
    assert [each.page_content for each in invoke(retriever, "dog", BOB)] == [
        "My dog is called Max."
    ]


def test_scope_is_inherited_inside_a_chain(memory: RAGMemory, invoke: Invoke) -> None:
    """Called by another runnable, it is in the scope of that run."""
    retriever = MemoryRetriever(memory=memory)

    def ask(query: str) -> list[Document]:
        return retriever.invoke(query)

    chain = RunnableLambda(ask)
    assert "Max" in invoke(chain, "dog", BOB)[0].page_content


def test_number_filter_and_least_score(memory: RAGMemory, invoke: Invoke) -> None:
    """`k` can be changed for one call; a filter and a least score leave documents out."""
    retriever = MemoryRetriever(memory=memory, k=2)
    assert len(invoke(retriever, "I", ANN)) == 2
    assert len(invoke(retriever, "I", ANN, k=1)) == 1
    kept = MemoryRetriever(memory=memory, k=1, filter={"content": "I live in Oslo."})
    assert [each.page_content for each in invoke(kept, "dog Rex", ANN)] == ["I live in Oslo."]
    assert invoke(MemoryRetriever(memory=memory, min_score=1e9), "dog", ANN) == []


def test_long_memories_are_as_many_documents_as_short_ones(
    memory: RAGMemory, invoke: Invoke
) -> None:
    """The token budget of a prompt's text cuts no documents."""
    said = [
        HumanMessage(f"Rex {number} " + "and so on " * 300, id=str(number)) for number in range(9)
    ]
    memory.remember(said, config=ANN)
    assert len(invoke(MemoryRetriever(memory=memory, k=9), "Rex", ANN)) == 9
    assert len(memory.recall("Rex", config=ANN, limit=9).items) < 9


def test_filter_is_searched_for_to_the_end(memory: RAGMemory, invoke: Invoke) -> None:
    """What a filter chooses is found although much else matches the question better."""
    said = [HumanMessage(f"My dog Rex is number {number}.", id=str(number)) for number in range(60)]
    memory.remember(said, config=ANN)
    for wanted in ("I live in Oslo.", "I like green tea."):
        retriever = MemoryRetriever(memory=memory, k=1, filter={"content": wanted})
        assert [each.page_content for each in invoke(retriever, "dog Rex", ANN)] == [wanted]
    nothing = MemoryRetriever(memory=memory, k=1, filter={"content": "Never said."})
    assert invoke(nothing, "dog Rex", ANN) == []


def test_forgotten_memory_is_not_found(memory: RAGMemory, invoke: Invoke) -> None:
    """What was forgotten is no document any more."""
    retriever = MemoryRetriever(memory=memory)
    memory.forget(invoke(retriever, "dog", ANN)[0].id, config=ANN)
    left = [each.page_content for each in invoke(retriever, "dog", ANN)]
    assert sorted(left) == ["I like green tea.", "I live in Oslo."]
