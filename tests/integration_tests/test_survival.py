"""The survival runs in small; `make survival` runs the same at length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from langchain_agentmem.stores import FaissSqliteStore
from tests.survival import contention, fsyncs, kills, machine

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_nothing_acknowledged_is_lost_in_fifty_kills() -> None:
    """After each SIGKILL items, vectors and words are what writing threads were told is stored."""
    outcome = kills.run(50, seed=20261129)
    assert outcome.problems == []
    assert outcome.acknowledged > 500


def test_acknowledging_before_the_commit_is_noticed() -> None:
    """A writer that says too early that it is done loses something in one of a few kills."""
    assert kills.run(10, seed=7, mutant="early").problems


def test_crowd_of_processes_and_threads_loses_nothing() -> None:
    """Four processes of four threads see each other's commits at once, and none is locked out."""
    report = contention.run(10)
    assert report.problems == []
    assert min(report.writes, report.reads, report.increments) > 50


@pytest.mark.skipif(fsyncs.strace() is None, reason="strace is not installed")
def test_every_put_reaches_the_disk(tmp_path: Path) -> None:
    """With `synchronous="full"` each put forces its data to the disk; without, that is noticed."""
    assert fsyncs.syncs_per_put(tmp_path / "full.sqlite") >= 1
    for mutant in fsyncs.MUTANTS:
        assert fsyncs.syncs_per_put(tmp_path / f"{mutant}.sqlite", mutant) < 1


@pytest.mark.parametrize("kind", machine.MACHINES)
def test_store_equals_a_plain_model(kind: type[machine.SyncMachine]) -> None:
    """Random sequences of operations with restarts in between give what a dictionary gives."""
    machine.run(kind, examples=40, steps=30)


class _ShowsExpired(machine.SyncMachine):
    """A machine whose store is wrong on purpose."""

    def _open(self) -> FaissSqliteStore:
        store = super()._open()
        store.ttl_config = {"omit_expired": False}
        return store


def test_wrong_answer_is_noticed_by_the_model() -> None:
    """The random sequences find a store that shows what has expired."""
    with pytest.raises(AssertionError):
        machine.run(_ShowsExpired, examples=200, steps=30, simplify=False)
