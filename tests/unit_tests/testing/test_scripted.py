"""The scripted chat model keeps to its script, in every way a chat model can be called."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from langchain_agentmem.testing import ScriptedChatModel, UnexpectedCallError

Call = Callable[[Any, Any], Any]


class Person(BaseModel):
    """A person."""

    name: str


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def shout(text: str) -> str:
    """Say a text loudly."""
    return text.upper()


def _invoke(model: Any, given: Any) -> Any:  # noqa: ANN401 - any runnable
    return model.invoke(given)


def _ainvoke(model: Any, given: Any) -> Any:  # noqa: ANN401 - any runnable
    return asyncio.run(model.ainvoke(given))


def _stream(model: Any, given: Any) -> Any:  # noqa: ANN401 - any runnable
    return _sum(list(model.stream(given)))


def _astream(model: Any, given: Any) -> Any:  # noqa: ANN401 - any runnable
    async def collect() -> Any:  # noqa: ANN401 - any runnable
        return _sum([chunk async for chunk in model.astream(given)])

    return asyncio.run(collect())


def _sum(chunks: list[Any]) -> Any:  # noqa: ANN401 - chunks of any runnable
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    return whole


@pytest.fixture(params=[_invoke, _ainvoke, _stream, _astream])
def call(request: pytest.FixtureRequest) -> Call:
    """Every way to call a chat model."""
    way: Call = request.param
    return way


def test_replies_come_in_order_and_requests_are_recorded(call: Call) -> None:
    """Texts and functions of the request are given one after another."""
    model = ScriptedChatModel(replies=["one two", lambda said: f"You said {said[-1].content}"])

    assert call(model, "first").text == "one two"
    assert call(model, "second").text == "You said second"
    assert [request.text for request in model.requests] == ["first", "second"]
    model.check()


def test_call_beyond_the_script_fails_and_is_not_forgotten(call: Call) -> None:
    """An unexpected call raises, and `check` still knows of it when the error was swallowed."""
    model = ScriptedChatModel(replies=[])

    with pytest.raises(UnexpectedCallError, match=r"call 1 .* only 0 replies"):
        call(model, "surprise")
    with pytest.raises(UnexpectedCallError, match="surprise"):
        model.check()


def test_unused_replies_fail_the_check() -> None:
    """A script that was not asked for to its end is reported."""
    model = ScriptedChatModel(replies=["said", "unsaid"])
    model.invoke("hi")

    with pytest.raises(UnexpectedCallError, match="unsaid"):
        model.check()


def test_exceptions_of_the_script_are_raised(call: Call) -> None:
    """A scripted failure reaches the caller, and the next call gets the next reply."""
    model = ScriptedChatModel(replies=[TimeoutError("slow provider"), "again"])

    with pytest.raises(TimeoutError, match="slow provider"):
        call(model, "hi")
    assert call(model, "hi").text == "again"


def test_mapping_becomes_the_arguments_of_the_bound_tool(call: Call) -> None:
    """A mapping answers with a call of the only tool, whatever way the model is called."""
    model = ScriptedChatModel(replies=[{"a": 1, "b": 2}])

    reply = call(model.bind_tools([add]), "add")

    assert [(each["name"], each["args"]) for each in reply.tool_calls] == [
        ("add", {"a": 1, "b": 2})
    ]
    assert model.requests[0].tool_names == ["add"]


def test_tool_choice_decides_between_tools() -> None:
    """A mapping is the arguments of the tool that had to be called."""
    model = ScriptedChatModel(replies=[{"text": "hey"}])

    reply = model.bind_tools([add, shout], tool_choice="shout").invoke("shout")

    assert reply.tool_calls[0]["name"] == "shout"


def test_ambiguous_mapping_is_refused() -> None:
    """A mapping that could be meant for several tools is an error of the test, not a guess."""
    model = ScriptedChatModel(replies=[{"text": "hey"}])

    with pytest.raises(UnexpectedCallError, match=r"call 1 .* several tools"):
        model.bind_tools([add, shout]).invoke("shout")


def test_tool_calls_of_requests_at_once_have_names_of_their_own() -> None:
    """The id of a tool call is that of its own request, whatever runs beside it."""
    both = threading.Barrier(2, timeout=10)

    def answer(_: list[BaseMessage]) -> dict[str, Any]:
        both.wait()
        return {"a": 1, "b": 2}

    model = ScriptedChatModel(replies=answer).bind_tools([add])
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(model.invoke, ["add", "add"]))

    assert {reply.tool_calls[0]["id"] for reply in replies} == {"call_1", "call_2"}


def test_structured_output_is_parsed(call: Call) -> None:
    """`with_structured_output` gives the validated object of a mapping in the script."""
    model = ScriptedChatModel(replies=[{"name": "Ann"}])

    assert call(model.with_structured_output(Person), "who?") == Person(name="Ann")


def test_structured_output_of_bad_data_fails_as_a_real_model_would() -> None:
    """A mapping that breaks the schema is not repaired by the fake."""
    model = ScriptedChatModel(replies=[{"nom": "Ann"}])

    raw = model.with_structured_output(Person, include_raw=True).invoke("who?")

    assert isinstance(raw, dict)
    assert raw["parsed"] is None
    assert raw["parsing_error"] is not None


def test_native_json_output_is_text() -> None:
    """With a response format but no tools, a mapping is the JSON text of the reply."""
    model = ScriptedChatModel(replies=[{"name": "Zoë"}])

    reply = model.bind(response_format={"type": "json_schema"}).invoke("who?")

    assert reply.content == '{"name": "Zoë"}'
    assert model.requests[0].response_format == {"type": "json_schema"}


def test_messages_keep_calls_and_stated_usage(call: Call) -> None:
    """An `AIMessage` is given as it is, its own token counts included."""
    scripted = AIMessage(
        "thinking aloud",
        tool_calls=[{"name": "add", "args": {"a": 1, "b": 1}, "id": "c1"}],
        usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
    )
    reply = call(ScriptedChatModel(replies=[scripted]), "hi")

    assert (reply.text, reply.tool_calls) == ("thinking aloud", scripted.tool_calls)
    assert reply.usage_metadata == scripted.usage_metadata


def test_usage_is_estimated_and_the_script_stays_as_it_was(call: Call) -> None:
    """Unstated usage is counted from the texts; the test's own message is not changed."""
    scripted = AIMessage("12345")

    usage = call(ScriptedChatModel(replies=[scripted]), "12345678").usage_metadata

    assert (usage["input_tokens"], usage["output_tokens"]) == (2, 2)
    assert scripted.usage_metadata is None


