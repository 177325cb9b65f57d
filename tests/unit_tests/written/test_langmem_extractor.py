"""LangMem's stateless extractor inside of our write path, where it is installed."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_agentmem.errors import ModelCallError
from langchain_agentmem.memories import LangMem, LangMemExtractor
from tests.unit_tests.scripted import Scripted
from tests.unit_tests.written.conftest import ANN, World
from tests.unit_tests.written.test_langmem import HOME, Preference, values

pytest.importorskip("langmem")


def calling(name: str, **args: object) -> AIMessage:
    """Return a reply that calls one tool."""
    call = {"name": name, "args": args, "id": "c1", "type": "tool_call"}
    return AIMessage("", tool_calls=[call], usage_metadata=USAGE)


USAGE: Any = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
PATCH = {"op": "replace", "path": "/content", "value": "Ann likes green tea"}


def delegating(world: World, *replies: Any, **given: Any) -> Any:  # noqa: ANN401 - a double of any
    """Return the calls of a memory whose extractor follows a script."""
    extractor = LangMemExtractor(Scripted(replies))
    return world.make(LangMem, extractor=extractor, enable_deletes=True, **given)


async def test_it_inserts_updates_and_removes_by_handle(world: World) -> None:
    """LangMem never sees a key, and its removal archives."""
    insert = calling("Memory", content="Ann likes tea")
    call = delegating(world, insert)
    (added,) = await call("remember", "tea", config=ANN)
    assert values(world)[added.key]["content"] == "Ann likes tea"
    patch = calling("PatchDoc", json_doc_id="0", planned_edits="-", patches=[PATCH])
    call = delegating(world, *[patch] * 2)
    (changed,) = await call("remember", "green tea", config=ANN)
    assert (changed.event, changed.key) == ("UPDATE", added.key)
    assert added.key not in world.memory.extractor.model.prompt(0)
    call = delegating(world, calling("RemoveDoc", json_doc_id="0"))
    (gone,) = await call("remember", "no tea", config=ANN)
    assert (gone.event, gone.after.status) == ("DELETE", "archived")
    assert values(world) == {}


async def test_its_schemas_are_the_memorys(world: World) -> None:
    """A pydantic model goes in and comes out."""
    insert = calling("Preference", about="tea", wish="green")
    call = delegating(world, insert, schemas=[Preference])
    await call("remember", "green tea", config=ANN)
    (value,) = values(world).values()
    assert (value["kind"], value["content"]) == ("Preference", {"about": "tea", "wish": "green"})


async def test_its_calls_and_tokens_are_counted(world: World) -> None:
    """The graph's usage holds them like our own."""
    delegating(world, calling("Memory", content="Ann likes tea"))
    graph = world.memory.remember_graph()
    given = {"messages": [("user", "tea")]}
    out = await graph.ainvoke(given, ANN) if world.is_async else graph.invoke(given, ANN)
    assert out["usage"] == {"calls": {"extract": 1}, "input_tokens": 10, "output_tokens": 5}


async def test_a_reply_it_cannot_use_is_reported_and_changes_nothing(world: World) -> None:
    """Whatever LangMem raises over a reply stays out of the conversation."""
    world.store.put(HOME, "a", {"content": "Ann owns a boat"})
    call = delegating(world, *["I see nothing."] * 8)
    done = await call("remember", "hm", config=ANN)
    assert all(op.status == "rejected" for op in done)
    assert values(world) == {"a": {"content": "Ann owns a boat"}}


async def test_a_failing_model_is_a_typed_error(world: World) -> None:
    """So that a queue tries again."""
    call = delegating(world, *[OSError("down")] * 8)
    with pytest.raises(ModelCallError, match="LangMem"):
        await call("remember", "tea", config=ANN)
    assert values(world) == {}


async def test_langmems_own_manager_reads_and_changes_what_we_wrote(world: World) -> None:
    """And we what it wrote: one store, both codes in turn."""
    from langmem import create_memory_store_manager  # type: ignore[import-untyped]

    call = world.make(LangMem)
    world.model.extend({"memories": [{"action": "create", "content": "Ann likes tea"}]})
    (ours,) = await call("remember", "I like tea", config=ANN)
    theirs = Scripted(lambda _: calling("Memory", content="Ann owns a boat"))
    manager = create_memory_store_manager(
        theirs, store=world.store, namespace=("memories", "{user_id}")
    )
    if world.is_async:
        await manager.ainvoke({"messages": [("user", "a boat")]}, config=ANN)
    else:
        manager.invoke({"messages": [("user", "a boat")]}, config=ANN)
    assert "Ann likes tea" in theirs.prompt(0)
    found = (await call("recall", "boat", config=ANN)).items
    assert {each.content for each in found} == {"Ann likes tea", "Ann owns a boat"}
    boat = next(each for each in found if each.content == "Ann owns a boat")

    def update(prompt: str) -> Any:  # noqa: ANN401 - a double of any
        line = next(each for each in prompt.splitlines() if '"content": "Ann owns' in each)
        number = json.loads(line)["id"]
        changed = {"action": "update", "id": number, "content": "Ann sold the boat"}
        return {"memories": [changed]}

    world.memory.model = Scripted(update)
    await call("remember", "sold it", config=ANN)
    assert values(world)[boat.key]["content"] == "Ann sold the boat"
    assert values(world)[ours.key]["content"] == "Ann likes tea"
