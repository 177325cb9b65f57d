"""From submitted turns to memory: debouncing, durability, order, failures, reports."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel

from langchain_agentmem.consolidation import (
    LocalConsolidator,
    MemoryQueue,
    create_consolidation_graph,
    submit_node,
)
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.memories import EVERYTHING, AMem, LangMem, Mem0, MemoryState
from langchain_agentmem.scopes import closed
from langchain_agentmem.steps.drivers import run
from tests.unit_tests.floor import Clock
from tests.unit_tests.scripted import STORES, Scripted, make_store

ANN: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "t1"}}
BOB: RunnableConfig = {"configurable": {"user_id": "bob", "thread_id": "t1"}}
HOME = ("memories", "ann")


def create(*contents: Any) -> dict[str, Any]:  # noqa: ANN401 - a double of any
    """Return an extraction reply that adds memories."""
    return {"memories": [{"action": "create", "content": content} for content in contents]}


def change(action: str, handle: str, content: Any = None) -> dict[str, Any]:  # noqa: ANN401 - a double of any
    """Return one proposed change."""
    return {"action": action, "id": handle, "content": content}


class Bench:
    """A queue, a graph and a worker over one store."""

    def __init__(self, store: BaseStore, *, is_async: bool, **options: Any) -> None:  # noqa: ANN401 - a double of any
        self.clock = Clock()
        self.model = Scripted()
        self.is_async = is_async
        self.store = store
        queue = {k: options.pop(k) for k in list(options) if k in _QUEUE_OPTIONS}
        memory = options.pop("memory", LangMem)
        workers = options.pop("max_workers", 4)
        self.memory = memory(model=self.model, store=store, clock=self.clock, **options)
        self.queue = MemoryQueue(store=store, clock=self.clock, **queue)
        self.graph: Any = create_consolidation_graph(self.memory)
        self.worker = LocalConsolidator(self.queue, self.graph, max_workers=workers)

    async def submit(self, messages: Any, config: Any = ANN, **given: Any) -> Any:  # noqa: ANN401 - a double of any
        """Submit, sync or async."""
        if self.is_async:
            return await self.queue.asubmit(messages, config=config, **given)
        return self.queue.submit(messages, config=config, **given)

    async def run_due(self) -> int:
        """Run what is due, sync or async."""
        if self.is_async:
            return await self.worker.arun_due()
        return self.worker.run_due()

    def live(self, *home: str) -> list[str]:
        """Return the texts of a namespace, sorted."""
        home = home or HOME
        found = self.store.search(home, limit=1000)
        return sorted(str(one.value["content"]) for one in found if one.namespace == home)


_QUEUE_OPTIONS = (
    "after_seconds",
    "max_delay_seconds",
    "lease_seconds",
    "max_attempts",
    "retry_seconds",
    "max_messages_per_run",
)
Make = Callable[..., Bench]


@pytest.fixture(params=[f"{kind}-{mode}" for kind in STORES for mode in ("sync", "async")])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Make a bench on every combination of store and way to call."""
    kind, mode = request.param.split("-")
    made: list[Bench] = []

    def make(**options: Any) -> Bench:  # noqa: ANN401 - a double of any
        store = made[-1].store if made else make_store(kind, tmp_path)
        made.append(Bench(store, is_async=mode == "async", **options))
        return made[-1]

    yield make
    for each in made:
        each.worker.close(wait=False)


async def test_turns_of_one_pause_are_one_run(bench: Make) -> None:
    """Three submits, six messages, one call, one report for three tickets."""
    b = bench()
    tickets = []
    for number in range(3):
        turn = [HumanMessage(f"u{number}", id=f"u{number}"), AIMessage("ok", id=f"a{number}")]
        tickets.append(await b.submit(turn))
        b.clock.move(10)
    b.model.extend(create("Ann said it"))
    assert await b.run_due() == 0
    b.clock.move(20)
    assert await b.run_due() == 1
    assert len(b.model.prompts) == 1
    assert all(f'"u{number}"' in b.model.prompt() for number in range(3))
    reports = [ticket.result(timeout=1) for ticket in tickets]
    assert reports[0] == reports[1] == reports[2]
    assert (reports[0]["added"], reports[0]["calls"]) == (1, {"extract": 1})
    assert b.live() == ["Ann said it"]
    assert b.queue.pending() == []


