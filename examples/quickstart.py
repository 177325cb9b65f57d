"""Remember and recall: no key, no server, no model."""

from langchain_core.runnables import RunnableConfig

from langchain_agentmem import FaissSqliteStore, RAGMemory

memory = RAGMemory(store=FaissSqliteStore(":memory:"))  # or a path, to keep it
ann: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "monday"}}
bob: RunnableConfig = {"configurable": {"user_id": "bob"}}

memory.remember([("user", "My dog is called Rex."), ("ai", "A good name!")], config=ann)
memory.remember("我每天早上喝绿茶。", config=ann)

print(memory.recall("What is the name of my dog?", config=ann).text)
print(memory.recall("绿茶", config=ann, limit=1).items[0].content)
print(memory.recall("dog", config=bob).items)  # nobody sees another user's memories
