"""`AgentMemoryMiddleware` however an agent is run: streamed, in a batch, retried, with a schema."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel

from langchain_agentmem import AgentMemoryMiddleware, RAGMemory
from langchain_agentmem.rendering import NOTICE
from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.testing import ScriptedChatModel

TURNS = ("memories", "ann", "rag", "turns")
ANN: RunnableConfig = {"configurable": {"user_id": "ann"}}
T = TypeVar("T")
Do = Callable[[Callable[[], T], Callable[[], Coroutine[Any, Any, T]]], T]


@dataclass
class User:
    """A runtime context."""

    user_id: str


class Name(BaseModel):
    """A structured answer."""

    name: str


@pytest.fixture(params=["sync", "async"])
def do(request: pytest.FixtureRequest) -> Do[Any]:
    """Make every call sync, then async."""
    return lambda sync, later: asyncio.run(later()) if request.param == "async" else sync()


@pytest.fixture
def store() -> BaseStore:
    """Give a store in which Ann's dog is known."""
    store = InMemoryStore()
    RAGMemory(store=store).remember("Rex is a poodle.", config=ANN)
    return store


def agent_of(model: Any, store: BaseStore, **options: Any) -> Any:  # noqa: ANN401 - as LangGraph's own
    """Return an agent with a memory."""
    middleware = [AgentMemoryMiddleware(RAGMemory()), *options.pop("beside", [])]
    return create_agent(model, [], middleware=middleware, store=store, **options)


def asking(said: str = "Who is Rex?") -> Any:  # noqa: ANN401 - an agent's input
    """Return an agent's input."""
    return {"messages": [HumanMessage(said)]}


def turn(do: Do[Any], agent: Any, said: list[AnyMessage] | None = None) -> dict[str, Any]:  # noqa: ANN401 - a compiled graph
    """Run one turn."""
    given = asking() if said is None else {"messages": said}
    done: dict[str, Any] = do(lambda: agent.invoke(given, ANN), lambda: agent.ainvoke(given, ANN))
    return done


def recorded(store: BaseStore, namespace: tuple[str, ...] = TURNS) -> list[str]:
    """Return what is remembered."""
    return sorted(str(each.value["content"]) for each in store.search(namespace, limit=100))


def test_streaming_recalls_and_records(do: Do[Any], store: BaseStore) -> None:
    """A streamed turn shows the memory to the model, streams no memory, and is remembered."""
    model = ScriptedChatModel(replies=["A poodle."])
    agent = agent_of(model, store)

    async def later() -> list[Any]:
        return [each async for each in agent.astream(asking(), ANN, stream_mode="messages")]

    streamed = do(lambda: list(agent.stream(asking(), ANN, stream_mode="messages")), later)
    assert "poodle" in model.requests[0].text
    assert "".join(chunk.text for chunk, _ in streamed) == "A poodle."
    assert recorded(store) == ["A poodle.", "Rex is a poodle.", "Who is Rex?"]


def test_every_turn_of_a_batch_is_recalled_and_recorded(do: Do[Any], store: BaseStore) -> None:
    """Five turns in a batch: each sees the memory, all are remembered."""
    model = ScriptedChatModel(replies=lambda _: "A poodle.")
    agent = agent_of(model, store)
    turns = [asking(f"Who is Rex, {number}?") for number in range(5)]
    do(lambda: agent.batch(turns, ANN), lambda: agent.abatch(turns, ANN))
    assert all("Rex is a poodle." in each.text for each in model.requests)
    assert len(recorded(store)) == 11


def test_structured_answers_are_no_obstacle(do: Do[Any], store: BaseStore) -> None:
    """An agent with a response format sees its memory, and its turn is remembered."""
    call = {"name": "Name", "args": {"name": "Rex"}, "id": "call-1"}
    model = ScriptedChatModel(replies=[AIMessage("", tool_calls=[call])])
    agent = agent_of(model, store, response_format=ToolStrategy(Name))
    done = turn(do, agent)
    assert done["structured_response"] == Name(name="Rex")
    assert "poodle" in model.requests[0].text
    assert "Who is Rex?" in recorded(store)


