"""A whole agent: recall, model, remember. Set AGENTMEM_MODEL to let a chat model answer."""

from typing import Any

from langchain_agentmem import FaissSqliteStore, RAGMemory
from langchain_agentmem.surfaces.agent import configured_model, create_memory_agent

memory = RAGMemory(store=FaissSqliteStore(":memory:"))
agent: Any = create_memory_agent(memory, model=configured_model()).compile()

ann = {"configurable": {"user_id": "ann"}}
for said in ("My sister Ingrid adopted a parrot called Pixel.", "What is her bird's name?"):
    print("you>", said)
    print(agent.invoke({"messages": [("user", said)]}, ann)["messages"][-1].text)
