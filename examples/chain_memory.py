"""Classic chains: change the import and keep the rest; the memory is persistent and bounded.

Offline: the model is scripted. Needs `pip install 'langchain-agentmem[classic]'`.
"""

import warnings

from langchain_core.messages import BaseMessage

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.surfaces.chains import ConversationBufferWindowMemory
from langchain_agentmem.testing import ScriptedChatModel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # classic chains are deprecated, and say so at import
    from langchain_classic.chains import ConversationChain


def echo(messages: list[BaseMessage]) -> str:
    """Answer with the number of lines of the conversation in the prompt."""
    lines = messages[-1].text.splitlines()
    return f"I see {sum(line.startswith(('Human:', 'AI:')) for line in lines)} lines."


def main() -> None:
    """Run six turns of which the memory shows the last two."""
    with FaissSqliteStore(":memory:", index=None) as store:
        memory = ConversationBufferWindowMemory(k=2, store=store, session_id="ann")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chain = ConversationChain(llm=ScriptedChatModel(replies=echo), memory=memory)
        for number in range(6):
            print(chain.invoke({"input": f"This is turn {number}."})["response"])
        print(memory.load_memory_variables({})["history"])


if __name__ == "__main__":
    main()
