"""Buffer, window and token buffer: what is in the view, and that nothing leaves the archive."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.items import MemoryItem, StoredMemory
from langchain_agentmem.memories import (
    EVERYTHING,
    BufferMemory,
    Memory,
    TokenBufferMemory,
    WindowMemory,
)
from langchain_agentmem.rendering import render_memories
from langchain_agentmem.windows import count_tokens, is_whole
from tests.unit_tests.memories.conversations import (
    CHAT,
    Calls,
    at_once,
    conversation,
    tool_turn,
    view_of,
)

OTHER: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "tuesday"}}
ARCHIVE = ("memories", "ann", "thread-monday", "short_term", "archive")


def archived(store: BaseStore, namespace: tuple[str, ...] = ARCHIVE) -> int:
    """Return how many messages an archive holds."""
    return len(store.search(namespace, limit=1000))


def test_buffer_shows_the_whole_conversation_in_order(calls: Calls, store: BaseStore) -> None:
    """What was remembered turn by turn comes back as one conversation, the question behind it."""
    memory = BufferMemory(store=store)
    said = conversation(70, words=1)
    for start in range(0, 140, 2):
        calls.remember(memory, said[start : start + 2])
    question = HumanMessage("And now?", id="q")
    assert calls.view(memory, [question]) == [*said, question]


def test_whole_conversation_given_again_is_not_stored_twice(calls: Calls, store: BaseStore) -> None:
    """A graph's growing state is archived message by message, with ids or without."""
    memory = BufferMemory(store=store)
    said: list[Any] = []
    for number in range(5):
        said += [("user", f"question {number}"), ("assistant", "ok")]
        calls.remember(memory, said)
        calls.remember(memory, said)
    assert [each.content for each in calls.view(memory)] == [text for _, text in said]


def test_equal_later_turns_without_ids_are_both_kept(calls: Calls, store: BaseStore) -> None:
    """A user who says the same twice said it twice."""
    memory = BufferMemory(store=store)
    calls.remember(memory, [("user", "Hello"), ("assistant", "Hi")])
    for _ in range(3):
        calls.remember(memory, [("user", "next"), ("assistant", "ok")])
    assert len(calls.view(memory)) == 8


def test_view_of_a_question_leaves_the_question_out(calls: Calls, store: BaseStore) -> None:
    """A bare string only asks; it is not part of the conversation."""
    memory = BufferMemory(store=store)
    calls.remember(memory, "I am Ann.")
    assert [each.content for each in calls.view(memory, "Who am I?")] == ["I am Ann."]


def test_text_holds_what_the_given_messages_do_not_show(calls: Calls, store: BaseStore) -> None:
    """A prompt that has the messages is not given them again as text."""
    memory = BufferMemory(store=store)
    said = conversation(2, words=1)
    calls.remember(memory, said)
    assert "FACT000" in calls.recall(memory, "What?").text
    assert calls.recall(memory, said).text == ""


def test_threads_and_users_are_apart(calls: Calls, store: BaseStore) -> None:
    """One conversation never shows in another."""
    memory = BufferMemory(store=store)
    calls.remember(memory, "secret of monday")
    stranger: RunnableConfig = {"configurable": {"user_id": "bob", "thread_id": "monday"}}
    unnamed: RunnableConfig = {"configurable": {"user_id": "ann"}}
    assert [calls.view(memory, (), each) for each in (OTHER, stranger, unnamed)] == [[], [], []]


def test_call_without_thread_is_the_unnamed_conversation(store: BaseStore) -> None:
    """Without a thread id the user has one conversation of their own."""
    memory = BufferMemory(store=store)
    unnamed: RunnableConfig = {"configurable": {"user_id": "ann"}}
    memory.remember("I am Ann.", config=unnamed)
    assert len(view_of(memory.recall([], config=unnamed))) == 1


def test_forget_erases_this_conversation_only(calls: Calls, store: BaseStore) -> None:
    """After forgetting, no record of the conversation is left anywhere; others stay."""
    memory = WindowMemory(k=1, store=store)
    for config in (CHAT, OTHER):
        calls.remember(memory, conversation(3, words=1), config)
    calls.forget(memory, EVERYTHING)
    assert calls.view(memory) == []
    assert len(calls.view(memory, (), OTHER)) == 2
    names = [name for name in store.list_namespaces(limit=1000) if "thread-monday" in name]
    assert [each for name in names for each in store.search(name)] == []


def test_forgotten_message_leaves_view_archive_and_order(calls: Calls, store: BaseStore) -> None:
    """One message can be erased; the others keep their order."""
    memory = BufferMemory(store=store)
    said = conversation(3, words=1)
    calls.remember(memory, said)
    (item,) = [each for each in calls.recall(memory, "").items if "FACT001" in each.text]
    calls.forget(memory, item.key)
    assert calls.view(memory) == [each for each in said if each.id != "h1"]
    calls.remember(memory, conversation(1, start=3, words=1))
    assert len(calls.view(memory)) == 7


