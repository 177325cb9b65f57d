"""`agentmem forget` on what other architectures than RAG keep, and on what cannot be read."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.base import PutOp

from langchain_agentmem.errors import StorageError
from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation
from langchain_agentmem.memories import (
    EVERYTHING,
    HierarchicalSummaryMemory,
    RAGMemory,
    SummaryMemory,
    WindowMemory,
)
from langchain_agentmem.steps import archive, journal
from langchain_agentmem.steps.drivers import run
from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.cli.conftest import Agentmem
from tests.unit_tests.floor import everything

ANN: Any = {"configurable": {"user_id": "ann"}}
HOMES = [
    ("short_term", "archive"),
    ("memgpt", "archival"),
    ("mem0", "facts"),
    ("langmem", "memories"),
    ("a_mem", "notes"),
    ("prompts", "greeting"),
    ("of_another_program",),
]


@pytest.fixture
def store(agentmem: Agentmem, tmp_path: Path) -> Iterator[FaissSqliteStore]:
    """The store of the command's file."""
    del agentmem
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        yield store


def _add(store: FaissSqliteStore, *home: str, text: str = "Rex barks", user: str = "ann") -> None:
    """Add a memory with its journal record, and change it once."""
    memory = RAGMemory(store=store)
    before = None
    for version, content in enumerate((f"{text} loudly", text), start=1):
        after = MemoryItem(content=content, version=version)
        op = MemoryOperation(
            event="UPDATE" if before else "ADD",
            namespace=("memories", user, *home),
            key="k" + "-".join(home),
            before=before,
            after=after,
            cause=Cause(),
        )
        run(journal.apply([op]), memory.environment(ANN))
        before = after


def _window(store: FaissSqliteStore) -> WindowMemory:
    memory = WindowMemory(store=store)
    memory.remember(
        [HumanMessage("My dog is Rex.", id="1"), AIMessage("Nice!", id="2")], config=ANN
    )
    return memory


def test_forget_all_erases_every_architecture(agentmem: Agentmem, store: FaissSqliteStore) -> None:
    """What `inspect` shows is gone with its records, whoever wrote it; others' stays."""
    _window(store)
    for home in HOMES:
        _add(store, *home)
    _add(store, "mem0", "facts", user="bob")
    store.put(("_agentmem", "queue", "memories", "ann"), "t", {"content": "Rex"}, index=False)
    shown = agentmem("inspect", "--user", "ann", "--json").json["total"]
    done = agentmem("forget", "--all", "--user", "ann", "--yes", "--json")
    assert (done.status, done.json["erased"]) == (0, shown)
    assert done.json["records"] > 0
    assert all("bob" in namespace for namespace, _ in everything(store))
    assert agentmem("inspect", "--user", "ann", "--json").json["total"] == 0


@pytest.mark.parametrize("home", HOMES, ids="/".join)
@pytest.mark.parametrize("how", ["matching", "key"])
def test_forget_finds_memories_of_any_architecture(
    agentmem: Agentmem, store: FaissSqliteStore, home: tuple[str, ...], how: str
) -> None:
    """A text or a key erases the memory with its history, and only that."""
    _add(store, *home)
    _add(store, *home, "other", text="Tea is green")
    what = ["--matching", "rex"] if how == "matching" else ["k" + "-".join(home)]
    done = agentmem("forget", *what, "--user", "ann", "--yes", "--json")
    assert (done.status, done.json["erased"]) == (0, 1)
    assert "Rex" not in repr(everything(store))
    assert "Tea is green" in repr(everything(store))


def test_forget_of_a_message_takes_it_out_of_the_order(
    agentmem: Agentmem, store: FaissSqliteStore
) -> None:
    """The view of a window memory is whole after the command has erased a message of it."""
    memory = _window(store)
    assert agentmem("forget", "--matching", "rex", "--user", "ann", "--yes").status == 0
    env = memory.environment(ANN)
    left = run(archive.load(run(memory.archive(), env), before=2), env)
    assert [each.message.text for each in left] == ["Nice!"]
    order = [value for (name, _), value in everything(store).items() if name[-1] == "order"]
    assert len(order) == 2


@pytest.mark.parametrize("kind", [SummaryMemory, HierarchicalSummaryMemory])
def test_forget_of_a_message_erases_summaries_of_it(
    agentmem: Agentmem, store: FaissSqliteStore, kind: type[Any]
) -> None:
    """A summary or tree that was made of an erased message does not go on telling it."""
    model = ScriptedChatModel(replies=["A canine was named."] * 40)
    small = {"fan_in": 2, "budget": 60} if kind is HierarchicalSummaryMemory else {}
    memory = kind(model=model, store=store, **small)
    for n in range(6):
        text = f"Fact {n}. " + "word " * 20 + ("My dog is Rex." if n == 0 else "")
        said = [HumanMessage(text, id=f"h{n}"), AIMessage("ok", id=f"a{n}")]
        memory.remember(said, config=ANN)
    assert any(name[-1] in ("summary", "tree") for name, _ in everything(store))
    assert agentmem("forget", "--matching", "rex", "--user", "ann", "--yes").status == 0
    left = everything(store)
    assert "Rex" not in repr(left)
    assert not any(name[-1] in ("summary", "tree") for name, _ in left)
    assert memory.recall("What is Fact 3?", config=ANN).messages is not None