async def test_steady_talk_cannot_starve_the_memory(bench: Make) -> None:
    """The first run is at `max_delay_seconds`."""
    b = bench(after_seconds=30, max_delay_seconds=60)
    b.model.extend(*[create()] * 2)
    ran_at = []
    for number in range(8):
        await b.submit([HumanMessage(f"m{number}", id=str(number))])
        if await b.run_due():
            ran_at.append(number * 10)
        b.clock.move(10)
    assert ran_at[0] == 60


async def test_a_seen_message_is_not_queued_again(bench: Make) -> None:
    """The whole conversation may be submitted each time, ids or not."""
    b = bench(after_seconds=0)
    b.model.extend(create("one"), create("two"))
    talk = [HumanMessage("first"), HumanMessage("second")]
    await b.submit(talk[:1])
    await b.run_due()
    await b.submit(talk)
    await b.run_due()
    assert '"second"' in b.model.prompt()
    assert '"first"' not in b.model.prompt()
    await b.submit(talk)
    assert b.queue.pending() == []


async def test_a_missing_variable_is_the_submitters_error(bench: Make) -> None:
    """No worker ever sees it, and the next user's turn is processed."""
    b = bench(after_seconds=0)
    with pytest.raises(ConfigurationError, match="user_id"):
        await b.submit("hello", config={"configurable": {}})
    b.model.extend(create("Bob is here"))
    await b.submit("hello", config=BOB)
    assert await b.run_due() == 1
    assert b.live("memories", "bob") == ["Bob is here"]


async def test_turns_that_come_during_a_run_follow_it(bench: Make) -> None:
    """Both are applied, and the second sees what the first has added."""
    b = bench(after_seconds=0)
    await b.submit([HumanMessage("one", id="1")])
    claimed = run(b.queue.claim_steps(), b.queue.environment({}))
    assert claimed is not None
    await b.submit([HumanMessage("two", id="2")])
    assert [r.number for r in b.queue.pending()] == [1]
    assert run(b.queue.claim_steps(), b.queue.environment({})) is None
    run(b.queue.failed_steps(claimed, OSError("x")), b.queue.environment({}))
    b.clock.move(6)
    b.model.extend(create("first fact"), create("second fact"))
    assert await b.run_due() == 2
    assert '"one"' in b.model.prompt(0)
    assert "first fact" in b.model.prompt(1)
    assert b.live() == ["first fact", "second fact"]


async def test_a_dead_workers_record_is_taken_over(bench: Make) -> None:
    """After the lease a run that never came back is begun again."""
    b = bench(after_seconds=0, lease_seconds=60)
    await b.submit("hello")
    assert run(b.queue.claim_steps(), b.queue.environment({})) is not None
    assert await b.run_due() == 0
    b.clock.move(61)
    b.model.extend(create("fact"))
    assert await b.run_due() == 1
    assert b.live() == ["fact"]


async def test_a_run_repeated_after_its_writes_changes_nothing(bench: Make) -> None:
    """Killed after apply and before the record is done: same items, one journal entry each."""
    b = bench(after_seconds=0, lease_seconds=60)
    await b.submit("hello")
    claimed = run(b.queue.claim_steps(), b.queue.environment({}))
    b.model.extend(create("fact"))
    assert claimed is not None
    b.graph.invoke({"record": claimed.to_value()}, ANN)
    b.clock.move(61)
    b.model.extend(create("fact"))
    assert await b.run_due() == 1
    assert b.live() == ["fact"]
    assert len(b.store.search(("_agentmem", "journal", *HOME))) == 1


@pytest.mark.parametrize(("limit", "shown"), [(1, 1), (3, 3), (25, 25)])
async def test_the_query_limit_is_honored_exactly(bench: Make, limit: int, shown: int) -> None:
    """Any limit from one on, and one embedding for each distinct query (LangMem B5, B6, B7)."""
    b = bench(after_seconds=0, query_limit=limit)
    for number in range(30):
        b.store.put(HOME, str(number), {"content": f"known {number}"})
    embed = b.store.embeddings  # type: ignore[attr-defined]
    embed.queries.clear()
    b.model.extend(create())
    await b.submit([HumanMessage("one"), HumanMessage("two")])
    await b.run_due()
    assert b.model.prompt().count('"content": "known') == shown
    assert len(embed.queries) == 2


async def test_a_thousand_conversations_of_the_same_instant_all_run() -> None:
    """Equal due times are no problem (LangMem B13)."""
    b = Bench(InMemoryStore(), is_async=False, after_seconds=0)
    b.worker.graph = _Counting()
    for number in range(1000):
        config: Any = {"configurable": {"user_id": f"u{number % 50}", "thread_id": str(number)}}
        await b.submit("hello", config=config)
    assert b.worker.run_due() == 1000
    assert b.worker.graph.count == 1000
    b.worker.close()


