"""The graphs on a real LangGraph development server, through the API that Studio uses."""

import importlib.util
import json
from typing import Any, TypeAlias

import pytest

if importlib.util.find_spec("langgraph_api") is None:
    pytest.skip("the extra 'studio' is not installed", allow_module_level=True)

from langgraph_sdk.client import LangGraphClient

from langchain_agentmem import MemoryItem
from tests.integration_tests.dev_server import GRAPHS

Given: TypeAlias = Any
"""What a run is given or gives; the SDK types it for no graph in particular."""

FACT = "My sister Ingrid adopted a parrot called Pixel."
QUESTION = "What is the name of my sister's parrot?"
TALKS = [{"id": str(n), "messages": [{"role": "user", "content": f"Why {n}?"}]} for n in range(3)]
MEMORIES = sorted(name.removesuffix("_remember") for name in GRAPHS if name.endswith("_remember"))
OF_ONE_THREAD = {
    "buffer",
    "hierarchical_summary",
    "summary",
    "summary_buffer",
    "token_buffer",
    "window",
}
WRITTEN = {"listen", "keep_verbatim"}
SHORT = {"view", "search_archive"}
NODES = {
    "a_mem_recall": {"keyword_query", "search", "expand_links", "format"},
    "a_mem_remember": {"construct", "find_neighbours", "evolve", "apply", "persist", *WRITTEN},
    "agent": {"recall:retrieve", "recall:assemble", "model", "tools", "remember:store_turns"},
    "buffer_recall": SHORT,
    "buffer_remember": {"archive", "release"},
    "consolidate": {"load_messages", "remember:extract", "remember:apply", "collect", "report"},
    "forget": {"select", "approve", "erase"},
    "hierarchical_summary_recall": {"recall_tree", *SHORT},
    "hierarchical_summary_remember": {"archive", "summarize", "release"},
    "langmem_recall": {"search", "assemble"},
    "langmem_remember": {"query", "recall", "extract", "validate", "phase", "apply", *WRITTEN},
    "mem0_recall": {"search", "assemble"},
    "mem0_remember": {"load_context", "extract", "retrieve", "decide", "apply", *WRITTEN},
    "memgpt_agent": {"ingest", "pressure", "flush", "model", "tools", "sleep"},
    "memgpt_recall": {"load_core", "search", "assemble"},
    "memgpt_remember": {"ingest", "pressure", "flush"},
    "prompt_optimizer": {
        *("collect", "assign_credit", "propose", "guard", "evaluate", "decide", "commit", "report")
    },
    "rag_recall": {"retrieve", "add_neighbors", "assemble"},
    "rag_remember": {"split_turns", "store_turns"},
    "sliding_window": {"split", "read_windows", "combine", "refine"},
    "summary_buffer_recall": SHORT,
    "summary_buffer_remember": {"archive", "summarize", "release"},
    "summary_recall": SHORT,
    "summary_remember": {"archive", "summarize", "release"},
    "token_buffer_recall": SHORT,
    "token_buffer_remember": {"archive", "release"},
    "window_recall": SHORT,
    "window_remember": {"archive", "release"},
    "working_recall": {"recall", "keep", "assemble"},
}
UNSAID = {
    "agent": {"recall", "recall:retrieve", "model", "remember", "remember:store_turns"},
    "consolidate": {"load_messages", "remember", "remember:keep_verbatim", "report"},
    "forget": {"select"},
    "memgpt_agent": {"ingest", "pressure", "model", "sleep"},
    "prompt_optimizer": {"collect", "assign_credit", "report"},
}
"""Steps that run without a model where these are not simply those of the drawing."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def said(text: str) -> Given:
    """Return one message of the user as a run's input."""
    return {"messages": [{"role": "user", "content": text}]}


async def run(
    client: LangGraphClient, graph: str, given: Given, thread: str | None, **more: Given
) -> Given:
    """Run a graph to its end or next interrupt, and return what it gives."""
    return await client.runs.wait(thread, graph, input=given, raise_error=True, **more)


