"""LangMem's store manager under its own names."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph import MessagesState, StateGraph
from langgraph.store.base import BaseStore
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_agentmem.items import StoredMemory
from langchain_agentmem.surfaces.langmem import (
    Memory,
    MemoryStoreManager,
    create_memory_searcher,
    create_memory_store_manager,
)
from tests.unit_tests.floor import Clock
from tests.unit_tests.scripted import STORES, Scripted, make_store

ANN: RunnableConfig = {"configurable": {"langgraph_user_id": "ann"}}
BOB: RunnableConfig = {"configurable": {"langgraph_user_id": "bob"}}
HOME = ("memories", "ann")
Do = Callable[..., Any]


class Preference(BaseModel):
    """What somebody wants."""

    about: str
    wish: str


class Who(TypedDict):
    """Whose memory it is."""

    langgraph_user_id: str


def changes(*memories: dict[str, Any]) -> dict[str, Any]:
    """Return a reply that creates memories."""
    return {"memories": [{"action": "create", **each} for each in memories]}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Any) -> BaseStore:  # noqa: ANN401 - pytest's path
    """Both stores."""
    return make_store(request.param, tmp_path)


@pytest.fixture(params=["sync", "async"])
def do(request: pytest.FixtureRequest) -> Do:
    """Call a method, or its async twin."""

    async def call(manager: MemoryStoreManager, name: str, *args: Any, **given: Any) -> Any:  # noqa: ANN401 - a double of any
        if request.param == "async":
            return await getattr(manager, f"a{name}")(*args, **given)
        return getattr(manager, name)(*args, **given)

    return call


async def test_a_langmem_program_runs_with_the_import_changed(store: BaseStore, do: Do) -> None:
    """The same arguments, the same namespace, and what was put comes back in LangMem's shape."""
    model = Scripted([changes({"content": "Ann likes tea"})])
    manager = create_memory_store_manager(
        model, namespace=("memories", "{langgraph_user_id}"), enable_inserts=True, store=store
    )
    given = {"messages": [{"role": "user", "content": "I like tea"}], "max_steps": 1}
    (put,) = await do(manager, "invoke", given, ANN)
    assert put["namespace"] == HOME
    assert put["value"]["content"] == "Ann likes tea"
    (found,) = await do(manager, "search", query="tea", config=ANN)
    assert found.value == Memory(content="Ann likes tea")
    assert await do(manager, "search", query="tea", config=BOB) == []
    assert (await do(manager, "get", put["key"], config=ANN)).value.content == "Ann likes tea"


async def test_values_come_back_in_their_schema(store: BaseStore, do: Do) -> None:
    """And as they are where they have none, or do not fit it any more."""
    reply = changes({"content": {"about": "tea", "wish": "green"}, "kind": "Preference"})
    manager = create_memory_store_manager(Scripted([reply]), schemas=[Preference], store=store)
    store.put(HOME, "odd", {"kind": "Preference", "content": {"title": "x"}})
    store.put(HOME, "other", {"kind": "Gone", "content": {"x": 1}})
    await do(manager, "invoke", {"messages": [("user", "green tea")]}, ANN)
    found = {each.key: each.value for each in await do(manager, "search", config=ANN)}
    assert found.pop("odd")["content"] == {"title": "x"}
    assert found.pop("other")["content"] == {"x": 1}
    assert list(found.values()) == [Preference(about="tea", wish="green")]


async def test_put_keeps_a_history_and_delete_can_be_undone(store: BaseStore, do: Do) -> None:
    """LangMem's proxies overwrite and delete for good."""
    manager = create_memory_store_manager(Scripted(), store=store)
    await do(
        manager, "put", "k", {"kind": "Memory", "content": {"content": "Ann likes tea"}}, config=ANN
    )
    await do(manager, "put", "k", {"content": "Ann likes green tea"}, config=ANN)
    found = store.get(HOME, "k")
    assert found is not None
    stored = StoredMemory.from_store(found)
    history = manager.memory.history(stored, config=ANN)
    assert [each.after.content for each in history] == ["Ann likes tea", "Ann likes green tea"]
    await do(manager, "delete", "k", config=ANN)
    await do(manager, "delete", "unknown", config=ANN)
    assert await do(manager, "get", "k", config=ANN) is None
    assert store.get(HOME, "k") is None
    manager.memory.undo(stored, config=ANN)
    assert (await do(manager, "get", "k", config=ANN)).value.content == "Ann likes green tea"
    await do(manager, "delete", "k", config=ANN)
    await do(manager, "put", "k", {"content": "Ann likes milk"}, config=ANN)
    assert (await do(manager, "get", "k", config=ANN)).value.content == "Ann likes milk"


async def test_a_time_to_live_ends_by_the_clock(store: BaseStore, do: Do) -> None:
    """In minutes, as LangGraph counts."""
    manager = create_memory_store_manager(Scripted(), store=store)
    clock = manager.memory.clock = Clock()
    await do(manager, "put", "k", {"content": "Ann is in town"}, ttl=1, config=ANN)
    assert len(await do(manager, "search", config=ANN)) == 1
    clock.move(60)
    assert await do(manager, "search", config=ANN) == []
    assert await do(manager, "get", "k", config=ANN) is None


async def test_inside_a_graph_it_uses_the_graphs_store_and_context(store: BaseStore) -> None:
    """On every call anew: LangMem keeps the first graph's store (B4)."""
    manager = create_memory_store_manager(Scripted(lambda _: changes({"content": "Ann likes tea"})))

    def remember(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        manager.invoke({"messages": state["messages"]}, config)
        return {}

    async def aremember(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        await manager.ainvoke({"messages": state["messages"]}, config)
        return {}

    builder = StateGraph(MessagesState, context_schema=Who)
    builder.add_node("remember", RunnableLambda(remember, aremember))
    builder.set_entry_point("remember")
    graph = builder.compile(store=store)
    graph.invoke({"messages": [HumanMessage("tea")]}, context={"langgraph_user_id": "ann"})
    await graph.ainvoke({"messages": [HumanMessage("tea")]}, BOB)
    assert [each.value["content"] for each in store.search(HOME)] == ["Ann likes tea"]
    assert [each.value["content"] for each in store.search(("memories", "bob"))] == [
        "Ann likes tea"
    ]


async def test_a_searcher_asks_a_model_for_queries(store: BaseStore, do: Do) -> None:
    """Each memory once, best first, of its own namespace only; nothing said finds nothing."""
    for number, text in enumerate(("Ann likes tea", "Ann owns a boat", "Ann plays chess")):
        store.put(HOME, str(number), {"content": text}, index=["content"])
    store.put(("memories", "bob"), "b", {"content": "Bob likes tea"}, index=["content"])
    model = Scripted([{"queries": ["tea", "tea and boats"]}])
    searcher: Any = create_memory_searcher(model, store=store)
    searcher.limit = 2
    found = await do(searcher, "invoke", {"messages": [("user", "What do I like?")]}, ANN)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    texts = [each.value["content"] for each in found]
    assert len(texts) == len(set(texts)) >= 2
    assert all(text.startswith("Ann") for text in texts)
    assert await do(searcher, "invoke", {"messages": []}, ANN) == []


async def test_the_short_form_is_async(store: BaseStore) -> None:
    """`await manager(messages)`, as in LangMem."""
    manager = create_memory_store_manager(
        Scripted([changes({"content": "tea"})]), namespace=("memories",), store=store
    )
    (put,) = await manager([HumanMessage("tea")])
    assert put["namespace"] == ("memories",)
