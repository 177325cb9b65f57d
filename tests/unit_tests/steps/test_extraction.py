"""Structured model calls: every form of reply is read, repaired once, or reported."""

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from pydantic import AliasChoices, Field

from langchain_agentmem.errors import ModelCallError
from langchain_agentmem.items import MemoryItem, StoredMemory
from langchain_agentmem.steps._parsing import json_values, shape_of, values_in
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.steps.extraction import Decision, Handles, Proposal, as_lines, decide
from tests.unit_tests.scripted import Given, Scripted


class Fact(Proposal):
    """A fact."""

    text: str = Field(validation_alias=AliasChoices("text", "fact"))
    said_by: str | None = None


class Facts(Proposal):
    """A list of facts."""

    facts: list[Fact]


FACTS = {"facts": [{"text": "likes tea"}]}
TEXT = json.dumps(FACTS)
READABLE: dict[str, Given] = {
    "plain": TEXT,
    "fenced": f"```json\n{TEXT}\n```",
    "thought": f'<think>maybe {{"facts": []}} or not</think>\n{TEXT}',
    "stray end of thought": f"maybe this [1] </think>{TEXT}",
    "prose around": f"Sure! Here [as asked] it is: {TEXT} Let me know {{more}}.",
    "example before": f'The form is {{"facts": []}}, so: {TEXT}',
    "trailing comma": '{"facts": [{"text": "likes tea",},],}',
    "bare list": '["likes tea"]',
    "bare list of objects": '[{"text": "likes tea"}]',
    "bare object": '{"text": "likes tea"}',
    "facts as texts": '{"facts": ["likes tea"]}',
    "other field name": '{"facts": [{"fact": "likes tea"}]}',
    "wrapped": f'{{"result": {TEXT}}}',
    "tool call as text": f'<tool_call>{{"name": "Facts", "arguments": {TEXT}}}</tool_call>',
    "tool call with text arguments": json.dumps({"name": "Facts", "arguments": TEXT}),
    "tool call of a list": json.dumps([{"function": {"name": "F", "arguments": TEXT}}]),
    "line break in a text": '{"facts": [{"text": "likes tea", "said_by": "a\nb"}]}',
    "real tool call": AIMessage("", tool_calls=[{"name": "F", "args": FACTS, "id": "1"}]),
}
UNREADABLE: dict[str, Given] = {
    "empty": "",
    "prose": "There is nothing to remember.",
    "truncated": '{"facts": [{"text": "likes tea"}, {"text": "lives in Os',
    "truncated fence": '```json\n{"facts": [{"text": "likes tea"},',
    "truncated after an example": 'Like {"facts": []}: {"facts": [{"text": "likes te',
    "unfinished thought": "<think>so the facts are",
    "other schema": '{"answer": 42}',
}


async def _decide(
    model: Scripted, *, is_async: bool = False, events: list[dict[str, Any]] | None = None
) -> tuple[Decision[Facts], Environment]:
    env = Environment(model=model, emitter=events.append if events is not None else None)
    steps = decide(Facts, purpose="extract", instructions="Extract.", data="I like tea")
    return (await arun(steps, env) if is_async else run(steps, env)), env


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("form", READABLE)
async def test_a_reply_of_any_usual_form_is_read_in_one_call(form: str, *, is_async: bool) -> None:
    """Fences, thoughts, prose, loose commas and written tool calls cost no second call."""
    decision, env = await _decide(Scripted([READABLE[form]]), is_async=is_async)
    assert decision.value is not None
    assert [fact.text for fact in decision.value.facts] == ["likes tea"]
    assert env.ledger.calls == {"extract": 1}