async def new_thread(client: LangGraphClient) -> str:
    """Return a thread that nobody has used."""
    return str((await client.threads.create())["thread_id"])


async def ask(client: LangGraphClient, text: str, user: str, **context: int) -> dict[str, Any]:
    """Run the agent once in a thread of its own and return its state."""
    thread = await new_thread(client)
    state = await run(client, "agent", said(text), thread, context={"user_id": user, **context})
    assert isinstance(state, dict)
    return state


def undescribed(schema: Given) -> list[str]:
    """Return the fields of a form that nothing is said about."""
    return [name for name, field in schema["properties"].items() if not field.get("description")]


@pytest.mark.parametrize("name", sorted(GRAPHS))
async def test_each_graph_has_a_form_and_a_drawing(client: LangGraphClient, name: str) -> None:
    """Every graph is listed and described, has forms that explain themselves, shows its steps."""
    (assistant,) = await client.assistants.search(graph_id=name)
    assert (assistant["name"], assistant["description"]) == (name, GRAPHS[name]["description"])
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    for part in ("input_schema", "output_schema", "context_schema"):
        assert schemas[part], part
        assert undescribed(schemas[part]) == []
    assert schemas["state_schema"]
    fields: Given = (schemas["context_schema"] or {})["properties"]
    assert {"user_id", "preset"} - {"user_id" if name == "sliding_window" else ""} <= set(fields)
    assert all("default" in field for field in fields.values())
    drawing = await client.assistants.get_graph(assistant["assistant_id"], xray=True)
    assert NODES[name] <= {node["id"] for node in drawing["nodes"]}
    below = await client.assistants.get_subgraphs(assistant["assistant_id"], recurse=True)
    inside = {node.split(":")[0] for node in NODES[name] if ":" in node} - {"remember"}
    assert inside <= set(below)


@pytest.mark.parametrize("name", MEMORIES)
async def test_each_memory_recalls_what_it_remembered(client: LangGraphClient, name: str) -> None:
    """What one run stores another run finds, and no other user does."""
    thread, context = await new_thread(client), {"user_id": f"user of {name}"}
    await run(client, f"{name}_remember", said(FACT), thread, context=context)
    asked = thread if name in OF_ONE_THREAD else None
    found = await run(client, f"{name}_recall", said(QUESTION), asked, context=context)
    assert "Pixel" in json.dumps(found)
    other = {"user_id": "somebody else"}
    assert "Pixel" not in json.dumps(
        await run(client, f"{name}_recall", said(QUESTION), None, context=other)
    )


@pytest.mark.parametrize("name", sorted(GRAPHS))
async def test_each_graph_streams_its_steps(client: LangGraphClient, name: str) -> None:
    """Every step is seen as it runs, those of a subgraph under the name of its node."""
    given: Given = {"trajectories": TALKS} if name == "prompt_optimizer" else said("Good morning!")
    given = {"everything": True} if name == "forget" else given
    seen, debugged = set(), set()
    async for part in client.runs.stream(
        None,
        name,
        input=given,
        context={"user_id": "cleo of " + name},
        stream_mode=["updates", "debug", "custom"],
        stream_subgraphs=True,
    ):
        kind, _, place = part.event.partition("|")
        inside = f"{place.partition(':')[0]}:" if place else ""
        if kind == "updates":
            seen |= {inside + node for node in part.data}
        elif kind == "debug":
            debugged.add(inside + str(part.data["payload"].get("name")))
    assert seen >= UNSAID.get(name, NODES[name] & WRITTEN)
    assert seen
    assert seen <= debugged


async def test_the_agent_remembers_across_threads_and_not_across_users(
    client: LangGraphClient,
) -> None:
    """A second thread of the same user recalls; another user's recalls nothing."""
    await ask(client, FACT, "ann")
    state = await ask(client, QUESTION, "ann", limit=1)
    assert FACT in state["messages"][-1]["content"]
    assert len(state["memories"]) == 1
    other = await ask(client, QUESTION, "bob")
    assert "Pixel" not in json.dumps(other)


