"""The kit itself: a known failure is strict, a wrong store is caught, a typo is noticed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
import pytest
from langgraph.store.memory import InMemoryStore
from langchain_agentmem.testing import AsyncBaseStoreConformance, BaseStoreConformance

KNOWN = "test_l3_later_op_of_a_batch_is_newer"
FIXED = "test_put_then_get_returns_the_item"

class TestFactory(BaseStoreConformance):
    expected_failures = {KNOWN: "insertion order", FIXED: "no longer true", "test_typo": "?"}

    def create_store(self, where, *, index=None, ttl=None, clock=None):
        return InMemoryStore(index=index)

class TestReadyMade(AsyncBaseStoreConformance):
    @pytest.fixture
    def store(self):
        return InMemoryStore()
"""
CHOSEN = (
    "test_l3_later or test_put_then_get or test_expected_failures or test_l2 or test_v10 or test_d_"
)


def test_kit_reports_what_a_store_does(tmp_path: Path) -> None:
    """Known failures pass, a repaired one and a new one fail, missing capabilities are skipped."""
    (tmp_path / "test_store.py").write_text(MODULE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rA",
        "-c",
        "/dev/null",
        "--tb=line",
        f"--rootdir={tmp_path}",
    ]
    plain = [*command, "-p", "no:randomly", "-p", "no:cacheprovider", "-k", CHOSEN, str(tmp_path)]
    # Pytest names tests relative to where it runs.
    out = subprocess.run(plain, capture_output=True, text=True, check=False, cwd=tmp_path).stdout
    assert "XFAIL test_store.py::TestFactory::test_l3_later_op" in out
    assert "[XPASS(strict)] no longer true" in out
    assert "FAILED test_store.py::TestFactory::test_expected_failures_name_tests" in out
    assert "FAILED test_store.py::TestFactory::test_l2_max_depth_below_one_is_refused[0]" in out
    assert "FAILED test_store.py::TestReadyMade::test_l3_later_op" in out
    assert "PASSED test_store.py::TestReadyMade::test_put_then_get_returns_the_item" in out
    assert "the store does not declare namespace_delete" in out
    assert "create_store is not implemented" in out
    assert "expected ValueError, found no error" in out


def test_kit_needs_only_pytest_and_langgraph() -> None:
    """Importing the suites loads nothing of this package beyond the testing tools."""
    code = (
        "import sys, langchain_agentmem; before = set(sys.modules)\n"
        "import langchain_agentmem.testing.conformance\n"
        "print(sorted(n for n in set(sys.modules) - before if n.startswith('langchain_agentmem.') "
        "and not n.startswith('langchain_agentmem.testing')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
