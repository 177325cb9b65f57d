"""Evaluation, acceptance, approval by a person, and concurrent optimizers."""

import asyncio

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from langchain_agentmem.prompt_optimizer import Prompt, PromptMemory
from langchain_agentmem.prompt_optimizer.scoring import Evaluator
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.prompt_optimizer.lab import (
    ANN,
    PROMPT,
    TALKS,
    Given,
    Graph,
    Ways,
    optimizer,
    update,
)

NEW = "Answer {q} well."
FIVE = list(range(5))


def scoring(**scores: float) -> Evaluator:
    """Return an evaluator with one score for the new and one for the old text."""
    return lambda text, _: scores["new"] if "well" in text else scores["old"]


def _two_prompts(**given: Given) -> Graph:
    """Build the graph for two prompts, each of which gets a proposal."""

    def strategy(prompt: Prompt, _: object, *, budget: object) -> str:  # noqa: ARG001 - the protocol
        return f"{prompt['prompt']} Do it well."

    return optimizer(
        ScriptedChatModel(replies=[{"prompts": [{"name": "a"}, {"name": "b"}]}]),
        InMemoryStore(),
        prompts=[{"name": "a", "prompt": "A {q}."}, {"name": "b", "prompt": "B {q}."}],
        strategy=strategy,
        **given,
    )


@pytest.mark.parametrize(
    ("new", "decision", "active"),
    [(0.6, "rejected", 1), (0.5, "rejected", 1), (0.7, "accepted", 2)],
)
def test_only_a_better_score_is_accepted(
    new: float, decision: str, active: int, any_store: BaseStore, ways: Ways
) -> None:
    """A candidate as good as the active text, or worse, is rejected; a better one is stored."""
    model = ScriptedChatModel(replies=[update(NEW)])
    graph = optimizer(model, any_store, evaluator=scoring(old=0.6, new=new), examples=FIVE)
    (row,) = ways.run(graph)["report"]
    assert row["decision"] == decision
    prompts = PromptMemory(store=any_store)
    assert ways.call(prompts, "get", "prompt").version == active
    last = ways.call(prompts, "history", "prompt")[-1]
    assert (last.version, last.parent, last.decision, last.text) == (2, 1, decision, NEW)
    assert last.evaluation is not None
    measured = [last.evaluation[name] for name in ("baseline", "candidate", "n")]
    assert measured == [pytest.approx(0.6), pytest.approx(new), 5]


def test_margin_must_be_exceeded() -> None:
    """A gain of exactly the margin is not enough."""
    model = ScriptedChatModel(replies=[update(NEW)])
    graph = optimizer(
        model,
        InMemoryStore(),
        evaluator=scoring(old=0.0, new=0.5),
        examples=FIVE,
        accept_margin=0.5,
    )
    assert graph.invoke({"trajectories": TALKS}, ANN)["report"][0]["decision"] == "rejected"


def test_too_few_evaluations_are_no_proof(ways: Ways) -> None:
    """With two examples a better candidate is not accepted automatically."""
    model = ScriptedChatModel(replies=[update(NEW)])
    graph = optimizer(
        model, InMemoryStore(), evaluator=scoring(old=0.0, new=1.0), examples=FIVE[:2]
    )
    (row,) = ways.run(graph)["report"]
    assert row["decision"] == "rejected"
    assert "2 of 3" in row["reason"]


@pytest.mark.parametrize(("failing", "decision"), [(2, "accepted"), (3, "rejected")])
def test_failed_examples_are_dropped_for_both(failing: int, decision: str, ways: Ways) -> None:
    """An example on which the evaluator fails counts for neither; most failing means rejection."""

    def evaluator(text: str, example: int) -> float:
        if "well" in text and example < failing:
            raise ValueError(example)
        return float("well" in text)

    model = ScriptedChatModel(replies=[update(NEW)])
    graph = optimizer(model, InMemoryStore(), evaluator=evaluator, examples=FIVE, min_evaluations=1)
    (row,) = ways.run(graph)["report"]
    assert row["decision"] == decision
    assert (row["evaluation"]["n"], row["evaluation"]["dropped"]) == (5 - failing, failing)


