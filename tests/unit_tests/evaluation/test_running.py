"""Runs: figures, failures, scopes, time, resuming, budgets, determinism."""

import json
import logging
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from langchain_agentmem.evaluation.answering import ANSWER_PROMPT, JUDGE_PROMPT, refuses
from langchain_agentmem.evaluation.data import Question
from langchain_agentmem.evaluation.meter import Budget, StoppedError
from langchain_agentmem.evaluation.runner import Runner
from langchain_agentmem.evaluation.systems import SystemSpec, system
from langchain_agentmem.evaluation.trial import Trial
from langchain_agentmem.memories import Mem0
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.evaluation.small import (
    ASKED,
    dataset,
    equipment,
    everything,
    of,
    report,
    scope,
)


def _rex(messages: list[BaseMessage]) -> str:
    """Answer as a model that finds the dog's name and refuses all else."""
    asked = str(messages[-1].content)
    if JUDGE_PROMPT in str(messages[0].content):
        return "CORRECT" if "check: Rex" in asked else "WRONG"
    return "Rex" if "dog" in asked.rsplit("Question:", 1)[-1] else "Not mentioned."


def test_figures_agree_with_hand_computed_values() -> None:
    """Everything, newest first, finds the three counted questions at ranks 4, 2 and 1."""
    found = of(report(everything()), "everything")["measures"]
    assert found["all"]["R@1"]["mean"] == pytest.approx(1 / 3)
    assert found["all"]["R@3"]["mean"] == pytest.approx(2 / 3)
    assert found["all"]["MRR"]["mean"] == pytest.approx((1 / 4 + 1 / 2 + 1) / 3)
    assert found["all"]["in prompt"] == {"mean": 1, "low": 1, "high": 1, "n": 6}
    assert found["all"]["must-not"]["mean"] == 2
    assert found["all"]["clean"]["mean"] == 0


def test_known_wrong_questions_are_counted_with_and_without() -> None:
    """The doubtful question is in one figure and not in the other; category 5 is in neither."""
    found = of(report(everything()), "everything")["measures"]
    assert found["all"]["R@1"]["n"] == 6
    assert found["without known-wrong"]["R@1"] == {"mean": 0, "low": 0, "high": 0, "n": 4}
    assert found["category 5"]["R@1"]["n"] == 2


def test_two_runs_give_identical_reports() -> None:
    """The same seed, clock and timer give the same JSON to the last byte."""
    first, second = (json.dumps(report()) for _ in range(2))
    assert first == second


def test_a_question_that_fails_counts_as_wrong(caplog: pytest.LogCaptureFixture) -> None:
    """One failure neither ends the run nor leaves the denominator, and it is listed."""
    caplog.set_level(logging.ERROR)
    found = of(report(everything(fails_at="cello?")), "everything")
    assert found["measures"]["all"]["R@3"]["n"] == 6
    assert found["measures"]["all"]["R@3"]["mean"] == pytest.approx(1 / 3)
    assert found["failures"]["n"] == 2
    assert found["failures"]["first"][0] == "ann, question 2: RuntimeError: out of order"
    assert "F1" not in found["measures"]["all"]


def test_a_turn_that_cannot_be_written_is_listed(caplog: pytest.LogCaptureFixture) -> None:
    """What else is written is measured all the same."""
    caplog.set_level(logging.ERROR)
    found = of(report(everything(fails_at="harbor")), "everything")
    assert found["failures"]["first"][0] == "ann, writing 0: RuntimeError: no room"
    assert found["measures"]["all"]["in prompt"]["mean"] == pytest.approx(2 / 3)


def test_a_system_that_cannot_be_built_fails_every_question() -> None:
    """A wrong parameter is a failure of that system, not the end of the run."""
    result = report(system("bm25"), SystemSpec(name="bad", make=Mem0, parameters={"nope": 1}))
    assert of(result, "bad")["failures"]["n"] == 10
    assert "Unknown parameter 'nope'" in of(result, "bad")["failures"]["first"][0]
    assert of(result, "bm25")["failures"]["n"] == 0


def test_a_leak_between_conversations_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever carries another conversation's id fails the question."""
    caplog.set_level(logging.ERROR)
    found = of(report(everything(leaks=True)), "everything")
    assert found["failures"]["n"] == 8
    assert "LeakedScopeError" in found["failures"]["first"][0]


