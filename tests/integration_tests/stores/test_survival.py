"""What was acknowledged survives kills, and the checks notice a store that lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.survival.fsyncs import strace, syncs_per_put
from tests.survival.kills import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_acknowledged_puts_survive_random_kills() -> None:
    """After each SIGKILL every acknowledged item is there, sound and found by a query."""
    outcomes = run(rounds=5, seed=20261129)
    assert [outcome for outcome in outcomes if not outcome.ok] == []
    assert sum(len(outcome.acknowledged) for outcome in outcomes) > 50


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_an_early_acknowledgement_is_noticed() -> None:
    """A writer that acknowledges before the commit loses an item in one of a few kills."""
    assert any(outcome.lost for outcome in run(rounds=12, seed=7, mutant="early"))


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.skipif(strace() is None, reason="strace is not installed")
def test_every_put_reaches_the_disk(tmp_path: Path) -> None:
    """With `synchronous="full"` each put forces its data to the disk before it returns."""
    assert syncs_per_put(tmp_path / "full.sqlite") >= 1
    assert syncs_per_put(tmp_path / "off.sqlite", "off") < 1
    assert syncs_per_put(tmp_path / "normal.sqlite", "synchronous") < 1