def test_edited_message_becomes_version_two(calls: Calls, store: BaseStore) -> None:
    """The same id with another text is a new version, not a second message."""
    memory = BufferMemory(store=store)
    calls.remember(memory, [HumanMessage("Rex", id="1")])
    (op,) = calls.remember(memory, [HumanMessage("Max", id="1")])
    assert op.event == "UPDATE"
    assert op.after is not None
    assert op.after.version == 2
    assert calls.view(memory) == [HumanMessage("Max", id="1")]


def test_window_keeps_the_last_turns_and_archives_all(calls: Calls, store: BaseStore) -> None:
    """After 50 turns two are in the view, with the system message, and 100 messages are kept."""
    memory = WindowMemory(k=2, store=store)
    for number in range(50):
        calls.remember(memory, conversation(1, start=number, words=1))
    view = calls.view(memory, [SystemMessage("Be kind.", id="s")])
    assert [each.id for each in view] == ["s", "h48", "a48", "h49", "a49"]
    assert archived(store) == 100


def test_window_counts_the_open_turn(calls: Calls, store: BaseStore) -> None:
    """The question that is being answered is one of the turns."""
    memory = WindowMemory(k=2, store=store)
    calls.remember(memory, conversation(5, words=1))
    view = calls.view(memory, [HumanMessage("next", id="q")])
    assert [each.id for each in view] == ["h4", "a4", "q"]


@pytest.mark.parametrize("later", [False, True])
def test_rewrite_mode_bounds_the_state_of_a_graph(store: BaseStore, later: bool) -> None:
    """In rewrite mode the graph's own messages are bounded too, and nothing is lost."""
    memory = WindowMemory(k=2, mode="rewrite")

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("ok", id=f"re-{state['messages'][-1].id}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_node("remember", memory.remember_graph())
    builder.add_edge(START, "answer").add_edge("answer", "remember")
    graph: Any = builder.compile(store=store)
    messages: list[Any] = []
    for number in range(50):
        given = {"messages": [*messages, HumanMessage("hello", id=str(number))]}
        done = asyncio.run(graph.ainvoke(given, CHAT)) if later else graph.invoke(given, CHAT)
        messages = done["messages"]
    assert [each.id for each in messages] == ["48", "re-48", "49", "re-49"]
    assert archived(store) == 100


def test_recall_graph_gives_the_view_without_touching_the_messages(store: BaseStore) -> None:
    """As a graph, recall returns the view; the conversation itself is as it was."""
    memory = WindowMemory(k=1, store=store)
    graph = memory.recall_graph()
    done = graph.invoke({"messages": conversation(3, words=1)}, CHAT)
    assert [each.id for each in done["view"]] == ["h2", "a2"]


def test_token_buffer_view_starts_with_a_question_and_fits(calls: Calls, store: BaseStore) -> None:
    """Whole turns within the budget, beginning with a message of the user."""
    memory = TokenBufferMemory(max_tokens=1000, store=store)
    for number in range(20):
        calls.remember(memory, conversation(1, start=number))
        view = calls.view(memory)
        assert view[0].type == "human"
        assert view[-2].id == f"h{number}"
        assert count_tokens(view) <= 1000
    assert len(calls.view(memory)) == 8
    assert archived(store) == 40


def test_pinned_question_larger_than_the_budget_is_sent_whole(
    calls: Calls, store: BaseStore
) -> None:
    """A question is never cut: it is sent, and the excess is reported."""
    memory = TokenBufferMemory(max_tokens=2000, store=store)
    question = HumanMessage("word " * 2400, id="q")
    calls.remember(memory, conversation(2))
    given = {"messages": [question]}
    events = list(memory.recall_graph().stream(given, CHAT, stream_mode="custom"))
    assert calls.view(memory, [question]) == [question]
    assert [each["event"] for each in events] == ["over_budget"]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5000), st.integers(1, 9), st.booleans())
def test_no_budget_splits_a_tool_call_from_its_results(
    budget: int, rounds: int, answered: bool
) -> None:
    """At every budget each call has its results and each result its call."""
    memory = TokenBufferMemory(max_tokens=budget, store=InMemoryStore())
    said = [*tool_turn("a"), *tool_turn("b", 3), *conversation(2), *tool_turn("c", rounds)]
    view = view_of(memory.recall(said if answered else said[:-1], config=CHAT))
    assert is_whole(view)
    assert any(each.id == "c-q" for each in view)
    assert view[0].type == "human"


def test_messages_of_one_call_stay_together_at_the_border(store: BaseStore) -> None:
    """A call of two tools and both results are three messages in, or three out."""
    memory = TokenBufferMemory(store=store)
    said = tool_turn("a", 2)[:-1]
    sizes = {
        len(view_of(TokenBufferMemory(max_tokens=n, store=store).recall(said, config=CHAT)))
        for n in range(1, 400)
    }
    assert sizes == {4, 7}
    assert len(view_of(memory.recall(said, config=CHAT))) == 7


