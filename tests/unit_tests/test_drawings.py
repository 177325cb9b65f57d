"""The drawings in the documentation are of the graphs as they are."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "drawings.py"), "--check", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_drawings_of_the_documentation_are_of_the_code() -> None:
    """No drawing is out of date; else run `python scripts/drawings.py`."""
    done = _check(ROOT / "docs")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["agent", "consolidate", "forget", "prompt_optimizer"])
def test_a_stale_drawing_is_noticed(name: str, tmp_path: Path) -> None:
    """A page that shows a graph without one of its edges fails the check."""
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text("utf-8")
        if f"<!-- drawing: {name} -->" in text:
            break
    else:
        pytest.fail(f"no page shows {name}")
    head, _, drawing = text.partition(f"<!-- drawing: {name} -->")
    changed = re.sub(r"\n\t\S+ -+> \S+;", "", drawing, count=1)
    assert changed != drawing
    (tmp_path / page.name).write_text(f"{head}<!-- drawing: {name} -->{changed}", "utf-8")
    done = _check(tmp_path)
    assert done.returncode == 1
    assert page.name in done.stderr
