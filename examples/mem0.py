"""Mem0: facts that stay consistent. Offline with a scripted model; with AGENTMEM_MODEL, a real one.

AGENTMEM_MODEL=openai:gpt-4.1-mini python examples/mem0.py
"""

from typing import Any

from langchain_core.runnables import RunnableConfig

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.memories import Mem0
from langchain_agentmem.surfaces.agent import configured_model
from langchain_agentmem.testing import ScriptedChatModel

first: dict[str, Any] = {"facts": [{"text": "Ann lives in Oslo.", "attributed_to": "user"}]}
second: dict[str, Any] = {"facts": [{"text": "Ann lives in Rome.", "attributed_to": "user"}]}
conflict = {"operations": [{"fact": 0, "handle": "0", "event": "DELETE"}]}
scripted = ScriptedChatModel(replies=[first, second, conflict])

memory = Mem0(model=configured_model() or scripted, store=FaissSqliteStore(":memory:"))
ann: RunnableConfig = {"configurable": {"user_id": "ann"}}

for said in ("I am Ann and I live in Oslo.", "I, Ann, have moved from Oslo to Rome for good."):
    for done in memory.remember(said, config=ann):
        item = done.after or done.before
        print(done.event, done.status, "|", item.text if item else done.reason)

print(memory.recall("Where does Ann live?", config=ann).text)
past = memory.recall("Where does Ann live?", config=ann, include_superseded=True)
print("Kept, not destroyed:", [each.text for each in past.items if each.item.superseded_by])
