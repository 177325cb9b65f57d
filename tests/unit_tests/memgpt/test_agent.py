"""The loop: heartbeats, the reply, the sleep agent, and the other surfaces."""

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_agentmem import AgentMemoryMiddleware
from langchain_agentmem.memories import EVERYTHING, CoreBlock
from langchain_agentmem.steps.drivers import run
from langchain_agentmem.testing import ScriptedChatModel
from langchain_agentmem.windows import is_whole
from tests.unit_tests.floor import everything
from tests.unit_tests.memgpt.conftest import ANN, ROOT, World, call, results
from tests.unit_tests.memories.conversations import at_once

REMEMBER = call("core_memory_append", label="human", content="Her dog is Rex.")


def test_turn_is_stored_and_answered(world: World) -> None:
    """Every message lies in recall storage from its arrival; the reply is the last message."""
    memory = world.memory([REMEMBER, "Hello Ann!"])
    state = world.turn(memory, "My dog is called Rex.")
    assert [each.type for each in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert state["messages"][-1].content == "Hello Ann!"
    assert state["stop_reason"] == "end_turn"
    assert len(world.texts("recall")) == 4
    assert world.block("human") == "Her dog is Rex."


def test_queue_goes_on_without_a_checkpointer(world: World) -> None:
    """The next turn shows the model what was said before, in order."""
    memory = world.memory(["one", "two"])
    world.turn(memory, "first")
    world.turn(memory, "second")
    shown = world.model.requests[1].messages[1:]
    assert [str(each.content) for each in shown] == ["first", "one", "second"]


def test_endless_heartbeat_stops_with_a_reason(world: World) -> None:
    """A model that always asks to go on is stopped after five calls."""
    memory = world.memory(
        lambda _: call("conversation_search", heartbeat=True, saying="hm", query="x"), max_steps=5
    )
    state = world.turn(memory, "go")
    assert len(world.model.requests) == 5
    assert state["stop_reason"] == "max_steps"
    assert world.named("max_steps") == [{"event": "max_steps", "steps": 5}]


def test_agent_is_never_silent_after_a_memory_edit(world: World) -> None:
    """A weak model that forgets the heartbeat is asked until it replies (letta #601, #2526)."""
    memory = world.memory([REMEMBER, "Noted."])
    assert world.turn(memory, "I have a dog.")["messages"][-1].content == "Noted."


def test_reply_beside_an_edit_ends_the_turn(world: World) -> None:
    """Who has replied and asks for nothing is not called again."""
    edit = call("core_memory_append", label="human", content="x", saying="Noted.")
    memory = world.memory([edit])
    state = world.turn(memory, "I have a dog.")
    assert len(world.model.requests) == 1
    assert state["stop_reason"] == "end_turn"


def test_heartbeat_goes_on_after_a_reply(world: World) -> None:
    """A heartbeat asks again even where the model has said something already."""
    edit = call("core_memory_append", heartbeat=True, label="human", content="x", saying="Noted.")
    memory = world.memory([edit, "And more."])
    assert world.turn(memory, "go")["messages"][-1].content == "And more."


def test_failed_call_goes_on(world: World) -> None:
    """A model whose call was refused may correct it."""
    wrong = call("core_memory_append", label="mood", content="x", saying="Noted.")
    memory = world.memory([wrong, "Sorry."])
    assert world.turn(memory, "go")["messages"][-1].content == "Sorry."


def test_reply_by_tool_in_the_paper_s_form(world: World) -> None:
    """With `send_message` plain text is thought, and the tool's text is the reply."""
    memory = world.memory(
        [AIMessage("thinking"), call("send_message", message="Hello Ann!", saying="I greet her.")],
        send_message=True,
    )
    first = world.turn(memory, "hi")
    assert first["stop_reason"] == "end_turn"
    state = world.turn(memory, "hi again")
    assert state["messages"][-1].content == "Hello Ann!"
    assert "send_message" in world.model.requests[0].tool_names


def sleeper() -> Any:  # noqa: ANN401 - a script
    """Return a script of an agent that answers, and of a sleep agent that counts what it sees."""
    seen: list[list[str]] = []

    def reply(messages: list[BaseMessage]) -> Any:  # noqa: ANN401 - any reply
        if "rests" not in str(messages[0].content):
            return "ok"
        if messages[-1].type == "tool":
            return call("memory_finish_edits")
        text = str(messages[-1].content).partition("<conversation>")[2]
        seen.append([word for word in text.split() if word.startswith("turn")])
        return call("memory_insert", label="human", line=-1, text=f"edit {len(seen)}")

    return reply, seen


def test_sleep_agent_runs_every_five_turns_on_what_is_new(world: World) -> None:
    """After turns 5 and 10, each time on unread messages; turn 11 sees the edits."""
    reply, seen = sleeper()
    memory = world.memory(reply, sleep_every=5, window=100_000)
    for number in range(1, 12):
        world.turn(memory, f"turn{number}")
    assert seen == [[f"turn{n}" for n in range(1, 6)], [f"turn{n}" for n in range(6, 11)]]
    assert world.block("human") == "edit 1\nedit 2"
    answers = [each for each in world.model.requests if "rests" not in each.text]
    assert "edit 2" in answers[-1].text
    assert "edit 1" not in answers[4].text


def test_foreground_of_a_sleep_agent_only_searches(world: World) -> None:
    """It has no tool that edits, and sees its blocks as read-only."""
    memory = world.memory(["ok"], sleep_every=5)
    world.turn(memory, "hi")
    assert set(world.model.requests[0].tool_names) == {
        "conversation_search",
        "archival_memory_search",
    }
    assert "read-only" in world.model.requests[0].text


def test_sleep_agent_on_demand(world: World) -> None:
    """`consolidate` runs it; a second time there is nothing new and no call."""
    edits = [
        call("memory_rethink", label="human", text="Ann has a dog."),
        call("memory_rethink", label="rules", text="Obey."),
        call("memory_replace", label="human", old="dog", new="dog called Rex"),
        call("memory_finish_edits"),
    ]
    blocks = (CoreBlock(label="human"), CoreBlock(label="rules", value="Be kind.", read_only=True))
    memory = world.memory(edits, blocks=blocks)
    world.do(memory, "remember", [HumanMessage("My dog is Rex.", id="1")])
    report = world.do(memory, "consolidate")
    assert report.calls == {"sleep": 4}
    assert world.block("human") == "Ann has a dog called Rex."
    assert world.block("rules") is None
    assert "read-only" in str(world.model.requests[2].messages[-1].content)
    assert world.do(memory, "consolidate").calls == {}


def test_failing_sleep_agent_moves_nothing(world: World) -> None:
    """Edits and cursor are one batch: after a failure the same messages are read again."""
    insert = call("memory_insert", label="human", line=0, text="half")
    memory = world.memory([insert, RuntimeError("overloaded")])
    world.do(memory, "remember", [HumanMessage("turn1", id="1")])
    world.do(memory, "consolidate")
    assert world.block("human") is None
    memory = world.memory([insert, call("memory_finish_edits")])
    world.do(memory, "consolidate")
    assert "turn1" in world.model.requests[0].text
    assert world.block("human") == "half"


def test_recall_gives_blocks_summary_and_hits_without_a_model(world: World) -> None:
    """Another surface sees what the agent knows about a question."""
    memory = world.memory([REMEMBER, "so far", "ok", "so far"], window=60)
    world.turn(memory, "My dog " + "w " * 30)
    memory = world.memory([])
    found = world.do(memory, "recall", "dog")
    assert "Her dog is Rex." in found.text
    assert any("My dog" in each.text for each in found.items)
    assert found.tokens <= 2000
    assert len(world.do(memory, "recall", "dog", limit=0).items) < len(found.items)


def test_without_a_model_the_words_are_kept(world: World) -> None:
    """The agent says so; nothing poses as a model, and nothing of it is stored as said."""
    memory = world.memory([], model=None)
    state = world.turn(memory, "I am Ann.")
    assert "No language model" in str(state["messages"][-1].content)
    assert world.texts("recall") == ["I am Ann."]
    assert world.named("no_model_configured")


def test_remember_without_a_model_flushes_with_a_listing(world: World) -> None:
    """What leaves the queue is named as not summarized."""
    memory = world.memory([], model=None, window=50)
    said = [HumanMessage("w " * 10, id=str(number)) for number in range(9)]
    world.do(memory, "remember", said)
    assert "Not summarized" in world.texts("summary")[0]


def test_agent_is_a_node_of_a_graph(world: World) -> None:
    """Its steps are visible, and the reply is in the parent's messages."""
    memory = world.memory(["Hello!"], store=None)
    builder = StateGraph(MessagesState)
    builder.add_node("agent", memory.agent_graph())
    builder.add_edge(START, "agent")
    graph: Any = builder.compile(store=world.store)
    done = graph.invoke({"messages": [("user", "hi")]}, ANN)
    assert [each.content for each in done["messages"]] == ["hi", "Hello!"]
    names = set(graph.get_graph(xray=True).nodes)
    steps = ("ingest", "pressure", "flush", "model", "tools", "sleep")
    assert {f"agent:{step}" for step in steps} <= names


def test_parallel_turns_are_all_kept(world: World) -> None:
    """Eight writers at once: every message in recall storage, every turn counted."""
    memory = world.memory([])
    said = [[HumanMessage(f"turn{number}", id=f"h{number}")] for number in range(8)]
    if world.later:

        async def work() -> None:
            await asyncio.gather(*(memory.aremember(each, config=ANN) for each in said))

        asyncio.run(work())
    else:
        at_once(lambda number: memory.remember(said[number], config=ANN), 8)
    assert world.texts("recall") == [f"turn{number}" for number in range(8)]
    env = memory.environment(ANN)
    assert run(run(memory.queue(), env).mark(), env).turns == 8


def test_run_that_was_stopped_before_its_tools_goes_on(world: World) -> None:
    """After a breakpoint the turn is answered, and no prompt has half of a call."""
    memory = world.memory(lambda messages: "done" if messages[-1].type == "tool" else REMEMBER)
    graph: Any = memory.agent_graph().builder.compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"user_id": "ann", "thread_id": "1"}}
    graph.invoke({"messages": [("user", "hi")]}, thread, interrupt_before=["tools"])
    done = graph.invoke(None, thread)
    assert done["messages"][-1].content == "done"
    assert all(is_whole(each.messages) for each in world.model.requests)


