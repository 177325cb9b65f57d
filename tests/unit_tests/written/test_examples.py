"""The examples of written memories run offline, and LangMem recalls what it wrote."""

import runpy
from pathlib import Path

import pytest

from langchain_agentmem.memories import LangMem
from tests.unit_tests.written.conftest import ANN, BOB, World

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("mem0", "Kept, not destroyed: ['Ann lives in Oslo.']"),
        ("a_mem", "linked: I have started to learn the cello."),
        ("consolidation", "done: 1 added"),
    ],
)
def test_an_example_runs_offline(
    name: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its scripted model, and without any key."""
    monkeypatch.setenv("AGENTMEM_MODEL", "none")
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert shown in capsys.readouterr().out


async def test_langmem_recalls_its_own_and_a_tools_memories(world: World) -> None:
    """All lie in the bare namespace of one user, where LangMem's own code finds them too."""
    call = world.make(LangMem)
    world.store.put(("memories", "ann"), "t", {"content": "Ann owns a boat"})
    world.model.extend({"memories": [{"action": "create", "content": "Ann likes tea"}]})
    await call("remember", "I like tea", config=ANN)
    found = await call("recall", "tea", config=ANN)
    assert {each.content for each in found.items} == {"Ann owns a boat", "Ann likes tea"}
    assert (await call("recall", "tea", config=BOB)).items == []
