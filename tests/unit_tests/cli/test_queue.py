"""`agentmem inspect --queue`: what waits, what failed, what was done."""

import json
from pathlib import Path
from typing import Any

import pytest

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.consolidation import (
    LocalConsolidator,
    MemoryQueue,
    create_consolidation_graph,
)
from langchain_agentmem.steps.drivers import run
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.cli.conftest import Agentmem


def of(user: str) -> Any:  # noqa: ANN401 - a config
    """Return a user's config."""
    return {"configurable": {"user_id": user, "thread_id": "monday"}}


@pytest.fixture
def queued(agentmem: Agentmem, tmp_path: Path) -> Agentmem:
    """A file in which one batch was done, one has failed, and one waits."""
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        queue = MemoryQueue(store=store, after_seconds=0, max_attempts=1)
        reply = {"memories": [{"action": "create", "content": "A private word."}]}
        model = ScriptedChatModel(replies=[reply, OSError("down")])
        worker = LocalConsolidator(queue, create_consolidation_graph(model=model, store=store))
        for user in ("ann", "bob"):
            queue.submit("a private word", config=of(user))
            worker.run_due()
        queue.submit("a private word", config=of("cid"), after_seconds=60)
        worker.close()
    return agentmem


def test_the_queue_is_shown_with_what_became_of_each_batch(queued: Agentmem) -> None:
    """The failed one comes first, with its error; no text of a message is shown."""
    done = queued("inspect", "--queue")
    heads = done.out.splitlines()[::2]
    assert [line.split()[0] for line in heads] == ["failed", "done", "pending"]
    assert "ModelCallError: The model failed at 'extract' (OSError: down)" in done.out
    assert "1 added" in done.out
    assert "private" not in done.out
    assert "1 pending, 0 running, 1 failed" in done.err


def test_the_queue_of_one_user_as_json(queued: Agentmem) -> None:
    """One object a batch, for machines."""
    rows = [
        json.loads(line)
        for line in queued("inspect", "--queue", "--user", "ann", "--json").out.splitlines()
    ]
    (row,) = rows
    assert (row["state"], row["scope"], row["thread_id"]) == ("done", ["memories", "ann"], "monday")
    assert row["report"]["added"] == 1


def test_an_empty_queue_says_so(filled: Agentmem) -> None:
    """Nothing is written to stdout."""
    done = filled("inspect", "--queue")
    assert (done.status, done.out) == (0, "")
    assert "The queue is empty" in done.err


def test_a_worker_without_a_sign_of_life_is_told(queued: Agentmem, tmp_path: Path) -> None:
    """A batch whose worker was killed says since when, and what happens next."""
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        for lease in (600, 0):
            queue = MemoryQueue(store=store, after_seconds=0, lease_seconds=lease)
            queue.submit("a private word", config=of(f"user{lease}"))
            assert run(queue.claim_steps(), queue.environment({}))
    told = " ".join(queued("inspect", "--queue").out.split())
    assert "no sign of life of its worker, its lease ended at" in told
    assert "being worked on; begun again if there is no sign of life until" in told