def test_parallel_turns_are_all_archived_in_one_order(tmp_path: Path) -> None:
    """Eight writers at once: sixteen messages, each answer right behind its question."""
    with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as store:
        memory = BufferMemory(store=store)
        at_once(lambda number: memory.remember(conversation(1, number, words=1), config=CHAT), 8)
        ids = [str(each.id) for each in view_of(memory.recall([], config=CHAT))]
    assert sorted(ids) == sorted([f"{who}{n}" for n in range(8) for who in "ha"])
    assert all(ask[1:] == answer[1:] for ask, answer in zip(ids[::2], ids[1::2], strict=True))


def test_parallel_coroutines_are_all_archived(store: BaseStore) -> None:
    """Eight coroutines at once lose nothing either."""
    memory = BufferMemory(store=store)

    async def work() -> None:
        turns = (conversation(1, number, words=1) for number in range(8))
        await asyncio.gather(*(memory.aremember(turn, config=CHAT) for turn in turns))

    asyncio.run(work())
    assert len(view_of(memory.recall([], config=CHAT))) == 16


def test_what_left_the_window_is_found_in_the_archive(tmp_path: Path, calls: Calls) -> None:
    """A question finds the old message word for word, Chinese words included."""
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        memory = WindowMemory(k=1, search_archive=1, store=store)
        calls.remember(memory, [("user", "我最喜欢的城市是杭州。"), ("assistant", "好的。")])
        calls.remember(memory, conversation(3, words=3))
        found = calls.recall(memory, "杭州")
    assert "我最喜欢的城市是杭州。" in [each.content for each in found.items]
    assert "杭州" in found.text


def test_archived_messages_expire_after_their_time(calls: Calls, tmp_path: Path) -> None:
    """With a time to live, what left the window is gone after it; the window stays."""
    now = [datetime(2026, 5, 1, tzinfo=UTC)]
    path = tmp_path / "memory.sqlite"
    with FaissSqliteStore(path, index=None, clock=lambda: now[0]) as store:
        memory = WindowMemory(k=2, archive_ttl=60, store=store, clock=lambda: now[0])
        for number in range(50):
            calls.remember(memory, conversation(1, start=number, words=1))
        assert archived(store) == 100
        now[0] += timedelta(minutes=61)
        store.sweep_ttl()
        assert archived(store) == 4
        assert len(calls.view(memory)) == 4


def test_recall_at_an_earlier_time_shows_the_conversation_of_then(
    calls: Calls, store: BaseStore
) -> None:
    """`as_of` leaves out what was said later."""
    now = [datetime(2026, 5, 1, tzinfo=UTC)]
    memory = BufferMemory(store=store, clock=lambda: now[0])
    calls.remember(memory, "first")
    now[0] += timedelta(days=1)
    calls.remember(memory, "second")
    then = datetime(2026, 5, 1, 12, tzinfo=UTC)
    recalled = calls.recall(memory, "", as_of=then)
    assert [each.content for each in view_of(recalled)] == ["first"]


def test_restart_gives_the_same_view(calls: Calls, tmp_path: Path) -> None:
    """A new object on the same file continues the conversation."""
    path = tmp_path / "memory.sqlite"
    with FaissSqliteStore(path, index=None) as store:
        calls.remember(BufferMemory(store=store), conversation(3, words=1))
    with FaissSqliteStore(path, index=None) as store:
        assert calls.view(BufferMemory(store=store)) == conversation(3, words=1)


def test_reads_only_what_the_view_needs() -> None:
    """A window of a long conversation is read from its end, not from its beginning."""
    read: list[int] = []

    class Counting(InMemoryStore):
        def batch(self, ops: Iterable[Op]) -> list[Result]:
            ops = list(ops)
            read.append(len(ops))
            return super().batch(ops)

    memory = WindowMemory(k=1, store=Counting())
    memory.remember(conversation(500, words=1), config=CHAT)
    read.clear()
    assert len(view_of(memory.recall([], config=CHAT))) == 2
    assert sum(read) < 150


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (WindowMemory, {"k": 0}),
        (TokenBufferMemory, {"max_tokens": 0}),
        (BufferMemory, {"mode": "erase"}),
        (BufferMemory, {"archive_ttl": 0}),
        (WindowMemory, {"turns": 3}),
    ],
)
def test_wrong_parameter_is_refused(make: type[Memory], wrong: dict[str, Any]) -> None:
    """A value that makes no sense is an error at construction."""
    with pytest.raises(ConfigurationError):
        make(**wrong)


def test_text_with_lone_surrogates_is_kept(calls: Calls, store: BaseStore) -> None:
    """Broken Unicode from a client never breaks a conversation."""
    memory = BufferMemory(store=store)
    calls.remember(memory, [HumanMessage("half \ud83d of an emoji", id="1")])
    assert [each.content for each in calls.view(memory)] == ["half ? of an emoji"]


def test_injected_memories_are_not_archived(calls: Calls, store: BaseStore) -> None:
    """What this package put into a prompt is no part of the conversation."""
    memory = BufferMemory(store=store)
    block = render_memories([StoredMemory(item=MemoryItem(content="x"), namespace=(), key="k")])
    said = [HumanMessage(block, id="1"), HumanMessage(f"{block}\nHello", id="2")]
    calls.remember(memory, said)
    assert [str(each.content).strip() for each in calls.view(memory)] == ["Hello"]
