"""Written memories whose run a person stops on the way, as with a breakpoint in Studio."""

import random
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.memories import AMem, LangMem, Mem0, Memory
from langchain_agentmem.testing import ScriptedChatModel

CONFIG: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "t"}}
SAID: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "I like tea.", "id": "1"},
        {"role": "user", "content": "I have a dog.", "id": "2"},
    ]
}
ANSWER = {
    "facts": [{"text": "Ann likes tea"}, {"text": "Ann has a dog"}],
    "memories": [{"action": "create", "content": "Ann likes tea"}],
    "keywords": ["tea"],
    "context": "Ann's life",
    "tags": ["home"],
    "should_evolve": False,
    "operations": [],
}
CLASSES: list[type[Memory]] = [AMem, LangMem, Mem0]


def _answer(_: list[BaseMessage]) -> dict[str, Any]:
    return ANSWER


def _graph(kind: type[Memory]) -> Any:  # noqa: ANN401 - a compiled graph
    return kind(model=ScriptedChatModel(replies=_answer), rng=random.Random(1)).remember_graph()  # noqa: S311 - ids


def _contents(kind: type[Memory], *before: str) -> list[str]:
    """Remember, stopped before a step each time, and return what is stored."""
    store = InMemoryStore()
    graph = _graph(kind).copy({"store": store, "checkpointer": InMemorySaver()})
    graph.invoke(SAID, CONFIG, interrupt_before=before)
    for _ in range(5):
        if not graph.get_state(CONFIG).next:
            break
        graph.invoke(None, CONFIG, interrupt_before=before)
    found = store.search(("memories", "ann"), limit=100)
    return sorted(str(each.value["content"]) for each in found if each.value["kind"] != "session")


@pytest.mark.parametrize("kind", CLASSES)
def test_breakpoint_before_any_step_stores_the_same(kind: type[Memory]) -> None:
    """Whichever step a run is stopped before, everything is stored, and once."""
    expected = _contents(kind)
    assert expected
    for step in _graph(kind).nodes:
        assert _contents(kind, step) == expected, step
