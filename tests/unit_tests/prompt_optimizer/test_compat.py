"""LangMem's functions under their names, and LangMem itself as a delegate."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.prompt_optimizer import (
    LangMemStrategy,
    create_multi_prompt_optimizer,
    create_prompt_optimizer,
)
from langchain_agentmem.prompt_optimizer.budget import Budget, BudgetExhaustedError, share
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.prompt_optimizer.lab import NO_CHANGE, PROMPT, Given, Ways, optimizer, update

MESSAGES = [HumanMessage("Hi"), AIMessage("Hello to you.")]
THEIR_WARNINGS = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # LangMem's imports
PAIRS = [(MESSAGES, "too long")]


def _invoke(ways: Ways, made: Given, given: dict[str, Any]) -> Given:
    return asyncio.run(made.ainvoke(given)) if ways.is_async else made.invoke(given)


@pytest.mark.parametrize(
    "trajectories",
    [
        PAIRS,
        [(MESSAGES, {"score": 0, "developer_feedback": "too long"})],
        [([{"role": "user", "content": "Hi"}], None)],
        [MESSAGES],
        "user: Hi\nassistant: Hello to you. (too long)",
    ],
)
def test_text_in_text_out(trajectories: Given, ways: Ways) -> None:
    """Every form of trajectories that LangMem takes gives a text."""
    model = ScriptedChatModel(replies=[update("Be brief.")])
    made = create_prompt_optimizer(model, kind="prompt_memory")
    given = {"trajectories": trajectories, "prompt": "Be kind."}
    assert _invoke(ways, made, given) == "Be brief."
    assert "Hi" in model.requests[0].text


def test_kept_prompt_is_returned_as_it_was(ways: Ways) -> None:
    """No change means the very text, not an empty one."""
    made = create_prompt_optimizer(ScriptedChatModel(replies=[NO_CHANGE]), kind="prompt_memory")
    prompt = {"name": "p", "prompt": " Be  kind.\n"}
    assert _invoke(ways, made, {"trajectories": PAIRS, "prompt": prompt}) == " Be  kind.\n"


def test_without_trajectories_no_call_is_made(ways: Ways) -> None:
    """Nothing to learn from: the prompt comes back at once."""
    made = create_prompt_optimizer(ScriptedChatModel())
    assert _invoke(ways, made, {"trajectories": [], "prompt": "Be kind."}) == "Be kind."


def test_prompt_that_is_no_template_is_taken_as_it_is(ways: Ways) -> None:
    """A text with loose braces, which LangMem accepts, has no variables to keep."""
    made = create_prompt_optimizer(
        ScriptedChatModel(replies=[update('Reply as {"json": 2}')]), kind="prompt_memory"
    )
    given = {"trajectories": PAIRS, "prompt": 'Reply as {"json": 1}'}
    assert _invoke(ways, made, given) == 'Reply as {"json": 2}'


async def test_short_form_is_awaited() -> None:
    """`await optimizer(trajectories, prompt)` works as LangMem's does."""
    made = create_prompt_optimizer(
        ScriptedChatModel(replies=[update("Be brief.")]), kind="prompt_memory"
    )
    assert await made(PAIRS, "Be kind.") == "Be brief."


def test_braces_in_custom_prompts_are_text(ways: Ways) -> None:
    """A custom `gradient_prompt` with JSON in it raises no KeyError (LangMem's does: B23)."""
    look = {"done": True, "warrants_adjustment": True, "new_prompt": "Be brief."}
    model = ScriptedChatModel(replies=lambda _: look)
    made = create_prompt_optimizer(model, config={"gradient_prompt": 'Mind {"this": 1}.'})
    assert _invoke(ways, made, {"trajectories": PAIRS, "prompt": "Be kind."}) == "Be brief."
    assert 'Mind {"this": 1}.' in model.requests[0].text


def test_many_prompts_come_back_in_order(ways: Ways) -> None:
    """A list comes back in order; prompts that were not named are the same objects."""
    first: dict[str, Any] = {"name": "a", "prompt": "A.\n", "when_to_update": None}
    second = {"name": "b", "prompt": "B.", "own": 1}
    third = {"name": "c", "prompt": "C."}
    model = ScriptedChatModel(replies=[{"prompts": [{"name": "b"}]}, update("B, but brief.")])
    made = create_multi_prompt_optimizer(model, kind="prompt_memory")
    given = {"trajectories": PAIRS, "prompts": [first, second, third]}
    result = _invoke(ways, made, given)
    assert result == [first, {"name": "b", "prompt": "B, but brief.", "own": 1}, third]
    assert result[0] is first


def test_one_prompt_needs_no_credit_call(ways: Ways) -> None:
    """A list of one prompt costs one call."""
    model = ScriptedChatModel(replies=[update("Be brief.")])
    made = create_multi_prompt_optimizer(model, kind="prompt_memory")
    given = {"trajectories": PAIRS, "prompts": [{"name": "a", "prompt": "Be kind."}]}
    assert _invoke(ways, made, given) == [{"name": "a", "prompt": "Be brief."}]
    model.check()