def test_a_dated_question_sees_only_what_was_said_before_it() -> None:
    """Later turns are written after the question, and the clock shows its time."""
    moment = datetime(2026, 1, 2, 12, tzinfo=UTC)
    asked = (*ASKED, Question(text="So far?", evidence=frozenset({"0", "3"}), asked_at=moment))
    trial = Trial(everything(), dataset(), scope("ann", asked), equipment())
    unit = trial.run()
    assert unit.asked[4].results == [["1"], ["0"]]
    assert unit.asked[0].results == [["3"], ["2"], ["1"], ["0"]]
    assert unit.turns == 4


def test_the_clock_shows_the_conversation_not_today() -> None:
    """A memory's timestamps come from the data set, so that a rerun gives the same store."""
    trial = Trial(system("RAGMemory"), dataset(), scope(), equipment())
    trial.run()
    assert trial.clock() == datetime(2026, 1, 4, tzinfo=UTC)


def test_a_known_result_is_not_run_again(tmp_path: Path) -> None:
    """The second run reads everything from the folder and gives the same report."""
    first = report(folder=tmp_path)
    specs = [system(name) for name in ("nothing", "bm25", "RAGMemory")]
    assert Runner(specs, [dataset()], equipment(), folder=tmp_path).todo == []
    assert report(folder=tmp_path) == first


def test_results_are_known_by_their_content(tmp_path: Path) -> None:
    """Another turn, parameter, seed or limit is another result."""
    report(everything(), folder=tmp_path)
    changed = replace(scope("ann"), turns=scope("ann").turns[:3])

    def left(spec: SystemSpec = everything(), **given: int) -> int:  # noqa: B008 - a value
        return len(Runner([spec], [dataset()], equipment(**given), folder=tmp_path).todo)

    assert left() == 0
    assert left(everything(leaks=True)) == 2
    assert left(seed=1) == 2
    assert left(limit=5) == 2
    data = dataset(changed, scope("bob"))
    assert len(Runner([everything()], [data], equipment(), folder=tmp_path).todo) == 1


def test_failed_results_are_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Only whole results are kept."""
    caplog.set_level(logging.ERROR)
    report(everything(fails_at="cello?"), folder=tmp_path)
    left = Runner([everything(fails_at="cello?")], [dataset()], equipment(), folder=tmp_path).todo
    assert len(left) == 2


def test_a_run_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    """A half line at the end, as a kill leaves it, costs one result and no more."""
    report(everything(), folder=tmp_path)
    path = tmp_path / "units.jsonl"
    path.write_text(path.read_text()[:-40])
    assert len(Runner([everything()], [dataset()], equipment(), folder=tmp_path).todo) == 1
    report(everything(), folder=tmp_path)
    assert Runner([everything()], [dataset()], equipment(), folder=tmp_path).todo == []


def test_replies_are_replayed_after_a_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A model is not asked twice for what it has answered, and replayed calls have no latency."""
    caplog.set_level(logging.ERROR)
    model = ScriptedChatModel(replies=_rex)
    spec = everything(fails_at="cello?")
    data = dataset(scope("ann"))
    report(spec, data=data, folder=tmp_path, answerer=model)
    found = of(report(spec, data=data, folder=tmp_path, answerer=model), "everything")
    assert len(model.requests) == 3
    assert found["answer"]["calls"] == 3
    assert found["answer"]["timed"] == 0


def test_a_spent_budget_stops_the_run_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """Questions behind the limit fail with the reason, and no further call is made."""
    caplog.set_level(logging.ERROR)
    model = ScriptedChatModel(replies=_rex)
    found = of(report(everything(), answerer=model, budget=Budget(1)), "everything")
    assert len(model.requests) == 1
    assert found["failures"]["n"] == 8
    assert "The budget of 1 tokens is spent" in found["failures"]["first"][0]


def test_answers_are_measured_and_refusals_counted() -> None:
    """One of three counted questions is answered right; category 5 is refused rightly."""
    found = of(report(everything(), answerer=ScriptedChatModel(replies=_rex)), "everything")
    assert found["measures"]["all"]["F1"]["mean"] == pytest.approx(1 / 3)
    assert found["measures"]["all"]["EM"]["mean"] == pytest.approx(1 / 3)
    assert found["measures"]["all"]["refused"]["mean"] == pytest.approx(2 / 3)
    assert found["measures"]["category 5"]["refused"]["mean"] == 1
    assert "F1" not in found["measures"]["category 5"]


