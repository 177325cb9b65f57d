"""The memory tools by themselves: what a model would call, and what recall makes of it."""

from langchain_core.runnables import RunnableConfig

from langchain_agentmem import (
    FaissSqliteStore,
    RAGMemory,
    create_manage_memory_tool,
    create_search_memory_tool,
)

store = FaissSqliteStore(":memory:")
namespace = ("memories", "{user_id}")
manage = create_manage_memory_tool(namespace, store=store)
search = create_search_memory_tool(namespace, store=store)
ann: RunnableConfig = {"configurable": {"user_id": "ann"}}

print(manage.invoke({"content": "Ann is allergic to peanuts."}, ann))
print(search.invoke({"query": "allergies"}, ann))
print(RAGMemory(store=store).recall("What must Ann not eat?", config=ann).text)
