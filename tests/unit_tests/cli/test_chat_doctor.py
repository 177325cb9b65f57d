"""`agentmem chat` and `doctor`, and what every command has in common."""

import sqlite3
from pathlib import Path

import pytest

from langchain_agentmem.embeddings import WordLlamaEmbeddings
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.cli.conftest import Agentmem


def test_chat_quotes_in_the_next_process(agentmem: Agentmem) -> None:
    """What was said in one chat is quoted with its date in another, and no model is claimed."""
    agentmem("chat", "-m", "My dog is called Rex.", "--thread", "monday")
    out = agentmem("chat", "-m", "What is my dog called?").out
    assert "No language model is configured" in out
    assert "· user · conversation monday]\nMy dog is called Rex." in out


def test_chat_takes_lines_of_stdin(agentmem: Agentmem) -> None:
    """Each line is a turn; each answer is one JSON object."""
    done = agentmem("chat", "--json", stdin="我对花生过敏。\n\n我对什么过敏\n")
    assert len(done.out.splitlines()) == 2
    assert done.json["user"] == "我对什么过敏"
    assert [each["content"] for each in done.json["recalled"]] == ["我对花生过敏。"]


def test_chat_on_a_terminal(agentmem: Agentmem) -> None:
    """A person is greeted with whose memory it is, and leaves with /quit or Ctrl-D."""
    done = agentmem("chat", typed="I play chess.\n\n/quit\nunheard\n")
    assert "Memory of me" in done.err
    assert agentmem("inspect", "--user", "me", "--json").json["total"] == 1
    assert agentmem("chat", typed="").status == 0


def test_chat_survives_a_turn_that_is_no_text(agentmem: Agentmem) -> None:
    """Bytes that are not UTF-8 cost their turn, not the conversation."""
    done = agentmem("chat", stdin="bad \udcff\nfine\n")
    assert (done.status, "not UTF-8" in done.err) == (1, True)
    items = agentmem("inspect", "--user", "me", "--json").json["items"]
    assert [item["content"] for item in items] == ["fine"]


def test_chat_with_a_model(agentmem: Agentmem, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model that `--model` names answers, with what is recalled in its request."""
    model = ScriptedChatModel(replies=["Noted.", ConnectionError("no route"), "Rex."])
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda *_, **__: model)
    done = agentmem("chat", "--model", "x:y", stdin="My dog is Rex.\nHello?\nMy dog?\n")
    assert done.out.split() == ["Noted.", "Rex."]
    assert "ConnectionError: no route" in done.err
    assert "user] My dog is Rex." in model.requests[2].text
    model.check()


def test_chat_explains_a_model_that_cannot_be_used(agentmem: Agentmem) -> None:
    """A name without a provider is an error with a way out, before anything is said."""
    done = agentmem("chat", "--model", "nonsense", "-m", "Hi")
    assert done.status == 1
    assert "--model none" in done.err
    assert "Traceback" not in done.err


def test_doctor_finds_a_sound_file(filled: Agentmem) -> None:
    """Every check of a sound file is ok, with the numbers."""
    found = filled("doctor", "--json").json
    checks = {check["name"]: check["detail"] for check in found["checks"]}
    assert found["ok"] is True
    assert checks["integrity"] == "ok"
    assert checks["embedded with"].endswith(WordLlamaEmbeddings.name)
    assert "4 texts indexed, 4 with a vector" in checks["items"]
    assert "ok" in filled("doctor").out


def test_doctor_repairs_the_index(filled: Agentmem, tmp_path: Path) -> None:
    """Vectors and words that were lost are made from the memories anew."""
    with sqlite3.connect(tmp_path / "memory.sqlite") as connection:
        connection.execute("INSERT INTO words(words) VALUES ('delete-all')")
        connection.execute("UPDATE units SET vector = NULL")
    connection.close()
    assert filled("doctor", "--json").json["ok"] is False
    repaired = filled("doctor", "--repair", "--json").json
    assert (repaired["ok"], repaired["reindexed"] > 0) == (True, True)
    items = filled("search", "绿茶", "--user", "ann", "--json").json["items"]
    assert items[0]["content"] == "我每天早上喝绿茶。"


def test_doctor_takes_a_file_over_to_another_model(
    filled: Agentmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another model is refused until `--reembed` embeds everything anew; nothing is lost."""
    monkeypatch.setattr(WordLlamaEmbeddings, "name", "another:model")
    refused = filled("search", "dog", "--user", "ann")
    assert (refused.status, "doctor --reembed" in refused.err) == (1, True)
    checked = filled("doctor", "--json")
    assert (checked.status, checked.json["checks"][-4]["name"]) == (1, "index")
    assert filled("doctor", "--repair").status == 1
    assert filled("doctor", "--reembed").status == 0
    assert filled("search", "dog", "--user", "ann", "--json").json["items"]


def test_a_newer_file_is_left_alone(filled: Agentmem, tmp_path: Path) -> None:
    """A file of a newer version is refused by every command and not touched."""
    path = tmp_path / "memory.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    for command in (("search", "x"), ("import", tmp_path / "talk.jsonl"), ("doctor",)):
        done = filled(*command)
        assert done.status == 1
        assert "upgrade the package" in " ".join((done.out + done.err).split())
    assert path.read_bytes() == before


def test_a_file_that_is_no_memory_is_left_alone(agentmem: Agentmem, tmp_path: Path) -> None:
    """Something else under the path is named and not touched."""
    path = tmp_path / "memory.sqlite"
    path.write_text("These are my notes, and no database at all. " * 50, "utf-8")
    done = agentmem("chat", "-m", "Hi")
    assert (done.status, "not a sound SQLite database" in done.err) == (1, True)
    assert path.read_text("utf-8").startswith("These are my notes")


def test_help_names_every_command(agentmem: Agentmem) -> None:
    """The help shows all commands and the environment."""
    done = agentmem("--help")
    assert done.status == 0
    commands = ("chat", "import", "search", "inspect", "forget", "export", "doctor")
    assert all(f"    {command} " in done.out for command in commands)
    assert "AGENTMEM_DB" in done.out
    assert agentmem("--version").out.startswith("agentmem 0.")
