"""The drivers: they perform effects, hand errors into the step, and agree with each other."""

import logging
import random
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.parameters import Parameters, context_schema, described
from langchain_agentmem.scopes import NamespaceTemplate, Scope
from langchain_agentmem.steps.effects import (
    Ask,
    Draw,
    Effect,
    Embed,
    Emit,
    Get,
    HasModel,
    NewId,
    Now,
    Put,
    Resolve,
    Setting,
    Settings,
    Steps,
    Write,
)
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.floor import START, Clock, Drive, awaiting, blocking, everything


@dataclass(frozen=True, slots=True)
class Failing(Effect[None]):
    """An effect that no driver knows."""


def test_an_error_is_thrown_into_the_step(drive: Drive) -> None:
    """A step may handle the failure of what it asked for, and go on."""

    def step() -> Steps[list[object]]:
        try:
            yield from Failing()
        except TypeError as error:
            return [str(error), (yield from Now())]
        return []

    message, now = drive(step(), Environment(clock=Clock()))
    assert "not an effect" in str(message)
    assert now == START


def test_an_error_in_a_composite_effect_reaches_the_step_that_asked(drive: Drive) -> None:
    """A failure deep inside comes out at the line that yielded the composite effect."""

    def step() -> Steps[str]:
        try:
            yield Get([(("a",), "k")])
        except ConfigurationError:
            return "handled"
        return "not raised"

    assert drive(step(), Environment()) == "handled"


def test_an_unhandled_error_leaves_the_driver(drive: Drive) -> None:
    """Without a store the caller is told what to pass."""

    def step() -> Steps[None]:
        yield from Get([(("a",), "k")])

    with pytest.raises(ConfigurationError, match="store="):
        drive(step(), Environment())


def test_cleanup_of_a_failing_step_runs(drive: Drive) -> None:
    """A step's `finally` may itself yield effects."""
    done: list[datetime] = []

    def step() -> Steps[None]:
        try:
            yield from Failing()
        finally:
            done.append((yield from Now()))

    with pytest.raises(TypeError):
        drive(step(), Environment(clock=Clock()))
    assert done == [START]


def test_a_step_is_driven_by_hand() -> None:
    """A test can play the outside with plain values."""

    def step() -> Steps[int]:
        (found,) = yield from Get([(("a",), "k")])
        numbers = yield from Draw(2)
        return len(numbers) + (found is None)

    steps = step()
    assert next(steps) == Get([(("a",), "k")])
    assert steps.send([None]) == Draw(2)
    with pytest.raises(StopIteration) as finished:
        steps.send([0.1, 0.2])
    assert finished.value.value == 3


def test_sync_and_async_leave_the_same(clock: Clock) -> None:
    """The same step with the same seed gives the same result and the same store both ways."""

    def step() -> Steps[list[Any]]:
        key = yield from NewId()
        drawn = yield from Draw(3)
        yield from Write([Put(("a",), key, {"drawn": drawn}, ["drawn"])])
        return [key, drawn]

    outcomes = []
    for driver in (blocking, awaiting):
        store = InMemoryStore()
        rng = random.Random(3)  # noqa: S311 - reproducible
        result = driver(step(), Environment(store=store, clock=clock, rng=rng))
        outcomes.append((result, everything(store)))
    assert outcomes[0] == outcomes[1]
    assert UUID(outcomes[0][0][0]).version == 4


def test_an_id_from_a_generator_is_reproducible(drive: Drive) -> None:
    """Ids come from the injected generator and from nowhere else."""

    def step() -> Steps[str]:
        return (yield from NewId())

    seeds = [random.Random(1), random.Random(1), random.Random(2)]  # noqa: S311 - reproducible
    one, same, other = (drive(step(), Environment(rng=rng)) for rng in seeds)
    assert one == same != other


def test_the_model_is_asked_and_counted(drive: Drive) -> None:
    """Each call of the model enters the ledger under its purpose."""

    def step() -> Steps[str]:
        reply = yield from Ask([HumanMessage("hello")], "greet")
        return reply.text

    env = Environment(model=ScriptedChatModel(replies=["hi"]))
    assert drive(step(), env) == "hi"
    assert env.ledger.calls == {"greet": 1}


def test_a_step_without_a_model_is_told_what_to_pass(drive: Drive) -> None:
    """Whether there is a model can be asked first; asking it anyway is an error."""

    def step() -> Steps[bool]:
        if not (yield from HasModel()):
            yield from Ask([HumanMessage("hello")], "greet")
        return True

    with pytest.raises(ConfigurationError, match="'greet' needs a chat model"):
        drive(step(), Environment())


