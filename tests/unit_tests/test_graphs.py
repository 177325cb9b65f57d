"""The graphs that Studio opens: importing them leaves no trace, and their forms are full."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = json.loads((ROOT / "langgraph.json").read_text("utf-8"))
GRAPHS: dict[str, str] = CONFIG["graphs"]
FORMS = {
    "a_mem_recall": ("messages", "recall_k"),
    "a_mem_remember": ("messages", "recall_k"),
    "consolidate": ("messages", "top_k"),
    "mem0_recall": ("messages", "top_k"),
    "mem0_remember": ("messages", "top_k"),
    "prompt_optimizer": ("trajectories", "max_calls"),
}


@pytest.fixture(params=sorted(GRAPHS))
def graph(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a compiled graph
    """Each graph of `langgraph.json`, as the server loads it."""
    monkeypatch.delenv("AGENTMEM_MODEL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path, _, name = GRAPHS[request.param].partition(":")
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module(path.removeprefix("./").removesuffix(".py").replace("/", "."))
    return getattr(module, name)


def test_graphs_have_neither_store_nor_checkpointer(graph: Any) -> None:  # noqa: ANN401 - a compiled graph
    """The server brings its own and refuses others."""
    assert graph.store is None
    assert graph.checkpointer is None


def test_graphs_have_schemas_with_descriptions(graph: Any) -> None:  # noqa: ANN401 - a compiled graph
    """Studio has a form for input and context, each context field with a description."""
    given, setting = FORMS.get(graph.name, ("messages", "limit"))
    assert given in graph.get_input_jsonschema()["properties"]
    context = graph.get_context_jsonschema()["properties"]
    assert {"user_id", "preset", setting} <= set(context)
    assert all(field.get("description") for field in context.values())


def test_drawings_are_the_same_each_time(graph: Any) -> None:  # noqa: ANN401 - a compiled graph
    """Drawing twice gives the same graph."""
    assert graph.get_graph(xray=True).to_json() == graph.get_graph(xray=True).to_json()


def test_importing_makes_no_file_and_reads_no_network(tmp_path: Path) -> None:
    """Every module of `graphs/` loads with no environment, no network and no trace."""
    code = (
        "import socket, sys, threading\n"
        "def refuse(*_, **__): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import graphs.a_mem, graphs.agent, graphs.consolidate, graphs.mem0\n"
        "import graphs.prompt_optimizer, graphs.rag, graphs.store\n"
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
    monkeypatch.syspath_prepend(str(ROOT))
    make = importlib.import_module("graphs.store").store
    async with make() as first, make() as second:
        await first.aput(("memories", "ann"), "1", {"content": "I play the cello."})
        found = await second.asearch(("memories", "ann"), query="cello")
    assert [item.key for item in found] == ["1"]
