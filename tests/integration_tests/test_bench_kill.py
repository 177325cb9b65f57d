"""A benchmark that is killed in the middle goes on where it stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

PEOPLE, TURNS = 8, 24
BENCH = (sys.executable, "-m", "langchain_agentmem.cli", "bench")


def _write(folder: Path) -> None:
    """Write conversations of some people, and a question about each of them."""
    talk = [
        {
            "user": f"u{who}",
            "id": f"{at}",
            "content": f"Box {at} of person {who} holds item {at * 7}.",
        }
        for who in range(PEOPLE)
        for at in range(TURNS)
    ]
    asked = [
        {"user": f"u{who}", "question": f"What does box {who} hold?", "evidence": [f"{who}"]}
        for who in range(PEOPLE)
    ]
    for name, rows in (("talk.jsonl", talk), ("questions.jsonl", asked)):
        (folder / name).write_text("\n".join(map(json.dumps, rows)), "utf-8")


def _command(out: str) -> list[str]:
    own = ("--conversations", "talk.jsonl", "--questions", "questions.jsonl")
    return [*BENCH, *own, "--out", out]


def _figures(path: Path) -> Any:  # noqa: ANN401 - any JSON
    """Return the figures of a report that do not depend on how fast the machine is."""
    systems = json.loads((path / "report.json").read_text("utf-8"))["datasets"][0]["systems"]
    return [(each["name"], each["measures"], each["write"]["items"]) for each in systems]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_benchmark_goes_on_and_gives_the_same_figures(tmp_path: Path) -> None:
    """After SIGKILL the finished conversations are not run again, and no figure differs."""
    _write(tmp_path)
    kept = tmp_path / "killed/kept/units.jsonl"
    with subprocess.Popen(_command("killed"), cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        while not kept.exists() or kept.read_bytes().count(b"\n") < 5 * PEOPLE + 2:
            assert process.poll() is None, "It was done before it could be killed."
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    finished = kept.read_bytes()
    for out in ("killed", "whole"):
        subprocess.run(_command(out), cwd=tmp_path, check=True, capture_output=True)
    assert kept.read_bytes().startswith(finished[: finished.rindex(b"\n")])
    assert kept.read_bytes().count(b"\n") <= 6 * PEOPLE + 1
    assert _figures(tmp_path / "killed") == _figures(tmp_path / "whole")
