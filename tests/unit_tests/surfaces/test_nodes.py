"""Recall and remember as nodes of a user's graph, with the usual keys and with others."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel

from langchain_agentmem import ConfigurationError, MemoryState, RAGMemory
from langchain_agentmem.surfaces import recall_node, remember_node
from tests.unit_tests.surfaces.conftest import ANN, Invoke, async_invoke

BOB: RunnableConfig = {"configurable": {"user_id": "bob"}}
MARKER = "zanzibar-4711"
OTHER_KEYS = {"messages_key": "chat", "memories_key": "recalled", "context_key": "background"}


class OwnState(MemoryState, total=False):
    """A user's state with key names of its own."""

    chat: Annotated[list[AnyMessage], add_messages]
    recalled: Annotated[list[dict[str, Any]], UntrackedValue]
    background: Annotated[str, UntrackedValue]
    done: Annotated[list[dict[str, Any]], UntrackedValue]
    question: str


@dataclass
class Context:
    """A runtime context."""

    user_id: str


class ModelState(BaseModel):
    """A user's state that is no dictionary."""

    chat: list[AnyMessage] = []
    recalled: list[dict[str, Any]] = []
    background: str = ""


def graph_of(state: type, /, *nodes: Any, **options: Any) -> Any:  # noqa: ANN401 - nodes of any kind
    """Return a compiled graph of some nodes in a row."""
    schema = options.pop("context_schema", None)
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(state, context_schema=schema)
    names = [f"node{number}" for number in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        builder.add_node(name, node)
    for before, after in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(before, after)
    return builder.compile(**options)


def said(text: str, key: str = "messages") -> dict[str, Any]:
    """Return a graph's input."""
    return {key: [HumanMessage(text)]}


def test_nodes_recall_what_nodes_remembered(store: BaseStore, invoke: Invoke) -> None:
    """One graph remembers, the next recalls, in the scope of the run and from its store."""
    memory = RAGMemory()
    invoke(graph_of(MemoryState, remember_node(memory), store=store), said("I own Rex"), ANN)
    recall = graph_of(MemoryState, recall_node(memory), store=store)

    mine = invoke(recall, said("What do I own?"), ANN)
    other = invoke(recall, said("What do I own?"), BOB)

    assert [each["value"]["content"] for each in mine["memories"]] == ["I own Rex"]
    assert "Rex" in mine["memory_context"]
    assert (other["memories"], other["memory_context"]) == ([], "")


def test_other_keys_give_the_same(store: BaseStore, invoke: Invoke) -> None:
    """Mapped keys change names and nothing else."""
    memory = RAGMemory()
    remember = remember_node(memory, messages_key="chat", operations_key="done")
    written = invoke(graph_of(OwnState, remember, store=store), said("I own Rex", "chat"), ANN)
    own = invoke(
        graph_of(OwnState, recall_node(memory, **OTHER_KEYS), store=store),
        said("What do I own?", "chat"),
        ANN,
    )
    usual = invoke(
        graph_of(MemoryState, recall_node(memory), store=store), said("What do I own?"), ANN
    )

    assert [each["event"] for each in written["done"]] == ["ADD"]
    assert (own["recalled"], own["background"]) == (usual["memories"], usual["memory_context"])
    assert own["recalled"]


def test_scope_may_come_from_the_context(store: BaseStore, invoke: Invoke) -> None:
    """The runtime context wins over the config, with the usual keys and with others."""
    memory = RAGMemory()
    for options, key in (({}, "messages"), (OTHER_KEYS, "chat")):
        memory_keys = options.get("memories_key", "memories")
        remember = remember_node(memory, messages_key=key)
        graph = graph_of(OwnState, remember, store=store, context_schema=Context)
        invoke(graph, said("I own Rex", key), BOB, context=Context("ann"))
        recall = graph_of(
            OwnState, recall_node(memory, **options), store=store, context_schema=Context
        )
        state = invoke(recall, said("What do I own?", key), BOB, context=Context("ann"))
        assert state[memory_keys]
        assert not invoke(recall, said("What do I own?", key), BOB)[memory_keys]


def test_question_may_have_a_key_of_its_own(store: BaseStore, invoke: Invoke) -> None:
    """A state without a conversation recalls for its question."""
    memory = RAGMemory(store=store)
    memory.remember("My dog is called Rex.", config=ANN)
    memory.remember("The weather is fine.", config=ANN)
    node = recall_node(memory, messages_key="chat", query_key="question")

    state = invoke(graph_of(OwnState, node), {"question": "What is the dog called?"}, ANN)

    assert state["memories"][0]["value"]["content"] == "My dog is called Rex."


def test_states_may_be_models(store: BaseStore, invoke: Invoke) -> None:
    """A pydantic state is read like any other."""
    memory = RAGMemory(store=store)
    memory.remember("I own Rex", config=ANN)

    state = invoke(
        graph_of(ModelState, recall_node(memory, **OTHER_KEYS)), said("own?", "chat"), ANN
    )

    assert "Rex" in state["background"]


def test_drawing_shows_the_steps() -> None:
    """With the usual keys the steps of a memory are visible inside of the user's graph."""
    memory = RAGMemory()
    drawn = graph_of(MemoryState, recall_node(memory), remember_node(memory)).get_graph(xray=True)

    names = {name.split(":")[-1] for name in drawn.nodes}
    assert names >= {"retrieve", "add_neighbors", "assemble", "split_turns", "store_turns"}


def test_memorys_own_store_wins(invoke: Invoke) -> None:
    """A memory made with a store keeps it inside of a graph with another one."""
    own, other = InMemoryStore(), InMemoryStore()
    node = remember_node(RAGMemory(store=own), messages_key="chat")

    invoke(graph_of(OwnState, node, store=other), said("I own Rex", "chat"), ANN)

    assert own.list_namespaces()
    assert not other.list_namespaces()


@pytest.mark.parametrize("options", [{}, {"messages_key": "chat"}])
def test_without_a_store_the_error_says_what_to_do(invoke: Invoke, options: Any) -> None:  # noqa: ANN401
    """A graph compiled without a store is told how to get one."""
    key = options.get("messages_key", "messages")

    with pytest.raises(ConfigurationError, match="store="):
        invoke(graph_of(OwnState, recall_node(RAGMemory(), **options)), said("x", key), ANN)


@pytest.mark.parametrize("options", [{}, OTHER_KEYS], ids=["usual_keys", "own_keys"])
def test_recalled_text_is_in_no_byte_of_the_checkpoints(
    tmp_path: Path, invoke: Invoke, options: dict[str, str]
) -> None:
    """What was recalled reaches the model's node, and the checkpointer's files never."""
    store = InMemoryStore()
    memory = RAGMemory()
    RAGMemory(store=store).remember(f"The safe's code word is {MARKER}", config=ANN)
    seen: list[str] = []
    key = options.get("messages_key", "messages")

    def answer(state: OwnState) -> dict[str, Any]:
        seen.append(str(state.get(options.get("context_key", "memory_context"), "")))
        return {key: [AIMessage("I know it.")]}

    nodes = (recall_node(memory, **options), answer, remember_node(memory, messages_key=key))
    config: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "t"}}
    path = tmp_path / "checkpoints.sqlite"
    question = said("What is the code word of the safe?", key)

    if invoke is async_invoke:

        async def chat() -> None:
            async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
                graph = graph_of(OwnState, *nodes, store=store, checkpointer=saver)
                await graph.ainvoke(question, config)
                await graph.ainvoke(question, config)

        asyncio.run(chat())
    else:
        with SqliteSaver.from_conn_string(str(path)) as saver:
            graph = graph_of(OwnState, *nodes, store=store, checkpointer=saver)
            graph.invoke(question, config)
            graph.invoke(question, config)

    assert len(seen) == 2
    assert all(MARKER in text for text in seen)
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"I know it." in stored
    assert MARKER.encode() not in stored
