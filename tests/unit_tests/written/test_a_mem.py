"""A-MEM: notes that link and rewrite each other."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.items import StoredMemory
from langchain_agentmem.memories.a_mem import AMem
from langchain_agentmem.scopes import reserved
from tests.unit_tests.scripted import Scripted, Table, make_store
from tests.unit_tests.written.conftest import ANN, BOB, World

NOTES = ("memories", "ann", "a_mem", "notes")


def note(*tags: str, context: str = "A context.") -> dict[str, Any]:
    """Return a construction reply."""
    return {"keywords": ["k1", "k2", "k3"], "context": context, "tags": list(tags) or ["t1"]}


def evolve(**given: Any) -> dict[str, Any]:  # noqa: ANN401 - a double of any
    """Return an evolution reply."""
    return {"should_evolve": True, **given}


KEEP = {"should_evolve": False}


def found(world: World, content: str) -> StoredMemory:
    """Return the stored note of a content."""
    items = world.store.search(NOTES, limit=100)
    return StoredMemory.from_store(next(i for i in items if i.value["content"] == content))


async def test_the_first_note_costs_one_call(world: World) -> None:
    """There is nothing to link yet."""
    call = world.make(AMem)
    world.model.extend(note("music"))
    (op,) = await call("remember", "I play the cello", config=ANN)
    assert op.event == "ADD"
    assert op.after.links == ()
    assert op.after.metadata == {
        "keywords": ["k1", "k2", "k3"],
        "context": "A context.",
        "tags": ["music"],
    }
    assert world.live(*NOTES) == ["I play the cello"]
    assert len(world.model.prompts) == 1


@pytest.mark.parametrize(("does_evolve", "calls"), [(True, 3), (False, 2)])
async def test_later_notes_cost_two_calls_or_one_without_evolution(
    world: World, *, does_evolve: bool, calls: int
) -> None:
    """The ablation leaves the second call out."""
    call = world.make(AMem, evolve=does_evolve)
    world.model.extend(note(), note(), *([KEEP] if does_evolve else []))
    for text in ("first", "second"):
        await call("remember", text, config=ANN)
    assert len(world.model.prompts) == calls


async def test_an_unknown_handle_is_dropped_and_a_repeated_one_links_once(world: World) -> None:
    """Each drop is reported; nothing raises."""
    call = world.make(AMem)
    for number in range(5):
        world.model.extend(note(), *([KEEP] if number else []))
        await call("remember", f"note {number}", config=ANN)
    world.model.extend(note(), evolve(actions=["strengthen"], suggested_connections=["9", "1", 1]))
    (op,) = await call("remember", "new", config=ANN)
    assert len(op.after.links) == 1
    assert [each["handle"] for each in world.named("link_dropped")] == ["9", "1"]


async def test_an_unusable_evolution_stores_the_note_as_constructed(world: World) -> None:
    """Two bad replies cost one report, and no neighbor is touched."""
    call = world.make(AMem)
    world.model.extend(note("a"))
    await call("remember", "first", config=ANN)
    world.events.clear()
    world.model.extend(note("b"), "what?", "no idea")
    (op,) = await call("remember", "second", config=ANN)
    assert op.after.metadata["tags"] == ["b"]
    assert found(world, "first").item.version == 1
    assert len(world.named("reply_rejected")) == 1
    assert len(world.named("model_called")) == 3


async def test_an_unusable_construction_stores_the_bare_note(world: World) -> None:
    """The words are kept whatever the model says."""
    call = world.make(AMem)
    world.model.extend("?", "?")
    (op,) = await call("remember", "first", config=ANN)
    assert op.after.metadata == {"keywords": [], "context": "General", "tags": []}
    assert len(world.named("reply_rejected")) == 1


async def _linked(world: World, call: Any, count: int) -> None:  # noqa: ANN401 - a double of any
    """Store `count` notes and one that links to them all."""
    for number in range(count):
        world.embed.table[f"note{number:02}"] = [0.0, 1.0, number / 100]
        world.model.extend(note(), *([KEEP] if number else []))
        await call("remember", f"note{number:02}", config=ANN)
    world.embed.table["hub"] = [1.0, 0.05]
    handles = [str(number + 1) for number in range(count)]
    world.model.extend(note(), evolve(actions=["strengthen"], suggested_connections=handles))
    await call("remember", "hub", config=ANN)


async def test_linked_notes_come_with_their_hit(world: World) -> None:
    """The limit cuts hits, not links, and the neighbor names its hit."""
    call = world.make(AMem)
    await _linked(world, call, 1)
    recalled = await call("recall", "hub", config=ANN, limit=1)
    hit, linked = recalled.items
    assert (hit.content, linked.content) == ("hub", "note00")
    assert linked.metadata["is_neighbor"] is True
    assert linked.metadata["neighbor_of"] == hit.key
    assert "is_neighbor" not in hit.metadata


async def test_at_most_so_many_linked_notes_come_with_a_hit(world: World) -> None:
    """Twelve links, ten shown."""
    call = world.make(AMem, neighbours=12)
    await _linked(world, call, 12)
    assert len((await call("recall", "hub", config=ANN, limit=1)).items) == 11
    alone = await call("recall", "hub", config=ANN, limit=1, expand_links=False)
    assert len(alone.items) == 1


async def test_a_note_linked_twice_appears_once(world: World) -> None:
    """And a hit is never demoted to a neighbor."""
    call = world.make(AMem, bidirectional_links=True)
    await _linked(world, call, 2)
    items = (await call("recall", "hub", config=ANN, limit=3)).items
    assert len({each.key for each in items}) == len(items) == 3
    items = (await call("recall", "note00", config=ANN, limit=2)).items
    assert sorted(str(each.content) for each in items) == ["hub", "note00", "note01"]


async def test_no_evolution_means_no_change_whatever_the_lists_say(world: World) -> None:
    """`should_evolve` decides."""
    call = world.make(AMem)
    world.model.extend(note("a"))
    await call("remember", "first", config=ANN)
    lists = {
        "actions": ["strengthen", "update_neighbor"],
        "suggested_connections": ["1"],
        "tags_to_update": ["x"],
        "new_context_neighborhood": ["x"],
        "new_tags_neighborhood": [["x"]],
    }
    world.model.extend(note("b"), {"should_evolve": False, **lists})
    (op,) = await call("remember", "second", config=ANN)
    assert op.after.links == ()
    assert op.after.metadata["tags"] == ["b"]
    assert found(world, "first").metadata["tags"] == ["a"]


async def test_a_rewritten_neighbor_keeps_its_words_and_its_past(world: World) -> None:
    """Entry i changes the note shown as handle i; what was before is in the history."""
    call = world.make(AMem)
    world.embed.table.update({"near": [1.0, 0.1], "far": [0.0, 1.0], "new": [1.0, 0.0]})
    world.model.extend(note("a", context="old"), note("b"), KEEP)
    await call("remember", "near", config=ANN)
    await call("remember", "far", config=ANN)
    reply = evolve(
        actions=["update_neighbor"],
        new_context_neighborhood=["Rewritten.", "", "surplus"],
        new_tags_neighborhood=[["x", "y"]],
    )
    world.model.extend(note("c"), reply)
    done = await call("remember", "new", config=ANN)
    assert [op.event for op in done] == ["ADD", "UPDATE"]
    changed = found(world, "near")
    assert changed.item.version == 2
    assert changed.content == "near"
    assert (changed.metadata["context"], changed.metadata["tags"]) == ("Rewritten.", ["x", "y"])
    (entry,) = changed.metadata["evolution"]
    assert (entry["by"], entry["old_context"], entry["old_tags"]) == (done[0].key, "old", ["a"])
    assert found(world, "far").item.version == 1
    assert world.named("neighbour_updates_dropped")[0]["entries"] == 1
    history = await call("history", changed, config=ANN)
    assert history[0].after.metadata["context"] == "old"
    assert "Rewritten." in world.embed.documents[-1] or "Rewritten." in world.embed.documents[-2]


async def test_a_neighbor_changed_meanwhile_is_left_alone(world: World) -> None:
    """The new note is stored and the lost update reported."""
    call = world.make(AMem)
    world.model.extend(note("a"))
    await call("remember", "first", config=ANN)
    other = found(world, "first")
    replies = [note("b"), evolve(actions=["update_neighbor"], new_context_neighborhood=["Mine."])]

    def answer(_: str) -> Any:  # noqa: ANN401 - a double of any
        if len(replies) == 1:
            value = {**other.item.to_value(), "version": 2}
            world.store.put(NOTES, other.key, value, index=["search_text"])
        return replies.pop(0)

    world.memory.model = Scripted(answer)
    done = await call("remember", "second", config=ANN)
    assert [(op.event, op.status) for op in done] == [("ADD", "applied"), ("UPDATE", "rejected")]
    assert found(world, "first").metadata["context"] == "A context."
    assert world.live(*NOTES) == ["first", "second"]


async def test_nothing_is_lost_by_reopening(world: World) -> None:
    """Notes and links come back; no constructor ever resets anything."""
    if world.kind == "memory":
        pytest.skip("nothing to reopen")
    call = world.make(AMem)
    await _linked(world, call, 2)
    assert isinstance(world.store, FaissSqliteStore)
    world.store.close()
    world.store = make_store("sqlite", world.folder, Table(world.embed.table))
    call = world.make(AMem)
    assert world.live(*NOTES) == ["hub", "note00", "note01"]
    assert len((await call("recall", "hub", config=ANN, limit=1)).items) == 3


async def test_the_same_words_of_another_user_are_no_neighbor(world: World) -> None:
    """Two calls would mean that Bob's note was seen."""
    call = world.make(AMem)
    world.model.extend(note("bob"), note("ann"))
    await call("remember", "I play the cello", config=BOB)
    await call("remember", "I play the cello", config=ANN)
    assert len(world.model.prompts) == 2
    assert "bob" not in world.model.prompt()