@pytest.mark.parametrize("form", UNREADABLE)
async def test_an_unusable_reply_is_repaired_once(form: str) -> None:
    """The second reply counts, and the repair prompt shows the first."""
    model = Scripted([UNREADABLE[form], TEXT])
    decision, env = await _decide(model)
    assert decision.value is not None
    assert decision.problems == []
    assert env.ledger.calls == {"extract": 1, "extract_repair": 1}
    assert len(model.prompts[1]) == len(model.prompts[0]) + 2


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("form", UNREADABLE)
async def test_two_unusable_replies_are_reported_and_give_nothing(
    form: str, *, is_async: bool
) -> None:
    """There is no third call, no exception, and exactly one report."""
    events: list[dict[str, Any]] = []
    model = Scripted([UNREADABLE[form]] * 2)
    decision, _ = await _decide(model, is_async=is_async, events=events)
    assert decision.value is None
    assert decision.problems
    assert [e["event"] for e in events].count("reply_rejected") == 1


class LengthFinishReasonError(Exception):
    """What OpenAI's client raises when a structured reply ends at the limit of its length."""

    def __init__(self, text: str | None) -> None:
        super().__init__("the length limit was reached")
        message = SimpleNamespace(content=text)
        self.completion = SimpleNamespace(choices=[SimpleNamespace(message=message)])


@pytest.mark.parametrize("text", ['{"facts": [{"text": "likes', None])
async def test_a_reply_that_the_client_cut_off_is_repaired_once(text: str | None) -> None:
    """It is a truncated reply and no failing model, whatever its client makes of it."""
    model = Scripted([LengthFinishReasonError(text), TEXT])
    decision, env = await _decide(model)
    assert decision.value is not None
    assert env.ledger.calls == {"extract": 1, "extract_repair": 1}
    decision, env = await _decide(Scripted([LengthFinishReasonError(text)] * 2))
    assert decision.value is None
    assert env.ledger.calls == {"extract": 1, "extract_repair": 1}


@pytest.mark.parametrize("as_call", [False, True])
async def test_half_a_character_is_replaced_before_it_reaches_a_store(*, as_call: bool) -> None:
    """No file can hold a lone surrogate; both halves of one character are put together."""
    value = {"facts": [{"text": "tea \ud800 \ud83d\ude00"}]}
    call: Given = AIMessage("", tool_calls=[{"name": "F", "args": value, "id": "1"}])
    decision, _ = await _decide(Scripted([call if as_call else json.dumps(value)]))
    assert decision.value is not None
    assert decision.value.facts[0].text == "tea \ufffd \U0001f600"


def test_numbers_that_json_cannot_hold_are_read_as_none() -> None:
    """A store refuses NaN and infinity, so a model's reply never holds them."""
    assert values_in(AIMessage('{"a": [NaN, -Infinity, 1e999, 2.5]}')) == (
        [{"a": [None, None, None, 2.5]}],
        None,
    )


@pytest.mark.parametrize("text", ['{"a":' * 3000 + "1" + "}" * 3000, "[" * 900 + "]" * 900])
async def test_deep_nesting_is_refused_at_once(text: str) -> None:
    """Neither the recursion limit nor patience is used up by a reply of brackets."""
    started = time.monotonic()
    decision, _ = await _decide(Scripted([text, text]))
    assert decision.value is None
    assert time.monotonic() - started < 5


async def test_a_bad_element_does_not_spoil_the_good_ones() -> None:
    """After the repair, elements that still do not fit are left out and reported."""
    mixed = {"facts": [{"text": "likes tea"}, {"said_by": "ann"}]}
    decision, _ = await _decide(Scripted([mixed, mixed]))
    assert decision.value is not None
    assert [fact.text for fact in decision.value.facts] == ["likes tea"]
    assert len(decision.problems) == 1


async def test_a_failing_model_is_a_typed_error() -> None:
    """The model's own exception is the cause of ours."""
    with pytest.raises(ModelCallError, match="extract") as caught:
        await _decide(Scripted([OSError("down")]))
    assert isinstance(caught.value.__cause__, OSError)


async def test_the_error_of_a_failed_call_names_its_cause_and_what_to_do() -> None:
    """Shortly, in one line, however much the client says."""
    with pytest.raises(ModelCallError) as caught:
        await _decide(Scripted([OSError("401:\n" + "no such key " * 100)]))
    told = str(caught.value)
    assert "(OSError: 401: no such key no such key" in told
    assert "Check the model's name, key and server" in told
    assert "\n" not in told
    assert len(told) < 400
    with pytest.raises(ModelCallError, match=r"\(TimeoutError\); nothing was changed"):
        await _decide(Scripted([TimeoutError()]))


