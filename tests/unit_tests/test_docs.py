"""The documentation does what it says: its Python runs, its commands exist.

Python blocks of one file run in order, in one namespace, in an empty folder. A `text` block right
after a Python block is what it prints. A block after the line `<!-- not run: why -->` is left out.
"""

import ast
import asyncio
import inspect
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(
    r"(?P<before>[^\n]*)\n+```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language and text, and whether it stands right behind another."""

    language: str
    code: str
    line: int
    follows: bool


def _blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that are to be checked."""
    text = page.read_text()
    blocks: list[Block] = []
    end = -1
    for found in FENCE.finditer(f"\n{text}"):
        if not found["before"].startswith("<!-- not run:"):
            line = text.count("\n", 0, found.start("code"))
            follows = not found["before"] and found.start() <= end + 1
            blocks.append(Block(found["language"], found["code"], line, follows))
        end = found.end()
    return blocks


def _run(block: Block, page: Path, namespace: dict[str, object]) -> None:
    """Run a Python block with its own line numbers; `await` is allowed."""
    source = "\n" * block.line + block.code
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    waiting = eval(compile(source, str(page), "exec", flags=flags), namespace)  # noqa: S307 - our own documentation
    if inspect.iscoroutine(waiting):
        asyncio.run(waiting)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run_and_print_what_is_shown(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever copies the examples of a page gets what the page shows."""
    if "surfaces.chains" in page.read_text("utf-8"):
        pytest.importorskip("langchain_classic")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in _blocks(page):
        if block.language == "python":
            _run(block, page, namespace)
            printed = capsys.readouterr().out
        elif block.language == "text" and block.follows:
            assert printed.strip() == block.code.strip()


def test_every_surface_of_the_table_has_an_example_that_is_run() -> None:
    """What the page of surfaces says to take stands in code that a test runs."""
    page = ROOT / "docs/surfaces.md"
    table = page.read_text("utf-8").split("\n\n")[2]
    taken = {
        name
        for row in table.splitlines()[2:]
        for name in re.findall(r"`([\w.]+)[^`]*`", row.split("|")[2])
    }
    run = [block.code for each in PAGES for block in _blocks(each) if block.language == "python"]
    run += [path.read_text("utf-8") for path in (ROOT / "examples").glob("*.py")]
    assert len(taken) > 15
    assert [name for name in sorted(taken) if not any(name in code for code in run)] == []


def _commands(language: str = "bash") -> Iterator[tuple[str, list[str]]]:
    """Return every command of the pages' shell blocks with the page it stands in."""
    for page in PAGES:
        for block in _blocks(page):
            lines = (
                block.code.replace("\\\n", " ").splitlines() if block.language == language else []
            )
            for line in lines:
                if words := shlex.split(line, comments=True):
                    yield page.name, words


COMMANDS = list(_commands())


def _of(program: str) -> list[list[str]]:
    return [words for _, words in COMMANDS if words[0] == program]


def test_make_targets_of_the_documentation_exist() -> None:
    """Every `make` command names a target of the Makefile."""
    targets = set(re.findall(r"^([a-z_-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {word for words in _of("make") for word in words[1:] if "=" not in word}
    assert named
    assert named <= targets


def test_agentmem_commands_of_the_documentation_exist() -> None:
    """Every `agentmem` command names a subcommand that explains itself."""
    names = {words[1] for words in _of("agentmem") if len(words) > 1}
    assert names
    for name in names:
        code = "from langchain_agentmem.cli import main; main()"
        command = [sys.executable, "-c", code, name, "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_extras_of_the_documentation_exist() -> None:
    """Every extra in an install command is declared."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = "\n".join(page.read_text() for page in PAGES)
    named = {
        extra.strip()
        for group in re.findall(r"langchain-agentmem\[([^\]]+)\]", text)
        for extra in group.split(",")
    }
    assert named <= set(project["optional-dependencies"])


def test_scripts_of_the_documentation_exist() -> None:
    """Every Python file that a command runs, in a block or in a sentence, is there."""
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    named = set(re.findall(r"\bpython ([\w/.-]+\.py)\b", text))
    assert named
    assert all((ROOT / name).exists() for name in named), named


def test_a_shown_output_that_is_wrong_would_be_noticed(tmp_path: Path) -> None:
    """The reader of blocks pairs an output with the block right before it, and skips others."""
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\nWords.\n\n```text\n2\n```\n\n"
        "<!-- not run: needs a key -->\n```python\nraise\n```\n"
    )
    assert [(b.language, b.code, b.follows) for b in _blocks(page)] == [
        ("python", "print(1)\n", False),
        ("text", "1\n", True),
        ("text", "2\n", False),
    ]
