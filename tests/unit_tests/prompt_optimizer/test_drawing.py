"""The nodes of the graph, alone, in Studio, and in a graph of the user's."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.prompt_optimizer import create_prompt_optimizer_graph
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.prompt_optimizer.lab import ANN, PROMPT, TALKS, optimizer, update

ROOT = Path(__file__).parents[3]
NODES = [
    "collect",
    "assign_credit",
    "propose",
    "guard",
    "evaluate",
    "decide",
    "commit",
    "report",
]


def test_nodes_are_those_of_the_description() -> None:
    """The graph has the described nodes and no others."""
    drawn = create_prompt_optimizer_graph(prompts=PROMPT).get_graph(xray=True)
    assert sorted(drawn.nodes) == sorted([*NODES, "__start__", "__end__"])


def test_studio_graph_runs_without_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph of Studio loads without a key, changes nothing, and says why."""
    monkeypatch.delenv("AGENTMEM_MODEL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.syspath_prepend(str(ROOT))
    graph = importlib.import_module("graphs.prompt_optimizer").graph
    built = graph.builder.compile(store=InMemoryStore())
    result = built.invoke({"trajectories": TALKS}, ANN)
    assert result["report"][0]["reason"] == "no model is configured"
    fields = graph.get_context_jsonschema()["properties"]
    assert {"user_id", "model", "strategy", "approval", "max_calls"} <= set(fields)
    assert all(field.get("description") for field in fields.values())


def test_optimizer_is_a_node_of_the_users_graph() -> None:
    """Added to a graph of another state it runs there, with the parent's store, steps visible."""
    model = ScriptedChatModel(replies=[update("Answer {q} well.")])
    child = create_prompt_optimizer_graph(model, prompts=PROMPT, strategy="prompt_memory")

    class State(MessagesState):
        """State of the user's own."""

        trajectories: list[Any]
        prompts: dict[str, str]

    builder = StateGraph(State)
    builder.add_node("learn", child)
    builder.add_edge(START, "learn")
    graph = builder.compile(store=InMemoryStore())
    assert "learn\\3apropose" in graph.get_graph(xray=True).draw_mermaid()
    given: Any = {"messages": [], "trajectories": TALKS}
    assert graph.invoke(given, ANN)["prompts"] == {"prompt": "Answer {q} well."}


def test_progress_is_streamed() -> None:
    """Whoever streams custom events is told of each call and decision, without private text."""
    model = ScriptedChatModel(replies=[update("Answer {q} well.")])
    graph = optimizer(model, InMemoryStore())
    events = list(graph.stream({"trajectories": TALKS}, ANN, stream_mode="custom"))
    assert [each["event"] for each in events] == ["model_called", "prompt_decided"]
    assert "Question" not in str(events)
