"""A consolidation run that a person stops on the way, as in Studio, and lets go on."""

from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.consolidation import create_consolidation_graph
from langchain_agentmem.memories import Mem0

CONFIG: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "t"}}
SAID: dict[str, Any] = {"messages": [("user", "I like tea.")]}
STEPS = ["load_messages", "remember", "collect", "consolidate", "report"]


@pytest.mark.parametrize("step", STEPS)
async def test_run_goes_on_after_an_interrupt_before(step: str) -> None:
    """Wherever it is stopped, the run ends with a report, and the turn is remembered once."""
    store = InMemoryStore()
    graph: Any = create_consolidation_graph(Mem0()).builder.compile(
        store=store, checkpointer=InMemorySaver()
    )
    await graph.ainvoke(SAID, CONFIG, interrupt_before=[step])
    assert (await graph.aget_state(CONFIG)).next == (step,)
    events = []
    async for mode, part in graph.astream(None, CONFIG, stream_mode=["custom", "values"]):
        events += [part["event"]] if mode == "custom" else []
        state = part
    assert state["report"]["seconds"] >= 0
    found = store.search(("memories", "ann", "mem0", "turns"))
    assert [item.value["content"] for item in found] == ["I like tea."]
    lost = STEPS.index(step) > STEPS.index("remember")
    assert ("report_incomplete" in events) is lost
