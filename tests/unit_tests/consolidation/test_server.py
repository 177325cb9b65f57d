"""What `ServerConsolidator` asks of a LangGraph server, sync and async."""

from pathlib import Path
from typing import Any

import pytest

from langchain_agentmem.consolidation import MemoryQueue, ServerConsolidator
from langchain_agentmem.errors import ConfigurationError
from tests.unit_tests.floor import Clock
from tests.unit_tests.scripted import STORES, make_store

ANN: Any = {"configurable": {"user_id": "ann", "thread_id": "t1", "tenant": "acme"}}


class Runs:
    """The runs of a server that only notes what it is asked."""

    def __init__(self) -> None:
        self.created: list[tuple[Any, ...]] = []
        self.waiting: list[str] = []
        self.cancelled: list[str] = []
        self.error: Exception | None = None

    def list(self, thread: str, *, status: str) -> list[dict[str, Any]]:
        """Return the waiting runs."""
        assert (bool(thread), status) == (True, "pending")
        return [{"run_id": each} for each in self.waiting]

    def create(self, *given: Any, **named: Any) -> dict[str, Any]:  # noqa: ANN401 - a double of any
        """Note a run."""
        if self.error:
            raise self.error
        self.created.append((given, named))
        self.waiting.append(f"run {len(self.created)}")
        return {}

    def cancel(self, thread: str, run: str, *, action: str) -> None:
        """Take a run back."""
        assert (bool(thread), action) == (True, "rollback")
        self.waiting.remove(run)
        self.cancelled.append(run)


class Crons:
    """The crons of that server."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []

    def search(self, *, limit: int) -> list[dict[str, Any]]:
        """Return the crons."""
        return self.made[:limit]

    def create(self, assistant: str, **named: Any) -> dict[str, Any]:  # noqa: ANN401 - a double of any
        """Note a cron."""
        self.made.append({"cron_id": f"cron {assistant}", **named})
        return self.made[-1]


class Awaited:
    """The same calls, to be awaited."""

    def __init__(self, calls: Any) -> None:  # noqa: ANN401 - a double of any
        self._calls = calls

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a double of any
        """Return an async twin."""

        async def call(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - a double of any
            return getattr(self._calls, name)(*given, **named)

        return call


class World:
    """A queue whose runs are on a server."""

    def __init__(self, kind: str, folder: Path, *, is_async: bool) -> None:
        self.is_async = is_async
        self.clock = Clock()
        self.runs, self.crons = Runs(), Crons()
        self.queue = MemoryQueue(store=make_store(kind, folder), clock=self.clock)
        self.consolidator = ServerConsolidator(self.queue, assistant_id="background")
        client = self.consolidator
        if is_async:
            client._async = _Client(Awaited(self.runs), Awaited(self.crons))
        else:
            client._sync = _Client(self.runs, self.crons)

    async def submit(self, text: str) -> Any:  # noqa: ANN401 - a ticket
        """Submit, sync or async."""
        if self.is_async:
            return await self.queue.asubmit(text, config=ANN)
        return self.queue.submit(text, config=ANN)


class _Client:
    def __init__(self, runs: Any, crons: Any) -> None:  # noqa: ANN401 - a double of any
        self.runs, self.crons = runs, crons


@pytest.fixture(params=[f"{kind}-{mode}" for kind in STORES for mode in ("sync", "async")])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """Give every combination of store and way to call."""
    kind, mode = request.param.split("-")
    return World(kind, tmp_path, is_async=mode == "async")


async def test_a_newer_turn_puts_a_later_run_in_the_place_of_the_waiting_one(world: World) -> None:
    """There is one waiting run of a conversation; it is told the bucket and the whole config."""
    await world.submit("one")
    world.clock.move(10)
    await world.submit("two")
    assert (world.runs.waiting, world.runs.cancelled) == (["run 2"], ["run 1"])
    (thread, assistant), named = world.runs.created[-1]
    assert assistant == "background"
    assert named["after_seconds"] == 30
    assert named["input"] == {"bucket": {"scope": ["memories", "ann"], "thread_id": "t1"}}
    assert named["config"] == {"configurable": {"user_id": "ann", "tenant": "acme"}}
    assert (named["multitask_strategy"], named["if_not_exists"]) == ("enqueue", "create")
    assert thread == world.runs.created[0][0][0]


async def test_a_message_that_is_known_starts_no_run(world: World) -> None:
    """Nothing new was said, so nothing has to be done."""
    await world.submit("one")
    await world.submit("one")
    assert len(world.runs.created) == 1


async def test_a_client_that_fails_sets_the_record_aside(world: World) -> None:
    """The error is logged and kept, the messages too, and `retry` starts a run."""
    world.runs.error = OSError("refused")
    ticket = await world.submit("one")
    assert ticket.status() == "failed"
    world.runs.error = None
    await world.queue.aretry(ticket.id) if world.is_async else world.queue.retry(ticket.id)
    assert ticket.status() == "pending"
    assert len(world.runs.created) == 1


async def test_a_cron_is_registered_once(world: World) -> None:
    """However often a program starts."""
    for _ in range(2):
        consolidator = world.consolidator
        if world.is_async:
            cron = await consolidator.aschedule("*/5 * * * *")
        else:
            cron = consolidator.schedule("*/5 * * * *")
        assert cron == "cron background"
    assert len(world.crons.made) == 1
    assert world.crons.made[0]["input"] == {}


def test_sync_code_without_an_address_is_told_so_and_a_closed_one_starts_nothing(
    tmp_path: Path,
) -> None:
    """The submitter learns it, not a log."""
    queue = MemoryQueue(store=make_store("memory", tmp_path))
    consolidator = ServerConsolidator(queue)
    with pytest.raises(ConfigurationError, match="url="):
        queue.submit("one", config=ANN)
    consolidator.close()
    assert queue.submit("two", config=ANN).status() == "pending"