def test_forget_matching_finds_earlier_versions(
    agentmem: Agentmem, store: FaissSqliteStore
) -> None:
    """A text that only the history holds is a trace, too."""
    _add(store, "mem0", "facts")
    done = agentmem("forget", "--matching", "LOUDLY", "--user", "ann", "--yes", "--json")
    assert (done.status, done.json["erased"]) == (0, 1)
    assert everything(store) == {}


def _left(store: FaissSqliteStore) -> int:
    """Return how many items there are, readable or not, but for counts of erasures."""
    lying = [*store.all_keys(("memories",)), *store.all_keys(("_agentmem",))]
    return sum(namespace[:2] != ("_agentmem", "erased") for namespace, _ in lying)


def _spoil(store: FaissSqliteStore) -> None:
    store.conn.execute("UPDATE items SET value = replace(value, 'Rex barks', 'Rex bxrks')")


def test_forget_all_erases_what_cannot_be_read(agentmem: Agentmem, store: FaissSqliteStore) -> None:
    """A flipped byte saves nothing from erasure, and the receipt counts it."""
    _add(store, "mem0", "facts")
    _spoil(store)
    done = agentmem("forget", "--all", "--user", "ann", "--yes", "--json")
    assert (done.status, done.json["erased"], done.json["unreadable"]) == (0, 1, 1)
    assert _left(store) == 0


def test_forget_by_key_erases_what_cannot_be_read(
    agentmem: Agentmem, store: FaissSqliteStore
) -> None:
    """The key is enough; a text cannot be looked for in it, which is said."""
    _add(store, "mem0", "facts")
    _spoil(store)
    done = agentmem("forget", "--matching", "zebra", "--user", "ann", "--yes")
    assert (done.status, "cannot be read" in done.err) == (1, True)
    assert agentmem("forget", "kmem0-facts", "--user", "ann", "--yes").status == 0
    assert _left(store) == 0


def test_export_and_copy_count_what_cannot_be_read(
    agentmem: Agentmem, store: FaissSqliteStore, tmp_path: Path
) -> None:
    """JSON that is not what was written is left out, and that is an error."""
    _add(store, "mem0", "facts")
    _spoil(store)
    done = agentmem("export", "--user", "ann")
    assert (done.status, "items cannot be read" in done.err) == (1, True)
    urls = (f"sqlite:///{tmp_path}/memory.sqlite", f"sqlite:///{tmp_path}/copy.sqlite")
    done = agentmem("copy", "--from", urls[0], "--to", urls[1], "--json")
    assert (done.status, done.json["unreadable"]) == (1, 2)
    assert "2 items cannot be read" in done.err


def _fill_disk(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let all writes of more than one item fail; returns how many each of them was to write."""
    tried: list[int] = []
    batch: Callable[..., object] = FaissSqliteStore.batch

    def full(store: FaissSqliteStore, ops: Iterable[object], **options: object) -> object:
        given = list(ops)
        if len(given) == 1 or not any(isinstance(op, PutOp) for op in given):
            return batch(store, given, **options)
        tried.append(len(given))
        msg = "the disk is full."
        raise StorageError(msg)

    monkeypatch.setattr(FaissSqliteStore, "batch", full)
    return tried


def test_forget_all_on_a_full_disk_erases_all_or_nothing(
    agentmem: Agentmem, store: FaissSqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything goes in one write, so that a failure cannot leave half of a scope."""
    for n in range(600):
        store.put(("memories", "ann", f"n{n % 7}"), str(n), {"content": "x"}, index=False)
    tried = _fill_disk(monkeypatch)
    with pytest.raises(StorageError, match="full"):
        RAGMemory(store=store).forget(EVERYTHING, config=ANN)
    done = agentmem("forget", "--all", "--user", "ann", "--yes")
    assert (done.status, "full. 0 of 600 items were erased" in done.err) == (1, True)
    assert tried == [600, 600]
    assert len(everything(store)) == 600


def test_import_that_stops_half_way_says_how_many_turns_are_stored(
    agentmem: Agentmem, talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full in the middle is reported with how far the import came."""
    remember: Callable[..., object] = RAGMemory.remember
    seen: list[object] = []

    def once(memory: RAGMemory, messages: object, **options: object) -> object:
        if seen:
            msg = "the disk is full."
            raise StorageError(msg)
        seen.append(messages)
        return remember(memory, messages, **options)

    monkeypatch.setattr(RAGMemory, "remember", once)
    done = agentmem("import", talk, "--batch-size", 1)
    assert (done.status, "the disk is full. 1 of" in done.err) == (1, True)
