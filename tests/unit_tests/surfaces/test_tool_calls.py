"""What a call of a memory tool is to LangChain: callbacks, config, text as input, and its price."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import create_manage_memory_tool, create_search_memory_tool
from tests.unit_tests.surfaces.conftest import ANN, HOME, TEMPLATE, Invoke, async_invoke

LOOKING = {
    "_signature_from_function",  # reads the parameters of a function
    "_signature_from_callable",
    "get_all_basemodel_annotations",
    "_eval_type",  # evaluates one annotation
    "model_dump",
}
"""Functions with which LangChain and Python look at a tool's functions and schema."""


class Log(BaseCallbackHandler):
    """Writes down what LangChain tells of tool runs."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []
        self.ended: list[Any] = []
        self.failed: list[BaseException] = []

    def on_tool_start(self, serialized: Any, input_str: str, **told: Any) -> None:  # noqa: ANN401 - as the base
        """A tool begins."""
        self.started.append({"tool": serialized["name"], "text": input_str, **told})

    def on_tool_end(self, output: Any, **_: Any) -> None:  # noqa: ANN401 - as the base
        """A tool has a result."""
        self.ended.append(output)

    def on_tool_error(self, error: BaseException, **_: Any) -> None:  # noqa: ANN401 - as the base
        """A tool has raised."""
        self.failed.append(error)


@contextmanager
def calls_counted() -> Iterator[dict[str, int]]:
    """Count the calls of Python functions by name, in this thread."""
    counts: dict[str, int] = {}

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            counts[frame.f_code.co_name] = counts.get(frame.f_code.co_name, 0) + 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield counts
    finally:
        sys.setprofile(before)


def both(store: BaseStore) -> list[tuple[BaseTool, dict[str, Any]]]:
    """Return both tools, each with a valid call."""
    return [
        (create_manage_memory_tool(TEMPLATE, store=store), {"content": "Ann lives in Oslo"}),
        (create_search_memory_tool(TEMPLATE, store=store), {"query": "Where does Ann live?"}),
    ]


def test_a_call_looks_at_no_function_and_no_schema(invoke: Invoke) -> None:
    """Signatures, annotations and fields are known from the start, not found anew at every call."""

    def plain(query: str) -> str:
        """Search."""
        return query

    async def aplain(query: str) -> str:
        """Search."""
        return query

    usual = StructuredTool.from_function(plain, aplain)
    ours = both(InMemoryStore())
    found: dict[str, set[str]] = {}
    for each, given in [*ours, (usual, {"query": "x"})]:
        invoke(each, given, ANN)
        with calls_counted() as counts:
            invoke(each, given, ANN)
        found[each.name] = LOOKING.intersection(counts)

    # A bound method's own signature is asked for, and answered from what is known.
    assert found["manage_memory"] <= {"_signature_from_callable"}
    assert found["search_memory"] <= {"_signature_from_callable"}
    assert found["plain"] > {"_signature_from_callable"}, "the names have changed: look anew"


def test_arguments_are_checked_once(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call validates what the model gave one time, as a mapping or as a text."""
    for each, given in both(InMemoryStore()):
        schema: Any = each.args_schema
        seen: list[Any] = []

        def validate(
            data: Any,  # noqa: ANN401 - as the base
            *,
            of: Callable[[Any], Any] = schema.model_validate,
            seen: list[Any] = seen,
        ) -> Any:  # noqa: ANN401 - as the base
            seen.append(data)
            return of(data)

        monkeypatch.setattr(schema, "model_validate", validate)
        invoke(each, given, ANN)
        invoke(each, next(iter(given.values())), ANN)
        assert seen == [given, given]


def test_a_text_is_the_first_argument(invoke: Invoke) -> None:
    """A tool that is given a text alone takes it as what to save, or what to look for."""
    store = InMemoryStore()
    manage, search = (each for each, _ in both(store))

    saved = invoke(manage, "Ann lives in Oslo", ANN)
    found = invoke(search, "Where does Ann live?", ANN)

    assert saved.startswith("created memory ")
    assert "Ann lives in Oslo" in found


