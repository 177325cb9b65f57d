"""An import of ten thousand turns that is killed in the middle, and imports at the same time."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

AGENTMEM = (sys.executable, "-m", "langchain_agentmem.cli")
TURNS = 10_000


def turns(number: int) -> list[dict[str, Any]]:
    """Return turns of four people, each different, in both languages."""
    return [
        {
            "user": f"user-{n * 4 // number}",
            "thread": f"thread-{n // 500}",
            "role": ("user", "assistant")[n % 2],
            "content": f"Turn {n}: 我今天看到了第{n}朵樱花 and wrote it down.",
            "time": f"2026-03-{1 + n * 28 // number:02d}T10:00:00Z",
        }
        for n in range(number)
    ]


def write(path: Path, number: int) -> Path:
    """Write turns as JSON lines."""
    path.write_text("\n".join(json.dumps(each, ensure_ascii=False) for each in turns(number)))
    return path


def command(db: Path, *arguments: object) -> list[str]:
    """Return a command line on a memory file."""
    return [*AGENTMEM, *map(str, arguments), "--db", str(db), "--json"]


def stored(db: Path) -> Counter[str]:
    """Return how often each content is stored, of everybody."""
    contents: Counter[str] = Counter()
    for user in range(4):
        line = command(db, "export", "--user", f"user-{user}")
        out = subprocess.run(line, capture_output=True, text=True, check=True).stdout
        found = [json.loads(each) for each in out.splitlines()]
        contents.update(each["content"] for each in found if "content" in each)
    return contents


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_import_keeps_what_it_acknowledged_and_resumes(tmp_path: Path) -> None:
    """After SIGKILL every acknowledged turn is there; the same command again adds only the rest."""
    source, db = write(tmp_path / "talk.jsonl", TURNS), tmp_path / "memory.sqlite"
    acknowledged = 0
    with subprocess.Popen(
        command(db, "import", source), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            acknowledged = json.loads(line)["imported"]
            if acknowledged >= TURNS // 3:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    wanted = [each["content"] for each in turns(TURNS)]
    after_kill = stored(db)
    assert TURNS // 3 <= acknowledged < TURNS
    assert set(wanted[:acknowledged]) <= set(after_kill)
    assert len(after_kill) < TURNS

    done = subprocess.run(command(db, "import", source), capture_output=True, text=True, check=True)
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["known"] == len(after_kill)
    assert report["new"] == TURNS - len(after_kill)
    assert stored(db) == Counter(wanted)
    doctor = subprocess.run(command(db, "doctor"), capture_output=True, text=True, check=False)
    assert json.loads(doctor.stdout)["ok"] is True


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_imports_at_once_lose_nothing(tmp_path: Path) -> None:
    """Two processes that import the same file into one memory store each turn once."""
    source, db = write(tmp_path / "talk.jsonl", 1_000), tmp_path / "memory.sqlite"
    line = command(db, "import", source)
    both = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    reports = [json.loads(each.communicate()[0].splitlines()[-1]) for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert sum(report["new"] for report in reports) == 1_000
    assert stored(db) == Counter(each["content"] for each in turns(1_000))


@pytest.mark.timeout(60)
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file")
def test_a_read_only_memory_is_searched_but_not_written(tmp_path: Path) -> None:
    """Reading works on a file without write permission; writing explains why it does not."""
    source, db = write(tmp_path / "talk.jsonl", 20), tmp_path / "memory.sqlite"
    subprocess.run(command(db, "import", source), capture_output=True, check=True)
    db.chmod(0o444)
    search = command(db, "search", "樱花", "--user", "user-0")
    found = subprocess.run(search, capture_output=True, text=True, check=True)
    assert json.loads(found.stdout)["items"]
    more = write(tmp_path / "more.jsonl", 40)
    refused = subprocess.run(
        command(db, "import", more), capture_output=True, text=True, check=False
    )
    assert (refused.returncode, "read-only" in refused.stderr) == (1, True)
