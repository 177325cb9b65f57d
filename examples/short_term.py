"""Short-term memory: a running summary and the newest turns, and nothing is lost.

Offline: the summarizer is scripted. Take any chat model instead, e.g. `"openai:gpt-4.1-mini"`.
"""

from langchain_core.runnables import RunnableConfig

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.memories import SummaryBufferMemory
from langchain_agentmem.testing import ScriptedChatModel


def main() -> None:
    """Tell a memory more than its view holds, and show what the model would see."""
    summarizer = ScriptedChatModel(replies=lambda _: "Ann told 30 facts about her dog Rex.")
    with FaissSqliteStore(":memory:", index=None) as store:
        memory = SummaryBufferMemory(
            model=summarizer, max_tokens=300, search_archive=1, store=store
        )
        chat: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "monday"}}
        for number in range(30):
            fact = f"Fact {number}: Rex has buried bone number {number} in the garden."
            memory.remember([("user", fact), ("assistant", "Noted.")], config=chat)
        recalled = memory.recall("Where is bone number 3?", config=chat)
    for message in recalled.messages or []:
        print(f"{message.type}: {message.text}")
    print(f"\n{len(summarizer.requests)} summaries were made.")
    print(f"From the archive: {recalled.items[-1].text}")


if __name__ == "__main__":
    main()
