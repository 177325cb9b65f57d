"""Problems that users reported of the classic chain memories, inverted, by their issue.

A bare number is an issue of langchain-ai/langchain. Every test fails with the classic class; the
table of `test_side_by_side.py` shows how far.
"""

import asyncio
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.base_memory import BaseMemory
from langchain_classic.chains import LLMChain
from langchain_core.agents import AgentAction
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.prompts import PromptTemplate
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.surfaces.chains import (
    CombinedMemory,
    ConversationBufferMemory,
    ConversationBufferWindowMemory,
    ConversationSummaryBufferMemory,
    ConversationSummaryMemory,
    ConversationTokenBufferMemory,
    VectorStoreRetrieverMemory,
)
from langchain_agentmem.surfaces.chains._turns import answered
from langchain_agentmem.testing import ScriptedChatModel
from langchain_agentmem.windows import count_tokens, is_whole
from tests.unit_tests.memories.conversations import FACT, summarizer


@pytest.fixture(params=["sync", "async"])
def later(request: pytest.FixtureRequest) -> bool:
    """Make every call sync, then async."""
    return bool(request.param == "async")


@pytest.fixture
def store() -> BaseStore:
    """Give a store."""
    return InMemoryStore()


def save(memory: BaseMemory, said: Any, outputs: Any, later: bool) -> None:  # noqa: ANN401 - a chain's values
    """Save one turn."""
    inputs = said if isinstance(said, dict) else {"input": said}
    if later:
        asyncio.run(memory.asave_context(inputs, outputs))
    else:
        memory.save_context(inputs, outputs)


def load(memory: BaseMemory, later: bool, **inputs: object) -> Any:  # noqa: ANN401 - texts or messages
    """Return what fills the memory's first variable."""
    given = inputs or {"input": "x"}
    found = (
        asyncio.run(memory.aload_memory_variables(given))
        if later
        else memory.load_memory_variables(given)
    )
    return found[memory.memory_variables[0]]


def chain_of(memory: BaseMemory, model: ScriptedChatModel, template: str) -> LLMChain:
    """Return a classic chain; its own deprecation is not our subject."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prompt = PromptTemplate.from_template(template)
        return LLMChain(llm=model, prompt=prompt, memory=memory)


def test_9352_12560_5434_1800_unclear_inputs_are_told_before_the_model_is_paid(
    store: BaseStore, later: bool
) -> None:
    """Classic: "One input key expected" comes after the model was called."""
    model = ScriptedChatModel(replies=[])
    memory = ConversationBufferMemory(store=store, session_id="s")
    chain = chain_of(memory, model, "{history} {foo} {bar}")
    given: Any = {"foo": "a", "bar": "b"}
    with pytest.raises(ValueError, match=r"input_key= one of \['bar', 'foo'\]"):
        asyncio.run(chain.ainvoke(given)) if later else chain.invoke(given)
    assert model.requests == []


def test_9394_12118_2303_source_documents_are_no_second_answer(
    store: BaseStore, later: bool
) -> None:
    """Classic: a retrieval chain that returns its sources cannot have a memory."""
    memory = ConversationBufferMemory(store=store, session_id="s")
    outputs = {"answer": "Ann.", "source_documents": [Document("x")]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(memory, {"question": "Who?", "chat_history": [], "context": "x"}, outputs, later)
    assert load(memory, later) == "Human: Who?\nAI: Ann."


@pytest.mark.parametrize("name", ["answer", "output", "response", "text", "result"])
def test_2256_16323_11396_the_usual_output_is_picked_among_others(
    store: BaseStore, later: bool, name: str
) -> None:
    """Classic: "One output key expected", or a warning with every turn."""
    memory = ConversationBufferMemory(store=store, session_id="s")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(memory, "Who?", {name: "Ann.", "tokens": 7, "generated_question": "x"}, later)
    assert load(memory, later).endswith("AI: Ann.")


def test_1171_8579_intermediate_steps_are_no_second_output(store: BaseStore, later: bool) -> None:
    """Classic: an agent that returns its steps cannot have a memory."""
    memory = ConversationBufferMemory(store=store, session_id="s")
    save(memory, "Who?", {"final": "Ann.", "intermediate_steps": []}, later)
    assert load(memory, later) == "Human: Who?\nAI: Ann."


def test_3845_stored_turns_do_not_hold_what_memories_filled_in(
    store: BaseStore, later: bool
) -> None:
    """Classic: each document holds the history before it, 39 to 234 characters in 8 turns."""
    vector = VectorStoreRetrieverMemory(
        memory_key="facts", return_docs=True, store=store, session_id="s"
    )
    buffer = ConversationBufferMemory(store=store, session_id="s")
    both = CombinedMemory(memories=[vector, buffer])
    lengths: set[int] = set()
    for number in range(8):
        said = {"input": f"turn {number} of ours"}
        loaded = both.load_memory_variables(said)
        lengths |= {len(each.page_content) for each in loaded["facts"]}
        save(both, {**said, **loaded}, {"response": f"reply {number} of it"}, later)
    assert lengths == {len("turn 0 of ours"), len("reply 0 of it")}


def test_14822_a_summary_survives_a_restart(tmp_path: Path, later: bool) -> None:
    """Classic: `moving_summary_buffer` is lost with the process."""
    loaded = []
    for turns in (range(6), range(0)):
        with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as store:
            memory = ConversationSummaryBufferMemory(
                llm=summarizer(), max_token_limit=40, store=store, session_id="s"
            )
            for number in turns:
                save(memory, f"FACT{number:03d} is what I say", {"response": "I see"}, later)
            loaded.append(load(memory, later))
    assert loaded[0] == loaded[1]
    assert len(set(FACT.findall(loaded[1]))) == 6


def test_18650_10884_9083_14124_no_tokenizer_is_needed(
    store: BaseStore, later: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classic: counting tokens downloads a GPT-2 tokenizer, or fails without `transformers`."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    model = summarizer()
    limits: dict[str, Any] = {"max_token_limit": 40, "store": store}
    for memory in (
        ConversationTokenBufferMemory(llm=model, session_id="a", **limits),
        ConversationSummaryBufferMemory(llm=model, session_id="b", **limits),
    ):
        for number in range(6):
            save(memory, f"FACT{number:03d} is what I say", {"response": "I see"}, later)
        assert "FACT005" in load(memory, later)


def test_33245_a_history_never_begins_with_a_tools_result(store: BaseStore, later: bool) -> None:
    """Classic: trimming parts a tool's result from its call, which providers refuse."""
    memory = ConversationTokenBufferMemory(
        max_token_limit=80, return_messages=True, store=store, session_id="s"
    )
    for number in range(8):
        steps = [(AgentAction("look", {"at": number}, ""), f"saw {number}")]
        save(memory, f"look {number}", {"output": "ok", "intermediate_steps": steps}, later)
        loaded: list[BaseMessage] = load(memory, later)
        assert loaded[0].type == "human"
        assert is_whole(loaded)


