"""A memory's recall and remember as nodes of your own graph."""

from typing import Any

from langgraph.graph import START, StateGraph

from langchain_agentmem import FaissSqliteStore, MemoryState, RAGMemory

memory = RAGMemory()  # the store comes from the graph


def answer(state: MemoryState) -> dict[str, Any]:
    """Answer with what was recalled; call your model here."""
    return {"messages": [("ai", state["memory_context"] or "I know nothing about you yet.")]}


builder = StateGraph(MemoryState)
builder.add_node("recall", memory.recall_graph())
builder.add_node("answer", answer)
builder.add_node("remember", memory.remember_graph())
builder.add_edge(START, "recall")
builder.add_edge("recall", "answer")
builder.add_edge("answer", "remember")
graph: Any = builder.compile(store=FaissSqliteStore(":memory:"))

ann = {"configurable": {"user_id": "ann"}}
for said in ("I moved to Oslo in May.", "Where do I live?"):
    state = graph.invoke({"messages": [("user", said)]}, ann)
    print(f"> {said}\n{state['messages'][-1].content}")
