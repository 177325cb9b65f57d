"""LangChain's `create_agent` with the memory tools; a script plays the model, so no key is needed.

Replace the scripted model by a name such as `"openai:gpt-4.1-mini"`.
"""

from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from langchain_agentmem import (
    FaissSqliteStore,
    create_manage_memory_tool,
    create_search_memory_tool,
)
from langchain_agentmem.testing import ScriptedChatModel

call = {"name": "manage_memory", "args": {"content": "Ann plays the cello."}, "id": "call-1"}
model = ScriptedChatModel(replies=[AIMessage("", tool_calls=[call]), "I will remember that."])
namespace = ("memories", "{user_id}")
tools = [create_manage_memory_tool(namespace), create_search_memory_tool(namespace)]
agent: Any = create_agent(model, tools=tools, store=FaissSqliteStore(":memory:"))

ann = {"configurable": {"user_id": "ann"}}
for message in agent.invoke({"messages": [("user", "I play the cello.")]}, ann)["messages"]:
    message.pretty_print()
