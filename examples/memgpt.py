"""MemGPT: an agent that keeps its own memory. Offline with a script; with AGENTMEM_MODEL, a model.

AGENTMEM_MODEL=openai:gpt-4.1-mini python examples/memgpt.py
"""

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.memories import MemGPT
from langchain_agentmem.surfaces.agent import configured_model
from langchain_agentmem.testing import ScriptedChatModel

ANN: RunnableConfig = {"configurable": {"user_id": "ann"}}
STORY = "On Monday we walked along the river, and Rex found a red ball near the old mill. " * 20
TALK = (
    "Hi, I am Ann, and my dog is called Rex.",
    f"Let me tell you about our week. {STORY}",
    f"And then it went on. {STORY}",
    "Where did Rex find the ball?",
)


def call(name: str, **args: Any) -> AIMessage:  # noqa: ANN401 - a tool's own arguments
    """Return a reply that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": name}])


def reply(messages: list[BaseMessage]) -> str | AIMessage:
    """Answer as a model with this prompt might."""
    last, text = messages[-1], str(messages[-1].text)
    if "<new_part>" in text:
        return "Ann told about a week with her dog Rex by the river."
    if "called Rex" in text:
        return call("core_memory_append", label="human", content="Ann has a dog called Rex.")
    if "Where did" in text:
        return call("conversation_search", query="ball", limit=1, request_heartbeat=True)
    if last.type == "tool" and "mill" in text:
        return "Near the old mill."
    return "I see."


def main() -> None:
    """Talk until the oldest messages have left the prompt, and ask for what they said."""
    with FaissSqliteStore(":memory:") as store:
        model = configured_model() or ScriptedChatModel(replies=reply)
        memory = MemGPT(model=model, store=store, window=2600)
        agent = memory.agent_graph()
        for said in TALK:
            state = agent.invoke({"messages": [("user", said)]}, ANN)
            print(f"> {said[:60]}")
            for message in state["messages"][1:]:
                for each in getattr(message, "tool_calls", ()):
                    print(f"  [{each['name']}]")
            print(state["messages"][-1].text)
        print("\nWhat it has kept:")
        for item in memory.recall("", config=ANN).items:
            print(f"- {item.key}: {item.text}")


if __name__ == "__main__":
    main()
