"""The examples of written memories run offline."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("mem0", "Kept, not destroyed: ['Ann lives in Oslo.']"),
        ("a_mem", "linked: I have started to learn the cello."),
        ("langmem", "default, version 2: {'name': 'Ann', 'home': 'Rome', 'likes': ['tea']}"),
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
