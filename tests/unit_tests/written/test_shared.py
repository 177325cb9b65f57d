"""What Mem0, AMem and LangMem have in common: hearing, counting, repairing, parallel turns."""

import asyncio
import json
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_agentmem.memories import AMem, LangMem, Mem0
from tests.unit_tests.scripted import STORES, Scripted, Table, make_store
from tests.unit_tests.written.conftest import ANN, World

NOTE = {"keywords": ["a", "b", "c"], "context": "A context.", "tags": ["x", "y", "z"]}
HOMES: dict[type[Any], tuple[str, ...]] = {
    Mem0: ("memories", "ann", "mem0", "facts"),
    AMem: ("memories", "ann", "a_mem", "notes"),
    LangMem: ("memories", "ann"),
}
MESSAGE = re.compile(r'(?:"text"|"content")?: ?"((?:turn|My) [^"]*)"')


def echo(prompt: str) -> dict[str, Any]:
    """Answer every structured question so that the words of the message are remembered."""
    if "should_evolve" in prompt:
        return {"should_evolve": False}
    if "New facts" in prompt:
        return {"operations": []}
    said = MESSAGE.findall(prompt.rpartition("New messages:")[2] or prompt)
    if '"keywords"' in prompt:
        return NOTE
    if '"memories"' in prompt:
        return {"memories": [{"action": "create", "content": said[-1]}]}
    return {"facts": [{"text": said[-1], "attributed_to": "user"}]}


def given(memory: type[Any]) -> dict[str, Any]:
    """Return a reply that remembers a secret, or describes it."""
    text = "My card is 4242"
    replies: dict[type[Any], dict[str, Any]] = {
        Mem0: {"facts": [{"text": text}]},
        AMem: {"keywords": ["4242"], "context": text, "tags": ["4242"]},
        LangMem: {"memories": [{"action": "create", "content": text}]},
    }
    return replies[memory]


@pytest.mark.parametrize("memory", HOMES)
async def test_redaction_comes_before_every_model_and_every_write(
    world: World, memory: type[Any]
) -> None:
    """Neither what was said nor what the model writes reaches prompt, store or journal."""
    call = world.make(memory, redact=lambda text: text.replace("4242", "[card]"))
    world.model.extend(given(memory))
    await call("remember", "My card is 4242", config=ANN)
    assert "4242" not in world.model.prompt(0)
    assert len(world.live(*HOMES[memory])) == 1
    for prefix in (("memories",), ("_agentmem",)):
        assert "4242" not in str(world.store.search(prefix, limit=100))


@pytest.mark.parametrize("memory", HOMES)
async def test_what_redaction_takes_out_whole_costs_no_call(
    world: World, memory: type[Any]
) -> None:
    """Nothing is left to remember, and that is told."""
    call = world.make(memory, redact=lambda _: None)
    assert await call("remember", "My card is 4242", config=ANN) == []
    assert world.model.prompts == []
    assert world.named("redacted")[0]["messages"] == 1


@pytest.mark.parametrize("memory", HOMES)
async def test_what_shall_not_be_remembered_costs_no_call(world: World, memory: type[Any]) -> None:
    """The message, and the answer that repeats it, are neither shown nor stored."""
    call = world.make(memory)
    messages = [HumanMessage("Don't remember this: my PIN is 1234"), AIMessage("1234? Gone.")]
    assert await call("remember", messages, config=ANN) == []
    assert world.model.prompts == []
    assert world.named("not_remembered_on_request")[0]["messages"] == 2


