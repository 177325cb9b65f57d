"""Memory in one line of `create_agent`: two conversations, the second remembers the first.

Offline: the model is scripted and shows what it was told. Take any chat model instead.
"""

from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from langchain_agentmem import AgentMemoryMiddleware, FaissSqliteStore, RAGMemory
from langchain_agentmem.surfaces import WindowMiddleware
from langchain_agentmem.testing import ScriptedChatModel


def told(messages: list[BaseMessage]) -> str:
    """Answer with what the memory put into the system message."""
    system = [each.text for each in messages if each.type == "system"]
    return f"I was told:\n{system[0]}" if system else "Noted."


def main() -> None:
    """Talk in one thread and ask in another."""
    with FaissSqliteStore(":memory:") as store:
        agent: Any = create_agent(
            ScriptedChatModel(replies=told),
            tools=[],
            middleware=[AgentMemoryMiddleware(RAGMemory()), WindowMiddleware(max_turns=10)],
            store=store,
        )
        for thread, said in (("1", "My dog is called Rex."), ("2", "What is my dog called?")):
            config: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": thread}}
            done = agent.invoke({"messages": [("user", said)]}, config)
            print(f"> {said}\n{done['messages'][-1].text}\n")


if __name__ == "__main__":
    main()