def test_single_function_answers_every_request() -> None:
    """A function instead of a list is a model without end."""

    def parrot(messages: list[BaseMessage]) -> str:
        return str(messages[-1].content)

    model = ScriptedChatModel(replies=parrot)

    assert [model.invoke(text).content for text in "abc"] == ["a", "b", "c"]
    model.check()


def test_latency_does_not_block_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten slow async calls wait together, each as long as it was told to."""
    model = ScriptedChatModel(replies=["ok"] * 10, latency=0.1)
    waiting: list[float] = []

    async def all_at_once() -> None:
        everybody = asyncio.Barrier(10)

        async def sleep(seconds: float) -> None:
            waiting.append(seconds)
            await asyncio.wait_for(everybody.wait(), timeout=10)

        monkeypatch.setattr("langchain_agentmem.testing.scripted.asyncio.sleep", sleep)
        await asyncio.gather(*(model.ainvoke("hi") for _ in range(10)))

    asyncio.run(all_at_once())
    assert waiting == [0.1] * 10


def test_naming_the_kit_loads_nothing_heavy() -> None:
    """Importing the testing package loads neither LangChain nor this package's stores."""
    code = (
        "import sys, langchain_agentmem.testing\n"
        "loaded = {'langchain_core', 'faiss', 'langchain_agentmem.stores'} & set(sys.modules)\n"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
