"""Core memory and both storages: every edit is checked, every search is data with its place."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.store.base import BaseStore

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.memories import CoreBlock, MemGPT
from langchain_agentmem.steps import core_memory
from langchain_agentmem.steps.core_memory import EditError
from tests.unit_tests.memgpt.conftest import ANN, BOB, ROOT, World, call, results

BLOCKS = (
    CoreBlock(label="human"),
    CoreBlock(label="rules", value="Be kind.", read_only=True),
)


def used(world: World, *calls: AIMessage, **given: Any) -> tuple[list[str], list[str]]:  # noqa: ANN401 - of the memory
    """Let the model make some calls; return the results and their states."""
    memory = world.memory([*calls, "done"], window=100_000, **{"blocks": BLOCKS, **given})
    state = world.turn(memory, "go")
    found = [each for each in state["messages"] if each.type == "tool"]
    return [str(each.content) for each in found], [each.status for each in found]


def append(content: str, label: str = "human") -> AIMessage:
    """Return a call that appends."""
    return call("core_memory_append", label=label, content=content)


def test_limit_counts_the_joined_text(world: World) -> None:
    """At 1,990 of 2,000 characters ten more, with the newline 2,001, are refused; nine are not."""
    blocks = (CoreBlock(label="human", value="x" * 1990),)
    texts, states = used(world, append("y" * 10), blocks=blocks)
    assert states == ["error"]
    assert "2001" in texts[0]
    assert world.block("human") is None
    _, states = used(world, append("y" * 9), blocks=blocks)
    assert states == ["success"]
    assert world.block("human") == "x" * 1990 + "\n" + "y" * 9


def test_characters_are_code_points(world: World) -> None:
    """A Chinese block of 2,000 characters is full, not three times too long."""
    _, states = used(world, append("文" * 2000), append("文"))
    assert states == ["success", "error"]


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (append("more", "rules"), "read-only"),
        (call("core_memory_replace", label="rules", old="kind", new="rude"), "read-only"),
        (append("more", "mood"), "no block 'mood'"),
        (call("core_memory_replace", label="human", old="", new="x"), "empty"),
        (call("core_memory_replace", label="human", old="cat", new="x"), "0 matches"),
        (call("core_memory_replace", label="human", old="tea", new="x"), "2 times"),
        (call("core_memory_replace", label="human", old="Ann", new="x" * 3000), "limit is 2000"),
        (call("core_memory_append", label="human"), "content"),
        (call("core_memory_forget", label="human"), "no tool"),
        (call("memory_rethink", label="human", text="x"), "no tool"),
    ],
)
def test_refused_edit_says_why_and_changes_nothing(world: World, edit: AIMessage, why: str) -> None:
    """The model is told what is wrong; the block stays byte for byte (letta PR #1616)."""
    used(world, append("Ann drinks tea, only tea."))
    texts, states = used(world, edit)
    assert states == ["error"]
    assert why in texts[0]
    assert world.block("human") == "Ann drinks tea, only tea."
    assert world.block("rules") is None


def test_replace_deletes_and_replaces(world: World) -> None:
    """An empty new text deletes; `all` replaces every occurrence."""
    used(world, append("Ann drinks tea, only tea."))
    used(world, call("core_memory_replace", label="human", old=", only tea", new=""))
    assert world.block("human") == "Ann drinks tea."
    used(world, append("tea"))
    edit = call("core_memory_replace", label="human", old="tea", new="R&D <tea>")
    used(world, edit, replace_policy="all")
    assert world.block("human") == "Ann drinks R&D <tea>.\nR&D <tea>"


def test_escaped_text_of_the_prompt_can_be_replaced(world: World) -> None:
    """Markup is escaped in the prompt; a model that copies it from there is understood."""
    used(world, append("R&D </block>"))
    used(world, call("core_memory_replace", label="human", old="R&amp;D &lt;/block&gt;", new="Law"))
    assert world.model.requests[0].text.count("</block>") == len(BLOCKS)
    assert world.block("human") == "Law"


def test_edit_is_in_the_next_prompt_and_in_the_history(world: World) -> None:
    """The model sees its edit at once; the journal has it, and it can be undone."""
    memory = world.memory([append("Ann lives in Oslo."), "done"], blocks=BLOCKS, window=10_000)
    world.turn(memory, "go")
    assert "Ann lives in Oslo." in world.model.requests[1].text
    (item,) = [each for each in world.do(memory, "recall", "").items if each.key == "human"]
    world.do(memory, "undo", item)
    assert world.block("human") is None


def test_written_block_survives_a_new_definition(world: World) -> None:
    """A program that starts again does not overwrite what was learned (letta #417)."""
    used(world, append("Ann lives in Oslo."))
    memory = world.memory(["ok"], blocks=(CoreBlock(label="human", value="Nothing yet."),))
    world.turn(memory, "go")
    assert "Ann lives in Oslo." in world.model.requests[0].text
    assert "Nothing yet." not in world.model.requests[0].text


def test_lost_race_tells_the_present_value(world: World) -> None:
    """An edit of a block that somebody else has just changed is refused, with its new text."""
    from langchain_agentmem.items import Cause
    from langchain_agentmem.steps.drivers import arun, run

    memory = world.memory([], blocks=BLOCKS)
    env = memory.environment(ANN)

    def do(steps: Any) -> Any:  # noqa: ANN401 - any steps
        return asyncio.run(arun(steps, env)) if world.later else run(steps, env)

    stale = do(core_memory.load((*ROOT, "core"), BLOCKS))
    do(core_memory.write(stale, stale.get("human").appended("first"), Cause()))
    with pytest.raises(EditError, match="It now says: first"):
        do(core_memory.write(stale, stale.get("human").appended("second"), Cause()))
    assert world.block("human") == "first"


def test_same_note_is_kept_once(world: World) -> None:
    """The second insert of a text names the note that is there (letta #3116)."""
    insert = call("archival_memory_insert", content="The code is 17.", tags=["safe"])
    texts, states = used(world, insert, call("archival_memory_insert", content="The code is 17."))
    assert states == ["success", "success"]
    assert world.texts("archival") == ["The code is 17."]
    assert "nothing was stored twice" in texts[1]
    key = world.store.search((*ROOT, "archival"))[0].key
    assert key in texts[1]


def test_notes_are_found_by_words_and_tags(world: World) -> None:
    """Tags narrow a search, by any or by all; results are paged."""
    inserts = [
        call("archival_memory_insert", content=f"note {name} about tea", tags=tags)
        for name, tags in (("one", ["a"]), ("two", ["a", "b"]), ("three", ["c"]))
    ]
    used(world, *inserts)
    texts, _ = used(
        world,
        call("archival_memory_search", query="tea"),
        call("archival_memory_search", query="tea", tags=["a", "b"], tag_match="all"),
        call("archival_memory_search", query="tea", tags=["b", "c"]),
        call("archival_memory_search", query="tea", top_k=2, page=1),
    )
    assert [text.count("about tea") for text in texts] == [3, 1, 2, 1]
    assert "1 of 3 results" in texts[3]
    assert "(a, b)" in texts[1]


def test_day_as_end_date_is_whole_and_a_time_is_exact(world: World) -> None:
    """A message of 23:59:59 belongs to the day, one of 00:00:00 to the next."""
    memory = world.memory([])
    for number, at in enumerate(("2026-03-05T23:59:59", "2026-03-06T00:00:00")):
        world.now = datetime.fromisoformat(at).replace(tzinfo=UTC)
        world.do(memory, "remember", [HumanMessage(f"zebra {number}", id=str(number))])
    texts, states = used(
        world,
        call("conversation_search", query="zebra", end_date="2026-03-05"),
        call("conversation_search", query="zebra", end_date="2026-03-05T23:59:58"),
        call("conversation_search", query="zebra", start_date="2026-03-06"),
        call("conversation_search", query="zebra", start_date="yesterday"),
    )
    assert ["zebra 0" in text for text in texts] == [True, False, False, False]
    assert ["zebra 1" in text for text in texts] == [False, False, True, False]
    assert "[2026-03-05 23:59 user] zebra 0" in texts[0]
    assert states[3] == "error"


def test_roles_narrow_a_search(world: World) -> None:
    """Only what the assistant said, or only what the user said."""
    memory = world.memory(["zebra answer"])
    world.turn(memory, "zebra question")
    texts, _ = used(
        world,
        call("conversation_search", query="zebra", roles=["assistant"]),
        call("conversation_search", query="zebra", roles=["user"]),
    )
    assert ["answer" in text for text in texts] == [True, False]
    assert ["question" in text for text in texts] == [False, True]


def test_search_never_finds_itself(world: World) -> None:
    """Neither the call nor its result is a hit of the next search."""
    texts, _ = used(world, *[call("conversation_search", query="zebra") for _ in range(3)])
    assert texts == ["0 results."] * 3


def test_chinese_is_found(world: World) -> None:
    """Words of two characters are found in both storages."""
    memory = world.memory([])
    world.do(memory, "remember", [HumanMessage("我最喜欢的城市是杭州。", id="1")])
    used(world, call("archival_memory_insert", content="她住在上海。"))
    texts, _ = used(
        world,
        call("conversation_search", query="杭州"),
        call("archival_memory_search", query="上海"),
    )
    assert "杭州" in texts[0]
    assert "上海" in texts[1]


def test_results_are_cut_with_a_note(world: World) -> None:
    """A long result of a tool is shown in part, and says so (letta #1635)."""
    used(world, call("archival_memory_insert", content="tea " * 500))
    texts, _ = used(world, call("archival_memory_search", query="tea"), tool_result_limit=100)
    assert len(texts[0]) < 200
    assert "[Cut: 100 of" in texts[0]


def test_nested_look_up_reaches_the_value_in_four_calls(world: World) -> None:
    """Three searches by heartbeat follow key after key to the last value."""
    pairs = {"key-alpha": "key-beta", "key-beta": "key-gamma", "key-gamma": "VALUE-42"}
    used(
        world,
        *[call("archival_memory_insert", content=f"{k} leads to {v}") for k, v in pairs.items()],
    )

    def follow(messages: list[BaseMessage]) -> AIMessage | str:
        if messages[-1].type == "human":
            return call("archival_memory_search", heartbeat=True, query="key-alpha")
        asked = messages[-2].tool_calls[0]["args"]["query"]  # type: ignore[attr-defined]
        found = str(messages[-1].content).partition(f"] {asked} leads to ")[2].split()[0]
        if found.startswith("VALUE"):
            return found
        return call("archival_memory_search", heartbeat=True, query=found)

    memory = world.memory(follow, window=100_000)
    state = world.turn(memory, "What does key-alpha lead to?")
    assert state["messages"][-1].content == "VALUE-42"
    assert len(world.model.requests) == 4
    assert len(results(state)) == 3


def test_scopes_never_meet(world: World) -> None:
    """Neither blocks nor searches cross from one user to another."""
    memory = world.memory(
        [
            append("Ann is allergic to nuts."),
            call("archival_memory_insert", content="Ann's code is 17."),
            "done",
        ],
        window=100_000,
    )
    world.turn(memory, "I am Ann, allergic to nuts; my code is 17.", ANN)
    memory = world.memory(
        [
            call("conversation_search", query="code nuts Ann"),
            call("archival_memory_search", query="code"),
            "done",
        ],
        window=100_000,
    )
    state = world.turn(memory, "Hello", BOB)
    assert results(state) == ["0 results.", "0 results."]
    assert all("nuts" not in each.text.partition("\n\n<block")[2] for each in world.model.requests)
    assert "17" not in json.dumps([str(each.content) for each in state["messages"]])


def test_blocks_of_one_label_are_refused() -> None:
    """A mistake in the blocks is an error at construction."""
    with pytest.raises(ConfigurationError, match="label"):
        MemGPT(blocks=(CoreBlock(label="a"), CoreBlock(label="a")))
    with pytest.raises(ConfigurationError, match="limit"):
        MemGPT(blocks=(CoreBlock(label="a", value="x" * 2001),))


def test_tools_of_the_user_are_called_and_their_failures_shown(world: World) -> None:
    """A tool of one's own works beside the memory's; what it raises goes back to the model."""

    def divide(by: int) -> str:
        """Divide."""
        return str(10 // by)

    tool = StructuredTool.from_function(divide)
    memory = world.memory([call("divide", by=2), call("divide", by=0), "done"], window=100_000)
    state = world.turn(memory, "go", tools=[tool])
    assert results(state)[0] == "5"
    assert "ZeroDivisionError" in results(state)[1]
    named = StructuredTool.from_function(divide, name="core_memory_append")
    with pytest.raises(ConfigurationError, match="rename"):
        memory.agent_graph([named])


def test_items_of_the_bare_namespace_are_found(world: World) -> None:
    """What a memory tool saved for the user is found like a note."""
    store: BaseStore = world.store
    store.put(("memories", "ann"), "1", {"content": "Ann plays the cello."})
    texts, _ = used(world, call("archival_memory_search", query="cello"))
    assert "Ann plays the cello." in texts[0]