@pytest.mark.parametrize(
    ("graph", "step"),
    [("rag_remember", "store_turns"), ("mem0_remember", "keep_verbatim"), ("agent", "model")],
)
async def test_a_run_goes_on_from_a_breakpoint(
    client: LangGraphClient, graph: str, step: str
) -> None:
    """A run stops before a step of a memory, and goes on as if it had not."""
    thread, context = await new_thread(client), {"user_id": f"user of {step}"}
    await run(client, graph, said(FACT), thread, context=context, interrupt_before=[step])
    paused = await client.threads.get_state(thread)
    assert paused["next"] == [step]
    await run(client, graph, None, thread, context=context)
    found = await client.store.search_items(("memories", context["user_id"]), query="parrot")
    assert FACT in [item["value"]["content"] for item in found["items"]]


async def test_a_thread_can_be_forked(client: LangGraphClient) -> None:
    """From an earlier point, with another question, a second branch gets another answer."""
    context = {"user_id": "dora"}
    await ask(client, "My boat is called Albatross.", "dora")
    await ask(client, "My bike is called Comet.", "dora")
    thread = await new_thread(client)
    await run(client, "agent", said("What is my boat called?"), thread, context=context)
    history = await client.threads.get_history(thread)
    point = next(each for each in history if each["next"] == ["recall"])
    values: Given = point["values"]
    (message,) = values["messages"]
    forked = await client.threads.update_state(
        thread,
        {"messages": [{**message, "content": "What is my bike called?"}]},
        checkpoint=point["checkpoint"],
        as_node="__start__",
    )
    answer: Given = await run(
        client,
        "agent",
        None,
        thread,
        checkpoint=forked["checkpoint"],
        context={**context, "limit": 1},
    )
    assert [each["type"] for each in answer["messages"]] == ["human", "ai"]
    assert "Comet" in answer["messages"][-1]["content"]
    assert len(await client.threads.get_history(thread)) > len(history)


async def test_forgetting_waits_for_a_person(client: LangGraphClient) -> None:
    """The run stops with what would be erased; accepted, it is gone for the agent too."""
    await ask(client, FACT, "emil")
    thread, context = await new_thread(client), {"user_id": "emil"}
    await run(client, "forget", {"everything": True}, thread, context=context)
    (task,) = (await client.threads.get_state(thread))["tasks"]
    assert task["interrupts"][0]["value"]["count"] > 0
    assert "Pixel" not in json.dumps(task)
    assert "Pixel" in json.dumps(await ask(client, QUESTION, "emil"))
    await run(client, "forget", None, thread, context=context, command={"resume": "accept"})
    assert "Pixel" not in json.dumps(await ask(client, QUESTION, "emil"))


async def test_the_store_is_open_to_its_api(client: LangGraphClient) -> None:
    """What a graph wrote can be listed, read and searched; what the API writes is recalled."""
    await ask(client, "My boat is moored at Sandvika.", "erik")
    home = ("memories", "erik", "rag", "turns")
    found = await client.store.search_items(home, query="boat")
    (item,) = [each for each in found["items"] if "Sandvika" in each["value"]["content"]]
    assert MemoryItem.from_value(item["value"]).content == "My boat is moored at Sandvika."
    names = await client.store.list_namespaces(prefix=["memories", "erik"])
    assert list(home) in names["namespaces"]
    await client.store.put_item(("memories", "erik"), "1", {"content": "The boat is green."})
    one: Given = await client.store.get_item(("memories", "erik"), "1")
    assert one["value"] == {"content": "The boat is green."}
    assert "is green" in json.dumps((await ask(client, "Which color is it?", "erik"))["memories"])
    await client.store.delete_item(("memories", "erik"), "1")
    left = await client.store.search_items(("memories", "erik"), query="green")
    assert "is green" not in json.dumps(left["items"])