def test_callbacks_are_told_of_a_call_and_its_result(invoke: Invoke) -> None:
    """Handlers, name, id, tags and metadata of the config reach every tool run."""
    run_id = UUID(int=7)
    for each, given in both(InMemoryStore()):
        log = Log()
        config: RunnableConfig = {
            **ANN,
            "callbacks": [log],
            "run_name": "mine",
            "run_id": run_id,
            "tags": ["t"],
            "metadata": {"m": 1},
        }
        result = invoke(each, {**given, "runtime": "made up"}, config)

        (started,) = log.started
        assert (started["tool"], started["inputs"]) == (each.name, given)
        assert "made up" not in started["text"]
        assert (started["name"], started["run_id"], started["tags"]) == ("mine", run_id, ["t"])
        assert started["metadata"]["m"] == 1
        assert log.ended == [result]
        assert log.failed == []


def test_callbacks_are_told_of_a_failing_store(invoke: Invoke) -> None:
    """What a tool raises is reported to the handlers as well as raised."""

    class Broken(InMemoryStore):
        def batch(self, ops: Any) -> Any:  # noqa: ANN401, ARG002 - as the base
            msg = "disk full"
            raise OSError(msg)

        async def abatch(self, ops: Any) -> Any:  # noqa: ANN401 - as the base
            return self.batch(ops)

    for each, given in both(Broken()):
        log = Log()
        with pytest.raises(OSError, match="disk full"):
            invoke(each, given, {**ANN, "callbacks": [log]})
        assert [str(error) for error in log.failed] == ["disk full"]
        assert log.ended == []


def test_a_mistake_is_a_result_for_callbacks_too(invoke: Invoke) -> None:
    """A model's invalid arguments end the run with the message that the model is shown."""
    log = Log()
    manage = create_manage_memory_tool(TEMPLATE, store=InMemoryStore())
    call = {"name": manage.name, "args": {"content": 3}, "id": "c1", "type": "tool_call"}

    message = invoke(manage, call, {**ANN, "callbacks": [log]})

    assert (message.status, message.tool_call_id) == ("error", "c1")
    assert log.ended == [message]


def test_config_of_the_call_reaches_what_runs_inside(invoke: Invoke) -> None:
    """What a tool calls is a child of its run, and the caller's own config is left as it was."""

    class Watching(InMemoryStore):
        seen: Any = None

        def batch(self, ops: Any) -> Any:  # noqa: ANN401 - as the base
            self.seen = var_child_runnable_config.get()
            return super().batch(ops)

        async def abatch(self, ops: Any) -> Any:  # noqa: ANN401 - as the base
            return self.batch(ops)

    store, log = Watching(), Log()
    search = create_search_memory_tool(TEMPLATE, store=store)
    inside = RunnableLambda(search.invoke, afunc=search.ainvoke)

    invoke(inside, {"query": "x"}, {**ANN, "callbacks": [log]})

    assert store.seen["configurable"]["user_id"] == "ann"
    assert store.seen["callbacks"].parent_run_id == log.started[0]["run_id"]
    assert var_child_runnable_config.get() is None
    assert store.search(HOME) == []


def test_batch_and_stream_are_those_of_any_runnable(invoke: Invoke) -> None:
    """Several calls at once, and a stream of one result."""
    search = create_search_memory_tool(TEMPLATE, store=InMemoryStore())

    many: list[Any] = [{"query": "a"}, {"query": "b"}]
    assert search.batch(many, ANN) == ["[]", "[]"]
    assert list(search.stream({"query": "a"}, ANN)) == ["[]"]
    assert invoke is not async_invoke or invoke(RunnableLambda(search.abatch), many, ANN)
