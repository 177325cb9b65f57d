"""LangChain's standard suites for tools, on both memory tools."""

from typing import Any

from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import create_manage_memory_tool, create_search_memory_tool


class _Manage:
    @property
    def tool_constructor(self) -> BaseTool:
        """The manage tool over a store of its own."""
        return create_manage_memory_tool("memories", store=InMemoryStore())

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        """A valid call."""
        return {"content": "Ann lives in Oslo"}


class _Search:
    @property
    def tool_constructor(self) -> BaseTool:
        """The search tool over a store of its own."""
        return create_search_memory_tool(
            "memories", store=InMemoryStore(), response_format="content_and_artifact"
        )

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        """A valid call."""
        return {"query": "Where does Ann live?"}


class TestManageUnit(_Manage, ToolsUnitTests):
    """The manage tool without external things."""


class TestManageIntegration(_Manage, ToolsIntegrationTests):
    """The manage tool with a store."""


class TestSearchUnit(_Search, ToolsUnitTests):
    """The search tool without external things."""


class TestSearchIntegration(_Search, ToolsIntegrationTests):
    """The search tool with a store."""