def test_embeddings_come_from_the_memory_or_from_the_store(drive: Drive) -> None:
    """Without an embedding model of its own a memory uses the store's."""
    model = DeterministicFakeEmbedding(size=4)

    def step() -> Steps[list[list[float]]]:
        documents = yield from Embed(["a", "b"])
        return documents + (yield from Embed(["a"], query=True))

    expected = [*model.embed_documents(["a", "b"]), model.embed_query("a")]
    assert drive(step(), Environment(embeddings=model)) == expected
    store = InMemoryStore(index={"dims": 4, "embed": model})
    assert drive(step(), Environment(store=store)) == expected
    with pytest.raises(ConfigurationError, match="embedding model"):
        drive(step(), Environment(store=InMemoryStore()))


def test_events_reach_the_stream_and_the_log(
    drive: Drive, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever watches a run sees what a step reports."""
    seen: list[dict[str, Any]] = []

    def step() -> Steps[None]:
        yield from Emit("no_model_configured", {"step": "extract"})

    with caplog.at_level(logging.DEBUG, "langchain_agentmem"):
        drive(step(), Environment(emitter=seen.append))
    assert seen == [{"event": "no_model_configured", "step": "extract"}]
    assert "no_model_configured" in caplog.text


def test_scope_and_settings_come_from_the_call(drive: Drive) -> None:
    """Namespaces and single values are taken from context before config."""

    def step() -> Steps[list[object]]:
        namespace = yield from Resolve(NamespaceTemplate(("m", "{user_id}")))
        return [namespace, (yield from Setting("thread_id")), (yield from Setting("z", 5))]

    config = {"configurable": {"user_id": "bob", "thread_id": "t"}}
    env = Environment(scope=Scope.of(config, {"user_id": "ann"}))
    assert drive(step(), env) == [("m", "ann"), "t", 5]


@dataclass(frozen=True, kw_only=True)
class Knobs(Parameters):
    """Parameters of a test."""

    presets = {"default": {}, "paper": {"limit": 20}}  # noqa: RUF012 - as architectures declare it
    limit: int = described(10, "How many.")
    weight: float = described(0.5, "How much.")
    names: tuple[str, ...] = ()
    model_name: str | None = None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Knobs(limit=7)),
        ({"limit": 3, "weight": 1}, Knobs(limit=3, weight=1.0)),
        ({"names": ["a"]}, Knobs(limit=7, names=("a",))),
        ({"preset": "paper"}, Knobs(limit=20)),
        ({"preset": "paper", "limit": 2}, Knobs(limit=2)),
        ({"model_name": "x"}, Knobs(limit=7, model_name="x")),
    ],
)
def test_a_call_overrides_parameters(given: dict[str, object], expected: Knobs) -> None:
    """Context and config may set single parameters or a whole preset for one call."""
    env = Environment(scope=Scope(None, given))
    assert env.perform_plain(Settings(Knobs(limit=7))) == expected


@pytest.mark.parametrize(
    ("form", "config", "expected"),
    [
        ({"preset": "paper"}, {}, Knobs(limit=20)),
        ({"preset": "paper", "limit": 2}, {}, Knobs(limit=2)),
        ({}, {"preset": "paper"}, Knobs(limit=20)),
        ({}, {"limit": 3}, Knobs(limit=3)),
        ({"limit": 2}, {"limit": 3}, Knobs(limit=2)),
        ({}, {}, Knobs(limit=7)),
    ],
)
def test_defaults_of_a_form_are_nobodys_choice(
    form: dict[str, object], config: dict[str, object], expected: Knobs
) -> None:
    """LangGraph fills a context class with its defaults; these override no preset or config."""
    own = Knobs(limit=7)
    filled = context_schema("Knobs", own, ("user_id",), "default")(**form)
    env = Environment(scope=Scope(filled, config))
    assert env.perform_plain(Settings(own)) == expected


@pytest.mark.parametrize(
    "given", [{"limit": "3"}, {"limit": True}, {"weight": "x"}, {"preset": "best"}, {"limit": 1.5}]
)
def test_an_override_of_another_type_is_refused(given: dict[str, object]) -> None:
    """A wrong value in a config is told at once, not somewhere inside of a step."""
    env = Environment(scope=Scope(None, given))
    with pytest.raises(ConfigurationError):
        env.perform_plain(Settings(Knobs()))
