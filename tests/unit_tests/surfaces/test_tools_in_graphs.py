"""The tools inside of agents and graphs: whose memories, which store, what the model sees."""

import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import (
    ConfigurationError,
    FaissSqliteStore,
    MemoryState,
    RAGMemory,
    create_manage_memory_tool,
    create_search_memory_tool,
)
from langchain_agentmem.scopes import journal
from langchain_agentmem.surfaces import recall_node
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.floor import Clock
from tests.unit_tests.surfaces.conftest import (
    ANN,
    HOME,
    TEMPLATE,
    Invoke,
    async_invoke,
    id_in,
    sync_invoke,
)


@dataclass
class Tenant:
    """A runtime context."""

    org: str
    user_id: str | None = None


def call(name: str, /, **arguments: Any) -> AIMessage:  # noqa: ANN401 - a tool's arguments
    """Return a model's call of one tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


def saying(content: str) -> dict[str, Any]:
    """Return an agent's input."""
    return {"messages": [HumanMessage(content, id="h1")]}


def results(state: dict[str, Any]) -> list[ToolMessage]:
    """Return the tool results of a run."""
    return [each for each in state["messages"] if isinstance(each, ToolMessage)]


def agent_with(replies: list[Any], store: BaseStore | None, **options: Any) -> Any:  # noqa: ANN401
    """Return an agent with both tools and a scripted model."""
    tools = [create_manage_memory_tool(TEMPLATE), create_search_memory_tool(TEMPLATE)]
    return create_agent(ScriptedChatModel(replies=replies), tools, store=store, **options)


def test_agent_saves_and_finds(store: BaseStore, invoke: Invoke) -> None:
    """An agent writes into its own store under the caller's scope and finds it again."""
    replies: list[Any] = [
        call("manage_memory", content="Ann lives in Oslo"),
        call("search_memory", query="Where does Ann live?"),
        "You live in Oslo.",
    ]

    state = invoke(agent_with(replies, store), saying("I live in Oslo"), ANN)

    saved, searched = results(state)
    assert saved.status == searched.status == "success"
    (item,) = store.search(HOME)
    assert item.key == id_in(saved)
    assert item.value["source_message_ids"] == ["h1"]
    assert item.key in str(searched.content)


def test_what_a_tool_saved_is_recalled_in_the_next_turn(store: BaseStore, invoke: Invoke) -> None:
    """A fact saved with manage_memory in one turn is in the recall node's result in the next."""
    memory = RAGMemory(namespace=TEMPLATE)
    replies: list[Any] = [call("manage_memory", content="Ann's cat is called Whiskers"), "Noted."]
    invoke(agent_with(replies, store), saying("My cat is Whiskers"), ANN)

    parent = StateGraph(MemoryState)
    parent.add_node("recall", recall_node(memory))
    parent.add_edge(START, "recall")
    state = invoke(parent.compile(store=store), saying("What is my cat called?"), ANN)

    assert [each["value"]["content"] for each in state["memories"]] == [
        "Ann's cat is called Whiskers"
    ]
    assert "Whiskers" in state["memory_context"]


def test_tool_with_a_memory_uses_its_store_and_recall(store: BaseStore, invoke: Invoke) -> None:
    """With `memory=` both tools need nothing else and meet what was said in conversations."""
    memory = RAGMemory(store=store)
    memory.remember("My dog is called Rex.", config=ANN)
    tools = [create_manage_memory_tool(memory=memory), create_search_memory_tool(memory=memory)]
    replies: list[Any] = [
        call("manage_memory", content="Ann's cat is called Whiskers"),
        call("search_memory", query="What are the dog and the cat called?"),
        "Rex and Whiskers.",
    ]

    state = invoke(create_agent(ScriptedChatModel(replies=replies), tools), saying("hi"), ANN)

    found = str(results(state)[1].content)
    assert "Rex" in found
    assert "Whiskers" in found


def test_memory_of_another_namespace_is_refused() -> None:
    """A tool that would write where its memory does not read is the programmer's error."""
    with pytest.raises(ConfigurationError, match="memory="):
        create_manage_memory_tool(("elsewhere", "{user_id}"), memory=RAGMemory())
    with pytest.raises(ConfigurationError, match="namespace"):
        create_search_memory_tool()


