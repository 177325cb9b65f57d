"""What was recalled stays at hand while it is used, follows its source, and never outlives it."""

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.store.base import BaseStore

from langchain_agentmem import AgentMemoryMiddleware, FaissSqliteStore, RAGMemory
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.memories import EVERYTHING, WorkingMemory
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.floor import everything
from tests.unit_tests.memories.conversations import CHAT, Calls

OTHER: Any = {"configurable": {"user_id": "ann", "thread_id": "tuesday"}}
BOB: Any = {"configurable": {"user_id": "bob", "thread_id": "monday"}}
FACTS = ("My dog is called Rex.", "My sister lives in Rome.", "I play the cello.", "I fear cats.")


def working(store: BaseStore, **given: Any) -> WorkingMemory:  # noqa: ANN401 - parameters
    """Return a working memory on four known facts, of which a turn recalls the best one."""
    long_term = RAGMemory(store=store, limit=1)
    long_term.remember([HumanMessage(each, id=each) for each in FACTS], config=CHAT)
    return WorkingMemory(long_term, **given)


def texts(calls: Calls, memory: WorkingMemory, query: str, config: Any = CHAT) -> list[str]:  # noqa: ANN401 - as LangGraph's own
    """Recall and return the texts."""
    return [each.text for each in calls.recall(memory, query, config).items]


def test_recalled_items_stay_for_the_next_turns(calls: Calls, store: BaseStore) -> None:
    """The second question still has what the first one recalled, behind its own."""
    memory = working(store)
    assert texts(calls, memory, "dog Rex") == [FACTS[0]]
    assert texts(calls, memory, "sister Rome") == [FACTS[1], FACTS[0]]
    assert FACTS[0] in calls.recall(memory, "sister Rome").text


def test_asking_again_in_one_turn_changes_nothing(calls: Calls, store: BaseStore) -> None:
    """Only another question is another turn."""
    memory = working(store, max_items=2)
    texts(calls, memory, "dog Rex")
    for _ in range(5):
        found = texts(calls, memory, "sister Rome")
    assert found == [FACTS[1], FACTS[0]]


def test_unused_items_leave_first(calls: Calls, store: BaseStore) -> None:
    """Of three, the one that was not recalled for longest makes room."""
    memory = working(store, max_items=2)
    for query in ("dog Rex", "sister Rome", "dog Rex", "play cello"):
        found = texts(calls, memory, query)
    assert found == [FACTS[2], FACTS[0]]


def test_text_stays_within_its_tokens(calls: Calls, store: BaseStore) -> None:
    """The budget bounds the text however much is at hand."""
    memory = working(store, max_tokens=25)
    for query in ("dog Rex", "sister Rome", "play cello"):
        assert calls.recall(memory, query).tokens <= 25 + 20


def test_changed_source_is_shown_as_it_is_now(calls: Calls, store: BaseStore) -> None:
    """A new version of a memory at hand is what the next turn sees."""
    memory = working(store)
    texts(calls, memory, "dog Rex")
    calls.remember(memory, [HumanMessage("My dog is called Max.", id=FACTS[0])])
    assert texts(calls, memory, "sister Rome") == [FACTS[1], "My dog is called Max."]


def test_forgotten_item_is_gone_at_once(calls: Calls, store: BaseStore) -> None:
    """Forgetting in the long-term memory, by whichever object, empties the hand."""
    memory = working(store)
    (item,) = calls.recall(memory, "dog Rex").items
    calls.forget(memory, item.key)
    assert texts(calls, memory, "sister Rome") == [FACTS[1]]
    assert "Rex" not in str(everything(store))


def test_threads_and_users_are_apart(calls: Calls, store: BaseStore) -> None:
    """What one conversation has at hand, another one has not; nor has another user."""
    memory = working(store)
    texts(calls, memory, "dog Rex")
    assert texts(calls, memory, "sister Rome", OTHER) == [FACTS[1]]
    assert texts(calls, memory, "dog Rex", BOB) == []


def test_no_text_is_kept_twice_and_forget_everything_leaves_nothing(
    calls: Calls, store: BaseStore
) -> None:
    """The hand holds references alone, and goes with its scope."""
    memory = working(store)
    texts(calls, memory, "dog Rex")
    kept = [value for (home, _), value in everything(store).items() if "working" in home]
    assert len(kept) == 1
    assert "Rex" not in str(kept)
    calls.forget(memory, EVERYTHING)
    assert everything(store) == {}


def test_restart_keeps_what_is_at_hand(calls: Calls, tmp_path: Path) -> None:
    """A new process goes on where the old one was."""
    with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as store:
        texts(calls, working(store), "dog Rex")
    with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as store:
        memory = WorkingMemory(RAGMemory(store=store, limit=1))
        assert texts(calls, memory, "sister Rome") == [FACTS[1], FACTS[0]]


@pytest.mark.parametrize("later", [False, True])
def test_middleware_shows_what_earlier_turns_recalled(store: BaseStore, later: bool) -> None:
    """In `create_agent` it is a memory like any other."""
    model = ScriptedChatModel(replies=["Rex.", "In Rome."])
    middleware = AgentMemoryMiddleware(working(store), record="off")
    agent: Any = create_agent(model, middleware=[middleware])
    import asyncio

    for question in ("What is my dog called?", "Where does my sister live?"):
        given = {"messages": [("user", question)]}
        if later:
            asyncio.run(agent.ainvoke(given, CHAT))
        else:
            agent.invoke(given, CHAT)
    assert FACTS[0] in model.requests[1].text
    assert FACTS[1] in model.requests[1].text


def test_graph_shows_its_steps(store: BaseStore) -> None:
    """As a node it recalls what the method recalls."""
    graph = working(store).recall_graph()
    assert set(graph.nodes) >= {"recall", "keep", "assemble"}
    done = graph.invoke({"messages": [("user", "dog Rex")]}, CHAT)
    assert "Rex" in done["memory_context"]


@pytest.mark.parametrize("wrong", [{"max_items": 0}, {"decay": -1.0}, {"fan_in": 2}])
def test_wrong_parameter_is_refused(wrong: dict[str, Any]) -> None:
    """A value that makes no sense is an error at construction."""
    with pytest.raises(ConfigurationError):
        WorkingMemory(RAGMemory(), **wrong)