def test_the_judge_is_asked_three_times_and_controlled() -> None:
    """Each round is a figure of its own, beside how many vague answers the judge accepts."""
    model = ScriptedChatModel(replies=_rex)
    found = of(report(everything(), answerer=model, judge=model), "everything")["measures"]["all"]
    rounds = [found[f"judge {number}"]["mean"] for number in (1, 2, 3)]
    assert rounds == [pytest.approx(1 / 3)] * 3
    assert found["judge accepts vague"]["mean"] == 0


def test_the_prompt_tells_nothing_of_category_answer_or_evidence() -> None:
    """Prompts differ by the question and the memories alone."""
    model = ScriptedChatModel(replies=_rex)
    report(everything(), answerer=model, data=dataset(scope("ann")))
    shown = {request.messages[0].content for request in model.requests}
    rests = {
        str(request.messages[1].content).replace(question.text, "?")
        for request, question in zip(model.requests, ASKED, strict=True)
    }
    assert shown == {ANSWER_PROMPT}
    assert len(rests) == 1


def test_model_calls_and_tokens_of_writing_are_counted() -> None:
    """What a memory's model used stands at writing, none of it at reading."""
    model = ScriptedChatModel(replies=lambda _: {"facts": []})
    found = of(report(system("Mem0"), model=model, data=dataset(scope("ann"))), "Mem0")
    assert found["write"]["calls"] == len(model.requests) > 1
    assert found["write"]["input_tokens"] > 100
    assert found["read"]["calls"] == 0


def test_background_work_runs_after_each_session_and_is_counted() -> None:
    """What a memory does between conversations belongs to its cost and to its recall."""
    half = [replace(turn, session="ab"[at // 2]) for at, turn in enumerate(scope().turns)]
    model = ScriptedChatModel(replies=lambda _: {"facts": []})
    data = dataset(replace(scope("ann"), turns=half))
    unit = Trial(system("Mem0"), data, data.scopes[0], equipment(model=model)).run()
    assert len(unit.writes) == 2
    assert len(unit.consolidations) == 2
    assert sum(cost.calls for cost in [*unit.writes, *unit.consolidations]) == len(model.requests)
    assert of(report(system("bm25")), "bm25")["write"]["background_seconds"] == 0


def test_items_and_bytes_are_those_of_the_store() -> None:
    """Every turn is an item, in pages of the file; a baseline keeps words alone."""
    turns = [replace(turn, key=f"{at}-{turn.key}") for at in range(20) for turn in scope().turns]
    data = dataset(replace(scope("ann"), turns=turns))
    result = report(system("bm25"), system("RAGMemory"), data=data)
    assert of(result, "RAGMemory")["write"]["items"] == 80
    assert of(result, "RAGMemory")["write"]["bytes"] % 4096 == 0
    assert of(result, "RAGMemory")["write"]["bytes"] > 0
    assert of(result, "bm25")["write"]["items"] == 80
    assert of(result, "bm25")["write"]["bytes"] == sum(len(turn.content) for turn in turns)


def test_workers_give_the_same_figures() -> None:
    """Conversations at once change times, never results."""
    specs = [system("bm25"), system("RAGMemory")]
    one, many = (
        [
            [each.results for each in unit.asked]
            for unit in Runner(specs, [dataset()], equipment(), workers=workers).run()
        ]
        for workers in (1, 4)
    )
    assert one == many


def test_a_stopped_run_ends_soon_and_keeps_what_was_finished(tmp_path: Path) -> None:
    """Who stops the run waits for one step, not for a whole conversation."""
    equipped = equipment()
    runner = Runner([everything()], [dataset()], equipped, folder=tmp_path, workers=1)
    runs = runner.run()
    next(runs)
    runs.close()
    with pytest.raises(StoppedError):
        equipped.budget.go_on()
    assert len(Runner([everything()], [dataset()], equipment(), folder=tmp_path).todo) <= 1


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Not mentioned.", True),
        ("not mentioned in the memories", True),
        ("Rex", False),
        ("", False),
    ],
)
def test_refusals_are_recognized(said: str, expected: bool) -> None:
    """The refusal of the prompt counts, at the beginning of an answer too."""
    assert refuses(said) is expected