def test_22357_22376_27216_tool_calls_are_in_the_memory(store: BaseStore, later: bool) -> None:
    """Classic: what an agent's tools did is dropped, or stored as an empty answer."""
    memory = ConversationBufferMemory(store=store, session_id="s", return_messages=True)
    steps = [(AgentAction("weather", {"city": "Oslo"}, ""), "4 degrees")]
    save(memory, "Weather?", {"output": "Cold.", "intermediate_steps": steps}, later)
    loaded: list[AnyMessage] = load(memory, later)
    _, call, result, answer = loaded
    assert isinstance(call, AIMessage)
    assert call.tool_calls[0]["args"] == {"city": "Oslo"}
    assert isinstance(result, ToolMessage)
    assert (result.content, answer.content) == ("4 degrees", "Cold.")


def test_the_name_of_a_tool_call_is_the_same_in_every_process() -> None:
    """An agent's step without an id gets one made of its content, not of a process's hash seed."""
    (call, result) = answered("x", [(AgentAction("weather", {"city": "Oslo"}, ""), "4")])[:2]
    assert isinstance(call, AIMessage)
    assert isinstance(result, ToolMessage)
    assert call.tool_calls[0]["id"] == "call-56d77d59cc665e1c"
    assert result.tool_call_id == call.tool_calls[0]["id"]


def test_5817_clearing_the_vector_memory_clears_it(store: BaseStore, later: bool) -> None:
    """Classic: its `clear()` does nothing."""
    memory = VectorStoreRetrieverMemory(store=store, session_id="s")
    save(memory, "My secret is xylophone.", {"response": "Noted."}, later)
    assert "xylophone" in load(memory, later, input="secret")
    asyncio.run(memory.aclear()) if later else memory.clear()
    assert load(memory, later, input="secret") == ""
    everything = [*store.search((), limit=1000), *store.search(("_agentmem",), limit=1000)]
    assert "xylophone" not in str([each.value for each in everything])


def test_10078_3072_5053_a_token_limit_holds_over_a_stored_history(
    store: BaseStore, later: bool
) -> None:
    """Classic: with a limit of 20 tokens, 130 are loaded; in async nothing is ever pruned."""
    whole = ConversationBufferMemory(store=store, session_id="s")
    for number in range(12):
        save(whole, f"question {number} of the user", {"response": f"answer {number}"}, later)
    bounded = ConversationTokenBufferMemory(
        max_token_limit=60, return_messages=True, store=store, session_id="s"
    )
    loaded = load(bounded, later)
    assert count_tokens(loaded) <= 60
    assert loaded[-1].content == "answer 11"


def test_3230_a_summary_is_made_in_async(store: BaseStore) -> None:
    """Classic: under `ainvoke` the summary stays empty, and nobody is told."""
    memory = ConversationSummaryMemory(llm=summarizer(), store=store, session_id="s")
    chain = chain_of(memory, ScriptedChatModel(replies=["Noted."] * 2), "{history} {input}")
    for number in range(2):
        asyncio.run(chain.ainvoke({"input": f"FACT{number:03d} is so"}))
    assert FACT.findall(load(memory, later=True)) == ["FACT000", "FACT001"]


def test_a_window_bounds_the_store_too(tmp_path: Path, later: bool) -> None:
    """Classic: of a window of two turns, a hundred of a hundred messages stay in the store."""
    path = tmp_path / "memory.sqlite"
    with FaissSqliteStore(path, index=None) as store:
        memory = ConversationBufferWindowMemory(
            k=2, return_messages=True, archive_ttl=60, store=store, session_id="s"
        )
        for number in range(10):
            save(memory, HumanMessage(f"turn {number}"), {"response": "ok"}, later)
        archived = store.search(("chats", "s", "short_term", "archive"), limit=100)
    assert len(load_again(path, later)) == 4
    assert sum("expires_at" in each.value for each in archived) == 16


def load_again(path: Path, later: bool) -> list[BaseMessage]:
    """Load the window in a new process' stead."""
    with FaissSqliteStore(path, index=None) as store:
        memory = ConversationBufferWindowMemory(
            k=2, return_messages=True, store=store, session_id="s"
        )
        found: list[BaseMessage] = load(memory, later)
        return found
