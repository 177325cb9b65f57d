"""Costs: growth with a scripted model, estimates, drafted questions, the cache of replies."""

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from langchain_agentmem.evaluation.benchmark import estimate
from langchain_agentmem.evaluation.datasets import conversations
from langchain_agentmem.evaluation.datasets.own import question_line, with_questions
from langchain_agentmem.evaluation.drafting import draft
from langchain_agentmem.evaluation.growth import measure_growth
from langchain_agentmem.evaluation.meter import Budget, ReplyCache, metered
from langchain_agentmem.evaluation.runner import Runner
from langchain_agentmem.evaluation.simulation import (
    SimulatedChatModel,
    generated_question,
    generated_turns,
)
from langchain_agentmem.evaluation.systems import SYSTEMS, system
from langchain_agentmem.testing import CharacterEmbeddings, ScriptedChatModel
from tests.unit_tests.evaluation.small import dataset, equipment, scope


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_growth_of_every_system_can_be_measured(name: str) -> None:
    """Each memory writes generated turns with the simulated model and is asked about them."""
    embeddings = CharacterEmbeddings()
    found = measure_growth([system(name)], lambda _: embeddings, sizes=(6, 10))
    assert [each["turns"] for each in found] == [6, 10]
    assert system(name).needs_model or found[0]["write_calls"] == 0
    assert name not in ("AMem", "LangMem", "Mem0") or found[0]["write_calls"] > 0
    assert found[1]["kilobytes"] >= found[0]["kilobytes"]
    assert not found[1]["stopped"]


def test_growth_stops_at_its_limit_of_time() -> None:
    """A slow memory is measured where it stands, and marked."""
    ticks = itertools.count()
    embeddings = CharacterEmbeddings()
    (found,) = measure_growth(
        [system("Mem0")],
        lambda _: embeddings,
        sizes=(1000, 5000),
        seconds=60,
        timer=lambda: float(next(ticks)),
    )
    assert found["stopped"]
    assert 0 < found["turns"] < 100
    assert found["write_ms"] > 0
    assert found["write_calls"] > 0


def test_generated_turns_are_the_same_for_a_seed() -> None:
    """A simulation can be repeated, and its questions use the words of a turn."""
    first, second = (list(itertools.islice(generated_turns(3), 30)) for _ in range(2))
    assert first == second
    assert first != list(itertools.islice(generated_turns(4), 30))
    assert {turn.session for turn in first} == {"0", "1"}
    asked = generated_question(first[0], random.Random(0))  # noqa: S311 - no secret
    assert set(asked.rstrip("?").split()) <= set(first[0].content.rstrip(".").split())


def test_the_simulated_model_answers_in_any_form() -> None:
    """References, choices, lists and free content are filled, the optional is left out."""
    inner = {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}, "any": {"description": "text or object"}},
        "required": ["kind"],
    }
    schema = {
        "title": "Form",
        "type": "object",
        "$defs": {"Inner": inner},
        "properties": {
            "many": {"type": "array", "items": {"$ref": "#/$defs/Inner"}},
            "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "flag": {"type": "boolean"},
            "left": {"type": "string"},
        },
        "required": ["many", "count", "flag"],
    }
    model = SimulatedChatModel()
    bound = model.bind_tools([schema])
    (call,) = bound.invoke("some words").tool_calls
    assert call["args"] == {
        "many": [{"kind": "a", "any": "some words"}],
        "count": 0,
        "flag": False,
    }
    assert model.invoke("some words").text == "some words"
    assert len(model.requests) <= 1


def test_an_estimate_says_what_is_left_without_asking_a_model() -> None:
    """Calls, tokens and seconds of every system and data set, from a trial of the first turns."""
    model = ScriptedChatModel(replies=[])
    specs = [system("bm25"), system("Mem0")]
    runner = Runner(specs, [dataset()], equipment(model=model, answerer=model))
    plain, written = estimate(runner)
    assert (plain["turns"], plain["questions"]) == (8, 8)
    assert plain["calls"] == 8  # one answer a question
    assert written["calls"] > plain["calls"]
    assert written["input_tokens"] > plain["input_tokens"] > 0
    assert model.requests == []


def test_an_estimate_leaves_out_what_is_known(tmp_path: Path) -> None:
    """A run that is done costs nothing more."""
    runner = Runner([system("bm25")], [dataset()], equipment(), folder=tmp_path)
    list(runner.run())
    assert estimate(Runner([system("bm25")], [dataset()], equipment(), folder=tmp_path)) == []


def _drafts(messages: list[BaseMessage]) -> dict[str, Any]:
    if "dog" in str(messages[-1].content):
        return {"question": "Which name has the dog?", "answer": "Rex", "evidence": [0, 9]}
    return {"question": "", "evidence": []}


def test_drafted_questions_are_marked_and_can_be_kept(tmp_path: Path) -> None:
    """Evidence is what was shown, empty drafts are left out, and the file reads back the same."""
    data = dataset(scope("ann", ()))
    model = ScriptedChatModel(replies=_drafts)
    drafted = draft(model, data, 2)
    (question,) = drafted["ann"]
    assert question.drafted
    assert question.evidence == {"0"}
    assert with_questions(data, drafted).notes == ("1 of the questions were drafted by a model.",)
    talk, kept = tmp_path / "talk.jsonl", tmp_path / "questions.jsonl"
    talk.write_text('{"user": "ann", "id": "0", "content": "My dog is called Rex."}')
    kept.write_text(question_line("ann", question))
    assert conversations([talk], kept).scopes[0].questions == [question]


def test_replies_survive_in_the_cache_with_their_usage(tmp_path: Path) -> None:
    """A second process replays text, tool calls and token counts, and spends nothing."""
    reply = AIMessage("", tool_calls=[{"name": "f", "args": {"x": "\u2028é"}, "id": "1"}])
    path, budget = tmp_path / "replies.jsonl", Budget()
    first, _ = metered(ScriptedChatModel(replies=[reply]), Budget(), ReplyCache(path))
    assert first is not None
    said = first.invoke("hi")
    second, meter = metered(ScriptedChatModel(replies=[]), budget, ReplyCache(path))
    assert second is not None
    replayed = second.invoke("hi")
    assert replayed.tool_calls == said.tool_calls
    assert replayed.usage_metadata["input_tokens"] == said.usage_metadata["input_tokens"]  # type: ignore[index]
    used = meter.take()
    assert (used.calls, used.replayed, budget.spent) == (1, 1, 0)
    assert meter.take().calls == 0


def test_another_prompt_is_not_answered_from_the_cache(tmp_path: Path) -> None:
    """Only the very same request is replayed."""
    model, meter = metered(
        ScriptedChatModel(replies=["a", "b"]), Budget(), ReplyCache(tmp_path / "replies.jsonl")
    )
    assert model is not None
    assert [model.invoke(text).text for text in ("1", "2", "1")] == ["a", "b", "a"]
    assert meter.take().replayed == 1
