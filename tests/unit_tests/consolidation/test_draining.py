"""A graph that takes its work from a queue; dry runs; cancelling; workers that die."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore

from langchain_agentmem import create_manage_memory_tool
from langchain_agentmem.consolidation import (
    LocalConsolidator,
    MemoryQueue,
    Record,
    create_consolidation_graph,
)
from langchain_agentmem.errors import ConfigurationError, MemoryNotFoundError
from langchain_agentmem.memories import AMem, LangMem, Mem0, langmem_extractor
from langchain_agentmem.memories.written import WrittenMemory
from langchain_agentmem.steps.drivers import run
from tests.unit_tests.floor import Clock, everything
from tests.unit_tests.scripted import STORES, Scripted, make_store

ANN: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "t1"}}
BOB: RunnableConfig = {"configurable": {"user_id": "bob", "thread_id": "t1"}}
EVE: RunnableConfig = {"configurable": {"user_id": "eve"}}
IDLE: dict[str, Any] = {"report": {}, "progress": {}}


class Desk:
    """A queue, a draining graph and a scripted model over one store."""

    def __init__(self, store: BaseStore, *, is_async: bool, **options: Any) -> None:  # noqa: ANN401 - a double of any
        self.store = store
        self.is_async = is_async
        self.clock = Clock()
        self.model = Scripted()
        self.memory = options.pop("memory", LangMem)(
            model=self.model, store=store, clock=self.clock
        )
        self.queue = MemoryQueue(store=store, clock=self.clock, after_seconds=0, **options)
        self.graph: Any = create_consolidation_graph(self.memory, queue=self.queue)

    async def invoke(self, given: Any, config: Any = EVE, graph: Any = None, **named: Any) -> Any:  # noqa: ANN401 - a double of any
        """Run the graph, sync or async."""
        graph = graph or self.graph
        if self.is_async:
            return await graph.ainvoke(given, config, **named)
        return graph.invoke(given, config, **named)

    def live(self, user: str) -> list[str]:
        """Return the texts of a user."""
        found = self.store.search(("memories", user), limit=1000)
        return sorted(str(one.value["content"]) for one in found)


@pytest.fixture(params=[f"{kind}-{mode}" for kind in STORES for mode in ("sync", "async")])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Desk]:
    """Make a desk on every combination of store and way to call."""
    kind, mode = request.param.split("-")
    store = make_store(kind, tmp_path)
    return lambda **options: Desk(store, is_async=mode == "async", **options)


def create(content: str) -> dict[str, Any]:
    """Return an extraction reply that adds a memory."""
    return {"memories": [{"action": "create", "content": content}]}


def bucket(record: Record) -> dict[str, Any]:
    """Return the input that names a record's conversation."""
    return {"bucket": {"scope": list(record.scope), "thread_id": record.thread_id}}


async def test_everything_that_is_due_is_drained_into_its_own_scope(
    make: Callable[..., Desk],
) -> None:
    """The run's own user gets nothing, and the results are numbers without any text."""
    desk = make()
    desk.queue.submit([HumanMessage("ann here")], config=ANN)
    desk.clock.move(1)
    desk.queue.submit([HumanMessage("bob here")], config=BOB)
    desk.model.extend(create("Ann was here"), create("Bob was here"))
    out = await desk.invoke({})
    assert (desk.live("ann"), desk.live("bob")) == (["Ann was here"], ["Bob was here"])
    assert desk.live("eve") == []
    assert out["report"]["added"] == 2
    assert sorted(each["state"] for each in out["progress"].values()) == ["done", "done"]
    assert "was here" not in str(out)
    assert await desk.invoke({}) == IDLE


async def test_a_bucket_is_worked_off_alone(make: Callable[..., Desk]) -> None:
    """Another conversation waits for its own run."""
    desk = make()
    desk.queue.submit("ann here", config=ANN)
    desk.queue.submit("bob here", config=BOB)
    (first,) = [each for each in desk.queue.pending() if each.scope[-1] == "ann"]
    desk.model.extend(create("Ann was here"))
    await desk.invoke(bucket(first))
    assert desk.live("ann") == ["Ann was here"]
    assert [each.scope[-1] for each in desk.queue.pending()] == ["bob"]


async def test_a_run_that_comes_before_its_time_changes_nothing(make: Callable[..., Desk]) -> None:
    """A newer turn has postponed the batch; a later run finds it."""
    desk = make()
    desk.queue.submit("ann here", config=ANN, after_seconds=30)
    (record,) = desk.queue.pending()
    assert await desk.invoke(bucket(record)) == IDLE
    assert [each.attempts for each in desk.queue.pending()] == [0]


