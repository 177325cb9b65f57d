"""Memory written in the background: submit at once, consolidate after a pause.

Offline with a scripted model; with AGENTMEM_MODEL, a real one.
"""

from langchain_core.runnables import RunnableConfig

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.consolidation import (
    LocalConsolidator,
    MemoryQueue,
    create_consolidation_graph,
)
from langchain_agentmem.memories import LangMem
from langchain_agentmem.surfaces.agent import configured_model
from langchain_agentmem.testing import ScriptedChatModel

scripted = ScriptedChatModel(
    replies=[{"memories": [{"action": "create", "content": "Ann prefers short answers."}]}]
)
store = FaissSqliteStore(":memory:")
memory = LangMem(model=configured_model() or scripted, store=store)
queue = MemoryQueue(store=store, after_seconds=0)
ann: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "monday"}}

with LocalConsolidator(queue, create_consolidation_graph(memory)) as consolidator:
    ticket = queue.submit("I am Ann. Please keep your answers short.", config=ann)
    print(ticket.status())
    consolidator.run_due()  # or consolidator.start(), which works in the background
    report = ticket.result(timeout=60)
    print(f"{ticket.status()}: {report['added']} added, calls {report['calls']}")

print(memory.recall("How does Ann like her answers?", config=ann).text)
