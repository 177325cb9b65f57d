"""A turn whose model gives nothing usable is not lost, and a ticket tells what became of it."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.consolidation import (
    LocalConsolidator,
    MemoryQueue,
    create_consolidation_graph,
    tickets,
)
from langchain_agentmem.consolidation.tickets import Ticket
from langchain_agentmem.memories import AMem, LangMem, Mem0
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.surfaces.middleware import AgentMemoryMiddleware
from langchain_agentmem.testing import ScriptedChatModel

ANN: Any = {"configurable": {"user_id": "ann", "thread_id": "t"}}
SAID = "My sister Mia moved to Lisbon."


def _down() -> ScriptedChatModel:
    """Return a model that cannot be reached."""
    return ScriptedChatModel(replies=lambda _: OSError("down"))


def _run_in_vain(**options: Any) -> Ticket:  # noqa: ANN401 - a queue's options
    """Return the ticket of a turn whose one run so far could not reach its model."""
    store = InMemoryStore()
    memory = LangMem(model=_down(), store=store)
    queue = MemoryQueue(store=store, after_seconds=0, **options)
    ticket = queue.submit(SAID, config=ANN)
    with LocalConsolidator(queue, create_consolidation_graph(memory)) as consolidator:
        consolidator.run_due()
    return ticket


@pytest.mark.parametrize("kind", [AMem, LangMem, Mem0])
def test_a_refusal_loses_no_turn_in_the_background(
    kind: type[Memory], caplog: pytest.LogCaptureFixture
) -> None:
    """The words are kept as without a model, whichever memory it is."""
    store = InMemoryStore()
    memory = kind(model=ScriptedChatModel(replies=lambda _: "I cannot help."), store=store)
    queue = MemoryQueue(store=store, after_seconds=0)
    ticket = queue.submit(SAID, config=ANN)
    with (
        caplog.at_level(logging.WARNING),
        LocalConsolidator(queue, create_consolidation_graph(memory)) as consolidator,
    ):
        consolidator.run_due()
    assert ticket.result(timeout=1)["added"] == 1
    assert memory.recall("Where is Mia?", config=ANN).items[0].content == SAID
    if kind is not AMem:
        assert "kept word for word" in caplog.text
        assert "cannot be used" in ticket.result(timeout=1)["rejected"][0]["reason"]


@pytest.mark.parametrize("kind", [AMem, LangMem, Mem0])
async def test_a_raising_model_loses_no_turn_of_a_sync_middleware(kind: type[Memory]) -> None:
    """What the agent was told is kept word for word when the memory's model is down."""
    store = InMemoryStore()
    memory = kind(model=_down(), store=store)
    agent: Any = create_agent(
        ScriptedChatModel(replies=lambda _: "I see."),
        middleware=[AgentMemoryMiddleware(memory, record="sync")],
        store=store,
    )
    await agent.ainvoke({"messages": [("user", SAID)]}, ANN)
    found = memory.recall("Where is Mia?", config=ANN)
    assert SAID in [each.content for each in found.items]


async def test_a_ticket_tells_of_a_failure_instead_of_waiting_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a worker both waits end at the documented time, and name the last error."""
    ticket = _run_in_vain(retry_seconds=60)
    with pytest.raises(TimeoutError, match=r"after 1 attempt .*ModelCallError"):
        ticket.result(timeout=0)
    monkeypatch.setattr(tickets, "WAIT_SECONDS", 0.0)
    with pytest.raises(TimeoutError, match="Is a worker running"):
        await ticket


def test_a_ticket_of_a_dead_letter_tells_at_once() -> None:
    """The wait for a record that was given up ends before any time is up."""
    ticket = _run_in_vain(max_attempts=1)
    with pytest.raises(RuntimeError, match="failed"):
        ticket.result()