class _Counting:
    """A graph that only counts; with `together`, so many runs wait until they have all begun."""

    def __init__(self, together: int = 1) -> None:
        self.count = 0
        self.meeting = threading.Barrier(together)
        self.running: dict[str, int] = {}
        self.overlaps = 0
        self._lock = threading.Lock()
        self.store = None

    def copy(self, *, update: dict[str, Any]) -> "_Counting":
        """Return itself."""
        assert update
        return self

    def invoke(self, given: dict[str, Any], config: Any) -> dict[str, Any]:  # noqa: ANN401 - a double of any
        """Count."""
        assert config
        scope = str(given["record"]["scope"])
        with self._lock:
            self.overlaps += self.running.get(scope, 0)
            self.running[scope] = self.running.get(scope, 0) + 1
        self.meeting.wait(timeout=10)
        with self._lock:
            self.running[scope] -= 1
            self.count += 1
        return {}

    async def ainvoke(self, given: dict[str, Any], config: Any) -> dict[str, Any]:  # noqa: ANN401 - a double of any
        """Count, off the loop."""
        return await asyncio.to_thread(self.invoke, given, config)


async def test_scopes_run_in_parallel_and_batches_of_one_never(bench: Make) -> None:
    """The batches of four scopes wait for each other; those of one scope do not overlap."""
    b = bench(after_seconds=0)
    graph = _Counting(together=4)
    b.worker.graph = graph
    for user in "abcd":
        for thread in "12":
            config = {"configurable": {"user_id": user, "thread_id": thread}}
            await b.submit("hello", config=config)
    assert await b.run_due() == 8
    assert (graph.count, graph.overlaps) == (8, 0)


async def test_two_workers_never_work_on_one_scope(bench: Make) -> None:
    """Another conversation of the same user waits until the first is done, whoever asks."""
    b = bench(after_seconds=0)
    for thread in "12":
        await b.submit("hello", config={"configurable": {"user_id": "ann", "thread_id": thread}})
    env = b.queue.environment({})
    first = run(b.queue.claim_steps(), env)
    assert first is not None
    assert run(b.queue.claim_steps(), env) is None
    run(b.queue.done_steps(first, {}), env)
    second = run(b.queue.claim_steps(), env)
    assert second is not None
    assert second.thread_id != first.thread_id


async def test_closing_leaves_what_is_not_due_unless_it_is_to_be_drained(bench: Make) -> None:
    """A closed worker loses nothing and hurries nothing (LangMem B15)."""
    b = bench(after_seconds=30)
    await b.submit("hello")
    due = b.queue.pending()[0].due_at
    b.worker.close()
    assert b.queue.pending()[0].due_at == due
    again = bench(after_seconds=30)
    again.model.extend(create("fact"))
    if again.is_async:
        await again.worker.aclose(drain=True)
    else:
        again.worker.close(drain=True)
    assert again.queue.pending() == []
    assert again.live() == ["fact"]


class _Breaking(InMemoryStore):
    """Refuses batches of several puts of memories while it is broken."""

    broken = True

    def batch(self, ops: Any) -> Any:  # noqa: ANN401 - a double of any
        """Fail at the second put."""
        ops = list(ops)
        memories = [op for op in ops if isinstance(op, PutOp) and op.namespace == HOME]
        if self.broken and len(memories) > 1:
            msg = "disk full"
            raise OSError(msg)
        return super().batch(ops)

    async def abatch(self, ops: Any) -> Any:  # noqa: ANN401 - a double of any
        """Fail at the second put."""
        return self.batch(ops)


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_store_error_is_kept_and_can_be_retried(*, is_async: bool) -> None:
    """Three attempts, then failed with its error; nothing half applied, nothing dropped."""
    store = _Breaking()
    b = Bench(store, is_async=is_async, after_seconds=0, retry_seconds=5)
    b.model.extend(*[create("a fact", "b fact")] * 4)
    ticket = await b.submit("hello")
    for pause in (5, 10, 20):
        assert await b.run_due() == 1
        assert b.live() == []
        b.clock.move(pause)
    assert await b.run_due() == 0
    (failed,) = b.queue.failed()
    assert failed.error == "OSError: disk full"
    assert failed.attempts == 3
    with pytest.raises(RuntimeError, match="disk full"):
        ticket.result(timeout=1)
    store.broken = False
    b.queue.retry(failed.id)
    assert await b.run_due() == 1
    assert b.live() == ["a fact", "b fact"]
    assert ticket.status() == "done"
    b.worker.close()