async def test_recall_costs_a_call_only_where_keywords_are_asked_for(world: World) -> None:
    """The paper embeds the question, the reference code asks for keywords first."""
    call = world.make(AMem)
    world.model.extend(note())
    await call("remember", "I play the cello", config=ANN)
    await call("recall", "Which instrument?", config=ANN)
    assert len(world.model.prompts) == 1
    world.model.extend("cello, instrument")
    await call("recall", "Which instrument?", config=ANN, keyword_query=True)
    assert len(world.model.prompts) == 2
    assert "cello, instrument" in world.embed.queries


async def test_hits_are_counted_and_not_embedded_again(world: World) -> None:
    """Counters lie apart: version and vector stay."""
    call = world.make(AMem)
    world.model.extend(note())
    (op,) = await call("remember", "cello", config=ANN)
    embedded = len(world.embed.documents)
    for _ in range(2):
        await call("recall", "cello", config=ANN)
    counted = world.store.get(reserved("counters", NOTES), op.key)
    assert counted is not None
    assert counted.value["recalled"] == 2
    assert counted.value["last_recalled_at"].startswith("2026-03-01T10:00")
    assert len(world.embed.documents) == embedded
    assert found(world, "cello").item.version == 1


async def test_a_forgotten_note_is_gone_everywhere(world: World) -> None:
    """Recall, listing, words and journal know nothing of it, and no link points to it."""
    call = world.make(AMem)
    await _linked(world, call, 2)
    gone = found(world, "note00")
    await call("forget", gone.key, config=ANN)
    assert world.live(*NOTES) == ["hub", "note01"]
    items = (await call("recall", "note00", config=ANN)).items
    assert "note00" not in [each.content for each in items]
    hub = found(world, "hub")
    assert gone.key not in [link.target for link in hub.item.links]
    rows = world.store.search(("_agentmem", "journal", *NOTES), limit=100)
    assert not any(row.key.startswith(gone.key) for row in rows)
    assert not any("note00" in str(row.value) for row in rows)