def test_failing_credit_call_keeps_every_prompt(ways: Ways) -> None:
    """A model that fails at the credit call leaves the list as it was."""
    prompts = [{"name": "a", "prompt": "A."}, {"name": "b", "prompt": "B."}]
    made = create_multi_prompt_optimizer(ScriptedChatModel(replies=[RuntimeError("down")]))
    assert _invoke(ways, made, {"trajectories": PAIRS, "prompts": prompts}) == prompts


@pytest.mark.parametrize(
    ("kind", "config", "why"),
    [("magic", {}, "kind is one of"), ("gradient", {"steps": 1}, "Unknown setting 'steps'")],
)
def test_wrong_kind_or_setting(kind: str, config: dict[str, Any], why: str) -> None:
    """What LangMem ignores or does not know is refused."""
    with pytest.raises(ConfigurationError, match=why):
        create_prompt_optimizer(ScriptedChatModel(), kind=kind, config=config)


@THEIR_WARNINGS
def test_delegate_that_raises_keeps_the_prompt(monkeypatch: pytest.MonkeyPatch, ways: Ways) -> None:
    """An IndexError out of LangMem (B22) ends as a reason in the report."""
    langmem = pytest.importorskip("langmem")

    class Broken:
        """Raises as LangMem does on a null answer."""

        def invoke(self, given: dict[str, list[str]], config: object = None) -> str:  # noqa: ARG002 - the protocol
            """Raise."""
            return given.get("nothing", [])[0]

        async def ainvoke(self, given: dict[str, list[str]], config: object = None) -> str:  # noqa: ARG002 - the protocol
            """Raise."""
            return given.get("nothing", [])[0]

    monkeypatch.setattr(langmem, "create_prompt_optimizer", lambda *_, **__: Broken())
    graph = optimizer(ScriptedChatModel(), InMemoryStore(), strategy=LangMemStrategy())
    result = ways.run(graph)
    assert result["prompts"] == {"prompt": PROMPT}
    assert "IndexError" in result["report"][0]["reason"]


def _langmem_answers(messages: list[BaseMessage]) -> AIMessage:
    """Answer LangMem's metaprompt: its last call binds one tool for the new prompt."""
    args = {"analysis": "a", "hypotheses": "h", "full_response": "f", "improved_prompt": _BETTER}
    call = {"name": "OptimizedPromptOutput", "args": args, "id": "1", "type": "tool_call"}
    return AIMessage(f"{len(messages)}", tool_calls=[call])


_BETTER = "Answer {q} briefly."


@THEIR_WARNINGS
def test_langmem_proposes_under_our_guards(ways: Ways) -> None:
    """The real LangMem, with its calls counted and its text guarded."""
    pytest.importorskip("langmem")
    model = ScriptedChatModel(replies=_langmem_answers)
    graph = optimizer(model, InMemoryStore(), strategy=LangMemStrategy("metaprompt"))
    (row,) = ways.run(graph)["report"]
    assert row["strategy"] == "langmem_metaprompt"
    assert row["calls"] == len(model.requests) > 0
    assert row["text"] == _BETTER


@THEIR_WARNINGS
def test_langmem_is_stopped_at_the_budget(ways: Ways) -> None:
    """A delegate's call beyond the budget is not made."""
    pytest.importorskip("langmem")
    model = ScriptedChatModel(replies=_langmem_answers)
    graph = optimizer(model, InMemoryStore(), strategy=LangMemStrategy("metaprompt"), max_calls=1)
    result = ways.run(graph)
    assert len(model.requests) <= 1
    assert result["prompts"] == {"prompt": PROMPT}


def test_langmem_has_no_prompt_memory_here() -> None:
    """The kind of LangMem's that erases prompts is not delegated to."""
    with pytest.raises(ConfigurationError, match="gradient and metaprompt"):
        LangMemStrategy("prompt_memory")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("calls", "wanted", "least", "parts"),
    [
        (10, 3, 3, [4, 3, 3]),
        (3, 3, 3, [3]),
        (2, 3, 3, [2]),
        (0, 3, 3, []),
        (7, 2, 1, [4, 3]),
        (5, 0, 1, []),
    ],
)
def test_budget_is_shared_out(calls: int, wanted: int, least: int, parts: list[int]) -> None:
    """Everyone who is reached can finish, nothing is lost, and the first come first."""
    budgets = share(Budget(max_calls=calls), wanted, least)
    assert [each.max_calls for each in budgets] == parts


def test_spending_more_than_there_is() -> None:
    """The call that would be too many is refused before it is counted."""
    budget = Budget(max_calls=1)
    budget.spend()
    with pytest.raises(BudgetExhaustedError, match="max_calls"):
        budget.spend()
    assert (budget.calls, budget.exhausted) == (1, True)