def test_context_and_config_fill_one_template(invoke: Invoke) -> None:
    """Variables come from the context first, then from the config, and labels are escaped."""
    store = InMemoryStore()
    template = ("mem", "{org}", "user-{user_id}")
    config: RunnableConfig = {"configurable": {"user_id": 7}}
    for tenant in (Tenant("a.b"), Tenant("a_b"), Tenant("a.b", user_id="ann")):
        agent = create_agent(
            ScriptedChatModel(replies=[call("manage_memory", content="x"), "ok"]),
            [create_manage_memory_tool(template)],
            store=store,
            context_schema=Tenant,
        )
        invoke(agent, saying("hi"), config, context=tenant)

    assert set(store.list_namespaces(prefix=("mem",))) == {
        ("mem", "a~2E~b", "user-7"),
        ("mem", "a_b", "user-7"),
        ("mem", "a~2E~b", "user-ann"),
    }


def test_missing_variable_is_an_ordinary_error(invoke: Invoke) -> None:
    """A run without an identity ends with an exception that `except Exception` catches."""
    agent = agent_with([call("manage_memory", content="x")], InMemoryStore())

    with pytest.raises(ConfigurationError, match="user_id"):
        invoke(agent, saying("hi"), {"configurable": {}})


def test_model_cannot_choose_an_identity(invoke: Invoke) -> None:
    """Arguments that a model made up, even an injected one's name, lead nowhere else."""
    store = InMemoryStore()
    forged = {"config": {"configurable": {"user_id": "bob"}}, "context": {"user_id": "bob"}}
    arguments = {
        "content": "x",
        "user_id": "bob",
        "namespace": ["memories", "bob"],
        "runtime": forged,
    }
    invoke(agent_with([call("manage_memory", **arguments), "ok"], store), saying("hi"), ANN)
    tool = create_manage_memory_tool(TEMPLATE, store=store)
    invoke(tool, {"name": tool.name, "args": arguments, "id": "c", "type": "tool_call"}, ANN)

    assert store.list_namespaces(prefix=("memories",)) == [HOME]


def test_one_tool_object_serves_several_graphs(invoke: Invoke) -> None:
    """The store is that of each call and is never kept on the tool."""
    tool = create_manage_memory_tool(TEMPLATE)
    stores = [InMemoryStore(), InMemoryStore()]
    for number, store in enumerate(stores):
        replies: list[Any] = [call("manage_memory", content=f"fact {number}"), "ok"]
        agent = create_agent(ScriptedChatModel(replies=replies), [tool], store=store)
        invoke(agent, saying("hi"), ANN)

    found = [[each.value["content"] for each in store.search(HOME)] for store in stores]
    assert found == [["fact 0"], ["fact 1"]]


def test_explicit_store_wins_over_the_graphs(invoke: Invoke) -> None:
    """A tool made with a store writes there, whatever the graph was compiled with."""
    own, other = InMemoryStore(), InMemoryStore()
    replies: list[Any] = [call("manage_memory", content="x"), "ok"]
    tool = create_manage_memory_tool(TEMPLATE, store=own)
    agent = create_agent(ScriptedChatModel(replies=replies), [tool], store=other)

    invoke(agent, saying("hi"), ANN)

    assert (len(own.search(HOME)), len(other.search(HOME))) == (1, 0)


def test_without_any_store_the_error_says_what_to_do(invoke: Invoke) -> None:
    """Outside of a graph and without a store the message names `store=`."""
    with pytest.raises(ConfigurationError, match="store="):
        invoke(create_manage_memory_tool(TEMPLATE), {"content": "x"}, ANN)
    with pytest.raises(ConfigurationError, match="store="):
        invoke(create_search_memory_tool(TEMPLATE), {"query": "x"}, ANN)


def test_tool_called_in_a_node_uses_the_running_graph(invoke: Invoke) -> None:
    """A tool that a node calls by hand finds scope and store of the run."""
    tool = create_manage_memory_tool(TEMPLATE)
    store = InMemoryStore()

    def save(_: MessagesState) -> dict[str, list[AnyMessage]]:
        return {"messages": [AIMessage(tool.invoke({"content": "x"}))]}

    async def asave(_: MessagesState) -> dict[str, list[AnyMessage]]:
        return {"messages": [AIMessage(await tool.ainvoke({"content": "x"}))]}

    nodes: tuple[Any, ...] = (save, asave)
    for node in nodes if invoke is async_invoke else nodes[:1]:
        builder = StateGraph(MessagesState)
        builder.add_node("save", node)
        builder.add_edge(START, "save")
        invoke(builder.compile(store=store), saying("hi"), ANN)

    assert [each.value["content"] for each in store.search(HOME)] == ["x"]