async def test_consolidation_prunes_links_without_a_call(world: World) -> None:
    """A link to an archived note goes."""
    call = world.make(AMem)
    await _linked(world, call, 2)
    calls = len(world.model.prompts)
    await call("undo", found(world, "note00"), config=ANN)
    report = await call("consolidate", config=ANN)
    assert [op.event for op in report.operations] == ["LINK"]
    assert len(found(world, "hub").item.links) == 1
    assert len(world.model.prompts) == calls


async def test_an_exact_repeat_is_a_second_note_unless_told_otherwise(world: World) -> None:
    """With `deduplicate` it costs nothing."""
    call = world.make(AMem)
    world.model.extend(note(), note(), KEEP)
    for _ in range(2):
        await call("remember", "cello", config=ANN)
    assert world.live(*NOTES) == ["cello", "cello"]
    call = world.make(AMem, deduplicate=True)
    world.model.extend(note())
    for _ in range(2):
        (op,) = await call("remember", "violin", config=BOB)
    assert op.event == "NOOP"
    assert world.live("memories", "bob", "a_mem", "notes") == ["violin"]


async def test_every_message_becomes_a_note_of_its_own(world: World) -> None:
    """The second sees the first, in the graph as in the call."""
    world.make(AMem)
    graph = world.memory.remember_graph()
    world.model.extend(note(), note(), evolve(actions=["strengthen"], suggested_connections=["1"]))
    given = {"messages": [HumanMessage("one"), HumanMessage("two")]}
    out = await graph.ainvoke(given, ANN) if world.is_async else graph.invoke(given, ANN)
    assert [op["event"] for op in out["memory_operations"]] == ["ADD", "ADD"]
    assert len(found(world, "two").item.links) == 1


async def test_empty_text_is_refused_before_any_call(world: World) -> None:
    """There is nothing to make a note of."""
    call = world.make(AMem)
    with pytest.raises(ValueError, match="nothing to remember"):
        await call("remember", "  ", config=ANN)
    assert world.model.prompts == []


async def test_without_a_model_turns_are_kept(world: World) -> None:
    """Nothing poses as a model."""
    call = world.make(AMem, model=None)
    await call("remember", "I play the cello", config=ANN)
    assert world.live(*NOTES) == []
    items = (await call("recall", "cello", config=ANN)).items
    assert [each.content for each in items] == ["I play the cello"]


@pytest.mark.parametrize(("preset", "temperature"), [("default", None), ("paper", 0.7)])
def test_a_model_given_by_name_gets_the_papers_temperature(
    preset: str, temperature: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that the user has made keeps its own settings."""
    made: list[tuple[str, float | None]] = []

    def named(name: str, heat: float | None = None) -> Any:  # noqa: ANN401 - a double of any
        made.append((name, heat))
        return Scripted([note()])

    monkeypatch.setattr("langchain_agentmem.steps.environment._chat_model", named)
    memory = AMem(model="provider:name", preset=preset, store=InMemoryStore())
    memory.remember("cello", config=ANN)
    assert made == [("provider:name", temperature)]
