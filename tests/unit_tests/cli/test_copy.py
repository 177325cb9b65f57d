"""`agentmem copy`: from one store to another, for people and machines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from langchain_agentmem.cli import main
from langchain_agentmem.stores import open_store

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.unit_tests.cli.conftest import Agentmem


def test_copy_moves_everything_of_all_users(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report counts items, and the copy answers queries."""
    old, new = f"sqlite:///{tmp_path}/old.sqlite", f"sqlite:///{tmp_path}/new.sqlite"
    with open_store(old) as store:
        store.put(("users", "ada"), "1", {"text": "plays the cello"})
        store.put(("users", "bob"), "2", {"text": "rides a bicycle"})
    assert main(["copy", "--from", old, "--to", new, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["items"], report["written"], report["embedded"]) == (2, 2, 0)
    assert main(["copy", "--from", old, "--to", new]) == 0
    assert "2 items, 0 of them new or changed" in capsys.readouterr().out
    with open_store(new) as store:
        assert store.search(("users",), query="cello")[0].key == "1"


def test_copy_from_nowhere_makes_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped source is an error, not an empty store."""
    target = f"sqlite:///{tmp_path}/new.sqlite"
    assert main(["copy", "--from", f"sqlite:///{tmp_path}/typo.sqlite", "--to", target]) == 1
    assert "no store file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_copy_explains_what_a_url_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A bare path is not a URL."""
    assert main(["copy", "--from", "memory.sqlite", "--to", "other.sqlite"]) == 1
    assert "sqlite:///" in capsys.readouterr().err


def test_backup_is_a_memory_file(filled: Agentmem, tmp_path: Path) -> None:
    """A backup is searched like the file, and is never written over another one."""
    target = tmp_path / "backup.sqlite"
    made = filled("backup", target, "--json").json
    assert (made["path"], made["bytes"]) == (str(target), target.stat().st_size)
    assert "Rex" in filled("search", "dog", "--user", "ann", "--db", target).out
    again = filled("backup", target)
    assert (again.status, "exists already" in again.err) == (1, True)
    assert "items" in filled("backup", tmp_path / "second.sqlite").out
