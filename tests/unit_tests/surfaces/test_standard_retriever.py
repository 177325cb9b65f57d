"""LangChain's own suite for retrievers."""

from typing import Any

from langchain_core.messages import HumanMessage
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import RAGMemory
from langchain_agentmem.surfaces import MemoryRetriever


class TestMemoryRetriever(RetrieversIntegrationTests):
    """Runs the suite over a memory of five messages."""

    @property
    def retriever_constructor(self) -> type[MemoryRetriever]:
        """The class to test."""
        return MemoryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        """What it is made with."""
        memory = RAGMemory(store=InMemoryStore(), namespace=("memories",))
        memory.remember(
            [HumanMessage(f"Rex is dog {number}", id=str(number)) for number in range(5)]
        )
        return {"memory": memory}

    @property
    def retriever_query_example(self) -> str:
        """A question."""
        return "Which dog is Rex?"
