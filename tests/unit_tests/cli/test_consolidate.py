"""`agentmem consolidate`: the queue is worked off from the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.consolidation import MemoryQueue
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.cli.conftest import Agentmem


def of(user: str) -> Any:  # noqa: ANN401 - a config
    """Return a user's config."""
    return {"configurable": {"user_id": user, "thread_id": "monday"}}


def reply(fact: str) -> dict[str, Any]:
    """Return what a model extracts."""
    return {"memories": [{"action": "create", "content": fact}]}


@pytest.fixture
def waiting(agentmem: Agentmem, tmp_path: Path) -> Agentmem:
    """A file in which a turn of ann is due, and one of bob in an hour."""
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        queue = MemoryQueue(store=store)
        queue.submit("I moved to Rome.", config=of("ann"), after_seconds=0)
        queue.submit("I moved to Oslo.", config=of("bob"), after_seconds=3600)
    return agentmem


def scripted(monkeypatch: pytest.MonkeyPatch, *replies: Any) -> ScriptedChatModel:  # noqa: ANN401 - what a scripted model takes
    """Let `--model` name a scripted model."""
    model = ScriptedChatModel(replies=list(replies))
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda *_, **__: model)
    return model


def contents(agentmem: Agentmem, user: str) -> list[str]:
    """Return what a user's memories say."""
    items = agentmem("inspect", "--user", user, "--json").json["items"]
    return [item["content"] for item in items]


def test_what_is_due_becomes_memory_and_the_rest_waits(
    waiting: Agentmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ann's turn is consolidated once; bob's keeps its time; a second run has nothing to do."""
    model = scripted(monkeypatch, reply("Ann lives in Rome."))
    done = waiting("consolidate", "--model", "x:y")
    assert (done.status, "1 added" in done.out) == (0, True)
    assert contents(waiting, "ann") == ["Ann lives in Rome."]
    assert "1 pending" in waiting("inspect", "--queue").err
    again = waiting("consolidate", "--model", "x:y", "--json")
    assert again.json == {"done": True, "consolidated": 0, "not_done": 0}
    model.check()


def test_now_takes_what_is_not_due_of_one_user(
    waiting: Agentmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --now and --user bob's turn is consolidated, and ann's, which is due, is not."""
    scripted(monkeypatch, reply("Bob lives in Oslo."))
    done = waiting("consolidate", "--model", "x:y", "--now", "--user", "bob", "--json")
    assert done.json == {"done": True, "consolidated": 1, "not_done": 0}
    assert contents(waiting, "bob") == ["Bob lives in Oslo."]
    assert "1 pending" in waiting("inspect", "--queue").err


def test_a_dry_run_takes_a_long_batch_in_the_parts_of_a_real_one(
    agentmem: Agentmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model is shown 100 messages at once, whether something is written or not."""
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        said = [("user", f"Fact {number}.") for number in range(150)]
        MemoryQueue(store=store, after_seconds=0).submit(said, config=of("ann"))
    for options in (["--dry-run"], []):
        model = scripted(monkeypatch, reply("One."), reply("Two."))
        done = agentmem("consolidate", "--model", "x:y", *options)
        assert done.status == 0
        model.check()
    assert sorted(contents(agentmem, "ann")) == ["One.", "Two."]


@pytest.mark.parametrize("now", [False, True])
def test_a_dry_run_shows_and_changes_nothing(
    waiting: Agentmem, monkeypatch: pytest.MonkeyPatch, *, now: bool
) -> None:
    """What would be added is shown; both batches wait as before, for the same time."""
    before = waiting("inspect", "--queue", "--json").out
    facts = ["Ann lives in Rome.", *(["Bob lives in Oslo."] if now else [])]
    scripted(monkeypatch, *map(reply, facts))
    arguments = ["consolidate", "--model", "x:y", "--dry-run", "--json", *(["--now"] * now)]
    *rows, last = map(json.loads, waiting(*arguments).out.splitlines())
    shown = [op["after"]["content"] for row in rows for op in row["operations"]]
    assert (shown, last) == (facts, {"done": True, "would_consolidate": len(facts)})
    assert waiting("inspect", "--queue", "--json").out == before
    scripted(monkeypatch, reply("Ann lives in Rome."))
    done = waiting("consolidate", "--model", "x:y", "--dry-run", "--user", "ann")
    assert "ADD" in done.out
    assert "Ann lives in Rome." in done.out


def test_a_failure_is_told_and_tried_again_later(
    waiting: Agentmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit status is 1, the batch is kept with its error and its messages."""
    scripted(monkeypatch, OSError("down"))
    done = waiting("consolidate", "--model", "x:y", "--json")
    assert (done.status, done.json["not_done"]) == (1, 1)
    row = json.loads(done.out.splitlines()[0])
    assert (row["state"], row["attempts"], row["messages"]) == ("pending", 1, 1)
    assert "ModelCallError" in row["error"]


def test_another_memory_and_a_wrong_one(waiting: Agentmem) -> None:
    """A memory that asks no model needs none; names that cannot be used say what to do."""
    assert waiting("consolidate", "--memory", "RAGMemory:limit=3").status == 0
    assert contents(waiting, "ann") == ["I moved to Rome."]
    assert "--model" in waiting("consolidate").err
    assert "writes no memory" in waiting("consolidate", "--memory", "bm25").err
    assert "there are" in waiting("consolidate", "--memory", "nonsense").err
    for parameter in ("nonsense", "store"):
        wrong = waiting("consolidate", "--memory", f"RAGMemory:{parameter}=1")
        assert (wrong.status, parameter in wrong.err) == (1, True)


def test_an_import_may_be_queued(
    agentmem: Agentmem, talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns of each user and thread are queued once, however often they are imported."""
    for _ in range(2):
        assert "queued for" in agentmem("import", talk, "--queue", "--batch-size", 1).out
    assert agentmem("import", talk, "--queue", "--json").json["queued"] == 4
    scripted(monkeypatch, reply("Ann has a dog."), reply("Bob eats no peanuts."))
    done = agentmem("consolidate", "--model", "x:y", "--json")
    assert done.json["consolidated"] == 2
    assert sorted(contents(agentmem, "ann") + contents(agentmem, "bob")) == [
        "Ann has a dog.",
        "Bob eats no peanuts.",
    ]
    refused = agentmem("import", talk, "--queue", "--format", "mem0")
    assert (refused.status, "--queue" in refused.err) == (1, True)


def test_batches_of_another_namespace_are_left_alone(
    waiting: Agentmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was queued for a team is not remembered of the user who said it."""
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        team: Any = {"configurable": {"user_id": "ann", "team": "red"}}
        queue = MemoryQueue(("teams", "{team}"), store=store)
        queue.submit("We ship on Friday.", config=team, after_seconds=0)
    scripted(monkeypatch, reply("Ann lives in Rome."))
    done = waiting("consolidate", "--model", "x:y", "--json")
    assert done.json == {"done": True, "consolidated": 1, "not_done": 0}
    assert "Left alone: 1 waiting" in done.err
    assert "2 pending" in waiting("inspect", "--queue").err
