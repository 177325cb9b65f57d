"""Every example runs offline, as a person would run it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO = "demo.py"  # has a test of its own among the integration tests
EXPECTED = {
    "quickstart.py": "My dog is called Rex.",
    "own_benchmark.py": "| Rare | 100.0",
    "nodes.py": "- [",
    "tool_choice.py": "dinner for two. -> Done: A table for 2 at the Green Kitchen.\nbob: Book",
    "tools.py": "Ann is allergic to peanuts.",
    "create_agent.py": "created memory",
    "memory_agent.py": "a parrot called Pixel.",
    "short_term.py": "From the archive: Fact 3: Rex has buried bone number 3 in the garden.",
    "agent_middleware.py": "> What is my dog called?\nI was told:\n<memories>",
    "deep_agent.py": "The boat to Capri leaves at nine.",
    "chain_memory.py": "Human: This is turn 5.\nAI: I see 6 lines.",
    "mem0.py": "Kept, not destroyed: ['Ann lives in Oslo.']",
    "a_mem.py": "linked: I have started to learn the cello.",
    "memgpt.py": "Near the old mill.\n\nWhat it has kept:\n- human: Ann has a dog called Rex.",
    "langmem.py": "default, version 2: {'name': 'Ann', 'home': 'Rome', 'likes': ['tea']}",
    "consolidation.py": "done: 1 added, calls {'extract': 1}",
    "retriever.py": "My dog is called Rex.\n['Hello', 'Hello Ann']",
    "command_line.sh": "Erased 1 memory of Emily for good",
}

GUESTS = {"deep_agent.py": "deepagents"}
"""Examples with another package, which is optional and warns of its own changes."""


def run(name: str, folder: Path) -> str:
    """Run an example in an empty folder and return what it printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    starter = ["sh"] if name.endswith(".sh") else [sys.executable, "-W", "error"]
    if name in GUESTS:
        pytest.importorskip(GUESTS[name])
        starter += ["-W", "ignore::DeprecationWarning"]
    done = subprocess.run(
        [*starter, str(EXAMPLES / name)],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "AGENTMEM_DB": str(folder / "memory.sqlite")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_example_runs(name: str, tmp_path: Path) -> None:
    """It ends well without a key and a network, and shows what it is about."""
    assert EXPECTED[name] in run(name, tmp_path)


def test_every_example_is_run() -> None:
    """No example is left out of these tests."""
    found = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh")}
    assert found == {*EXPECTED, DEMO}
