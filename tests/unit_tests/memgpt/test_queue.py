"""The queue: the warning, what a flush evicts, and that nothing it evicts is lost."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import PromptTooLongError
from langchain_agentmem.memories import MemGPT
from langchain_agentmem.memories.memgpt_agent import ALERT
from langchain_agentmem.steps.drivers import run
from langchain_agentmem.testing import ScriptedChatModel
from langchain_agentmem.windows import is_whole
from tests.unit_tests.memgpt.conftest import ANN, ROOT, World, call, results, words

WARNED = ALERT[:14]


def filler(count: int, name: str = "w") -> str:
    """Return so many words."""
    return " ".join([name] * count)


def shown(world: World, number: int = -1) -> list[AnyMessage]:
    """Return the queue as a request showed it, without the system message and the summary."""
    messages: Any = world.model.requests[number].messages[1:]
    return [each for each in messages if "<conversation_summary>" not in str(each.content)]


def test_warned_once_at_the_threshold_and_again_after_a_flush(world: World) -> None:
    """At 69 of 100 nothing, at 70 one warning, at 80 none; after a flush one more."""
    replies = iter([filler(9), filler(9), filler(1), filler(1), filler(1)])

    def reply(messages: list[BaseMessage]) -> str:
        return "so far" if "<new_part>" in str(messages[-1].content) else next(replies)

    memory = world.memory(reply, window=100)
    warnings = []
    for size in (69 - 9, 1, 0, 30, 60):
        # 69; then 60 + 9 + 1 = 70; then 79 + 1 = 80; over 100; after the flush, over 70 again
        world.turn(memory, filler(size or 1))
        asked = [each for each in world.model.requests if "<new_part>" not in each.text]
        warnings.append(WARNED in asked[-1].text)
    assert warnings[:3] == [False, True, False]
    assert len(world.named("memory_pressure")) == sum(warnings) == 2
    assert len([each for each in world.model.requests if "<new_part>" in each.text]) >= 1


def test_no_warning_below_the_threshold(world: World) -> None:
    """At exactly 69 of 100 the model is not warned; at exactly 70 it is."""
    for size, expected in ((69, False), (70, True)):
        memory = world.memory(["ok"], window=100, namespace=(f"n{size}", "{user_id}"))
        world.turn(memory, filler(size))
        assert (WARNED in world.model.requests[0].text) is expected


def test_flush_evicts_half_and_summarizes_with_the_old_summary(world: World) -> None:
    """The kept part starts with user or assistant; the old summary is read anew (letta #1947)."""
    summaries = iter(["FIRST summary", "SECOND summary", "THIRD summary", "FOURTH summary"])

    def reply(messages: list[BaseMessage]) -> str:
        return next(summaries) if "<new_part>" in str(messages[-1].content) else "ok fine"

    memory = world.memory(reply, window=100)
    for number in range(14):
        world.turn(memory, f"turn{number} " + filler(17))
    folds = [each for each in world.model.requests if "<new_part>" in each.text]
    assert len(folds) >= 2
    assert "FIRST summary" in folds[1].text
    evicted = folds[0].text.partition("<new_part>")[2]
    assert evicted.count("turn") >= 2
    assert shown(world)[0].type in ("human", "ai")
    assert "turn13" in str(shown(world)[-1].content)
    assert "summary" in world.model.requests[-1].messages[1].text
    assert words(shown(world)) <= 100


def test_at_least_half_of_the_tokens_leave(world: World) -> None:
    """In `paper`, a flush frees half of the queue."""
    memory = world.memory(lambda _: "so far", preset="paper", window=100)
    world.do(memory, "remember", [HumanMessage(filler(10), id=str(n)) for n in range(11)])
    summary = world.store.get((*ROOT, "summary"), "summary")
    assert summary is not None
    assert 6 <= len(summary.value["source_message_ids"]) < 11


def test_eviction_grows_until_the_prompt_fits(world: World) -> None:
    """`reference` begins with 30 percent and takes more where that is not enough."""
    memory = world.memory(
        lambda _: "so far", preset="reference", window=100, sleep_every=None, max_tokens=100
    )
    world.do(memory, "remember", [HumanMessage(filler(10), id=str(n)) for n in range(20)])
    summary = world.store.get((*ROOT, "summary"), "summary")
    assert summary is not None
    assert len(summary.value["source_message_ids"]) >= 11
    assert len([each for each in world.model.requests if "<new_part>" in each.text]) == 1


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3), st.booleans()), max_size=12),
    st.integers(1, 4),
    st.sampled_from([0.3, 0.5, 0.9]),
)
def test_no_flush_parts_a_call_from_its_results(
    turns: list[tuple[int, int, bool]], keep_last: int, fraction: float
) -> None:
    """Whatever the conversation, the kept part is whole and starts with user or assistant."""
    said: list[AnyMessage] = [HumanMessage("first", id="first")]
    for number, (size, calls, answered) in enumerate(turns):
        said.append(HumanMessage(filler(size), id=f"h{number}"))
        if calls:
            ids = [f"{number}-{at}" for at in range(calls)]
            made = [{"name": "look", "args": {}, "id": each} for each in ids]
            said.append(AIMessage("", tool_calls=made, id=f"c{number}"))
            said += [ToolMessage(filler(size), tool_call_id=each, id=f"t{each}") for each in ids]
        if answered:
            said.append(AIMessage("ok", id=f"a{number}"))
    memory = MemGPT(
        model=ScriptedChatModel(replies=lambda _: "so far"),
        store=InMemoryStore(),
        token_counter=words,
        window=20,
        keep_last=keep_last,
        evict_fraction=fraction,
    )
    memory.remember(said, config=ANN)
    env = memory.environment(ANN)
    kept = [each.message for each in run(run(memory.queue(), env).messages(), env)]
    assert is_whole(kept)
    assert kept[0].type in ("human", "ai")
    assert kept[-1].id == said[-1].id
    assert any(each.type == "human" for each in kept)


