"""`agentmem import`: what is stored, said and refused."""

import json
import os
from pathlib import Path

import pytest

from langchain_agentmem._formats import NAMES
from tests.unit_tests.cli.conftest import TURNS, Agentmem


def test_import_reports_what_it_did(agentmem: Agentmem, talk: Path) -> None:
    """A person reads how many turns of whom are there now."""
    done = agentmem("import", talk)
    assert (done.status, done.err.count("importing") > 0) == (0, True)
    assert "4 turns of 2 users (ann, bob): 4 new, 0 already known." in done.out


def test_importing_twice_changes_nothing(filled: Agentmem, talk: Path) -> None:
    """The second import knows every turn."""
    assert filled("import", talk, "--json").json == {
        "done": True,
        "imported": 4,
        "new": 0,
        "changed": 0,
        "known": 4,
        "users": ["ann", "bob"],
        "without_words": 0,
        "invalid": [],
        "ignored_users": [],
        "ignored_fields": [],
    }
    assert filled("inspect", "--user", "ann", "--json").json["total"] == 3


def test_each_batch_is_acknowledged(agentmem: Agentmem, talk: Path) -> None:
    """Machines get a line after each batch that is stored for good."""
    done = agentmem("import", talk, "--json", "--batch-size", 2)
    acknowledged = [json.loads(line) for line in done.out.splitlines()[:-1]]
    assert acknowledged == [{"imported": n, "of": 4} for n in (2, 3, 4)]


def test_nothing_is_written_before_all_files_are_checked(
    agentmem: Agentmem, talk: Path, tmp_path: Path
) -> None:
    """An error in the second file leaves the first one unwritten."""
    (tmp_path / "bad.jsonl").write_text('{"content": "x"}\n{"content"', "utf-8")
    done = agentmem("import", talk, tmp_path / "bad.jsonl")
    assert done.status == 1
    assert "bad.jsonl, line 2: not JSON" in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "memory.sqlite").exists()


def test_invalid_turns_can_be_left_out(agentmem: Agentmem, tmp_path: Path) -> None:
    """Everything readable is stored, and what is not is reported."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"content": "one"}\n{"content": "\\ud83d"}\n{"content": "two"}\n', "utf-8")
    done = agentmem("import", path, "--skip-invalid", "--json")
    assert (done.status, done.json["new"]) == (0, 2)
    assert ["line 2" in reason for reason in done.json["invalid"]] == [True]


def test_turns_without_owner_belong_to_the_user_of_the_environment(
    agentmem: Agentmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `--user` the file names the users, the environment only whom it does not."""
    monkeypatch.setenv("AGENTMEM_USER", "zoe")
    path = tmp_path / "a.jsonl"
    path.write_text('{"content": "mine"}\n{"content": "hers", "user": "ann"}\n', "utf-8")
    assert agentmem("import", path, "--json").json["users"] == ["zoe", "ann"]


def test_a_given_user_never_writes_into_another_users_memory(
    agentmem: Agentmem, talk: Path
) -> None:
    """`--user` owns all turns, none is lost, and the users of the file are named as ignored."""
    done = agentmem("import", talk, "--user", "zoe", "--json").json
    assert (done["users"], done["new"], done["ignored_users"]) == (["zoe"], 4, ["ann", "bob"])
    assert agentmem("inspect", "--json").json["user"] == "zoe"
    assert len(agentmem("inspect", "--json").out.splitlines()) == 1
    assert "user in the file ignored" in agentmem("import", talk, "--user", "zoe").err


def test_a_given_user_keeps_equal_turns_of_two_users(agentmem: Agentmem, tmp_path: Path) -> None:
    """Two users who began a conversation of one name with the same word do not become one turn."""
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"user": user, "thread": "t", "content": "Hi"}) for user in ("ann", "bob")]
    path.write_text("\n".join(lines), "utf-8")
    assert agentmem("import", path, "--user", "zoe", "--json").json["new"] == 2


def test_an_export_can_be_imported_for_another_user(filled: Agentmem, tmp_path: Path) -> None:
    """What was exported of one user becomes another's in the same file."""
    export = tmp_path / "ann.jsonl"
    filled("export", "--user", "ann", "-o", export)
    done = filled("import", export, "--user", "eve", "--json").json
    assert (done["users"], done["new"], done["ignored_fields"]) == (["eve"], 3, [])
    assert filled("inspect", "--user", "eve", "--json").json["total"] == 3
    assert filled("inspect", "--user", "ann", "--json").json["total"] == 3


