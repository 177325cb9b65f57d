"""Each strategy finds a better prompt than it was given, and none takes a worse one.

The proposer only reads what it is shown, and the scores come from running each candidate through a
scripted agent on questions that no strategy sees.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.prompt_optimizer import Gradient, PromptMemory
from langchain_agentmem.prompt_optimizer.evolution import frontier
from langchain_agentmem.prompt_optimizer.values import split
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.prompt_optimizer.lab import (
    ANN,
    NEEDS,
    PROMPT,
    Given,
    Ways,
    a_reader,
    a_spoiler,
    complaints,
    examples,
    judge,
    optimizer,
    seeded,
    the_agent,
)

Reader: TypeAlias = Callable[[list[BaseMessage]], dict[str, Any]]
STRATEGIES = ["gradient", "metaprompt", "prompt_memory", "evolutionary"]


def _run(
    strategy: str, proposer: Reader, store: BaseStore, ways: Ways, **given_: Given
) -> tuple[dict[str, Any], ScriptedChatModel, list[str]]:
    asked: list[str] = []
    model = ScriptedChatModel(replies=proposer)
    graph = optimizer(
        model,
        store,
        strategy=strategy,
        evaluator=judge(the_agent(asked)),
        examples=examples(16),
        **given_,
    )
    return ways.run(graph, {"trajectories": complaints()}), model, asked


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_better_prompt_is_found_within_the_budget(
    strategy: str, any_store: BaseStore, ways: Ways
) -> None:
    """From complaints alone each strategy reaches a full score on unseen questions."""
    result, model, _ = _run(strategy, a_reader, any_store, ways)
    (row,) = result["report"]
    assert row["decision"] == "accepted"
    assert row["evaluation"]["baseline"] == 0
    assert row["evaluation"]["candidate"] == 1
    assert len(model.requests) == result["calls"] <= 20
    text = ways.call(PromptMemory(store=any_store), "get", "prompt").text
    assert all(f"Always mention the {need}." in text for need in NEEDS)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_worse_proposals_never_change_the_prompt(
    strategy: str, any_store: BaseStore, ways: Ways
) -> None:
    """Where every proposal makes the agent worse, run after run leaves the prompt as it was."""
    for number in range(3):
        talks = [{**each, "id": f"{each['id']}-{number}"} for each in complaints()]
        graph = optimizer(
            ScriptedChatModel(replies=a_spoiler),
            any_store,
            strategy=strategy,
            evaluator=judge(the_agent([])),
            examples=examples(16),
        )
        result = ways.run(graph, {"trajectories": talks})
        assert result["prompts"] == {"prompt": PROMPT}
        assert result["report"][0]["decision"] in {"rejected", "no_change"}
    prompts = PromptMemory(prompts=PROMPT, store=any_store)
    assert ways.call(prompts, "get", "prompt").version == 1


def test_evolution_combines_two_parents(ways: Ways) -> None:
    """No mutation holds both rules: the winner is a crossover of two texts with one rule each."""
    result, _, asked = _run("evolutionary", a_reader, InMemoryStore(), ways)
    (row,) = result["report"]
    assert row["operator"] == "crossover"
    single = {text for text in asked if text.count("Always") == 1}
    assert len(single) == 2


def test_without_crossover_evolution_stays_below(ways: Ways) -> None:
    """The same search with mutations only cannot reach the full score: crossover is needed."""
    result, _, _ = _run("evolutionary", a_reader, InMemoryStore(), ways, mutation_rate=1.0)
    assert 0 < result["report"][0]["evaluation"]["candidate"] < 1


def test_evolution_is_deterministic(ways: Ways) -> None:
    """The same seed gives the same calls and the same text."""
    runs = [_run("evolutionary", a_reader, InMemoryStore(), ways, rng=seeded()) for _ in range(2)]
    one, two = ((result["prompts"], [r.text for r in m.requests], a) for result, m, a in runs)
    assert one == two


def test_evolution_keeps_to_its_evaluations(ways: Ways) -> None:
    """Breeding scores at most population x (generations + 1) x minibatch times."""
    _, _, asked = _run(
        "evolutionary", a_reader, InMemoryStore(), ways, population=4, generations=2, minibatch=3
    )
    deciding = 2 * len(split(examples(16), 0.5).held_out)
    assert len(asked) - deciding <= 4 * 3 * 3


def test_evolution_decides_with_examples_it_was_not_bred_with() -> None:
    """Half of the examples breed, the other half decides."""
    seen: list[tuple[str, str]] = []

    def evaluator(text: str, example: Given) -> float:
        seen.append((text, example["id"]))
        return float(text.count("Always"))

    model = ScriptedChatModel(replies=a_reader)
    graph = optimizer(
        model,
        InMemoryStore(),
        strategy="evolutionary",
        evaluator=evaluator,
        examples=examples(16),
        minibatch=16,
    )
    graph.invoke({"trajectories": complaints()}, ANN)
    parts = split(examples(16), 0.5)
    bred = {each["id"] for each in parts.shown}
    decided = {each["id"] for each in parts.held_out}
    assert {name for _, name in seen[: len(bred)]} == bred
    assert {name for _, name in seen[-len(decided) :]} == decided
    assert not bred & decided


def test_evolution_that_runs_out_of_calls_offers_its_best() -> None:
    """A budget that ends during breeding still leaves the best text found so far to decide on."""
    graph = optimizer(
        ScriptedChatModel(replies=a_reader),
        InMemoryStore(),
        strategy="evolutionary",
        evaluator=judge(the_agent([])),
        examples=examples(16),
        max_calls=1,
    )
    (row,) = graph.invoke({"trajectories": complaints()}, ANN)["report"]
    assert row["decision"] == "accepted"
    assert 0 < row["evaluation"]["candidate"] < 1
    assert row["budget_exhausted"]


def test_evolution_never_scores_what_the_guards_refuse() -> None:
    """A proposal without the variable costs no evaluation and is never bred from."""
    asked: list[str] = []
    broken = {"new_prompt": "Always mention the unit. Always mention the source."}
    graph = optimizer(
        ScriptedChatModel(replies=lambda _: broken),
        InMemoryStore(),
        strategy="evolutionary",
        evaluator=judge(the_agent(asked)),
        examples=examples(16),
    )
    result = graph.invoke({"trajectories": complaints()}, ANN)
    assert result["report"][0]["decision"] == "no_change"
    assert set(asked) == {"Answer it."}


def test_a_strategy_object_can_be_tuned() -> None:
    """A strategy of ours takes further instructions, braces and all."""
    model = ScriptedChatModel(replies=a_reader)
    graph = optimizer(
        model, InMemoryStore(), strategy=Gradient(guidance="Mind {braces}.", edit_guidance="{x")
    )
    result = graph.invoke({"trajectories": complaints()}, ANN)
    assert result["report"][0]["decision"] == "accepted"
    assert "Mind {braces}." in model.requests[0].text
    assert "{x" in model.requests[2].text


SCORES = st.lists(
    st.lists(st.integers(0, 3), min_size=3, max_size=3).map(lambda row: dict(enumerate(row))),
    min_size=1,
    max_size=6,
)


@settings(max_examples=100, deadline=None)
@given(SCORES)
def test_front_holds_every_best_and_nobody_dominated(scores: list[dict[int, float]]) -> None:
    """Somebody of the front is best on each example, and nobody is at least as good everywhere."""
    front = frontier(scores)
    for example in range(3):
        best = max(each[example] for each in scores)
        assert any(scores[at][example] == best for at in front)
    for at in front:
        for other in scores:
            better = any(other[key] > scores[at][key] for key in range(3))
            worse = any(other[key] < scores[at][key] for key in range(3))
            assert worse or not better
