"""The tree of summaries: its shape, what a leaf costs, what recall shows, what forget erases."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.memories import EVERYTHING, HierarchicalSummaryMemory
from langchain_agentmem.steps import tree
from langchain_agentmem.steps.drivers import run
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.steps.folding import Folding
from langchain_agentmem.steps.tree import Leaf, Node, Tree
from langchain_agentmem.testing import ScriptedChatModel
from langchain_agentmem.windows import count_tokens
from tests.unit_tests.floor import everything
from tests.unit_tests.memories.conversations import (
    CHAT,
    Calls,
    at_once,
    conversation,
    facts_in,
    input_sizes,
    lost,
    nodes_in,
    summarizer,
    view_of,
)

ROOT = ("memories", "ann", "thread-monday", "short_term")
LONG = "word " * 60


def leaves(first: int, count: int) -> list[Leaf]:
    """Return leaves of one message each."""
    return [
        Leaf(f"FACT{number:03d} {LONG}", number, number, (f"m{number}",))
        for number in range(first, first + count)
    ]


def grow(shape: Tree, env: Environment, first: int, count: int) -> None:
    """Add leaves at once and make every node above them."""
    head = run(tree.head_of(shape), env)
    run(tree.append(shape, head, leaves(first, count)), env)
    folding = Folding(max_summary_tokens=50)
    while run(tree.head_of(shape), env).dirty:
        run(tree.rebuild(shape, folding), env)


def levels(store: BaseStore, home: tuple[str, ...]) -> list[int]:
    """Return how many nodes are stored on each level."""
    found = [Node.of(each.key).level for each in store.search(home, limit=10_000)]
    return [found.count(level) for level in range(max(found) + 1)]


@pytest.mark.parametrize(
    ("fan_in", "count", "shape"),
    [
        (8, 8, [8, 1]),
        (8, 64, [64, 8, 1]),
        (8, 65, [65, 9, 2, 1]),
        (8, 100, [100, 13, 2, 1]),
        (5, 64, [64, 13, 3, 1]),
    ],
)
def test_shape_of_the_tree(fan_in: int, count: int, shape: list[int]) -> None:
    """Full groups have a parent, and so has the last one of a level with several nodes."""
    grown, store = Tree(("t",), fan_in), InMemoryStore()
    grow(grown, Environment(store=store, model=summarizer()), 0, count)
    assert levels(store, grown.home) == shape == grown.sizes(count)


def test_levels_end_at_the_highest_allowed() -> None:
    """A lower tree has several nodes on top."""
    assert Tree(("t",), 8, max_levels=2).sizes(100) == [100, 13, 2]


def test_one_more_leaf_makes_at_most_one_node_a_level(store: BaseStore) -> None:
    """The sixty-fifth leaf needs three new nodes; those of the other groups stay as they are."""
    grown, model = Tree(("t",)), summarizer()
    env = Environment(store=store, model=model)
    grow(grown, env, 0, 64)
    made = len(model.requests)
    before = {each.key: each.value for each in store.search(grown.home, limit=1000)}
    grow(grown, env, 64, 1)
    after = {each.key: each.value for each in store.search(grown.home, limit=1000)}
    assert len(model.requests) - made <= 3
    assert {key for key in after if after[key] != before.get(key)} == {"0-64", "1-8", "2-1", "3-0"}


@given(st.integers(2, 9), st.lists(st.integers(1, 9), min_size=1, max_size=12))
@settings(max_examples=40, deadline=None)
def test_growing_bit_by_bit_gives_the_same_tree(fan_in: int, steps: list[int]) -> None:
    """Whatever is added at a time, the tree is the one of its leaves."""
    bit_by_bit, at_once = Tree(("t",), fan_in), Tree(("u",), fan_in)
    env = Environment(store=InMemoryStore(), model=summarizer())
    done = 0
    for step in steps:
        grow(bit_by_bit, env, done, step)
        done += step
    grow(at_once, env, 0, done)
    assert env.store is not None
    one, other = (
        {each.key: each.value["content"] for each in env.store.search(shape.home, limit=10_000)}
        for shape in (bit_by_bit, at_once)
    )
    assert one == other


def told(memory: HierarchicalSummaryMemory, calls: Calls, turns: int) -> None:
    """Tell a memory turns, one by one."""
    for number in range(turns):
        calls.remember(memory, conversation(1, start=number))


@pytest.mark.parametrize("at_once", [True, False])
def test_no_fact_is_lost(calls: Calls, store: BaseStore, at_once: bool) -> None:
    """Each fact was shown to the summarizer or is in the view, and lies in a leaf or the view."""
    model = summarizer()
    memory = HierarchicalSummaryMemory(model=model, store=store)
    if at_once:
        calls.remember(memory, conversation(40))
    else:
        told(memory, calls, 40)
    view = calls.view(memory, [HumanMessage("What of FACT003?", id="q")])
    assert lost(40, model, view) == set()
    assert max(input_sizes(model)) <= 4000
    assert "FACT003" in str(view[0].content)
    assert view[-1].id == "q"
    assert count_tokens(view) <= 2000
    kept = [each.value["content"] for each in store.search((*ROOT, "tree"), limit=1000)]
    assert len(facts_in([*view, HumanMessage(" ".join(kept))])) == 40


def test_sync_and_async_give_the_same_store() -> None:
    """Trees and views are equal."""
    views, trees = [], []
    for later in (False, True):
        kept = InMemoryStore()
        memory = HierarchicalSummaryMemory(model=summarizer(), store=kept)
        told(memory, Calls(later=later), 20)
        views.append(Calls(later=later).view(memory, "What of FACT002?"))
        found = kept.search((*ROOT, "tree"), limit=1000)
        trees.append({each.key: each.value["content"] for each in found})
    assert trees[0] == trees[1]
    assert views[0] == views[1]


@pytest.mark.parametrize("search", ["collapsed", "beam"])
def test_recall_stays_in_its_budget_and_shows_no_node_twice(
    calls: Calls, store: BaseStore, search: str
) -> None:
    """At 500 tokens neither view nor text is larger, and no node stands beside its ancestor."""
    memory = HierarchicalSummaryMemory(
        model=ScriptedChatModel(replies=lambda _: "short summary"),
        store=store,
        budget=500,
        max_leaf_tokens=100,
        search=search,
    )
    for number in range(60):
        calls.remember(memory, conversation(1, start=number, words=40))
    for query in ("What of FACT007?", "word", ""):
        found = calls.recall(memory, query)
        assert count_tokens(view_of(found)) <= 500
        assert found.tokens <= 500
        nodes = nodes_in(found)
        assert nodes
        pairs = [(one, other) for one in nodes for other in nodes if one != other]
        assert not any(Tree(ROOT).are_related(one, other) for one, other in pairs)


def test_question_finds_its_leaf(calls: Calls, store: BaseStore) -> None:
    """The words that were said come back, not only a summary of them."""
    model = ScriptedChatModel(replies=lambda _: "talk")
    memory = HierarchicalSummaryMemory(model=model, store=store, budget=1000)
    told(memory, calls, 30)
    assert "FACT004 word" in calls.recall(memory, "FACT004").text


def test_beam_descends_to_the_leaf_that_answers(store: BaseStore) -> None:
    """Where summaries lead the way, the beam ends at the words themselves."""
    memory = HierarchicalSummaryMemory(model=summarizer(), store=store, budget=1000, search="beam")
    told(memory, Calls(later=False), 30)
    assert "FACT004 word" in memory.recall("FACT004", config=CHAT).text


def test_forgotten_leaf_is_in_no_node_before_and_after_the_rebuild(
    calls: Calls, store: BaseStore
) -> None:
    """Its words leave the leaf, its messages and every summary above; the others stay."""
    model = summarizer()
    memory = HierarchicalSummaryMemory(model=model, store=store)
    told(memory, calls, 30)
    (leaf,) = [
        each.key
        for each in store.search((*ROOT, "tree"), limit=1000)
        if each.key.startswith("0-") and "FACT005" in each.value["content"]
    ]
    calls.forget(memory, leaf)
    assert "FACT005" not in str(everything(store))
    assert "FACT005" not in calls.recall(memory, "FACT005").text
    calls.remember(memory, conversation(1, start=30))
    assert "FACT005" not in str(everything(store))
    assert levels(store, (*ROOT, "tree"))[1:] == Tree(ROOT).sizes(27)[1:]
    assert "FACT006" in str(store.search((*ROOT, "tree"), limit=1000))


def test_forgotten_message_leaves_the_rest_of_its_leaf(calls: Calls, store: BaseStore) -> None:
    """Of a leaf with several turns only the forgotten message is gone."""
    memory = HierarchicalSummaryMemory(model=summarizer(), store=store, budget=400)
    for number in range(30):
        calls.remember(memory, conversation(1, start=number, words=20))
    key = store.search((*ROOT, "archive"), filter={"source_message_ids": ["h1"]})[0].key
    calls.forget(memory, key)
    assert "FACT001" not in str(everything(store))
    first = store.get((*ROOT, "tree"), "0-0")
    assert first is not None
    assert "FACT000" in first.value["content"]
    calls.do(lambda: memory.consolidate(config=CHAT), lambda: memory.aconsolidate(config=CHAT))
    root = max(store.search((*ROOT, "tree"), limit=100), key=lambda each: Node.of(each.key))
    assert {"FACT000", "FACT002"} <= set(facts_in([HumanMessage(root.value["content"])]))
    assert "FACT001" not in root.value["content"]


def test_forget_everything_leaves_no_trace(calls: Calls, store: BaseStore) -> None:
    """Leaves, summaries, head, archive and journal are gone."""
    memory = HierarchicalSummaryMemory(model=summarizer(), store=store)
    told(memory, calls, 12)
    calls.forget(memory, EVERYTHING)
    assert everything(store) == {}


def test_failing_summarizer_leaves_the_leaves_and_is_made_up_for(
    calls: Calls, store: BaseStore
) -> None:
    """Words are in leaves at once; the summaries follow when the model is back."""
    broken = [True]

    def reply(messages: list[BaseMessage]) -> str | Exception:
        return RuntimeError("overloaded") if broken[0] else " ".join(facts_in(messages))

    memory = HierarchicalSummaryMemory(model=ScriptedChatModel(replies=reply), store=store)
    told(memory, calls, 20)
    assert "FACT003" in calls.recall(memory, "FACT003").text
    assert levels(store, (*ROOT, "tree")) == [len(store.search((*ROOT, "tree"), limit=100))]
    broken[0] = False
    calls.remember(memory, conversation(1, start=20))
    assert len(levels(store, (*ROOT, "tree"))) == 3


def test_without_a_model_the_words_are_found_in_leaves(calls: Calls, store: BaseStore) -> None:
    """No rule poses as a summarizer, and nothing is lost."""
    memory = HierarchicalSummaryMemory(store=store)
    told(memory, calls, 20)
    assert "FACT003" in calls.recall(memory, "FACT003").text


def test_chinese_is_cut_at_sentences_and_found(calls: Calls, tmp_path: Path) -> None:
    """A long Chinese turn becomes several leaves, each ends at a full stop, words are found."""
    said = "我在杭州买了一把红色的雨伞。" * 150
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        memory = HierarchicalSummaryMemory(model=summarizer(), store=store, budget=600)
        calls.remember(memory, [HumanMessage(said, id="1"), AIMessage("好的。", id="2")])
        calls.remember(memory, conversation(2))
        found = store.search((*ROOT, "tree"), limit=100)
        parts = sorted((Node.of(each.key), each.value["content"]) for each in found)
        texts = [text for node, text in parts if node.level == 0]
        assert "".join(texts[:2]).startswith("Human: 我在杭州")
        assert texts[0].endswith("。")
        assert "雨伞" in calls.recall(memory, "雨伞").text


def test_parallel_turns_are_all_in_leaves_or_in_view(tmp_path: Path) -> None:
    """Writers that meet in the tree lose nothing."""
    with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as store:
        memory = HierarchicalSummaryMemory(model=summarizer(), store=store, budget=1000)
        at_once(lambda number: memory.remember(conversation(1, number), config=CHAT), 8)
        memory.remember(conversation(1, 8), config=CHAT)
        nodes = store.search((*ROOT, "tree"), limit=100)
        leaves = [each.value["content"] for each in nodes if each.key.startswith("0-")]
        view = view_of(memory.recall([], config=CHAT))
        assert len(facts_in([*view, HumanMessage(" ".join(leaves))])) == 9
        assert levels(store, (*ROOT, "tree")) == Tree(ROOT).sizes(len(leaves))


def test_system_messages_stand_before_the_tree(calls: Calls, store: BaseStore) -> None:
    """The view is the system message, what the tree says, then the turns."""
    memory = HierarchicalSummaryMemory(model=summarizer(), store=store)
    told(memory, calls, 12)
    view = calls.view(memory, [SystemMessage("Be kind."), HumanMessage("FACT001?", id="q")])
    assert [each.type for each in view[:2]] == ["system", "human"]
    assert str(view[1].content).startswith("<conversation_summary>")


@pytest.mark.parametrize(
    "wrong", [{"fan_in": 1}, {"search": "up"}, {"budget": 0}, {"summarizer_budget": 50}]
)
def test_wrong_parameter_is_refused(wrong: dict[str, Any]) -> None:
    """A value that makes no sense is an error at construction."""
    with pytest.raises(ConfigurationError):
        HierarchicalSummaryMemory(**wrong)