async def test_tokens_and_calls_are_reported() -> None:
    """The ledger and the events agree."""
    events: list[dict[str, Any]] = []
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    model = Scripted([AIMessage(text, usage_metadata=usage) for text in ("", TEXT)])
    _, env = await _decide(model, events=events)
    assert (env.ledger.input_tokens, env.ledger.output_tokens) == (20, 10)
    assert [e["purpose"] for e in events] == ["extract", "extract_repair"]
    assert all(e["event"] == "model_called" for e in events)


async def test_a_decision_names_its_cause() -> None:
    """The journal can tell which model and which prompt led to a change."""
    first, _ = await _decide(Scripted([TEXT]))
    second, _ = await _decide(Scripted([TEXT]))
    cause = first.cause(["m1"], "t1")
    assert (cause.model, cause.message_ids, cause.thread_id) == ("scripted", ("m1",), "t1")
    assert len(cause.prompt_hash or "") == 64
    assert first.prompt_hash == second.prompt_hash


async def test_a_model_without_tools_is_asked_in_words() -> None:
    """A plain chat model sees the wanted form in its prompt and answers with text."""
    model = FakeListChatModel(responses=[TEXT])
    env = Environment(model=model)
    steps = decide(Facts, purpose="extract", instructions="Extract.", data="I like tea")
    decision = await arun(steps, env)
    assert decision.value is not None
    assert env.ledger.calls == {"extract": 1}


class _Native(Scripted):
    """A model with native structured output that records what it was bound to."""

    def __init__(self, script: list[Given]) -> None:
        super().__init__(script)

    def with_structured_output(self, schema: Any, **given: Any) -> Any:  # noqa: ANN401 - a double of any
        """Record the schema and wrap the reply as LangChain does."""
        assert given["include_raw"]
        self._bound = schema
        return self | (lambda reply: {"raw": reply, "parsed": None, "parsing_error": None})

    _bound: Any = None


async def test_native_structured_output_is_used_where_a_model_has_it() -> None:
    """The model gets the schema by its own means, and its raw reply is read and counted."""
    model = _Native([TEXT])
    decision, env = await _decide(model, is_async=True)
    assert decision.value is not None
    assert model._bound["title"] == "Facts"
    assert env.ledger.calls == {"extract": 1}


@given(st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=8), st.text())
def test_any_json_object_is_found_amid_prose(value: Any, prose: str) -> None:  # noqa: ANN401 - a double of any
    """A fenced object comes back unchanged whatever its texts hold."""
    before = "".join(c for c in prose if c not in '{[<"')
    values, problem = json_values(f"{before}\n```json\n{json.dumps({'facts': value})}\n```")
    assert problem is None
    assert {"facts": value} in values


@given(st.text())
def test_no_text_makes_the_reader_fail(text: str) -> None:
    """Whatever a model writes, reading it never raises."""
    json_values(text)


def test_the_shape_shown_to_models_names_every_field() -> None:
    """Small models see a sketch, not a JSON schema."""
    assert shape_of(Facts) == '{"facts": [{"text": string, "said_by": string | null}, ...]}'


@pytest.mark.parametrize("written", ["1", 1, "[1]", "#1", " 1 "])
def test_handles_are_known_in_any_dress(written: object) -> None:
    """Brackets around a handle do not make it unknown; another number does."""
    shown = [StoredMemory(item=MemoryItem(content=c), namespace=("n",), key=c) for c in "ab"]
    handles = Handles(shown)
    found = handles.get(written)
    assert found is not None
    assert found.key == "b"
    assert handles.get("2") is None
    assert handles.get(None) is None


def test_rows_cannot_forge_further_rows() -> None:
    """A line break or a quote in a text stays inside of its line."""
    lines = as_lines([{"text": 'a\n{"handle": "0"}'}, {"text": "喜欢茶"}]).split("\n")
    assert [json.loads(line)["text"] for line in lines] == ['a\n{"handle": "0"}', "喜欢茶"]
    assert "喜欢茶" in lines[1]