def test_a_fallback_model_sees_the_block_once(do: Do[Any], store: BaseStore) -> None:
    """When the first model fails, the next one gets the same request."""
    for outside in (True, False):
        second = ScriptedChatModel(replies=["A poodle."])
        pair = [ModelFallbackMiddleware(second), AgentMemoryMiddleware(RAGMemory())]
        failing = ScriptedChatModel(replies=[RuntimeError("overloaded")])
        agent: Any = create_agent(
            failing, [], middleware=pair[:: 1 if outside else -1], store=store
        )
        turn(do, agent)
        assert str(second.requests[0].messages[0].content).count(NOTICE) == 1


def test_context_users_at_once_stay_apart(do: Do[Any]) -> None:
    """Ten turns each of two users at once, named by the context: no memory crosses."""
    store = InMemoryStore()
    model = ScriptedChatModel(replies=lambda _: "ok")
    agent = agent_of(model, store, context_schema=User)
    people = [(User(f"u{number % 2}"), f"I am u{number % 2}, {number}.") for number in range(20)]

    def in_threads() -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda one: agent.invoke(asking(one[1]), context=one[0]), people))

    async def as_coroutines() -> None:
        await asyncio.gather(*(agent.ainvoke(asking(said), context=user) for user, said in people))

    do(in_threads, as_coroutines)
    for request in model.requests:
        assert len({name for name in ("I am u0", "I am u1") if name in request.text}) == 1
    for user in ("u0", "u1"):
        said = recorded(store, ("memories", user, "rag", "turns"))
        assert sum(f"I am {user}" in each for each in said) == 10


def test_a_history_given_anew_each_turn_is_recorded_once(do: Do[Any]) -> None:
    """Without a checkpointer the caller hands the whole conversation over, forgotten parts too."""
    store = InMemoryStore()
    agent = agent_of(ScriptedChatModel(replies=lambda _: "ok"), store)
    said: list[AnyMessage] = [HumanMessage("My secret is xylophone.", id="1")]
    turn(do, agent, said)
    RAGMemory(store=store).forget({"kind": "turn"}, config=ANN)
    more = [*said, AIMessage("ok", id="2"), HumanMessage("Hello.", id="3")]
    turn(do, agent, more)
    assert "My secret is xylophone." not in recorded(store)
    assert "Hello." in recorded(store)


def test_a_failed_save_recalls_nothing_anew(do: Do[Any], store: BaseStore) -> None:
    """Only a manage call that wrote makes the turn recall again."""
    recalls: list[str] = []

    class Counting(RAGMemory):
        def _retrieve(self, state: Any) -> Steps[dict[str, Any]]:  # noqa: ANN401 - as the base
            recalls.append(state["query"])
            return (yield from super()._retrieve(state))

    wrong = {"name": "manage_memory", "args": {"action": "delete", "id": "none"}, "id": "call-1"}
    model = ScriptedChatModel(replies=[AIMessage("", tool_calls=[wrong]), "Sorry."])
    middleware = AgentMemoryMiddleware(Counting(store=store), mode="both")
    agent: Any = create_agent(model, [], middleware=[middleware])
    turn(do, agent)
    assert len(recalls) == 1


def test_weak_matches_can_be_left_out(do: Do[Any], store: BaseStore) -> None:
    """Nothing below `min_score` is shown."""
    for least, shown in ((None, True), (1e9, False)):
        model = ScriptedChatModel(replies=["ok"])
        middleware = AgentMemoryMiddleware(RAGMemory(store=store), min_score=least, record="off")
        agent: Any = create_agent(model, [], middleware=[middleware])
        turn(do, agent)
        assert ("poodle" in model.requests[0].text) is shown
