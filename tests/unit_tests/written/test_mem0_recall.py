"""What Mem0 finds, hides, consolidates and forgets."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.items import MemoryItem
from langchain_agentmem.memories import EVERYTHING
from langchain_agentmem.memories.mem0 import Mem0
from langchain_agentmem.retrieval.boosts import boosted, entity_boost, keyword_boost
from langchain_agentmem.retrieval.filters import matches
from tests.unit_tests.scripted import STORES, Scripted, Table, make_store
from tests.unit_tests.written.conftest import ANN, BOB, World
from tests.unit_tests.written.test_mem0_remember import FACTS, MESSAGES, ops, said

ENTITIES = ("memories", "ann", "mem0", "entities")


def put(world: World, key: str, text: str, **given: Any) -> None:  # noqa: ANN401 - a double of any
    """Put one fact of Ann."""
    world.store.put(FACTS, key, MemoryItem(content=text, **given).to_value(), index=["content"])


def test_the_formulas_give_the_published_values() -> None:
    """Keyword and entity boosts and their sum, to six places."""
    assert keyword_boost(5, 3) == pytest.approx(0.5, abs=1e-6)
    assert keyword_boost(8, 3) == pytest.approx(0.890903, abs=1e-6)
    assert entity_boost(0.9, 1) == pytest.approx(0.45, abs=1e-6)
    assert entity_boost(0.9, 11) == pytest.approx(0.409091, abs=1e-6)
    assert entity_boost(0.9, 101) == pytest.approx(0.040909, abs=1e-6)
    fused = boosted({"a": 0.8}, {"a": 0.5}, {"a": 0.25})
    assert fused["a"]["score"] == pytest.approx(0.62, abs=1e-6)
    assert boosted({"a": 0.7}, {}, {})["a"]["score"] == 0.7


@pytest.mark.parametrize(
    ("raw", "terms", "expected"), [(7, 4, 0.5), (9, 9, 0.5), (10, 10, 0.5), (12, 16, 0.5)]
)
def test_the_sigmoid_moves_with_the_length_of_the_query(
    raw: float, terms: int, expected: float
) -> None:
    """Longer questions need higher raw scores."""
    assert keyword_boost(raw, terms) == pytest.approx(expected)


async def test_other_peoples_nearer_facts_do_not_crowd_out_a_filter(world: World) -> None:
    """The filter comes before the cut (mem0 #6998)."""
    world.embed.table.update({"near": [1.0, 0.0], "far": [0.5, 0.87], "question": [1.0, 0.01]})
    call = world.make(Mem0, threshold=0.0)
    for number in range(15):
        put(world, f"b{number}", f"near {number}", metadata={"who": "bob"})
    for number in range(5):
        put(world, f"a{number}", f"far {number}", metadata={"who": "alice"})
    found = await call("recall", "question", config=ANN, limit=5, filters={"who": "alice"})
    assert len(found.items) == 5
    assert {each.metadata["who"] for each in found.items} == {"alice"}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"team": "a"}, {"1", "2"}),
        ({"team": {"ne": "a"}}, {"3"}),
        ({"team": "*"}, {"1", "2"}),
        ({"OR": [{"team": "a"}, {"age": {"gt": 40}}]}, {"1", "2", "3"}),
        ({"NOT": [{"team": "a"}]}, {"3"}),
        ({"AND": [{"team": "a"}, {"age": {"gte": 30, "lt": 40}}]}, {"2"}),
        ({"age": {"in": [20, 50]}}, {"1", "3"}),
        ({"age": {"nin": [20, 50]}}, {"2"}),
        ({"note": {"icontains": "TEA"}}, {"1"}),
        ({"tags": {"contains": "x"}}, {"3"}),
        ({"attributed_to": "user"}, {"2"}),
    ],
)
def test_filters(condition: dict[str, Any], expected: set[str]) -> None:
    """Every operator, on metadata and on the item's own fields (mem0 #6424)."""
    items = {
        "1": MemoryItem(content="", metadata={"team": "a", "age": 20, "note": "likes tea"}),
        "2": MemoryItem(content="", metadata={"team": "a", "age": 30}, attributed_to="user"),
        "3": MemoryItem(content="", metadata={"age": 50, "tags": ["x"]}),
    }
    assert {key for key, item in items.items() if matches(item, condition)} == expected


