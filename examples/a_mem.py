"""A-MEM: notes that link each other. Offline with a scripted model, or with AGENTMEM_MODEL.

AGENTMEM_MODEL=openai:gpt-4.1-mini python examples/a_mem.py
"""

from typing import Any

from langchain_core.runnables import RunnableConfig

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.memories import AMem
from langchain_agentmem.surfaces.agent import configured_model
from langchain_agentmem.testing import ScriptedChatModel

cello: dict[str, Any] = {
    "keywords": ["cello", "lessons", "beginner"],
    "context": "Learning an instrument.",
    "tags": ["music", "learning", "hobby"],
}
concert = {**cello, "keywords": ["concert", "Bach", "suites"], "context": "A concert visit."}
link = {
    "should_evolve": True,
    "actions": ["strengthen", "update_neighbor"],
    "suggested_connections": ["1"],
    "new_context_neighborhood": ["Learning the cello, inspired by Bach."],
}
scripted = ScriptedChatModel(replies=[cello, concert, link])

memory = AMem(model=configured_model() or scripted, store=FaissSqliteStore(":memory:"))
ann: RunnableConfig = {"configurable": {"user_id": "ann"}}

for said in ("I have started to learn the cello.", "Last night I heard the suites by Bach."):
    for done in memory.remember(said, config=ann):
        print(done.event, "|", done.after.text if done.after else done.reason)

for note in memory.recall("What did she hear last night?", config=ann, limit=1).items:
    how = "linked" if note.metadata.get("is_neighbor") else "hit"
    print(f"{how}: {note.text} ({note.metadata['context']})")
