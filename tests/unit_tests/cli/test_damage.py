"""Damaged files and hostile names: nothing crashes, nothing secret is printed."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.unit_tests.cli.conftest import Agentmem

Spoil = Callable[[Path], None]


def damaged(value: str) -> Spoil:
    """Return how to replace the value of the turn about Rex by an SQL expression."""
    return changed(
        f"UPDATE items SET value = {value} "  # noqa: S608 - the test's own text
        "WHERE value LIKE '%Rex%' AND value LIKE '%\"kind\":\"turn\"%'"
    )


def changed(statement: str) -> Spoil:
    """Return how to run a statement on the file."""

    def spoil(path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()

    return spoil


NOT_JSON = damaged("'My dog is called Rex'")
NOT_UTF8 = damaged("CAST(CAST(value AS BLOB) || x'ff' AS TEXT)")
DAMAGES = pytest.mark.parametrize("spoil", [NOT_JSON, NOT_UTF8], ids=["json", "utf-8"])


def checks(report: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - any JSON
    """Return the findings by name."""
    return {check["name"]: check for check in report["checks"]}


@DAMAGES
def test_doctor_names_undecodable_values(filled: Agentmem, tmp_path: Path, spoil: Spoil) -> None:
    """Where a value cannot be decoded is said with its number, what it holds is not."""
    spoil(tmp_path / "memory.sqlite")
    done = filled("doctor", "--json")
    found = checks(done.json)["values"]
    assert (done.status, found["ok"]) == (1, False)
    assert "1 in memories / ann / rag / turns" in found["detail"]
    assert "export" in found["detail"]
    assert "Rex" not in done.out + done.err
    assert "Traceback" not in filled("doctor").err


@DAMAGES
def test_doctor_repair_reports_undecodable_values(
    filled: Agentmem, tmp_path: Path, spoil: Spoil
) -> None:
    """What can be read is reindexed; what cannot is skipped and reported, not printed."""
    spoil(tmp_path / "memory.sqlite")
    done = filled("doctor", "--repair", "--json")
    found = checks(done.json)
    assert (done.status, found["values"]["ok"]) == (1, False)
    assert {"values", "index", "python"} <= found.keys()
    assert "Rex" not in done.out + done.err


@DAMAGES
def test_export_writes_what_can_be_read(filled: Agentmem, tmp_path: Path, spoil: Spoil) -> None:
    """One unreadable item costs itself: the others are exported, and the loss is an error."""
    spoil(tmp_path / "memory.sqlite")
    target = tmp_path / "ann.jsonl"
    done = filled("export", "--user", "ann", "-o", target, "--json")
    lines = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    assert [line["content"] for line in lines if "content" in line] == [
        "A good name!",
        "我每天早上喝绿茶。",
    ]
    assert (done.status, done.json["skipped"]) == (1, 1)
    assert "1 items cannot be read" in done.err
    assert filled("export", "--user", "bob").status == 0


@DAMAGES
@pytest.mark.parametrize("command", [("inspect",), ("search", "dog"), ("forget", "--all", "--yes")])
def test_no_command_prints_memories_of_a_damaged_file(
    filled: Agentmem, tmp_path: Path, spoil: Spoil, command: tuple[str, ...]
) -> None:
    """Whatever a damaged file makes of a command, its error quotes no memory."""
    spoil(tmp_path / "memory.sqlite")
    done = filled(*command, "--user", "ann")
    assert "Rex" not in done.err


def test_doctor_survives_damaged_pages(filled: Agentmem, tmp_path: Path) -> None:
    """Overwritten pages are findings with a way out, whatever can be opened of the file."""
    path = tmp_path / "memory.sqlite"
    sound = path.read_bytes()
    for start in range(4096, len(sound), 4096):
        path.write_bytes(sound[:start] + b"\xa5" * 4096 + sound[start + 4096 :])
        done = filled("doctor", "--json")
        assert isinstance(done.json["ok"], bool)
        assert filled("export", "--user", "ann").status in (0, 1)
    path.write_bytes(sound[:4096] + b"\xa5" * (len(sound) - 4096))
    done = filled("doctor", "--json")
    assert (done.status, done.json["ok"]) == (1, False)
    repaired = filled("doctor", "--repair", "--json")
    assert (repaired.status, repaired.json["reindexed"]) == (1, None)
    assert "the file is unchanged" in checks(repaired.json)["repair"]["detail"]


def test_export_reaches_what_lies_behind_a_lost_page(agentmem: Agentmem, tmp_path: Path) -> None:
    """Everything behind the first lost page was left out, and called one item."""
    path, said = tmp_path / "memory.sqlite", tmp_path / "said.jsonl"
    turns = [f"Fact number {n} about boats. {'word ' * 80}" for n in range(300)]
    rows = [json.dumps({"user": "ann", "id": str(n), "content": t}) for n, t in enumerate(turns)]
    said.write_text("\n".join(rows), "utf-8")
    agentmem("import", said)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    sound = path.read_bytes()
    at = sound.index(b"Fact number 150 about") // 4096 * 4096
    path.write_bytes(sound[:at] + b"\xa5" * 4096 + sound[at + 4096 :])
    target = tmp_path / "ann.jsonl"
    done = agentmem("export", "--user", "ann", "-o", target, "--json")
    kept = {line for line in target.read_text("utf-8").splitlines() if "Fact number" in line}
    assert (done.status, len(kept)) == (1, done.json["memories"])
    assert 280 <= len(kept) < 300
    assert done.json["skipped"] >= 300 - len(kept)


def test_doctor_survives_unreadable_meta(filled: Agentmem, tmp_path: Path) -> None:
    """A fingerprint that is no JSON is a finding."""
    changed("UPDATE meta SET value = '{' WHERE key = 'fingerprint'")(tmp_path / "memory.sqlite")
    done = filled("doctor", "--json")
    assert (done.status, checks(done.json)["embedded with"]["ok"]) == (1, False)
    assert "is damaged" in filled("search", "x").err


def test_user_names_cannot_command_the_terminal(agentmem: Agentmem, tmp_path: Path) -> None:
    """Control and reordering characters of a stored user name are shown, not sent."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"user": "e\x1b[31m\u202eve", "content": "x"}), "utf-8")
    shown = "".join(
        done.out + done.err
        for done in (agentmem("import", path), agentmem("search", "x"), agentmem("inspect"))
    )
    assert "There are memories of: e␛[31m\ufffdve" in shown
    assert not {"\x1b", "\u202e"} & set(shown)


def test_export_into_a_missing_directory_is_explained(filled: Agentmem, tmp_path: Path) -> None:
    """The error names the directory and what to do."""
    done = filled("export", "--user", "ann", "-o", tmp_path / "none" / "x")
    assert (done.status, "create the directory first" in done.err) == (1, True)


def test_a_missing_key_names_whose_memory_was_looked_at(filled: Agentmem) -> None:
    """Without `--user` it is easy to look into the wrong memory."""
    assert "'me' has no memory with the key 'nokey'" in filled("inspect", "nokey").err


def test_errors_of_json_say_at_once(agentmem: Agentmem, tmp_path: Path) -> None:
    """A message of the JSON reader that ends in "at" is not given another one."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"content": "x"}\n{"content": "y', "utf-8")
    assert "starting at column 13" in agentmem("import", path).err
