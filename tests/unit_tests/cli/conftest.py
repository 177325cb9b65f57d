"""The command line, called in this process."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from langchain_agentmem.cli import main

TURNS = [
    {"user": "ann", "thread": "t", "role": "user", "content": "My dog is called Rex."},
    {"user": "ann", "thread": "t", "role": "assistant", "content": "A good name!"},
    {"user": "ann", "thread": "t", "role": "user", "content": "我每天早上喝绿茶。"},
    {"user": "bob", "thread": "t", "role": "user", "content": "I am allergic to peanuts."},
]


@dataclass(frozen=True, slots=True)
class Done:
    """What a command did.

    Attributes:
        status: Its exit status.
        out: What it wrote to stdout.
        err: What it wrote to stderr.
    """

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON
        """The last line of stdout as JSON."""
        return json.loads(self.out.splitlines()[-1])


Agentmem = Callable[..., Done]


class Terminal(io.StringIO):
    """Text that a person types."""

    def isatty(self) -> bool:
        """Say that somebody is there."""
        return True


@pytest.fixture
def agentmem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Agentmem:
    """Call `agentmem` on a file of the test's own, with some text as stdin or typed."""
    for name in ("AGENTMEM_MODEL", "AGENTMEM_USER", "AGENTMEM_EMBED", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENTMEM_DB", str(tmp_path / "memory.sqlite"))

    def call(*arguments: object, stdin: str = "", typed: str | None = None) -> Done:
        piped = io.BytesIO(stdin.encode("utf-8", "surrogateescape"))
        source = io.TextIOWrapper(piped, "utf-8") if typed is None else Terminal(typed)
        monkeypatch.setattr("sys.stdin", source)
        capsys.readouterr()
        try:
            status = main([str(each) for each in arguments])
        except SystemExit as usage:
            status = int(usage.code or 0)
        written = capsys.readouterr()
        return Done(status, written.out, written.err)

    return call


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """A file with turns of two people."""
    path = tmp_path / "talk.jsonl"
    lines = (json.dumps(turn, ensure_ascii=False) for turn in TURNS)
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.fixture
def filled(agentmem: Agentmem, talk: Path) -> Agentmem:
    """The command line with the file imported."""
    assert agentmem("import", talk).status == 0
    return agentmem
