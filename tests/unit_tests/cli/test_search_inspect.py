"""`agentmem search` and `inspect`: what is there, and why it is recalled."""

import json
from pathlib import Path

import pytest

from tests.unit_tests.cli.conftest import Agentmem


@pytest.mark.parametrize(
    ("query", "content"),
    [("Who is Rex?", "My dog is called Rex."), ("绿茶", "我每天早上喝绿茶。")],
)
def test_search_shows_the_turn(filled: Agentmem, query: str, content: str) -> None:
    """The best match comes first, in both languages, for a person and for a machine."""
    shown = filled("search", query, "--user", "ann").out.splitlines()
    assert "user · conversation t" in shown[0]
    assert shown[1].strip() == content
    found = filled("search", query, "--user", "ann", "--json", "--limit", 1).json
    assert [item["content"] for item in found["items"]] == [content]


def test_search_never_crosses_users(filled: Agentmem) -> None:
    """Bob's allergy is not found in Ann's memory."""
    items = filled("search", "peanuts allergic", "--user", "ann", "--json").json["items"]
    assert "I am allergic to peanuts." not in [item["content"] for item in items]


def test_why_names_the_ingredients(filled: Agentmem) -> None:
    """A recall is explained by the parts of its score."""
    for command in (("search", "dog", "--why"), ("inspect", "--why", "dog")):
        out = filled(*command, "--user", "ann").out
        assert "because of" in out
        assert "lexical" in out


def test_nothing_found_names_the_users_there_are(filled: Agentmem) -> None:
    """Who forgets `--user` is told whose memories there are."""
    done = filled("search", "dog")
    assert done.out == ""
    assert "Nothing is remembered of 'me'. There are memories of: ann, bob." in done.err


def test_inspect_lists_users(filled: Agentmem) -> None:
    """Without a user, everybody is listed with the number of memories."""
    rows = [json.loads(line) for line in filled("inspect", "--json").out.splitlines()]
    assert [(row["user"], row["memories"]) for row in rows] == [("ann", 3), ("bob", 1)]
    assert "ann" in filled("inspect").out
    assert "vectors, records and history included" in filled("inspect").err


def test_inspect_shows_one_memory_with_its_history(filled: Agentmem) -> None:
    """The beginning of a key is enough; the history says where the memory came from."""
    item = filled("search", "dog", "--user", "ann", "--json").json["items"][0]
    done = filled("inspect", item["key"][:8], "--user", "ann")
    assert "v1 ADD" in done.out
    assert "in conversation t" in done.out
    found = filled("inspect", item["key"], "--user", "ann", "--json").json
    assert [entry["event"] for entry in found["history"]] == ["ADD"]
    assert filled("inspect", item["key"], "--user", "bob").status == 1


def test_an_edited_turn_has_a_history(filled: Agentmem, tmp_path: Path) -> None:
    """A turn that is imported again with other words keeps its earlier version."""
    path = tmp_path / "edit.jsonl"
    line = {"user": "cleo", "thread": "t", "id": "1"}
    for content in ("I live in Rome.", "I live in Oslo."):
        path.write_text(json.dumps({**line, "content": content}), "utf-8")
        filled("import", path)
    key = filled("inspect", "--user", "cleo", "--json").json["items"][0]["key"]
    history = filled("inspect", key, "--user", "cleo", "--json").json["history"]
    assert [entry["event"] for entry in history] == ["ADD", "UPDATE"]
    assert history[1]["before"]["content"] == "I live in Rome."


def test_control_characters_do_not_reach_the_terminal(filled: Agentmem, tmp_path: Path) -> None:
    """A stored escape sequence is shown, not executed."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"content": "red \x1b[31m alert \x9b1m", "user": "cleo"}), "utf-8")
    filled("import", path)
    out = filled("search", "alert", "--user", "cleo").out
    assert "␛[31m alert �1m" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("command", [("search", "x"), ("inspect",), ("export",), ("doctor",)])
def test_a_missing_file_is_not_made(
    agentmem: Agentmem, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Reading commands say how to fill the memory instead of making an empty file."""
    done = agentmem(*command)
    assert done.status == 1
    assert "agentmem import" in done.out + done.err
    assert not (tmp_path / "memory.sqlite").exists()


def test_as_of_shows_the_past(filled: Agentmem, tmp_path: Path) -> None:
    """What was said after a time is not recalled as of it."""
    path = tmp_path / "a.jsonl"
    said = [{"content": f"I paint in {year}.", "time": f"{year}-01-01"} for year in (2020, 2024)]
    path.write_text("\n".join(json.dumps({**each, "user": "cleo"}) for each in said), "utf-8")
    filled("import", path)
    found = filled("search", "paint", "--user", "cleo", "--as-of", "2022-01-01", "--json").json
    assert [item["content"] for item in found["items"]] == ["I paint in 2020."]


def test_inspect_as_of_lists_what_was_known_then(filled: Agentmem, tmp_path: Path) -> None:
    """The option was taken and had no effect on users, memories and a history."""
    path = tmp_path / "a.jsonl"
    line = {"user": "cleo", "thread": "t", "id": "1"}
    for year, content in ((2020, "I live in Rome."), (2024, "I live in Oslo.")):
        path.write_text(json.dumps({**line, "content": content, "time": f"{year}-01-01"}), "utf-8")
        filled("import", path)
    path.write_text(json.dumps({"user": "cleo", "content": "Old.", "time": "2019-01-01"}), "utf-8")
    filled("import", path)
    then = ("--user", "cleo", "--as-of", "2019-06-01")
    listed = filled("inspect", *then, "--json").json
    assert [item["content"] for item in listed["items"]] == ["Old."]
    (row,) = [
        found
        for found in map(
            json.loads, filled("inspect", "--as-of", "2019-06-01", "--json").out.splitlines()
        )
        if found["user"] == "cleo"
    ]
    assert (row["memories"], row["last"]) == (1, "2019-01-01")
    key = filled("inspect", "--user", "cleo", "--json").json["items"][0]["key"]
    assert filled("inspect", key, *then).status == 1
    assert filled("inspect", "--queue", "--as-of", "2019-06-01").status == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("sing",),
        ("search",),
        ("search", " "),
        ("search", "\udcff"),
        ("search", "x", "--limit", "-1"),
        ("search", "x", "--as-of", "soon"),
        ("import",),
        ("import", "x", "--format", "xml"),
        ("forget",),
        ("forget", "key", "--all"),
    ],
)
def test_wrong_usage_is_explained(agentmem: Agentmem, arguments: tuple[str, ...]) -> None:
    """Wrong usage ends with status 2 and the usage on stderr."""
    done = agentmem(*arguments)
    assert done.status == 2
    assert done.err.startswith("usage: agentmem")


@pytest.mark.parametrize("part", ["made", "asked"])
def test_an_embedding_model_without_a_key_is_explained(
    filled: Agentmem, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Whether the provider's client misses it when it is made or when it is asked first."""

    class Remote:
        def embed_query(self, text: str) -> list[float]:
            msg = f"no key to embed {text}"
            raise RuntimeError(msg)

    def make(spec: str) -> Remote:
        if part == "made":
            msg = f"no key for {spec}"
            raise RuntimeError(msg)
        return Remote()

    monkeypatch.setattr("langchain_agentmem.embeddings.ensure_embeddings", make)
    done = filled("search", "dog", "--user", "ann", "--embed", "openai:some-model")
    assert done.status == 1
    assert "The embedding model 'openai:some-model' cannot be used: no key" in " ".join(
        done.err.split()
    )