def test_mistakes_reach_the_model_as_results(invoke: Invoke) -> None:
    """In a tool node a model's mistake is an error message, and the run goes on."""
    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode([create_manage_memory_tool(TEMPLATE)]))
    builder.add_edge(START, "tools")
    graph = builder.compile(store=InMemoryStore())
    wrong = [
        {"name": "manage_memory", "args": arguments, "id": str(number)}
        for number, arguments in enumerate(
            [{}, {"action": "update", "content": "x"}, {"action": "x"}, {"content": 3}]
        )
    ]

    state = invoke(graph, {"messages": [AIMessage("", tool_calls=wrong)]}, ANN)

    assert [each.status for each in results(state)] == ["error"] * 4


def test_agent_with_checkpoints_continues_after_a_tool_result(invoke: Invoke) -> None:
    """Results with artifacts survive being saved and loaded with the conversation."""
    tools = [
        create_manage_memory_tool(TEMPLATE),
        create_search_memory_tool(TEMPLATE, response_format="content_and_artifact"),
    ]
    replies: list[Any] = [
        call("manage_memory", content="Ann lives in Oslo"),
        call("search_memory", query="Ann"),
        "Oslo.",
        "As I said.",
    ]
    agent = create_agent(
        ScriptedChatModel(replies=replies),
        tools,
        store=InMemoryStore(),
        checkpointer=InMemorySaver(),
    )
    config: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "t1"}}
    invoke(agent, saying("hi"), config)

    state = invoke(agent, {"messages": "again"}, config)

    assert results(state)[1].artifact[0].value["content"] == "Ann lives in Oslo"


def test_sync_and_async_agents_leave_equal_stores(tmp_path: Path) -> None:
    """The same script gives the same items and journal, byte for byte, whatever the path."""

    def replies() -> list[Any]:
        def change(messages: list[Any]) -> AIMessage:
            return call(
                "manage_memory", action="update", id=id_in(messages[-1]), content="Ann: Rome"
            )

        return [
            call("manage_memory", content="Ann lives in Oslo"),
            change,
            call("manage_memory", content="Ann likes tea"),
            lambda messages: call("manage_memory", action="delete", id=id_in(messages[-1])),
            "Done.",
        ]

    stores = []
    for way in (sync_invoke, async_invoke):
        clock = Clock()
        store = FaissSqliteStore(tmp_path / f"{way.__name__}.sqlite", clock=clock)
        tool = create_manage_memory_tool(TEMPLATE, clock=clock, rng=random.Random(3))  # noqa: S311
        agent = create_agent(ScriptedChatModel(replies=replies()), [tool], store=store)
        way(agent, saying("hi"), ANN)
        names = store.list_namespaces() + store.list_namespaces(prefix=("_agentmem",))
        stores.append(
            {
                (name, each.key): (each.value, each.created_at, each.updated_at)
                for name in names
                for each in store.search(name, limit=100)
            }
        )
        store.close()

    assert stores[0] == stores[1]
    assert {name[:2] for name, _ in stores[0]} == {HOME, journal(())[:2], ("_agentmem", "closed")}


def test_tools_work_with_a_model_that_is_only_async(store: BaseStore) -> None:
    """A model without a sync call saves and searches in an agent."""

    class OnlyAsync(ScriptedChatModel):
        def _generate(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - LangChain's signature
            raise NotImplementedError

        async def _agenerate(self, *given: Any, **options: Any) -> Any:  # noqa: ANN401 - as above
            return ScriptedChatModel._generate(self, *given, **options)

    model = OnlyAsync(replies=[call("manage_memory", content="Ann lives in Oslo"), "Done."])
    agent: Any = create_agent(model, [create_manage_memory_tool(TEMPLATE)], store=store)
    done = async_invoke(agent, saying("I live in Oslo"), ANN)
    assert results(done)[0].text.startswith("created memory")


def test_langmem_users_change_only_the_import() -> None:
    """Names and arguments of both tools are LangMem's."""
    langmem = pytest.importorskip("langmem")
    for ours, theirs in (
        (create_manage_memory_tool, langmem.create_manage_memory_tool),
        (create_search_memory_tool, langmem.create_search_memory_tool),
    ):
        mine = ours(namespace=("memories", "{langgraph_user_id}"))
        other = theirs(namespace=("memories", "{langgraph_user_id}"))
        assert mine.name == other.name
        assert list(mine.args) == list(other.args)


def test_naming_the_surfaces_loads_nothing_heavy() -> None:
    """Importing the package of surfaces loads neither LangChain nor FAISS."""
    code = (
        "import sys, langchain_agentmem.surfaces\n"
        "loaded = {'langchain_core', 'langgraph', 'faiss', 'numpy'} & set(sys.modules)\n"
        "print(sorted(loaded))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