async def test_an_unknown_handle_costs_one_rejection(bench: Make) -> None:
    """On repair again: reported once, and the rest of the reply is applied."""
    b = bench(after_seconds=0)
    for number in range(3):
        b.store.put(HOME, str(number), {"content": f"known {number}"})
    reply = {"memories": [change("update", "9", "x"), {"action": "create", "content": "new"}]}
    b.model.extend(reply, reply)
    ticket = await b.submit("hello")
    await b.run_due()
    report = ticket.result(timeout=1)
    assert len(report["rejected"]) == 1
    assert report["added"] == 1
    assert report["calls"] == {"extract": 1, "extract_repair": 1}
    assert "new" in b.live()


@pytest.mark.parametrize("allowed", [False, True])
async def test_a_delete_archives_and_only_where_it_is_permitted(
    bench: Make, *, allowed: bool
) -> None:
    """Nothing a model says erases anything."""
    b = bench(after_seconds=0, enable_deletes=allowed)
    b.store.put(HOME, "k", {"content": "known"})
    b.model.extend({"memories": [change("delete", "0")]})
    ticket = await b.submit("hello")
    await b.run_due()
    report = ticket.result(timeout=1)
    hidden = b.store.get(closed(HOME), "k")
    if allowed:
        assert hidden is not None
        assert hidden.value["status"] == "archived"
        assert (report["archived"], b.live()) == (1, [])
    else:
        assert hidden is None
        assert (len(report["rejected"]), b.live()) == (1, ["known"])


class NewName(BaseModel):
    """A renamed schema."""

    wish: str


async def test_memories_of_a_renamed_schema_are_shown_and_updated(bench: Make) -> None:
    """A schema rename never hides what is stored (LangMem B3)."""
    b = bench(after_seconds=0, schemas=[NewName])
    b.store.put(HOME, "k", {"kind": "OldName", "content": {"wish": "short answers"}})
    update = {**change("update", "0", {"wish": "long answers"}), "kind": "NewName"}
    b.model.extend({"memories": [update, {"action": "create", "content": {"wish": "tea"}}]})
    ticket = await b.submit("hello")
    await b.run_due()
    assert "OldName" in b.model.prompt()
    report = ticket.result(timeout=1)
    assert (report["updated"], report["added"], report["rejected"]) == (1, 1, [])
    item = b.store.get(HOME, "k")
    assert item is not None
    assert (item.value["kind"], item.value["content"]) == ("NewName", {"wish": "long answers"})


async def test_content_that_does_not_fit_its_schema_is_rejected(bench: Make) -> None:
    """After one repair, with the reason."""
    b = bench(after_seconds=0, schemas=[NewName])
    b.model.extend(*[create({"wash": "tea"})] * 2)
    ticket = await b.submit("hello")
    await b.run_due()
    assert "does not fit" in ticket.result(timeout=1)["rejected"][0]["reason"]
    assert b.live() == []


async def test_an_edit_between_reading_and_writing_is_not_lost(bench: Make) -> None:
    """The change is planned once more on what is there now (LangMem B24)."""
    b = bench(after_seconds=0)
    b.store.put(HOME, "k", {"content": "known", "metadata": {"a": 1}, "version": 1})

    def answer(_: str) -> Any:  # noqa: ANN401 - a double of any
        edited = {"content": "edited", "metadata": {"a": 2}, "version": 2, "status": "active"}
        b.store.put(HOME, "k", edited)
        return {"memories": [change("update", "0", "updated")]}

    b.memory.model = Scripted(answer)
    await b.submit("hello")
    await b.run_due()
    item = b.store.get(HOME, "k")
    assert item is not None
    assert (item.value["content"], item.value["metadata"]) == ("updated", {"a": 2})
    assert item.value["version"] == 3


async def test_the_graph_is_a_visible_node_of_a_parent(bench: Make) -> None:
    """Its steps show under xray and the parent gets the report."""
    b = bench()

    class State(MemoryState, total=False):
        report: dict[str, Any]

    graph = create_consolidation_graph(model=b.model, clock=b.clock)
    builder = StateGraph(State)
    builder.add_node("consolidate", graph)
    builder.set_entry_point("consolidate")
    parent: Any = builder.compile(store=b.store)
    names = " ".join(parent.get_graph(xray=True).nodes)
    assert all(name in names for name in ("load_messages", "recall", "extract", "validate"))
    b.model.extend(create("fact"))
    given = {"messages": [HumanMessage("hello")]}
    out = await parent.ainvoke(given, ANN) if b.is_async else parent.invoke(given, ANN)
    assert [op["event"] for op in out["report"]["operations"]] == ["ADD"]
    assert out["report"]["calls"] == {"extract": 1}
    assert b.live() == ["fact"]


