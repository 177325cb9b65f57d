"""An erasure wins over what is being written while it comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.consolidation import (
    LocalConsolidator,
    MemoryQueue,
    create_consolidation_graph,
)
from langchain_agentmem.memories import AMem, LangMem, Mem0
from langchain_agentmem.memories.base import EVERYTHING, Memory
from langchain_agentmem.steps import erasure
from langchain_agentmem.testing import ScriptedChatModel

ANN: Any = {"configurable": {"user_id": "ann"}}
SAID = "My passport number is X1234567."
REPLIES: dict[type[Memory], dict[str, Any]] = {
    LangMem: {"memories": [{"action": "create", "content": SAID}]},
    Mem0: {"facts": [{"text": SAID}]},
    AMem: {"keywords": ["passport"], "context": "papers", "tags": ["id"]},
}
ARCHITECTURES = list(REPLIES)


@pytest.fixture(params=["faiss", "in_memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    """A store with its own conditional writes, and one without."""
    if request.param == "in_memory":
        yield InMemoryStore()
        return
    with FaissSqliteStore(tmp_path / "memory.sqlite") as opened:
        yield opened


def _answering(memory: type[Memory], meanwhile: Callable[[], object]) -> ScriptedChatModel:
    """Return a model during whose first call something else happens."""
    begun = threading.Event()

    def reply(_: object) -> dict[str, Any]:
        if not begun.is_set():
            begun.set()
            meanwhile()
        return REPLIES[memory]

    return ScriptedChatModel(replies=reply)


def _texts(store: BaseStore) -> str:
    """Return everything there is in the store, as one text."""
    return str([[name, each.key, each.value] for name, each in _items(store)])


def _items(store: BaseStore) -> list[tuple[tuple[str, ...], Any]]:
    own = store.list_namespaces(prefix=("_agentmem",), limit=1000)
    names = dict.fromkeys([*own, *store.list_namespaces(limit=1000)])
    return [
        (name, each)
        for name in names
        for each in store.search(name, limit=1000)
        if tuple(each.namespace) == name
    ]


def _made(kind: type[Memory], store: BaseStore) -> Memory:
    """Return a memory whose scope is erased while its model works."""
    eraser = kind(store=store)
    model = _answering(kind, lambda: eraser.forget(EVERYTHING, config=ANN))
    return kind(model=model, store=store)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_what_is_being_remembered_does_not_come_back_after_forget(
    kind: type[Memory], store: BaseStore
) -> None:
    """A write that waited for its model while the scope was erased is refused, and reported."""
    memory = _made(kind, store)
    done = memory.remember(SAID, config=ANN)
    assert [op.reason for op in done] == ["the scope was erased meanwhile"]
    assert "X1234567" not in _texts(store)
    assert memory.recall("passport number", config=ANN).items == []


@pytest.mark.parametrize("kind", ARCHITECTURES)
async def test_what_is_being_remembered_does_not_come_back_after_aforget(
    kind: type[Memory], store: BaseStore
) -> None:
    """The same holds in async use."""
    memory = _made(kind, store)
    done = await memory.aremember(SAID, config=ANN)
    assert {op.status for op in done} == {"rejected"}
    assert "X1234567" not in _texts(store)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_graph_node_does_not_bring_back_what_was_erased(
    kind: type[Memory], store: BaseStore
) -> None:
    """The nodes of a remember graph share one look at the scope, taken before the first."""
    given = {"messages": [("user", SAID)]}
    done = _made(kind, store).remember_graph().invoke(given, ANN)["memory_operations"]
    assert {op["status"] for op in done} == {"rejected"}
    assert "X1234567" not in _texts(store)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_run_due_does_not_bring_back_what_was_erased(kind: type[Memory], store: BaseStore) -> None:
    """A queued turn whose scope is erased while it is worked on leaves nothing behind."""
    memory = _made(kind, store)
    queue = MemoryQueue(store=store, after_seconds=0)
    queue.submit(SAID, config=ANN)
    with LocalConsolidator(queue, create_consolidation_graph(memory)) as consolidator:
        assert consolidator.run_due() == 1
    assert queue.records() == []
    assert "X1234567" not in _texts(store)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_record_erased_between_claim_and_work_is_not_written(
    kind: type[Memory], store: BaseStore
) -> None:
    """A worker that holds messages of a record which is gone writes nothing of them."""
    memory = kind(model=ScriptedChatModel(replies=lambda _: REPLIES[kind]), store=store)
    queue = MemoryQueue(store=store, after_seconds=0)
    queue.submit(SAID, config=ANN)
    graph = create_consolidation_graph(memory)

    class Late:
        """A graph that begins after an erasure."""

        store = None

        def copy(self, update: dict[str, Any]) -> Late:
            del update
            return self

        def invoke(self, *args: Any, **named: Any) -> Any:  # noqa: ANN401 - a graph's signature
            memory.forget(EVERYTHING, config=ANN)
            return graph.invoke(*args, **named)

    with LocalConsolidator(queue, Late()) as consolidator:
        consolidator.run_due()
    assert "X1234567" not in _texts(store)


def test_erasing_one_scope_does_not_refuse_what_is_written_to_another(store: BaseStore) -> None:
    """The number of erasures is one of the scope alone."""
    eraser = LangMem(store=store)
    bea: Any = {"configurable": {"user_id": "bea"}}
    model = _answering(LangMem, lambda: eraser.forget(EVERYTHING, config=bea))
    (done,) = LangMem(model=model, store=store).remember(SAID, config=ANN)
    assert done.status == "applied"


def test_after_an_erasure_the_scope_remembers_again(store: BaseStore) -> None:
    """Only what was begun before the erasure is refused."""
    memory = _made(LangMem, store)
    memory.remember(SAID, config=ANN)
    (done,) = memory.remember(SAID, config=ANN)
    assert done.status == "applied"


@pytest.mark.parametrize("kind", [LangMem, Mem0])
def test_an_update_of_a_key_that_is_forgotten_meanwhile_is_refused(
    kind: type[Memory], store: BaseStore
) -> None:
    """What was erased by key is not brought back by an update that was shown it before."""
    first = {LangMem: REPLIES[LangMem], Mem0: REPLIES[Mem0]}[kind]
    quiet = ScriptedChatModel(replies=lambda _: first)
    (old,) = kind(model=quiet, store=store).remember(SAID, config=ANN)
    merged = f"{SAID} It expires in May."
    update = {
        "memories": [{"action": "update", "id": "0", "content": merged}],
        "facts": [{"text": "My passport expires in May."}],
        "operations": [{"event": "UPDATE", "fact": 0, "handle": "0", "text": merged}],
    }
    calls = iter(range(100))

    def reply(_: object) -> dict[str, Any]:
        if next(calls) == (0 if kind is LangMem else 1):
            kind(store=store).forget(old.key, config=ANN)
        return update

    kind(model=ScriptedChatModel(replies=reply), store=store).remember("My passport?", config=ANN)
    assert store.get(old.namespace, old.key) is None
    kept = [each.content for each in kind(store=store).recall("passport", config=ANN).items]
    assert not any("X1234567" in text for text in kept)


def test_the_record_of_an_erasure_names_nobody(store: BaseStore) -> None:
    """What stays after an erasure is a number under a hash."""
    memory = _made(Mem0, store)
    memory.remember(SAID, config=ANN)
    ((name, item),) = _items(store)
    assert (name, item.key) == erasure.ref(("memories", "ann"))
    assert "ann" not in _texts(store)


def test_two_threads_forget_and_remember(store: BaseStore) -> None:
    """A plain call in a thread is refused as well."""
    working, erased = threading.Event(), threading.Event()

    def meanwhile() -> None:
        working.set()
        erased.wait(5)

    memory = LangMem(model=_answering(LangMem, meanwhile), store=store)
    thread = threading.Thread(target=memory.remember, args=(SAID,), kwargs={"config": ANN})
    thread.start()
    assert working.wait(5)
    memory.forget(EVERYTHING, config=ANN)
    erased.set()
    thread.join(5)
    assert "X1234567" not in _texts(store)