@pytest.mark.parametrize(
    ("memory", "settings", "first", "later"),
    [
        (Mem0, {"mode": "additive"}, {"extract": 1}, {"extract": 1}),
        (Mem0, {"mode": "crud"}, {"extract": 1}, {"extract": 1, "decide": 1}),
        (Mem0, {}, {"extract": 1}, {"extract": 1, "decide": 1}),
        (Mem0, {"preset": "paper"}, {"extract": 1}, {"extract": 1, "decide": 1}),
        (Mem0, {"infer": False}, {}, {}),
        (AMem, {}, {"construct": 1}, {"construct": 1, "evolve": 1}),
        (AMem, {"evolve": False}, {"construct": 1}, {"construct": 1}),
        (LangMem, {}, {"extract": 1}, {"extract": 1}),
        (LangMem, {"phases": [{}]}, {"extract": 1, "phase": 1}, {"extract": 1, "phase": 1}),
    ],
)
async def test_the_ledger_counts_calls_by_purpose(
    world: World,
    memory: type[Any],
    settings: dict[str, Any],
    first: dict[str, int],
    later: dict[str, int],
) -> None:
    """One message with one fact: as the specification of each architecture says."""
    world.make(memory, model=Scripted(echo), **settings)
    graph = world.memory.remember_graph()
    for text, calls in (("turn one", first), ("turn two", later)):
        state = {"messages": [HumanMessage(text)]}
        out = await graph.ainvoke(state, ANN) if world.is_async else graph.invoke(state, ANN)
        assert out.get("usage", {}).get("calls", {}) == calls


@pytest.mark.parametrize("memory", HOMES)
async def test_the_ledger_counts_repairs_apart(world: World, memory: type[Any]) -> None:
    """One repair for one unusable reply, and no more."""
    world.make(memory, model=Scripted(["I cannot.", given(memory)]))
    graph = world.memory.remember_graph()
    state = {"messages": [HumanMessage("My card is 4242")]}
    out = await graph.ainvoke(state, ANN) if world.is_async else graph.invoke(state, ANN)
    purpose = "construct" if memory is AMem else "extract"
    assert out["usage"]["calls"] == {purpose: 1, f"{purpose}_repair": 1}


FACTS = {"facts": [{"text": "Ann likes tea", "attributed_to": "user"}]}
WRITTEN = json.dumps(FACTS)


@pytest.mark.parametrize(
    "reply",
    [
        f"```json\n{WRITTEN}\n```",
        f"<think>Is it {{tea}}?</think>\n{WRITTEN}",
        f"Here is what I found:\n{WRITTEN}\nAnything else?",
        '{"facts": [{"text": "Ann likes tea", "attributed_to": "user",},]}',
        json.dumps(FACTS["facts"]),
        '{"facts": ["Ann likes tea"]}',
        json.dumps({"name": "extract", "arguments": FACTS}),
        json.dumps({"name": "extract", "arguments": WRITTEN}),
    ],
    ids=["fenced", "thought", "prose", "comma", "list", "texts", "call", "call as text"],
)
async def test_what_weak_models_write_is_read_without_a_repair(world: World, reply: str) -> None:
    """Each of the usual forms (mem0 #1854, #3391)."""
    call = world.make(Mem0)
    world.model.extend(reply)
    await call("remember", "I like tea", config=ANN)
    assert world.live(*HOMES[Mem0]) == ["Ann likes tea"]
    assert len(world.model.prompts) == 1


WRITERS = 12


@pytest.mark.parametrize("memory", HOMES)
@pytest.mark.parametrize("kind", STORES)
def test_parallel_turns_of_one_user_are_all_remembered_once(
    kind: str, memory: type[Any], tmp_path: Path
) -> None:
    """Threads at once: no turn is lost, and none is stored twice."""
    store = make_store(kind, tmp_path, Table())
    one = memory(model=Scripted(echo), store=store)
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            one.remember([HumanMessage(f"turn {number}", id=f"m{number}")], config=ANN)
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert texts(store, memory) == Counter(f"turn {number}" for number in range(WRITERS))


@pytest.mark.parametrize("memory", HOMES)
@pytest.mark.parametrize("kind", STORES)
async def test_parallel_tasks_of_one_user_are_all_remembered_once(
    kind: str, memory: type[Any], tmp_path: Path
) -> None:
    """The same within one event loop, and by two memory objects."""
    store = make_store(kind, tmp_path, Table())
    both = [memory(model=Scripted(echo), store=store) for _ in range(2)]
    await asyncio.gather(
        *(
            both[number % 2].aremember([HumanMessage(f"turn {number}")], config=ANN)
            for number in range(WRITERS)
        )
    )
    assert texts(store, memory) == Counter(f"turn {number}" for number in range(WRITERS))


def texts(store: Any, memory: type[Any]) -> Counter[str]:  # noqa: ANN401 - either store
    """Return what is stored, and how often."""
    home = HOMES[memory]
    found = store.search(home, limit=1000)
    return Counter(each.value["content"] for each in found if each.namespace == home)
