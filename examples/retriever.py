"""A memory as a retriever, and a chat history in the same store; offline, without a model."""

from langchain_core.runnables import RunnableConfig

from langchain_agentmem import FaissSqliteStore, RAGMemory
from langchain_agentmem.surfaces import MemoryRetriever, StoreChatMessageHistory


def main() -> None:
    """Remember three things, find one, and keep a history beside them."""
    ann: RunnableConfig = {"configurable": {"user_id": "ann"}}
    with FaissSqliteStore(":memory:") as store:
        memory = RAGMemory(store=store)
        for said in ("My dog is called Rex.", "I like green tea.", "I live in Oslo."):
            memory.remember(said, config=ann)
        retriever = MemoryRetriever(memory=memory, k=1)
        print(retriever.invoke("What is my dog called?", ann)[0].page_content)

        history = StoreChatMessageHistory(store, session_id="ann")
        history.add_user_message("Hello")
        history.add_ai_message("Hello Ann")
        print([message.text for message in history.messages])


if __name__ == "__main__":
    main()
