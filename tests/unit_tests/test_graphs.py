"""The graphs that Studio opens: importing them leaves no trace, and their forms are full."""

import ast
import dataclasses
import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import memories
from langchain_agentmem.consolidation import create_consolidation_graph
from langchain_agentmem.memories import Mem0, Memory, RAGMemory, SlidingWindowReader, WorkingMemory
from langchain_agentmem.parameters import Parameters
from langchain_agentmem.prompt_optimizer import OptimizerParameters, create_prompt_optimizer_graph
from langchain_agentmem.surfaces import create_forget_graph, create_memory_agent

ROOT = Path(__file__).parents[2]
CONFIG = json.loads((ROOT / "langgraph.json").read_text("utf-8"))
GRAPHS: dict[str, str] = {name: each["path"] for name, each in CONFIG["graphs"].items()}
MODULES = sorted(file.stem for file in (ROOT / "graphs").glob("*.py"))
GIVEN = {"prompt_optimizer": "trajectories", "forget": "keys"}
SCOPELESS = {"sliding_window"}
RECALLED = {"memories", "memory_context"}
"""What the agent need not repeat after a breakpoint; it is in no checkpoint."""
DEFAULTS: dict[str, Parameters] = {
    "agent": RAGMemory.Parameters(),
    "consolidate": Mem0.Parameters(),
    "prompt_optimizer": OptimizerParameters(),
    "sliding_window": SlidingWindowReader.Parameters(),
}


def _module(name: str) -> Any:  # noqa: ANN401 - a module of our own
    path = GRAPHS[name].partition(":")[0]
    return importlib.import_module(path.removeprefix("./").removesuffix(".py").replace("/", "."))


@pytest.fixture(autouse=True)
def _as_the_server_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import from the project's folder, without any model."""
    monkeypatch.delenv("AGENTMEM_MODEL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture(params=sorted(GRAPHS))
def name(request: pytest.FixtureRequest) -> str:
    """Each name of `langgraph.json`."""
    return str(request.param)


@pytest.fixture
def graph(name: str) -> Any:  # noqa: ANN401 - a compiled graph
    """Each graph of `langgraph.json`, as the server loads it."""
    return getattr(_module(name), GRAPHS[name].partition(":")[2])


def test_graphs_have_neither_store_nor_checkpointer(graph: Any) -> None:  # noqa: ANN401 - a compiled graph
    """The server brings its own and refuses others."""
    assert graph.store is None
    assert graph.checkpointer is None


def test_a_graph_has_the_name_it_is_listed_under(name: str, graph: Any) -> None:  # noqa: ANN401 - a compiled graph
    """Studio shows the graph's own name, which tells it from all others."""
    assert graph.name == name
    assert CONFIG["graphs"][name]["description"].endswith(".")


def test_every_field_of_a_form_is_described(name: str, graph: Any) -> None:  # noqa: ANN401 - a compiled graph
    """Studio has forms for input, output and context, each field with a description."""
    forms = (
        graph.get_input_jsonschema(),
        graph.get_output_jsonschema(),
        graph.get_context_jsonschema(),
    )
    assert GIVEN.get(name, "messages") in forms[0]["properties"]
    for form in forms:
        fields = form["properties"].items()
        assert [key for key, field in fields if not field.get("description")] == []
        assert "Attributes:" not in form.get("description", "")


def test_defaults_of_a_form_are_the_constructors(name: str, graph: Any) -> None:  # noqa: ANN401 - a compiled graph
    """What Studio shows as defaults is what a memory made without arguments has."""
    shown = graph.get_context_jsonschema()["properties"]
    assert shown["preset"]["default"] == "default"
    assert {"default"} <= set(shown["preset"].get("enum") or [shown["preset"]["const"]])
    assert name in SCOPELESS or shown["user_id"]["default"] is None
    parameters = DEFAULTS.get(name) or type(_module(name).memory).Parameters()
    for each in dataclasses.fields(parameters):
        if each.name in shown:
            value = getattr(parameters, each.name)
            assert shown[each.name]["default"] == value, each.name
    assert len(shown) > 2


def _built(name: str) -> Any:  # noqa: ANN401 - a compiled graph
    """Build a graph of `langgraph.json` anew."""
    module = _module(name)
    match name:
        case "agent":
            return create_memory_agent(RAGMemory(), prompt=module.prompt).compile()
        case "consolidate":
            return create_consolidation_graph(Mem0())
        case "forget":
            return create_forget_graph(module.memory)
        case "prompt_optimizer":
            return create_prompt_optimizer_graph(prompts="Be kind.")
        case "sliding_window":
            return module.reader.graph()
    return getattr(module.memory, f"{name.rpartition('_')[2]}_graph")()


def test_graphs_built_again_and_again_are_drawn_alike(name: str, graph: Any) -> None:  # noqa: ANN401 - a compiled graph
    """Of twenty graphs that are built alike each is drawn as the one that is served."""
    drawn = graph.get_graph(xray=True).to_json()
    assert all(_built(name).get_graph(xray=True).to_json() == drawn for _ in range(20))


def test_every_memory_opens_in_studio() -> None:
    """Recall and remember of every published memory are in `langgraph.json`."""
    published = {
        each
        for each in map(memories.__dict__.get, memories.__all__)
        if inspect.isclass(each) and issubclass(each, Memory) and not inspect.isabstract(each)
    }
    shown = {verb: set[type]() for verb in ("recall", "remember")}
    for name in GRAPHS:
        verb = name.rpartition("_")[2]
        if verb in shown:
            shown[verb].add(type(_module(name).memory))
    assert published <= shown["recall"]
    assert published <= shown["remember"] | {WorkingMemory}  # it remembers with another's graph


def test_graph_runs_in_a_graph_that_shares_only_messages(name: str, graph: Any) -> None:  # noqa: ANN401 - a compiled graph
    """Added to a graph with a state of the user's own, a graph takes part with `messages`."""
    if name in GIVEN:
        pytest.skip("takes no messages")
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    builder.add_node("memory", graph)
    builder.add_edge(START, "memory")
    done = builder.compile(store=InMemoryStore()).invoke(
        {"messages": [("user", "I play chess.")]}, {"configurable": {"user_id": "ann"}}
    )
    assert done["messages"][0].text == "I play chess."


def test_a_run_goes_on_from_a_breakpoint_before_any_step(name: str, graph: Any) -> None:  # noqa: ANN401 - a compiled graph
    """Whichever step a run is stopped before, it goes on to its end and gives what it would."""
    said: dict[str, Any] = {
        "messages": [{"role": "user", "content": "Why?", "id": "1"}],
        "trajectories": [[("user", f"Why {number}?")] for number in range(3)],
        "document": "Rex is a dog.",
        "question": "Who is Rex?",
        "everything": True,
    }
    given = {key: said[key] for key in graph.get_input_jsonschema()["properties"] if key in said}

    def end(*before: str) -> dict[str, Any]:
        own = graph.copy({"store": InMemoryStore(), "checkpointer": InMemorySaver()})
        config: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "t"}}
        state = own.invoke(given, config, interrupt_before=before)
        if own.get_state(config).next:
            state = own.invoke(None, config)
        assert own.get_state(config).next == ()
        return dict(state)

    whole = set(end()) - (RECALLED if name == "agent" else set())
    for step in graph.nodes:
        assert whole <= set(end(step)), step