def test_agent_counts_its_model_calls(world: World) -> None:
    """What a turn cost is in its state."""
    state = world.turn(world.memory([REMEMBER, "ok"]), "hi")
    assert state["usage"]["calls"] == {"answer": 2}


def test_remember_graph_has_the_spec_s_steps(world: World) -> None:
    """`ingest`, `pressure`, `flush`, and no node that replies."""
    nodes = set(world.memory([]).remember_graph().nodes) - {"__start__"}
    assert nodes == {"ingest", "pressure", "flush"}


def test_many_steps_fit_one_turn(world: World) -> None:
    """Fifty calls of the model are no problem of the graph's."""
    beat = call("conversation_search", heartbeat=True, query="x")
    memory = world.memory([beat] * 49 + ["done"])
    assert world.turn(memory, "go")["messages"][-1].content == "done"


def test_middleware_recalls_the_blocks(world: World) -> None:
    """In `create_agent` it is a memory like any other."""
    world.turn(world.memory([REMEMBER, "ok"]), "My dog is Rex.")
    model = ScriptedChatModel(replies=["Rex."])
    agent: Any = create_agent(
        model, middleware=[AgentMemoryMiddleware(world.memory([]), record="off")]
    )
    agent.invoke({"messages": [("user", "What is my dog called?")]}, ANN)
    assert "Her dog is Rex." in model.requests[0].text


def test_forget_everything_leaves_no_trace(world: World) -> None:
    """Blocks, notes, messages, summary, queue and cursor are gone."""
    memory = world.memory(
        [
            REMEMBER,
            call("archival_memory_insert", content="note"),
            "ok",
            call("memory_finish_edits"),
        ]
    )
    world.turn(memory, "My dog is Rex.")
    world.do(memory, "consolidate")
    world.do(memory, "forget", EVERYTHING)
    assert everything(world.store) == {}


def test_forgotten_block_is_as_it_was_defined(world: World) -> None:
    """Erasing a block erases what was written; its history goes too."""
    memory = world.memory([REMEMBER, "ok"])
    world.turn(memory, "hi")
    world.do(memory, "forget", "human")
    assert world.block("human", ROOT) is None
    core = [value for (home, _), value in everything(world.store).items() if home[-1] == "core"]
    assert core == []


@pytest.mark.parametrize("result", ["plain"])
def test_results_of_tools_are_kept_whole_in_recall_storage(world: World, result: str) -> None:
    """The view is bounded, the storage is not."""
    memory = world.memory([call("archival_memory_insert", content=result), "ok"])
    state = world.turn(memory, "go")
    assert results(state)[0] in world.texts("recall")
