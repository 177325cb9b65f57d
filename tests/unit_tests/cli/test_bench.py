"""`agentmem bench`: on data sets, on one's own conversations, within limits."""

import json
from pathlib import Path
from typing import Any

import pytest

from langchain_agentmem.cli import _bench
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.cli.conftest import TURNS, Agentmem

QUESTIONS = [
    {"user": "ann", "question": "What is my dog called?", "evidence": ["m0"], "answer": "Rex"},
    {"user": "bob", "question": "What am I allergic to?", "evidence": ["m3"], "must_not": ["m3"]},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with conversations and questions, in which the command runs."""
    lines = [{**turn, "id": f"m{at}"} for at, turn in enumerate(TURNS)]
    for name, rows in (("talk.jsonl", lines), ("questions.jsonl", QUESTIONS)):
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


OWN = ("bench", "--conversations", "talk.jsonl", "--questions", "questions.jsonl")


def _report(folder: Path) -> Any:  # noqa: ANN401 - any JSON
    return json.loads((folder / "agentmem-bench/report.json").read_text("utf-8"))


def test_own_conversations_are_measured_beside_the_baselines(
    agentmem: Agentmem, folder: Path
) -> None:
    """One command gives a table and three reports that say the same."""
    done = agentmem(*OWN)
    assert done.status == 0, done.err
    assert "| RAGMemory | 100.0" in done.out
    names = [each["name"] for each in _report(folder)["datasets"][0]["systems"]]
    assert names == ["nothing", "last_turns", "full_context", "bm25", "dense", "RAGMemory"]
    assert "RAGMemory" in (folder / "agentmem-bench/report.md").read_text("utf-8")
    assert "<svg" in (folder / "agentmem-bench/report.html").read_text("utf-8")


def test_a_second_run_is_read_from_what_was_kept(
    agentmem: Agentmem, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is measured twice, and the figures stay."""
    agentmem(*OWN, "--memory", "RAGMemory")
    first = _report(folder)
    monkeypatch.setattr("langchain_agentmem.evaluation.runner.Trial", None)
    assert agentmem(*OWN, "--memory", "RAGMemory").status == 0
    assert _report(folder) == first


def test_a_dry_run_says_what_it_costs_and_measures_nothing(
    agentmem: Agentmem, folder: Path
) -> None:
    """Calls and tokens of a memory that a model writes are known without a model."""
    done = agentmem(*OWN, "--memory", "Mem0", "--dry-run", "--price", "1,2", "--json")
    rows = {each["system"]: each for each in done.json["estimate"]}
    assert rows["bm25"]["calls"] == 0
    assert rows["Mem0"]["calls"] > 0
    assert {"input_tokens", "output_tokens", "price", "seconds"} <= rows["Mem0"].keys()
    assert not (folder / "agentmem-bench/report.json").exists()


def test_memories_without_their_model_are_left_out_and_named(
    agentmem: Agentmem, folder: Path
) -> None:
    """No verbatim fallback poses as a memory that a model writes."""
    done = agentmem(*OWN, "--memory", "Mem0", "--memory", "RAGMemory")
    assert "left out: Mem0: a chat model writes this memory" in done.err
    assert _report(folder)["skipped"]
    assert "Mem0" not in done.out


def test_a_memory_whose_embedding_model_is_missing_is_left_out(
    agentmem: Agentmem, folder: Path
) -> None:
    """The rest is measured, and the report says what to install or to name."""
    done = agentmem(*OWN, "--memory", "RAGMemory", "--memory", "RAGMemory:embed=nope")
    assert done.status == 0, done.err
    assert "left out: RAGMemory:embed=nope: Unknown embedding model" in done.err
    assert len(_report(folder)["skipped"]) == 1


def test_a_model_writes_and_answers(
    agentmem: Agentmem, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answering model's F1 stands in the table."""
    model = ScriptedChatModel(replies=lambda _: "Rex")
    monkeypatch.setattr(_bench, "chat_model", lambda *_, **__: model)
    done = agentmem(*OWN, "--answer", "any:model", "--limit", "1", "--json")
    assert done.status == 0, done.err
    rag = done.json["datasets"][0]["systems"][-1]
    assert rag["measures"]["all"]["F1"]["mean"] == 1
    assert _report(folder)["settings"]["answering model"].startswith("scripted")


def test_questions_can_be_drafted_and_are_kept(
    agentmem: Agentmem, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drafts are marked, saved for reading, and measured."""
    reply = {"question": "Which dog?", "answer": "Rex", "evidence": [0]}
    model = ScriptedChatModel(replies=lambda messages: reply if "[0]" in messages[-1].text else "x")
    monkeypatch.setattr(_bench, "chat_model", lambda *_, **__: model)
    command = ("bench", "--conversations", "talk.jsonl", "--draft", "1", "--answer", "any:model")
    done = agentmem(*command)
    assert done.status == 0, done.err
    rows = (folder / "agentmem-bench/questions.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(row)["drafted"] for row in rows] == [True, True]
    assert "2 of the questions were drafted by a model." in str(_report(folder))


def test_growth_alone_needs_no_data(agentmem: Agentmem, folder: Path) -> None:
    """How costs grow is a table of its own."""
    done = agentmem("bench", "--growth", "--sizes", "4,8", "--memory", "RAGMemory")
    assert done.status == 0, done.err
    assert [each["turns"] for each in _report(folder)["growth"]] == [4, 8]
    assert "| RAGMemory | 8 |" in done.out


def test_memories_and_data_sets_are_listed(agentmem: Agentmem) -> None:
    """What can be named is shown."""
    done = agentmem("bench", "--list")
    assert "RAGMemory" in done.out
    assert "locomo, musique, memdaily, precision" in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Nothing to measure"),
        (("--memory", "Nope", "--growth"), "is no memory"),
        (("--data", "nowhere"), "nowhere is no folder with a data set; it has locomo, musique"),
        ((*OWN[1:], "--memory", "Mem0"), "No memory is left to measure. Mem0: a chat model writes"),
        (("--conversations", "talk.jsonl", "--draft", "1"), "needs a chat model"),
        (("--data", ".", "--dataset", "locomo"), "has no locomo"),
        ((*OWN[1:], "--memory", "RAGMemory:foo=1"), "Unknown parameter 'foo'"),
        ((*OWN[1:], "--reference", "nope"), "--reference 'nope' is not measured; choose one of"),
    ],
)
def test_wrong_usage_says_what_to_do(
    agentmem: Agentmem, folder: Path, options: tuple[str, ...], message: str
) -> None:
    """Errors are explained, and nothing is written."""
    done = agentmem("bench", *options)
    assert done.status == 1
    assert message in " ".join(done.err.split())
    assert not (folder / "agentmem-bench").exists()


@pytest.mark.parametrize(
    "option", [("--limit", "0"), ("--sizes", "a,b"), ("--price", "1"), ("--workers", "-1")]
)
def test_numbers_that_make_no_sense_are_refused(
    agentmem: Agentmem, option: tuple[str, str]
) -> None:
    """Wrong usage ends with status 2."""
    assert agentmem("bench", *option).status == 2


def test_a_file_in_the_place_of_the_folder_is_refused(agentmem: Agentmem, folder: Path) -> None:
    """The message names what was given, before anything runs."""
    done = agentmem(*OWN, "--out", "talk.jsonl")
    assert done.status == 2
    assert "'talk.jsonl' is a file; name a folder" in " ".join(done.err.split())
    assert not (folder / "agentmem-bench").exists()