def test_titles_survive_import_and_export(agentmem: Agentmem, tmp_path: Path) -> None:
    """A document's title is read, and written again."""
    path, export = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_text('{"content": "A state.", "title": "Iowa", "user": "ann"}\n', "utf-8")
    agentmem("import", path)
    agentmem("export", "--user", "ann", "-o", export)
    lines = map(json.loads, export.read_text("utf-8").splitlines())
    assert [line["title"] for line in lines if "title" in line] == ["Iowa"]


def test_unknown_fields_are_reported_by_name(agentmem: Agentmem, tmp_path: Path) -> None:
    """A field that is not read is named once, without what it holds."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"content": "a", "mood": "secret"}\n{"content": "b", "mood": "x"}\n', "utf-8")
    assert agentmem("import", path, "--json").json["ignored_fields"] == ["mood"]
    done = agentmem("import", path)
    assert (done.err.count("mood"), "secret" in done.out + done.err) == (1, False)


def test_import_help_documents_the_fields(agentmem: Agentmem) -> None:
    """The help of the command names every field and every other name of it."""
    shown = agentmem("import", "--help").out
    assert all(name in shown for names in NAMES.values() for name in names)


def test_standard_input_is_a_file(agentmem: Agentmem) -> None:
    """`-` reads what is piped in, and errors call it by name."""
    assert agentmem("import", "-", "--json", stdin='{"content": "Zürich"}\n').json["new"] == 1
    assert "standard input, line 1" in agentmem("import", "-", stdin="nonsense").err


def test_a_pipe_that_can_be_read_once_is_imported(agentmem: Agentmem) -> None:
    """Process substitution gives a pipe, which is checked and imported all the same."""
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(b'{"content": "one"}\n{"content": "two"}\n')
    done = agentmem("import", f"/dev/fd/{read}", "--json")
    os.close(read)
    assert (done.status, done.json["new"]) == (0, 2)


def test_unusual_words_are_stored_unchanged(agentmem: Agentmem, tmp_path: Path) -> None:
    """NUL, ten megabytes and joined emoji come back byte-identical."""
    words = ["a\x00b", "👩‍👩‍👧 é", "long " * 2_000_000 + "end"]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"content": each}) for each in words), "utf-8")
    assert agentmem("import", path).status == 0
    items = agentmem("inspect", "--user", "me", "--json").json["items"]
    assert {item["content"] for item in items} == set(words)


@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_a_directory_is_no_file(agentmem: Agentmem, tmp_path: Path, extra: list[str]) -> None:
    """A directory as input, or as the memory file, is named as such."""
    done = agentmem("import", tmp_path, *extra)
    assert (done.status, "is a directory" in done.err) == (1, True)
    (tmp_path / "a.jsonl").write_text('{"content": "x"}', "utf-8")
    done = agentmem("import", tmp_path / "a.jsonl", "--db", tmp_path, *extra)
    assert (done.status, "is a directory" in done.err) == (1, True)
    if extra:
        assert json.loads(done.err.splitlines()[-1])["error"] == "StorageError"


def test_an_export_can_be_imported(filled: Agentmem, tmp_path: Path) -> None:
    """The words of an export are turns in another file, in their order and nothing twice."""
    export = tmp_path / "ann.jsonl"
    assert filled("export", "--user", "ann", "-o", export).status == 0
    other = ("--db", tmp_path / "other.sqlite")
    assert filled("import", export, "--json", *other).json["new"] == 3
    assert filled("import", export, "--json", *other).json["known"] == 3
    filled("export", "--user", "ann", "-o", tmp_path / "again.jsonl", *other)
    lines = (tmp_path / "again.jsonl").read_text("utf-8").splitlines()
    said = [line["content"] for line in map(json.loads, lines) if "content" in line]
    assert said == [turn["content"] for turn in TURNS[:3]]


def test_a_batch_of_no_turns_is_refused(agentmem: Agentmem, tmp_path: Path) -> None:
    """Instead of being taken for 1."""
    done = agentmem("import", tmp_path / "talk.jsonl", "--batch-size", 0)
    assert done.status == 2
    assert "must be a number of 1 or more, not '0'" in " ".join(done.err.split())