@pytest.mark.parametrize(
    "condition",
    [
        {"OR": [{"team": "a"}, {"age": {"gt": 40}}]},
        {"NOT": [{"team": "a"}]},
        {"AND": [{"team": "a"}, {"NOT": {"age": 20}}]},
    ],
)
async def test_filters_give_one_answer_on_every_store(
    tmp_path: Path, condition: dict[str, Any]
) -> None:
    """The same memories, however many lie between them (mem0 #6424)."""
    answers = []
    for kind in STORES:
        world = World(kind, tmp_path, is_async=True)
        call = world.make(Mem0, threshold=-1.0)
        for number in range(80):
            metadata = {"team": "ab"[number % 2], "age": number}
            put(world, str(number), f"fact {'tea' * (number % 7)} {number}", metadata=metadata)
        found = await call("recall", "fact tea", config=ANN, limit=80, filters=condition)
        answers.append({each.key for each in found.items})
        assert all(matches(each.item, condition) for each in found.items)
    assert answers[0] == answers[1] != set()


def test_an_unknown_filter_operator_is_refused() -> None:
    """The message lists what there is."""
    with pytest.raises(ConfigurationError, match="icontains"):
        matches(MemoryItem(content="", metadata={"a": 1}), {"a": {"regex": "x"}})


async def test_a_keyword_hit_below_the_cosine_floor_is_found(world: World) -> None:
    """The threshold limits the semantic arm only (mem0 #5742)."""
    world.embed.table.update(
        {"zebra": [0.05, 1.0], "question": [1.0, 0.0], "other": [0.02, 1.0, 0.3]}
    )
    call = world.make(Mem0)
    put(world, "1", "a zebra")
    put(world, "2", "an other thing")
    found = await call("recall", "question zebra", config=ANN)
    assert "a zebra" in [each.content for each in found.items]


async def test_what_is_neither_near_nor_named_is_not_recalled(world: World) -> None:
    """The floor keeps what no arm vouches for out, unless it is lowered."""
    world.embed.table.update({"zebra": [0.05, 1.0], "question": [1.0, 0.0]})
    call = world.make(Mem0)
    put(world, "1", "a zebra")
    assert (await call("recall", "question", config=ANN)).items == []
    assert len((await call("recall", "question", config=ANN, threshold=0.0)).items) == 1


async def test_a_purely_semantic_score_is_the_cosine(world: World) -> None:
    """Without hits of the other arms nothing is added and nothing divided."""
    world.embed.table.update({"feline": [0.6, 0.8], "cat": [1.0, 0.0]})
    call = world.make(Mem0)
    put(world, "1", "feline")
    (found,) = (await call("recall", "cat", config=ANN)).items
    assert found.score == pytest.approx(0.6, abs=1e-3)


async def test_a_mentioned_entity_lifts_its_facts(world: World) -> None:
    """Names in the question find the facts that mention them, and the parts tell."""
    call = world.make(Mem0)
    world.model.extend(said("Caroline Smith plays chess", "Ann owns a boat"))
    await call("remember", "...", config=ANN)
    assert world.live(*ENTITIES) == ["Ann", "Caroline Smith"]
    best = (await call("recall", "What about Caroline Smith?", config=ANN)).items[0]
    assert best.content == "Caroline Smith plays chess"
    assert best.parts["entity"] > 0


async def test_closed_and_expired_facts_are_hidden_unless_asked_for(world: World) -> None:
    """Expiry holds from the very instant, and k is filled with live facts."""
    call = world.make(Mem0)
    world.model.extend(said("Ann loves coffee"))
    await call("remember", "coffee", config=ANN)
    world.model.extend(said("Ann hates coffee"), ops(("DELETE", "0", 0)))
    await call("remember", "no coffee", config=ANN)
    put(world, "e", "Ann drinks coffee today", expires_at=world.clock() + timedelta(hours=1))

    async def texts(**given: Any) -> set[str]:  # noqa: ANN401 - a double of any
        found = await call("recall", "coffee", config=ANN, limit=2, **given)
        return {str(each.content) for each in found.items}

    assert await texts() == {"Ann hates coffee", "Ann drinks coffee today"}
    world.clock.move(3600)
    assert await texts() == {"Ann hates coffee"}
    assert await texts(show_expired=True) == {"Ann hates coffee", "Ann drinks coffee today"}
    assert await texts(include_superseded=True) == {"Ann hates coffee", "Ann loves coffee"}
    assert await texts(filters={"status": "superseded"}) == {"Ann loves coffee"}


async def test_recall_calls_no_model_and_takes_its_settings_from_anywhere(world: World) -> None:
    """A setting may be given in the call, in the context or in the config."""
    call = world.make(Mem0)
    for number in range(3):
        put(world, str(number), f"tea {number}")
    assert len((await call("recall", "tea", config=ANN, top_k=1)).items) == 1
    assert len((await call("recall", "tea", config=ANN, context={"top_k": 2})).items) == 2
    assert len((await call("recall", "tea", config=ANN, fusion="rrf")).items) == 3
    assert world.model.prompts == []