def test_held_out_conversations_are_never_shown(ways: Ways) -> None:
    """Without examples a part of the conversations decides, and no strategy sees it."""
    seen: list[str] = []

    def evaluator(text: str, example: Given) -> float:
        seen.append(example["id"])
        return float("well" in text)

    talks = [{**each, "id": f"{each['id']}-{n}"} for n in range(3) for each in TALKS]
    for number, each in enumerate(talks):
        each["messages"] = [("user", f"Talk {number}!")]
    model = ScriptedChatModel(replies=[update(NEW)])
    ways.run(optimizer(model, InMemoryStore(), evaluator=evaluator), {"trajectories": talks})
    shown = {each["id"] for n, each in enumerate(talks) if f"Talk {n}!" in model.requests[0].text}
    assert len(set(seen)) == len(shown) == len(talks) / 2
    assert not shown & set(seen)


async def test_async_evaluator_is_awaited() -> None:
    """An evaluator may be an async function."""

    async def evaluator(text: str, _: object) -> tuple[float, str]:
        await asyncio.sleep(0)
        return float("well" in text), "fine"

    model = ScriptedChatModel(replies=[update(NEW)])
    graph = optimizer(model, InMemoryStore(), evaluator=evaluator, examples=FIVE)
    result = await graph.ainvoke({"trajectories": TALKS}, ANN)
    assert result["report"][0]["decision"] == "accepted"


def test_each_prompt_can_have_its_own_evaluator() -> None:
    """Evaluators and examples by name; a prompt without one is accepted as unevaluated."""
    graph = _two_prompts(evaluator={"a": scoring(old=1.0, new=0.0)}, examples={"a": FIVE})
    report = graph.invoke({"trajectories": TALKS}, ANN)["report"]
    assert [row["decision"] for row in report] == ["rejected", "accepted"]
    assert [row["reason"] for row in report][1] == "unevaluated"
    assert [row["evaluated"] for row in report] == [True, False]


def _asking(store: BaseStore, *texts: str, **given: Given) -> Graph:
    model = ScriptedChatModel(replies=[update(each) for each in texts])
    graph = optimizer(model, store, approval="interrupt", **given)
    return graph.builder.compile(checkpointer=InMemorySaver())


def _thread(name: str = "one") -> RunnableConfig:
    return {"configurable": {"user_id": "ann-17", "thread_id": name}}


@pytest.mark.parametrize(
    ("answer", "decision", "active"),
    [
        ("accept", "accepted", NEW),
        ("reject", "rejected", PROMPT),
        ("whatever", "rejected", PROMPT),
        ({"decision": "edit", "text": "Answer {q} my way."}, "accepted", "Answer {q} my way."),
        ({"decision": "edit", "text": "My way."}, "rejected", PROMPT),
        ({"decision": "edit", "text": " "}, "rejected", PROMPT),
        ({"decision": "edit"}, "rejected", PROMPT),
    ],
)
def test_a_person_decides(
    answer: Given, decision: str, active: str, any_store: BaseStore, ways: Ways
) -> None:
    """The graph interrupts with the diff; an edited text passes the guards again."""
    graph = _asking(any_store, NEW)
    (asked,) = ways.run(graph, config=_thread())["__interrupt__"]
    assert "+Answer {q} well." in asked.value["diff"]
    result = ways.run(graph, Command(resume=answer), _thread())
    assert result["report"][0]["decision"] == decision
    assert result["prompts"] == {"prompt": active}
    prompts = PromptMemory(prompts=PROMPT, store=any_store)
    assert ways.call(prompts, "get", "prompt").text == active