def test_no_code_for_studio_brings_its_own_store_or_checkpointer() -> None:
    """No graph is compiled with one, and no state is a `typing.TypedDict`, which has no schema."""
    rooms = ("memories", "surfaces", "consolidation", "prompt_optimizer", "steps")
    for folder in ("graphs", *(f"langchain_agentmem/{room}" for room in rooms)):
        for file in (ROOT / folder).rglob("*.py"):
            for each in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
                    named = {argument.arg for argument in each.keywords}
                    assert each.func.attr != "compile" or not named & {"store", "checkpointer"}, (
                        file
                    )
                if isinstance(each, ast.ImportFrom) and each.module == "typing":
                    assert "TypedDict" not in [name.name for name in each.names], file


def test_importing_makes_no_file_and_reads_no_network(tmp_path: Path) -> None:
    """Every module of `graphs/` loads with no environment, no network and no trace, in time."""
    code = (
        "import socket, sys, threading, time\n"
        "def refuse(*_, **__): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import langchain_agentmem.memories, langchain_agentmem.surfaces.agent\n"
        f"for name in {MODULES}:\n"
        "    begun = time.process_time()\n"
        "    __import__(f'graphs.{name}')\n"
        "    assert time.process_time() - begun < 3, name\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
    )
    environment = {
        name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**environment, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


async def test_the_store_is_made_when_it_is_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of `AGENTMEM_DB` appears at first use, with its folder, and may be opened twice."""
    monkeypatch.setenv("AGENTMEM_DB", str(tmp_path / "new" / "memory.sqlite"))
    make = importlib.import_module("graphs.store").store
    async with make() as first, make() as second:
        await first.aput(("memories", "ann"), "1", {"content": "I play the cello."})
        found = await second.asearch(("memories", "ann"), query="cello")
    assert [item.key for item in found] == ["1"]
