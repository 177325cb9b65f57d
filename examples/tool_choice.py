"""What is recalled decides which tool the agent calls: recall and remember as nodes of a graph.

Offline: the model is scripted and decides by what it reads. Take any chat model with tools instead.
"""

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.store.base import BaseStore

from langchain_agentmem import FaissSqliteStore, MemoryState, RAGMemory
from langchain_agentmem.surfaces import recall_node, remember_node
from langchain_agentmem.testing import ScriptedChatModel


def book_steakhouse(guests: int) -> str:
    """Book a table at the steakhouse."""
    return f"A table for {guests} at the steakhouse."


def book_green_kitchen(guests: int) -> str:
    """Book a table at the vegetarian restaurant."""
    return f"A table for {guests} at the Green Kitchen."


def decide(messages: list[BaseMessage]) -> AIMessage:
    """Stand in for a model: read what is remembered, and call a tool by it."""
    said = messages[-1]
    if said.type == "tool":
        return AIMessage(f"Done: {said.text}")
    if "Book" not in said.text:
        return AIMessage("Noted.")
    tool = "book_green_kitchen" if "vegetarian" in messages[0].text else "book_steakhouse"
    return AIMessage("", tool_calls=[{"name": tool, "args": {"guests": 2}, "id": "call-1"}])


TOOLS = [book_steakhouse, book_green_kitchen]
model = ScriptedChatModel(replies=decide).bind_tools(TOOLS)


def ask(state: MemoryState) -> dict[str, Any]:
    """Show the model the conversation and, apart from it, what was recalled."""
    told = SystemMessage(f"You book tables.\n{state.get('memory_context', '')}")
    return {"messages": [model.invoke([told, *state["messages"]])]}


def build(store: BaseStore | None = None) -> Any:  # noqa: ANN401 - a compiled graph
    """Return the graph: recall, the model and its tools in turn, then remember."""
    memory = RAGMemory()
    builder = StateGraph(MemoryState)
    builder.add_node("recall", recall_node(memory))
    builder.add_node("ask", ask)
    builder.add_node("tools", ToolNode(TOOLS))
    builder.add_node("remember", remember_node(memory))
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "ask")
    builder.add_conditional_edges("ask", tools_condition, {"tools": "tools", "__end__": "remember"})
    builder.add_edge("tools", "ask")
    return builder.compile(store=store)


graph = build()


def main() -> None:
    """Ann has said what she eats, in another conversation; Bob has not."""
    with FaissSqliteStore(":memory:") as store:
        agent = build(store)
        for user, thread, said in (
            ("ann", "monday", "I am a vegetarian."),
            ("ann", "friday", "Book a dinner for two."),
            ("bob", "friday", "Book a dinner for two."),
        ):
            config: RunnableConfig = {"configurable": {"user_id": user, "thread_id": thread}}
            done = agent.invoke({"messages": [("user", said)]}, config)
            print(f"{user}: {said} -> {done['messages'][-1].text}")


if __name__ == "__main__":
    main()
