"""Trees of summaries by the calendar and by a grouping of one's own."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.memories import (
    EVERYTHING,
    Grouping,
    HierarchicalSummaryMemory,
    by_calendar,
)
from langchain_agentmem.steps import tree
from langchain_agentmem.steps.drivers import run
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.steps.folding import Folding
from langchain_agentmem.steps.tree import Leaf, Node, Tree
from langchain_agentmem.windows import count_tokens
from tests.unit_tests.floor import everything
from tests.unit_tests.memories.conversations import (
    Calls,
    conversation,
    facts_in,
    input_sizes,
    lost,
    nodes_in,
    summarizer,
    view_of,
)

ROOT = ("memories", "ann", "thread-monday", "short_term")
HOME = (*ROOT, "tree")
START = datetime(2026, 3, 1, 8, tzinfo=UTC)
LONG = "word " * 60


def times(days: int, sessions: int, turns: int) -> list[datetime]:
    """Return when turns are said: so many days, sessions a day, turns a session."""
    return [
        START + timedelta(days=day, hours=3 * session, minutes=5 * turn)
        for day in range(days)
        for session in range(sessions)
        for turn in range(turns)
    ]


def dated(moments: Sequence[datetime], start: int = 0, words: int = 180) -> list[AnyMessage]:
    """Return turns with a fact each, said at some times."""
    said = conversation(len(moments), start, words)
    for number, message in enumerate(said):
        message.additional_kwargs["observed_at"] = moments[number // 2].isoformat()
    return said


def leaves(moments: Sequence[datetime], start: int = 0) -> list[Leaf]:
    """Return leaves of one message each."""
    return [
        Leaf(f"FACT{number:03d} {LONG}", number, number, (f"m{number}",), at)
        for number, at in enumerate(moments, start)
    ]


def grow(shape: Tree, env: Environment, added: Sequence[Leaf], grouping: Grouping | None) -> None:
    """Add leaves at once and make every node above them."""
    head = run(tree.head_of(shape), env)
    run(tree.append(shape, head, added, grouping), env)
    while run(tree.head_of(shape), env).dirty:
        run(tree.rebuild(shape, Folding(max_summary_tokens=50)), env)


def facts_by_node(store: BaseStore, home: tuple[str, ...]) -> dict[Node, list[str]]:
    """Return the facts that each node names."""
    found = store.search(home, limit=10_000)
    return {Node.of(each.key): facts_in([HumanMessage(each.value["content"])]) for each in found}


def test_turns_sessions_days_and_a_profile() -> None:
    """Three days of two sessions of three turns: each summary names what its own stretch said."""
    grown, store = Tree(("t",)), InMemoryStore()
    env = Environment(store=store, model=summarizer())

    grow(grown, env, leaves(times(3, 2, 3)), by_calendar())

    found = facts_by_node(store, grown.home)
    counts = [sum(node.level == level for node in found) for level in range(4)]
    assert counts == [18, 6, 3, 1]
    assert found[Node(1, 1)] == ["FACT003", "FACT004", "FACT005"]
    assert found[Node(2, 1)] == [f"FACT{number:03d}" for number in range(6, 12)]
    assert found[Node(3, 0)] == [f"FACT{number:03d}" for number in range(18)]


def test_pause_and_midnight_are_those_of_the_user() -> None:
    """The same turns are two sessions or one, two days or one, as pause and time zone say."""
    late = datetime(2026, 3, 1, 14, 50, tzinfo=UTC)
    before, after = leaves([late, late + timedelta(minutes=20)])
    tokyo = timezone(timedelta(hours=9))

    assert by_calendar().begins(before, after) == 0
    assert by_calendar(pause=timedelta(minutes=20)).begins(before, after) == 1
    assert by_calendar(timezone=tokyo).begins(before, after) == 2
    assert by_calendar().begins(before, Leaf("no time", 1, 1)) == 0


@given(st.lists(st.sampled_from([5, 90, 1500]), min_size=1, max_size=15), st.data())
@settings(max_examples=40, deadline=None)
def test_growing_bit_by_bit_gives_the_same_groups(pauses: list[int], data: st.DataObject) -> None:
    """Whatever is added at a time, the tree is the one of its leaves."""
    moments = [START + timedelta(minutes=sum(pauses[:at])) for at in range(len(pauses))]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(pauses)), max_size=4)) | {0, len(pauses)})
    env = Environment(store=InMemoryStore(), model=summarizer())
    every = leaves(moments)
    for first, end in pairwise(cuts):
        grow(Tree(("bits",)), env, every[first:end], by_calendar())
    grow(Tree(("whole",)), env, every, by_calendar())
    assert env.store is not None
    bits, whole = (facts_by_node(env.store, Tree((name,)).home) for name in ("bits", "whole"))
    assert bits == whole
    head = run(tree.head_of(Tree(("bits",))), env)
    shape = Tree(("bits",)).grown(head)
    for leaf in range(head.leaves):
        for node in shape.path(leaf, head.leaves):
            below = shape.children(node, head.leaves)
            assert any(shape.are_related(each, Node(0, leaf)) for each in below)


@pytest.mark.parametrize("at_once", [True, False])
def test_no_fact_of_dated_turns_is_lost(calls: Calls, store: BaseStore, at_once: bool) -> None:
    """Each fact was shown to the summarizer or is in the view, and lies in a leaf or the view."""
    model, moments = summarizer(), times(4, 2, 4)
    memory = HierarchicalSummaryMemory(model=model, store=store, grouping=by_calendar())
    if at_once:
        calls.remember(memory, dated(moments))
    else:
        for number, moment in enumerate(moments):
            calls.remember(memory, dated([moment], number))
    again = HierarchicalSummaryMemory(model=model, store=store, grouping=by_calendar())
    view = calls.view(again, [HumanMessage("What of FACT003?", id="q")])

    assert lost(32, model, view) == set()
    assert max(input_sizes(model)) <= 4000
    assert "FACT003" in str(view[0].content)
    assert count_tokens(view) <= 2000
    found = facts_by_node(store, HOME)
    first_day = {f"FACT{number:03d}" for number in range(8)}
    assert set(found[Node(2, 0)]) == first_day
    assert {"FACT008", *first_day} <= set(found[Node(3, 0)])


@pytest.mark.parametrize("search", ["collapsed", "beam"])
def test_recall_of_groups_stays_in_its_budget(calls: Calls, store: BaseStore, search: str) -> None:
    """No node stands beside its own session, day or profile, and the view fits."""
    memory = HierarchicalSummaryMemory(
        model=summarizer(), store=store, grouping=by_calendar(), budget=500, search=search
    )
    calls.remember(memory, dated(times(5, 2, 4), words=40))
    for query in ("What of FACT007?", "word", ""):
        found = calls.recall(memory, query)
        assert count_tokens(view_of(found)) <= 500
        head = run(tree.head_of(Tree(ROOT)), Environment(store=store))
        nodes = nodes_in(found)
        pairs = [(one, other) for one in nodes for other in nodes if one != other]
        assert nodes
        assert not any(Tree(ROOT).grown(head).are_related(*pair) for pair in pairs)


def test_forgotten_turn_is_in_no_session_day_or_profile(calls: Calls, store: BaseStore) -> None:
    """Its words leave every summary above, which are made anew from the rest; so does the last."""
    model = summarizer()
    memory = HierarchicalSummaryMemory(model=model, store=store, grouping=by_calendar())
    calls.remember(memory, dated(times(3, 2, 4)))
    last = max(node for node in facts_by_node(store, HOME) if node.level == 0)
    for key in ("0-1", last.key):
        calls.forget(memory, key)
    assert "FACT001" not in str(everything(store))

    calls.remember(memory, dated([START + timedelta(days=9)] * 9, 24))

    found = facts_by_node(store, HOME)
    assert "FACT001" not in str(everything(store))
    assert found[Node(1, 0)] == ["FACT000", "FACT002", "FACT003"]
    assert {"FACT000", "FACT002", "FACT024"} <= set(found[Node(3, 0)])
    calls.forget(memory, EVERYTHING)
    assert everything(store) == {}


def test_sync_and_async_group_alike() -> None:
    """The trees are equal."""
    trees = []
    for later in (False, True):
        kept = InMemoryStore()
        memory = HierarchicalSummaryMemory(model=summarizer(), store=kept, grouping=by_calendar())
        Calls(later=later).remember(memory, dated(times(3, 2, 4)))
        trees.append({each.key: each.value for each in kept.search(HOME, limit=1000)})
    assert trees[0] == trees[1]


def test_a_grouping_of_ones_own(calls: Calls, store: BaseStore) -> None:
    """One summary a topic, and one of all, where a function tells topics apart."""

    def begins(before: Leaf, leaf: Leaf) -> int:
        return int(("garden" in before.text) != ("garden" in leaf.text))

    said = conversation(9)
    for message in said[6:12]:
        message.content = f"garden {message.content}"
    memory = HierarchicalSummaryMemory(
        model=summarizer(), store=store, grouping=Grouping(2, begins), budget=400
    )
    calls.remember(memory, said)

    found = facts_by_node(store, HOME)
    topics = [found[node] for node in sorted(found) if node.level == 1]
    assert topics[:2] == [["FACT000", "FACT001", "FACT002"], ["FACT003", "FACT004", "FACT005"]]
    assert set(found[Node(2, 0)]) >= {*topics[0], *topics[1]}


def test_several_nodes_may_be_on_top() -> None:
    """A grouping that begins anew on every level leaves a row of highest nodes."""
    grown, store = Tree(("t",)), InMemoryStore()
    env = Environment(store=store, model=summarizer())
    by_day = Grouping(1, lambda before, leaf: before.observed_at != leaf.observed_at)
    grow(grown, env, leaves([START, START, START + timedelta(days=1)]), by_day)
    head = run(tree.head_of(grown), env)
    assert grown.grown(head).top(head.leaves) == [Node(1, 1), Node(1, 0)]


def test_another_grouping_than_the_conversation_began_with_is_refused(calls: Calls) -> None:
    """A tree keeps its shape: other groups, or none, are an error that says what to give."""
    store = InMemoryStore()
    groupings = (None, by_calendar(), Grouping(1, lambda *_: 0))
    for number, first in enumerate(groupings):
        chat: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": str(number)}}
        begun = HierarchicalSummaryMemory(model=summarizer(), store=store, grouping=first)
        calls.remember(begun, dated(times(2, 1, 6)), chat)
        for other in (each for each in groupings if each is not first):
            memory = HierarchicalSummaryMemory(model=summarizer(), store=store, grouping=other)
            with pytest.raises(ConfigurationError, match="grouping="):
                calls.remember(memory, dated(times(2, 1, 6), 12), chat)


def test_wrong_groupings_are_refused() -> None:
    """No level, or a pause that is none, is the programmer's error."""
    with pytest.raises(ConfigurationError, match="level"):
        Grouping(0, lambda *_: 0)
    with pytest.raises(ConfigurationError, match="pause"):
        by_calendar(pause=3600)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ConfigurationError, match="timezone"):
        by_calendar(timezone="Europe/Berlin")  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ConfigurationError, match="pause"):
        by_calendar(pause=timedelta())
