"""The agent: what it recalls, says and remembers, with and without a model."""

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import FaissSqliteStore, RAGMemory
from langchain_agentmem.prompt_optimizer import PromptMemory
from langchain_agentmem.surfaces.agent import OFFLINE, configured_model, create_memory_agent
from langchain_agentmem.testing import ScriptedChatModel

Invoke = Callable[..., dict[str, Any]]
WORDS = "My sister <Ingrid>\n moved to Trondheim — 我对花生过敏。"


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BaseStore:
    """Both kinds of stores."""
    if request.param == "memory":
        return InMemoryStore()
    return FaissSqliteStore(tmp_path / "memory.sqlite")


@pytest.fixture(params=["sync", "async"])
def say(request: pytest.FixtureRequest) -> Invoke:
    """Say something to an agent, through `invoke` or `ainvoke`."""

    def call(
        agent: Runnable[Any, Any],
        text: str,
        *,
        user: str = "ann",
        thread: str = "t1",
        **context: object,
    ) -> dict[str, Any]:
        state = {"messages": [("user", text)]}
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        options: dict[str, Any] = {"context": {"user_id": user, **context}}
        if request.param == "sync":
            done: dict[str, Any] = agent.invoke(state, config, **options)
            return done
        adone: dict[str, Any] = asyncio.run(agent.ainvoke(state, config, **options))
        return adone

    return call


def last(state: dict[str, Any]) -> str:
    """Return what was answered."""
    return str(state["messages"][-1].text)


def test_without_model_it_quotes_word_for_word(store: BaseStore, say: Invoke) -> None:
    """The quote is byte-identical and comes with its date, speaker and conversation."""
    agent = create_memory_agent(RAGMemory()).compile(store=store)
    say(agent, WORDS, thread="spring")
    memory = RAGMemory(store=store).recall("sister", config={"configurable": {"user_id": "ann"}})
    answer = last(say(agent, "Where does my sister live?", thread="summer"))
    assert answer.startswith(OFFLINE)
    day = f"{memory.items[0].observed_at:%Y-%m-%d}"
    assert f"[{day} · user · conversation spring]\n{WORDS}" in answer


def test_without_model_it_says_what_it_does_not_know(say: Invoke) -> None:
    """An empty memory is no answer either, and no model is claimed."""
    agent = create_memory_agent(RAGMemory(store=InMemoryStore())).compile()
    answer = last(say(agent, "Where does my sister live?"))
    assert answer.startswith(OFFLINE)
    assert "remember nothing" in answer


@pytest.mark.parametrize("is_async", [False, True])
def test_interrupt_before_the_model_loses_no_memory(store: BaseStore, *, is_async: bool) -> None:
    """What was recalled is in no checkpoint; a run that goes on from one recalls it again."""
    RAGMemory(store=store).remember("The key is under the pot.", context={"user_id": "ann"})
    agent = create_memory_agent(RAGMemory()).compile(store=store, checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "t1", "user_id": "ann"}}
    given = {"messages": [("user", "Where is the key?")]}
    if is_async:
        asyncio.run(agent.ainvoke(given, config, interrupt_before=["model"]))
        state = asyncio.run(agent.ainvoke(None, config))
    else:
        agent.invoke(given, config, interrupt_before=["model"])
        state = agent.invoke(None, config)
    assert "The key is under the pot." in last(state)


def test_a_prompt_that_learns_is_served_at_the_next_call(store: BaseStore, say: Invoke) -> None:
    """The agent is told the active version, each user their own, and says which it was."""
    model = ScriptedChatModel(replies=lambda _: "Yes.")
    prompts = PromptMemory(prompts={"name": "agent", "prompt": "Be kind."})
    agent = create_memory_agent(RAGMemory(), model=model, prompt=prompts).compile(store=store)
    first = say(agent, "Are you there?")
    handle = PromptMemory(store=store)
    handle.set("agent", "Be {brief}.", context={"user_id": "ann"})
    second = say(agent, "And now?", thread="t2")
    say(agent, "And me?", user="bob")
    told = [str(each.messages[0].content).split("\n")[0] for each in model.requests]
    assert told == ["Be kind.", "Be {brief}.", "Be kind."]
    assert (first["prompt_versions"], second["prompt_versions"]) == ({"agent": 1}, {"agent": 1})


def test_quotes_are_not_remembered(store: BaseStore, say: Invoke) -> None:
    """Only what the user said is stored, so that quotes do not pile up."""
    agent = create_memory_agent(RAGMemory(store=store)).compile(checkpointer=InMemorySaver())
    for text in ("I play the cello.", "What do I play?", "What do I play?"):
        state = say(agent, text)
    speakers = {each["value"]["attributed_to"] for each in state["memories"]}
    assert speakers == {"user"}
    assert len(state["memory_operations"]) == 1


def test_a_question_is_no_answer_to_itself(say: Invoke) -> None:
    """A question that was asked before is not quoted as its own answer."""
    agent = create_memory_agent(RAGMemory(store=InMemoryStore())).compile()
    say(agent, "What do I play?")
    assert "remember nothing" in last(say(agent, "What do I play?"))


def test_the_model_is_told_what_is_recalled(store: BaseStore, say: Invoke) -> None:
    """The request to the model holds the memories as data; its own answer is remembered."""
    model = ScriptedChatModel(replies=["Noted.", "The cello, of course."])
    agent = create_memory_agent(RAGMemory(store=store), model=model).compile()
    say(agent, "I play the cello.", thread="a")
    say(agent, "Which instrument do I play?", thread="b")
    system, question = model.requests[1].messages
    assert "user] I play the cello." in str(system.text)
    assert question.text == "Which instrument do I play?"
    config: Any = {"configurable": {"user_id": "ann"}}
    found = RAGMemory(store=store).recall("cello of course", config=config).items
    assert ("assistant", "The cello, of course.") in {
        (each.item.attributed_to, each.text) for each in found
    }


