"""LangMem's schemas as visible steps: a profile. Offline, or with AGENTMEM_MODEL a real model.

AGENTMEM_MODEL=openai:gpt-4.1-mini python examples/langmem.py
"""

from typing import Any

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.memories import LangMem
from langchain_agentmem.surfaces.agent import configured_model
from langchain_agentmem.testing import ScriptedChatModel


class Profile(BaseModel):
    """What is known of a person."""

    name: str = ""
    home: str = ""
    likes: list[str] = []


def changed(**profile: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a profile
    """Return a reply that changes the one known memory, whose handle is "0"."""
    return {"memories": [{"action": "update", "id": "0", "kind": "Profile", "content": profile}]}


scripted = ScriptedChatModel(
    replies=[
        changed(name="Ann", home="Oslo"),
        changed(name="Ann", home="Rome", likes=["tea"]),
    ]
)
memory = LangMem(
    model=configured_model() or scripted,
    schemas=[Profile],
    default=Profile(),
    enable_inserts=False,
    store=FaissSqliteStore(":memory:"),
)
ann: RunnableConfig = {"configurable": {"user_id": "ann"}}

for said in ("I am Ann, from Oslo.", "I have moved to Rome. Is there tea?"):
    for done in memory.remember(said, config=ann):
        print(done.event, done.status, "|", done.after.text if done.after else done.reason)

for known in memory.recall("Where does Ann live?", config=ann).items:
    changes = memory.history(known, config=ann)
    print(f"{known.key}, version {changes[-1].version}: {known.content}")