async def test_any_architecture_can_be_consolidated(bench: Make) -> None:
    """Mem0 remembers and refreshes its summary in one run; the report counts both."""
    b = bench(memory=Mem0, after_seconds=0)
    b.model.extend({"facts": [{"text": "Ann likes tea"}]}, "Ann talked about tea.")
    ticket = await b.submit("I like tea")
    await b.run_due()
    report = ticket.result(timeout=1)
    assert report["calls"] == {"extract": 1, "summary": 1}
    assert report["added"] == 2
    assert report["tokens"] > 0
    assert b.live(*HOME, "mem0", "facts") == ["Ann likes tea"]


async def test_a_node_submits_with_the_scope_and_store_of_its_run(bench: Make) -> None:
    """No store on the queue, no config at the call: both come from the graph."""
    b = bench(memory=AMem)
    queue = MemoryQueue(clock=b.clock, after_seconds=0)
    worker = LocalConsolidator(queue, create_consolidation_graph(AMem(model=b.model)))
    builder = StateGraph(MemoryState)
    builder.add_node("submit", submit_node(queue))
    builder.set_entry_point("submit")
    graph: Any = builder.compile(store=b.store)
    given = {"messages": [HumanMessage("I play the cello")]}
    _ = await graph.ainvoke(given, ANN) if b.is_async else graph.invoke(given, ANN)
    b.model.extend({"keywords": ["cello"], "context": "Music.", "tags": ["music"]})
    assert (await worker.arun_due() if b.is_async else worker.run_due()) == 1
    assert b.live(*HOME, "a_mem", "notes") == ["I play the cello"]
    worker.close()


async def test_forgetting_a_scope_empties_its_queue(bench: Make) -> None:
    """What waits is erased too, and others' turns are not."""
    b = bench()
    await b.submit("secret")
    await b.submit("hello", config=BOB)
    b.memory.forget(EVERYTHING, config=ANN)
    assert [record.scope for record in b.queue.pending()] == [("memories", "bob")]
    assert "secret" not in str(b.store.search(("_agentmem",), limit=100))


async def test_long_batches_are_run_in_parts_and_order(bench: Make) -> None:
    """The second part sees what the first has added."""
    b = bench(after_seconds=0, max_messages_per_run=2)
    b.model.extend(create("first"), create("second"))
    ticket = await b.submit([HumanMessage(f"m{number}", id=str(number)) for number in range(3)])
    await b.run_due()
    assert ticket.result(timeout=1)["added"] == 2
    assert '"m2"' not in b.model.prompt(0)
    assert "first" in b.model.prompt(1)


async def test_the_queue_tells_how_it_is(bench: Make) -> None:
    """Counts and the age of the oldest, and a flush makes everything due."""
    b = bench()
    await b.submit("one")
    b.clock.move(7)
    assert b.queue.stats() == {"pending": 1, "running": 0, "failed": 0, "oldest_age": 7}
    assert b.queue.flush() == 1
    b.model.extend(create("fact"))
    assert await b.run_due() == 1
    assert b.queue.stats()["pending"] == 0


async def test_a_started_worker_runs_what_becomes_due(bench: Make) -> None:
    """In a thread or in a task of the loop."""
    b = bench(after_seconds=0)
    b.model.extend(create("fact"))
    if b.is_async:
        b.worker.start()
        report = await asyncio.wait_for(await b.submit("hello"), 5)
        await b.worker.aclose()
    else:
        thread = threading.Thread(target=b.worker.start)
        thread.start()
        thread.join()
        report = (await b.submit("hello")).result(timeout=5)
        b.worker.close()
    assert report["added"] == 1


def test_two_submitters_of_one_bucket_lose_nothing(tmp_path: Path) -> None:
    """Concurrent submits are merged."""
    queue = MemoryQueue(store=make_store("sqlite", tmp_path))
    threads = [
        threading.Thread(
            target=lambda n=n: queue.submit([HumanMessage(f"m{n}", id=f"{n}")], config=ANN)
        )
        for n in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (record,) = queue.pending()
    assert sorted(record.seen) == sorted(str(n) for n in range(10))