def test_recalled_text_stays_out_of_checkpoints(store: BaseStore, say: Invoke) -> None:
    """No checkpoint of a thread holds what was recalled for it."""
    model = ScriptedChatModel(replies=["Noted.", "I know."])
    saver = InMemorySaver()
    agent = create_memory_agent(RAGMemory(store=store), model=model).compile(checkpointer=saver)
    say(agent, "My secret word is Zanzibar.", thread="a")
    saver.delete_thread("a")
    say(agent, "What is my secret word?", thread="b")
    assert "Zanzibar" in model.requests[1].text
    kept = repr((dict(saver.storage), dict(saver.writes), dict(saver.blobs)))
    assert "secret word" in kept
    assert "Zanzibar" not in kept


def test_what_a_tool_saves_is_recalled_in_the_next_turn(store: BaseStore, say: Invoke) -> None:
    """A fact saved with `manage_memory` is in the recall node's result of the next turn."""
    call = {"name": "manage_memory", "args": {"content": "Ann is allergic to nuts."}, "id": "c1"}
    model = ScriptedChatModel(replies=[AIMessage("", tool_calls=[call]), "Saved.", "Nuts."])
    agent = create_memory_agent(RAGMemory(store=store), model=model).compile()
    say(agent, "Please note my allergy.", thread="a")
    state = say(agent, "What am I allergic to?", thread="b")
    assert "Ann is allergic to nuts." in {each["value"]["content"] for each in state["memories"]}
    assert model.requests[0].tool_names == ["manage_memory", "search_memory"]


def test_what_was_forgotten_does_not_come_back(store: BaseStore, say: Invoke) -> None:
    """A later turn of the same thread does not remember an erased turn again."""
    memory = RAGMemory(store=store)
    agent = create_memory_agent(memory).compile(checkpointer=InMemorySaver())
    first = say(agent, "My secret word is Zanzibar.")
    config: Any = {"configurable": {"user_id": "ann"}}
    memory.forget(first["memory_operations"][0]["key"], config=config)
    state = say(agent, "Good morning!")
    assert [op["after"]["content"] for op in state["memory_operations"]] == ["Good morning!"]


def test_a_turn_whose_model_failed_is_remembered_later(store: BaseStore, say: Invoke) -> None:
    """What was said while the model was out of reach is remembered with the next turn."""
    model = ScriptedChatModel(replies=[ConnectionError("no route"), "Hello again."])
    agent = create_memory_agent(RAGMemory(store=store), model=model).compile(
        checkpointer=InMemorySaver()
    )
    with pytest.raises(ConnectionError):
        say(agent, "I moved to Oslo.")
    state = say(agent, "Are you there?")
    stored = [op["after"]["content"] for op in state["memory_operations"]]
    assert stored == ["I moved to Oslo.", "Are you there?", "Hello again."]


def test_users_do_not_meet(store: BaseStore, say: Invoke) -> None:
    """Another user's agent recalls nothing."""
    agent = create_memory_agent(RAGMemory(store=store)).compile()
    say(agent, "My secret word is Zanzibar.", user="ann")
    assert "Zanzibar" not in last(say(agent, "What is the secret word?", user="bob"))


def test_context_changes_parameters(store: BaseStore, say: Invoke) -> None:
    """A limit in the context is the number of memories recalled."""
    agent = create_memory_agent(RAGMemory(store=store)).compile()
    say(agent, "I play the cello.")
    say(agent, "I play chess.")
    assert len(say(agent, "What do I play?", limit=1)["memories"]) == 1


def test_steps_of_the_memory_are_visible() -> None:
    """The drawing holds the steps of recall and remember, and every way out of the model."""
    agent = create_memory_agent(RAGMemory(store=InMemoryStore())).compile()
    drawing = agent.get_graph(xray=True)
    assert {"recall:retrieve", "recall:assemble", "remember:store_turns"} <= set(drawing.nodes)
    targets = {edge.target for edge in drawing.edges if edge.source == "model"}
    assert targets == {"tools", "remember:split_turns"}


def test_context_is_described_with_the_defaults() -> None:
    """Studio's form shows each parameter with its description and the memory's own value."""
    agent = create_memory_agent(RAGMemory(limit=7)).compile()
    schema = agent.context_schema
    assert schema is not None
    fields = {each.name: each for each in dataclasses.fields(schema)}
    assert {"user_id", "model", "preset", "limit"} <= set(fields)
    assert fields["limit"].default == 7
    assert all(each.metadata["description"] for each in fields.values())


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"AGENTMEM_MODEL": "anthropic:x"}, "anthropic:x"),
        ({"AGENTMEM_MODEL": "none", "OPENAI_API_KEY": "k"}, None),
        ({"AGENTMEM_MODEL": "a:b", "OPENAI_API_KEY": "k"}, "a:b"),
        ({"OPENAI_API_KEY": "k"}, "openai:gpt-4.1-mini"),
    ],
)
def test_the_environment_names_the_model(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str | None
) -> None:
    """`AGENTMEM_MODEL` wins, a key of OpenAI chooses OpenAI, and nothing means no model."""
    for name in ("AGENTMEM_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert configured_model() == expected