async def test_a_failing_batch_is_tried_again_and_set_aside(
    make: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket's run comes back after each pause; the error is told in the graph's state."""
    monkeypatch.setattr("langchain_agentmem.consolidation.drain.PAUSE", 0.001)
    desk = make(retry_seconds=0, max_attempts=3)
    desk.queue.submit("ann here", config=ANN)
    (record,) = desk.queue.pending()
    desk.model.extend(OSError("down"), OSError("down"), OSError("down"))
    out = await desk.invoke(bucket(record))
    (told,) = out["progress"].values()
    assert (told["state"], told["attempts"]) == ("failed", 3)
    assert "ModelCallError" in told["error"]
    assert [each.id for each in desk.queue.failed()] == [record.id]
    desk.queue.retry(record.id)
    desk.model.extend(create("Ann was here"))
    await desk.invoke({})
    assert desk.live("ann") == ["Ann was here"]


async def test_messages_can_be_given_past_the_queue(make: Callable[..., Desk]) -> None:
    """As in Studio: the scope is then the run's own, and the report holds the operations."""
    desk = make()
    desk.model.extend(create("Ann was here"))
    out = await desk.invoke({"messages": [HumanMessage("hello")]}, ANN)
    assert desk.live("ann") == ["Ann was here"]
    assert [op["event"] for op in out["report"]["operations"]] == ["ADD"]


async def test_the_steps_are_nodes_and_no_checkpoint_holds_the_words(
    make: Callable[..., Desk],
) -> None:
    """Each step of the memory is seen inside of the node that runs it."""
    desk = make(memory=Mem0)
    names = " ".join(desk.graph.get_graph(xray=True).nodes)
    steps = ("claim", "load_messages", "retrieve", "extract", "decide", "apply", "refresh_summary")
    assert all(step in names for step in (*steps, "report"))
    saver = InMemorySaver()
    saved = desk.graph.copy(update={"checkpointer": saver})
    desk.queue.submit([HumanMessage("a private word")], config=ANN)
    desk.model.extend({"facts": [{"text": "Ann said a private word"}]}, "A private word.")
    config: Any = {"configurable": {"thread_id": "run"}}
    await desk.invoke({}, config, saved)
    state = saved.get_state(config)
    assert [each["state"] for each in state.values["progress"].values()] == ["done"]
    assert "private word" not in str([saver.storage, saver.blobs, saver.writes])


@pytest.mark.parametrize("memory", [Mem0, AMem, LangMem])
async def test_a_dry_run_shows_everything_and_writes_nothing(
    make: Callable[..., Desk], memory: type[WrittenMemory]
) -> None:
    """The report has the operations as proposed; the store is as before, byte for byte."""
    desk = make(memory=memory)
    replies: dict[Any, list[Any]] = {
        Mem0: [{"facts": [{"text": "Ann was here"}]}, "Ann was here."],
        AMem: [{"keywords": ["k"], "context": "C.", "tags": ["t"]}],
        LangMem: [create("Ann was here")],
    }
    desk.queue.submit("Ann was here", config=ANN)
    before = everything(desk.store)
    (record,) = desk.queue.pending()
    for given in ({"messages": [HumanMessage("Ann was here")]}, {"record": record.to_value()}):
        desk.model.extend(replies[memory][0])
        out = await desk.invoke(given, ANN, context={"user_id": "ann", "dry_run": True})
        report = out["report"]
        assert report["dry_run"] is True
        texts = [op["after"]["content"] for op in report["operations"] if op["after"]]
        assert texts == ["Ann was here"]
        assert {op["status"] for op in report["operations"]} == {"proposed"}
        assert everything(desk.store) == before


async def test_a_dry_run_over_the_queue_takes_nothing(make: Callable[..., Desk]) -> None:
    """Each batch is looked at once, tells its numbers, and waits on."""
    desk = make()
    desk.queue.submit("ann here", config=ANN)
    desk.queue.submit("bob here", config=BOB)
    before = everything(desk.store)
    desk.model.extend(create("Ann was here"), create("Bob was here"))
    out = await desk.invoke({}, context={"dry_run": True})
    assert out["report"]["added"] == 2
    assert everything(desk.store) == before


async def test_a_cancelled_batch_is_never_consolidated(make: Callable[..., Desk]) -> None:
    """Its words are gone, its ticket says so, and one that runs cannot be cancelled."""
    desk = make()
    ticket = desk.queue.submit("a private word", config=ANN)
    queue = desk.queue
    assert await queue.acancel(ticket.id) if desk.is_async else queue.cancel(ticket.id)
    assert await desk.invoke({}) == IDLE
    assert ticket.status() == "cancelled"
    with pytest.raises(RuntimeError, match="cancelled"):
        ticket.result(timeout=1)
    assert "private word" not in str(everything(desk.store))
    again = queue.submit([HumanMessage("another", id="2")], config=ANN)
    assert run(queue.claim_steps(), queue.environment({})) is not None
    assert not queue.cancel(again.id)


async def test_a_batch_whose_workers_die_is_set_aside(make: Callable[..., Desk]) -> None:
    """It cannot kill one process after the other for ever."""
    desk = make(lease_seconds=60, max_attempts=2)
    desk.queue.submit("ann here", config=ANN)
    for _ in range(2):
        assert run(desk.queue.claim_steps(), desk.queue.environment({})) is not None
        desk.clock.move(61)
    assert await desk.invoke({}) == IDLE
    (failed,) = desk.queue.failed()
    assert "ended 2 times" in str(failed.error)


async def test_a_worker_that_wakes_up_late_does_not_unlock_anothers_scope(
    make: Callable[..., Desk],
) -> None:
    """Its lease had ended; the other conversation of the scope is still being worked on."""
    desk = make(lease_seconds=60)
    env = desk.queue.environment({})
    for thread in ("1", "2", "3"):
        desk.clock.move(1)
        config: Any = {"configurable": {"user_id": "ann", "thread_id": thread}}
        desk.queue.submit(f"hello {thread}", config=config)
    late = run(desk.queue.claim_steps(), env)
    assert late is not None
    desk.clock.move(61)
    heads = run(desk.queue.due_steps(), env)
    other = next(each for each in heads if each.id != late.id)
    assert run(desk.queue.take_steps(other), env) is not None
    run(desk.queue.done_steps(late, {}), env)
    assert run(desk.queue.claim_steps(), env) is None


async def test_each_look_at_the_queue_has_an_async_twin(make: Callable[..., Desk]) -> None:
    """Both tell the same."""
    queue = make().queue
    ticket = queue.submit("hello", config=ANN, after_seconds=30)
    assert await queue.apending() == queue.pending()
    assert await queue.astats() == queue.stats()
    assert await queue.arecords() == queue.records()
    assert (await queue.aticket(ticket.id)).id == queue.ticket(ticket.id).id
    assert await queue.aflush() == 1
    env = queue.environment({})
    for _ in range(queue.max_attempts):
        record = run(queue.claim_steps(), env)
        assert record is not None
        run(queue.failed_steps(record, OSError("x")), env)
        queue.clock.move(60)  # type: ignore[attr-defined]
    assert await queue.afailed() == queue.failed()
    await queue.aretry(ticket.id)
    assert [each.id for each in queue.pending()] == [ticket.id]
    with pytest.raises(MemoryNotFoundError):
        await queue.aticket("unknown")


async def test_closing_does_not_wait_for_ever_and_loses_nothing(make: Callable[..., Desk]) -> None:
    """A batch that hangs stays in the queue as running, until its lease ends."""
    desk = make()

    class Hanging:
        """A graph that never comes back."""

        store = desk.store

        def invoke(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - a double of any
            """Wait."""
            threading.Event().wait(5)

        async def ainvoke(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - a double of any
            """Wait."""
            await asyncio.sleep(5)

    desk.queue.submit("hello", config=ANN)
    worker = LocalConsolidator(desk.queue, Hanging())
    started = time.monotonic()
    if desk.is_async:
        worker.start()
        await asyncio.sleep(0.1)
        await worker.aclose(timeout=0.2)
    else:
        worker.close(drain=True, timeout=0.2)
    assert time.monotonic() - started < 3
    assert [each.state for each in desk.queue.records()] == ["running"]


async def test_without_langmem_the_default_extractor_works(
    make: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its own extractor needs the package, and says how to get it."""
    monkeypatch.setitem(sys.modules, "langmem", None)
    monkeypatch.setattr(langmem_extractor, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'langchain-agentmem\[langmem\]'"):
        langmem_extractor.LangMemExtractor("openai:any")
    desk = make()
    desk.queue.submit("hello", config=ANN)
    desk.model.extend(create("Ann was here"))
    await desk.invoke({})
    assert desk.live("ann") == ["Ann was here"]


async def test_a_dry_run_holds_for_every_way_in(make: Callable[..., Desk]) -> None:
    """A turn that is submitted, remembered or saved with a tool in a dry run leaves no trace."""
    desk = make(memory=Mem0)
    config: Any = {"configurable": {"user_id": "ann", "dry_run": True}}
    desk.model.extend({"facts": [{"text": "Ann was here"}]})
    tool = create_manage_memory_tool(("memories", "{user_id}"), store=desk.store)
    if desk.is_async:
        await desk.queue.asubmit("hello", config=config)
        (op,) = await desk.memory.aremember("hello", config=config)
        await tool.ainvoke({"content": "Ann was here"}, config)
    else:
        desk.queue.submit("hello", config=config)
        (op,) = desk.memory.remember("hello", config=config)
        tool.invoke({"content": "Ann was here"}, config)
    assert (op.event, op.status) == ("ADD", "proposed")
    assert everything(desk.store) == {}