async def test_what_a_tool_saved_is_recalled(world: World) -> None:
    """The bare namespace is read too."""
    call = world.make(Mem0)
    world.store.put(("memories", "ann"), "t", {"content": "Ann likes tea"})
    assert [e.key for e in (await call("recall", "tea", config=ANN)).items] == ["t"]
    assert (await call("recall", "tea", config=BOB)).items == []


async def test_consolidation_writes_the_summary_that_extraction_is_shown(world: World) -> None:
    """One call, none when nothing is new, and never on the write path."""
    call = world.make(Mem0)
    world.model.extend(said("Ann likes tea"), "Ann talked about tea.")
    await call("remember", "I like tea", config=ANN)
    report = await call("consolidate", config=ANN)
    assert report.calls == {"summary": 1}
    assert [op.event for op in report.operations] == ["ADD"]
    assert (await call("consolidate", config=ANN)).calls == {}
    world.model.extend(said())
    await call("remember", "And you?", config=ANN)
    assert "Ann talked about tea." in world.model.prompt()
    assert all("talked" not in e.text for e in (await call("recall", "tea", config=ANN)).items)


async def test_consolidation_drops_closed_facts_from_entities(world: World) -> None:
    """Entities that nothing live mentions are gone."""
    call = world.make(Mem0, recent_messages=0)
    world.model.extend(said("Rex is a dog"))
    await call("remember", "dog", config=ANN)
    world.model.extend(said("the dog died"), ops(("DELETE", "0", 0)))
    await call("remember", "died", config=ANN)
    assert world.live(*ENTITIES) == ["Rex"]
    await call("consolidate", config=ANN)
    assert world.live(*ENTITIES) == []


async def test_forgetting_a_scope_leaves_the_others(world: World) -> None:
    """Items, entities, messages and journal of the scope go, without an upper bound."""
    call = world.make(Mem0)
    for number in range(1500):
        put(world, str(number), f"fact {number}")
    world.model.extend(said("Ann likes Oslo"), ops(), said("Bob likes Rome"))
    await call("remember", "Oslo", config=ANN)
    await call("remember", "Rome", config=BOB)
    erased = await call("forget", EVERYTHING, config=ANN)
    assert len([op for op in erased if op.namespace == FACTS]) == 1501
    assert world.store.search(("memories", "ann"), limit=10) == []
    assert world.store.search(("_agentmem", "journal", "memories", "ann"), limit=10) == []
    assert world.live("memories", "bob", "mem0", "facts") == ["Bob likes Rome"]


async def test_forgetting_without_a_scope_is_refused(world: World) -> None:
    """A forgotten user id erases nobody (mem0 #3785)."""
    call = world.make(Mem0)
    put(world, "1", "tea")
    with pytest.raises(ConfigurationError, match="user_id"):
        await call("forget", EVERYTHING, config={})
    assert world.live(*FACTS) == ["tea"]


async def test_a_fresh_process_forgets_entity_references_too(world: World) -> None:
    """Nothing depends on what this object has seen before (mem0 #3928, #7226, #3245)."""
    call = world.make(Mem0)
    world.model.extend(said("Rex met Bella", "Bella is a cat"))
    done = await call("remember", "dog", config=ANN)
    store = world.store
    if isinstance(store, FaissSqliteStore):
        store.close()
        world.store = make_store("sqlite", world.folder, Table())
    fresh = world.make(Mem0, model=None)
    await fresh("forget", done[0].key, config=ANN)
    assert world.live(*ENTITIES) == ["Bella"]
    (bella,) = world.store.search(ENTITIES)
    assert bella.value["metadata"]["_entity"]["facts"] == [done[1].key]


async def test_nothing_is_forgotten_by_forgetting_an_unknown_key(world: World) -> None:
    """The ring buffer and facts stay."""
    call = world.make(Mem0)
    world.model.extend(said("Ann likes tea"))
    await call("remember", "tea", config=ANN)
    assert await call("forget", "nonsense", config=ANN) == []
    assert world.live(*FACTS) == ["Ann likes tea"]
    assert world.live(*MESSAGES) == ["tea"]


def test_an_unindexed_store_is_searched_by_words() -> None:
    """A store without vectors still finds facts."""
    from langgraph.store.memory import InMemoryStore

    memory = Mem0(model=Scripted([said("Ann likes tea", "Ann owns a boat")]), store=InMemoryStore())
    memory.remember("...", config=ANN)
    assert [e.content for e in memory.recall("boat", config=ANN).items] == ["Ann owns a boat"]
