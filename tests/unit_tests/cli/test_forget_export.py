"""`agentmem forget` and `export`: nothing is left of the one, nothing is missing in the other."""

import json
from pathlib import Path

import pytest

from tests.unit_tests.cli.conftest import Agentmem


def bytes_on_disk(folder: Path) -> bytes:
    """Return the memory file with its log."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("memory.sqlite*")))


def test_forget_by_text_leaves_no_trace(filled: Agentmem, tmp_path: Path) -> None:
    """The words are gone from the file, other memories stay, and the receipt says so."""
    assert b"peanuts" in bytes_on_disk(tmp_path)
    receipt = filled("forget", "--user", "bob", "--matching", "PEANUTS", "--yes", "--json").json
    assert (receipt["erased"], len(receipt["keys"]), receipt["file_rewritten"]) == (1, 1, True)
    assert receipt["namespaces"] == [{"namespace": ["memories", "bob", "rag", "turns"], "count": 1}]
    assert "backups and copies of the file" in receipt["not_covered"]
    assert b"peanuts" not in bytes_on_disk(tmp_path)
    assert filled("inspect", "--user", "ann", "--json").json["total"] == 3


def test_forget_all_of_one_user(filled: Agentmem, tmp_path: Path) -> None:
    """Everything of the user goes, in every language; nobody else's does."""
    receipt = filled("forget", "--user", "ann", "--all", "--yes", "--json").json
    assert receipt["erased"] == 3
    left = bytes_on_disk(tmp_path)
    assert not any(word.encode() in left for word in ("Rex", "绿茶", '"ann"'))
    rows = [json.loads(line) for line in filled("inspect", "--json").out.splitlines()]
    assert [row["user"] for row in rows] == ["bob"]


def test_forget_by_key(filled: Agentmem) -> None:
    """A key, or the beginning of one, names what is erased; a foreign key is refused."""
    items = filled("inspect", "--user", "ann", "--json").json["items"]
    done = filled("forget", items[0]["key"][:8], "--user", "ann", "--yes")
    assert "Erased 1 memory of ann for good" in done.out
    assert "Not covered:" in done.out
    left = filled("inspect", "--user", "ann", "--json").json["items"]
    assert [item["key"] for item in left] == [item["key"] for item in items[1:]]
    assert filled("forget", items[1]["key"], "--user", "bob", "--yes").status == 1


def test_forget_asks_first(filled: Agentmem) -> None:
    """Without a terminal and without `--yes` nothing is erased."""
    done = filled("forget", "--user", "ann", "--all")
    assert done.status == 1
    assert "add --yes" in done.err
    assert filled("inspect", "--user", "ann", "--json").json["total"] == 3


@pytest.mark.parametrize(("answer", "left"), [("n", 3), ("", 3), ("y", 0), ("yes", 0)])
def test_forget_on_a_terminal(filled: Agentmem, answer: str, left: int) -> None:
    """Only a yes erases; what would be erased is shown before."""
    done = filled("forget", "--user", "ann", "--all", typed=f"{answer}\n")
    assert "My dog is called Rex." in done.out
    assert filled("inspect", "--user", "ann", "--json").json["total"] == left


def test_forgetting_nothing_is_an_error(filled: Agentmem) -> None:
    """No match erases nothing, says so, and no script takes it for done."""
    done = filled("forget", "--user", "ann", "--matching", "zebra", "--yes")
    assert (done.status, "No memory matches" in done.err) == (1, True)
    done = filled("forget", "--user", "x", "--all", "--yes", "--json")
    assert (done.status, done.json["erased"]) == (1, 0)


def test_export_holds_everything_of_one_user(filled: Agentmem) -> None:
    """Memories with their words on top, records and history; nothing of anybody else."""
    lines = [json.loads(line) for line in filled("export", "--user", "ann").out.splitlines()]
    spoken = [line for line in lines if "content" in line]
    assert [line["content"] for line in spoken] == [
        "My dog is called Rex.",
        "A good name!",
        "我每天早上喝绿茶。",
    ]
    assert all(line["history"][0]["event"] == "ADD" for line in spoken)
    assert {line["value"]["kind"] for line in lines} == {"turn", "session"}
    assert all(line["namespace"][1] == "ann" for line in lines)


def test_export_does_not_overwrite(filled: Agentmem, tmp_path: Path) -> None:
    """An existing file is refused and stays as it is."""
    target = tmp_path / "out.jsonl"
    target.write_text("precious", "utf-8")
    assert filled("export", "--user", "ann", "-o", target).status == 1
    assert target.read_text("utf-8") == "precious"
