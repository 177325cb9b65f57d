"""A deep agent whose notes outlive its process: its files below /memories/ lie in the store's file.

Needs `pip install deepagents`. Offline: the model is scripted. Take any chat model instead.
"""

import tempfile
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from langchain_agentmem import AgentMemoryMiddleware, FaissSqliteStore, RAGMemory
from langchain_agentmem.testing import ScriptedChatModel

NOTE = "/memories/trip.md"
TRIP = "The boat to Capri leaves at nine."
ANN: RunnableConfig = {"configurable": {"user_id": "ann"}}


def worked(messages: list[BaseMessage]) -> AIMessage:
    """Write a note, or read it when asked, and say what the tool said."""
    last = messages[-1]
    if last.type == "tool":
        return AIMessage(last.text)
    asks = last.text.endswith("?")
    args = {"file_path": NOTE} if asks else {"file_path": NOTE, "content": TRIP}
    call = {"name": "read_file" if asks else "write_file", "args": args, "id": "call-1"}
    return AIMessage("", tool_calls=[call])


def said(path: Path, text: str) -> str:
    """Say something to the agent, with the store opened anew as in another process."""
    kept = StoreBackend(namespace=lambda _: ("files", "ann"))
    with FaissSqliteStore(path) as store:
        agent: Any = create_deep_agent(
            ScriptedChatModel(replies=worked),
            backend=CompositeBackend(default=StateBackend(), routes={"/memories/": kept}),
            middleware=[AgentMemoryMiddleware(RAGMemory())],
            store=store,
        )
        return str(agent.invoke({"messages": [("user", text)]}, ANN)["messages"][-1].text)


def main() -> None:
    """Let one agent write a note, and another one read it."""
    with tempfile.TemporaryDirectory() as folder:
        for text in ("Look our boat up, and note it.", "When does the boat leave?"):
            print(f"> {text}\n{said(Path(folder) / 'memory.sqlite', text)}\n")


if __name__ == "__main__":
    main()