def test_a_person_decides_about_each_prompt(ways: Ways) -> None:
    """Two prompts are asked about one after the other, and each answer counts for its own."""
    graph = _two_prompts(approval="interrupt").builder.compile(checkpointer=InMemorySaver())
    asked = [ways.run(graph, config=_thread())]
    asked += [ways.run(graph, Command(resume=each), _thread()) for each in ("reject", "accept")]
    assert [each["__interrupt__"][0].value["name"] for each in asked[:2]] == ["a", "b"]
    assert [row["decision"] for row in asked[2]["report"]] == ["rejected", "accepted"]
    assert asked[2]["prompts"] == {"a": "A {q}.", "b": "B {q}. Do it well."}


def test_refused_edit_says_why() -> None:
    """An edit that drops a variable is reported with the variable's name."""
    graph = _asking(InMemoryStore(), NEW)
    graph.invoke({"trajectories": TALKS}, _thread())
    answer: Command[None] = Command(resume={"decision": "edit", "text": "My way."})
    (row,) = graph.invoke(answer, _thread())["report"]
    assert "q is missing" in row["reason"]


def test_a_person_is_not_asked_about_a_worse_text(ways: Ways) -> None:
    """What measured worse is rejected without an interrupt; a hopeful one is shown with doubts."""
    worse = _asking(InMemoryStore(), NEW, evaluator=scoring(old=1.0, new=0.0), examples=FIVE)
    assert ways.run(worse, config=_thread())["report"][0]["decision"] == "rejected"
    hopeful = _asking(InMemoryStore(), NEW, evaluator=scoring(old=0, new=1), examples=FIVE[:1])
    (asked,) = ways.run(hopeful, config=_thread())["__interrupt__"]
    assert "1 of 3" in asked.value["objection"]


def test_the_second_of_two_optimizers_is_superseded(any_store: BaseStore, ways: Ways) -> None:
    """Both start from version 1: the first commits version 2, the second ends as superseded."""
    slow, fast = _asking(any_store, "Answer {q} slowly."), _asking(any_store, "Answer {q} fast.")
    for graph, thread in ((slow, "slow"), (fast, "fast")):
        ways.run(graph, config=_thread(thread))
    first = ways.run(fast, Command(resume="accept"), _thread("fast"))
    second = ways.run(slow, Command(resume="accept"), _thread("slow"))
    assert (first["report"][0]["decision"], first["report"][0]["version"]) == ("accepted", 2)
    (row,) = second["report"]
    assert (row["decision"], row["reason"]) == ("rejected", "superseded")
    prompts = PromptMemory(store=any_store)
    assert ways.call(prompts, "get", "prompt").text == "Answer {q} fast."
    history = ways.call(prompts, "history", "prompt")
    assert [each.decision for each in history] == ["manual", "accepted", "rejected"]


def test_a_pin_set_during_the_run_holds(any_store: BaseStore, ways: Ways) -> None:
    """A version that a person pins while an optimizer works stays active."""
    prompts = PromptMemory(prompts=PROMPT, store=any_store)
    ways.call(prompts, "set", "prompt", "Answer {q} as set.")
    graph = _asking(any_store, NEW)
    ways.run(graph, config=_thread())
    ways.call(prompts, "pin", "prompt", 2)
    result = ways.run(graph, Command(resume="accept"), _thread())
    assert result["report"][0]["reason"] == "superseded"
    assert ways.call(prompts, "get", "prompt").version == 2


def test_a_pinned_version_costs_nothing(ways: Ways) -> None:
    """A pinned prompt is not proposed for at all."""
    store = InMemoryStore()
    prompts = PromptMemory(prompts=PROMPT, store=store)
    ways.call(prompts, "set", "prompt", "Answer {q} as set.")
    ways.call(prompts, "pin", "prompt", 1)
    (row,) = ways.run(optimizer(ScriptedChatModel(), store))["report"]
    assert "pinned" in row["reason"]
    assert row["text"] == PROMPT