def test_evicted_message_is_found_by_search(world: World) -> None:
    """What left the view is found by its words; twelve hits fill pages of 5, 5 and 2."""
    memory = world.memory(lambda _: "so far", window=100)
    for number in range(12):
        text = f"zebra number{number} {filler(20)}"
        world.do(memory, "remember", [HumanMessage(text, id=str(number))])
    pages = [call("conversation_search", query="zebra", page=page) for page in (0, 1, 2, 3)]
    memory = world.memory([*pages, "done"], window=100_000)
    found = results(world.turn(memory, "What about them?"))
    assert [text.count("zebra number") for text in found] == [5, 5, 2, 0]
    assert all("of 12 results" in text for text in found[:3])
    assert "pages 0 to 2" in found[3]
    numbers = [f"number{number}" for number in range(12)]
    assert all(sum(f"{each} " in text for text in found) == 1 for each in numbers)


def test_failing_summary_keeps_the_old_one_and_completes_the_turn(world: World) -> None:
    """The turn is answered, one event tells of it, all is searchable (letta #957, #1127)."""

    def reply(messages: list[BaseMessage]) -> str | Exception:
        folding = "<new_part>" in str(messages[-1].content)
        return RuntimeError("overloaded") if folding else "ok fine"

    memory = world.memory(reply, window=100)
    for number in range(5):
        done = world.turn(memory, f"fact{number} " + filler(20))
    assert done["messages"][-1].content == "ok fine"
    assert len(world.named("summary_failed")) == 1
    summary = world.store.get((*ROOT, "summary"), "summary")
    assert summary is not None
    assert "conversation_search finds them" in summary.value["content"]
    assert "overloaded" not in str(summary.value)
    memory = world.memory([call("conversation_search", query="fact0"), "done"], window=100_000)
    assert "fact0" in results(world.turn(memory, "look"))[0]


def test_over_long_message_is_a_clear_error(world: World) -> None:
    """One message that cannot fit ends the turn with the limit, not in a loop (letta #1571)."""
    memory = world.memory([], window=100)
    with pytest.raises(PromptTooLongError, match="limit is 100"):
        world.turn(memory, filler(300))
    world.model.check()


def test_remember_never_raises_for_a_long_message(world: World) -> None:
    """Taking in is not answering: the message is kept, and no model is asked."""
    memory = world.memory([], window=100)
    (op,) = world.do(memory, "remember", [HumanMessage(filler(300), id="1")])
    assert op.event == "ADD"
    assert len(world.texts("recall")) == 1


def test_huge_tool_result_is_cut_when_nothing_else_can_go(world: World) -> None:
    """The largest result is shown in part; the whole of it stays in recall storage."""

    def fetch() -> str:
        """Fetch."""
        return filler(150, "page")

    from langchain_core.tools import StructuredTool

    tool = StructuredTool.from_function(fetch)
    memory = world.memory([call("fetch"), "done"], window=100)
    done = world.turn(memory, "go", tools=[tool])
    assert done["messages"][-1].content == "done"
    assert "[Cut: " in world.model.requests[1].text
    assert filler(150, "page") in world.texts("recall")


def test_provider_that_refuses_the_length_is_asked_once_more(world: World) -> None:
    """One flush, one retry, then a clear error."""
    refusal = ValueError("This model's maximum context length is 10 tokens")
    memory = world.memory([refusal, "so far", "done"], window=100_000)
    world.do(memory, "remember", [HumanMessage(filler(9), id=str(n)) for n in range(4)])
    assert world.turn(memory, "go")["messages"][-1].content == "done"
    world.model.check()
    memory = world.memory([refusal, "so far", refusal], window=100_000)
    with pytest.raises(PromptTooLongError):
        world.turn(memory, "again")


def test_restart_keeps_summary_blocks_and_queue(world: World) -> None:
    """A new object on the same store shows the model the same prompt."""
    replies = ["noted", "noted", "so far", "noted", "noted"]
    memory = world.memory(replies, window=60)
    for number in range(3):
        world.turn(memory, f"fact{number} " + filler(20))
    memory = world.memory(["noted"], window=60)
    world.turn(memory, "and now?")
    assert "so far" in world.model.requests[0].text
    assert "fact2" in world.model.requests[0].text
    assert "fact0" not in str(shown(world))
    assert len([each for each in world.texts("recall") if "fact" in each]) == 3


def test_forgetting_an_evicted_message_erases_the_summary(world: World) -> None:
    """Its words are in no summary and no search; the queue stays where it is."""
    memory = world.memory(lambda _: "SECRET so far", window=60)
    for number in range(4):
        world.do(memory, "remember", [HumanMessage(f"SECRET{number} {filler(25)}", id=str(number))])
    (key,) = [
        each.key
        for each in world.store.search((*ROOT, "recall"), limit=100)
        if "SECRET0" in str(each.value)
    ]
    world.do(memory, "forget", key)
    assert world.store.get((*ROOT, "summary"), "summary") is None
    assert not any("SECRET0" in text for text in world.texts("recall"))


def test_turn_that_broke_off_leaves_no_half_of_a_call(world: World) -> None:
    """A process that died between a call and its result does not spoil the next prompt."""
    memory = world.memory(["done"], window=100_000)
    broken = [HumanMessage("hi", id="h"), call("conversation_search", query="x")]
    world.do(memory, "remember", broken)
    world.turn(memory, "again")
    assert [each.type for each in world.model.requests[0].messages] == ["system", "human", "human"]
    assert is_whole(world.model.requests[0].messages)
