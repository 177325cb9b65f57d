"""Write docs/conformance.md: which store does what, from a run of the conformance kit.

Run from the repository: `python scripts/conformance_table.py`, with a Python whose `sqlite3` loads
extensions (Debian's own does), or the vectors of LangGraph's SQLite stores are left out. It runs
the kit over our store, LangGraph's stores and a PostgreSQL server from a pip package, and turns the
results into a table.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

TESTS: Final = (
    "tests/unit_tests/stores/test_standard_conformance.py",
    "tests/integration_tests/stores/test_official_conformance.py",
)
STORES: Final = {
    "TestFaissSqliteStore": "FaissSqliteStore",
    "TestInMemoryStore": "InMemoryStore",
    "TestSqliteStore": "SqliteStore",
    "TestAsyncSqliteStore": "AsyncSqliteStore",
    "TestPostgresStore": "PostgresStore",
    "TestAsyncPostgresStore": "AsyncPostgresStore",
    "TestPooledPostgresStore": "open_store (PostgreSQL)",
}
PACKAGES: Final = (
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "langgraph-checkpoint-postgres",
)
TARGET: Final = Path("docs/conformance.md")
_HEAD: Final = """\
# What LangGraph stores do

Written by `python scripts/conformance_table.py`; do not edit it by hand.

Each row is a test of `langchain_agentmem.testing.BaseStoreConformance`, which you can run over a
store of your own. ✓ passes; ✗ is a known difference, explained below; n/a needs something the store
does not declare, or this machine does not offer.
"""


def run() -> ET.Element:
    """Run the kit and return its report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--tb=native", "--timeout=300", *TESTS]
        subprocess.run([*command, f"--junitxml={report}"], check=True)  # noqa: S603 - our own tests
        return ET.parse(report).getroot()  # noqa: S314 - a file pytest has just written


def verdict(case: ET.Element) -> tuple[str, str]:
    """Return the mark of one test and the reason for a cross."""
    skipped = case.find("skipped")
    if skipped is None:
        return "✓", ""
    known = skipped.get("type") == "pytest.xfail"
    return ("✗", skipped.get("message", "")) if known else ("n/a", "")


def collect(
    root: ET.Element,
) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """Return the marks and the reasons, by test and store; parameters of a test are one row."""
    marks: dict[str, dict[str, str]] = defaultdict(dict)
    reasons: dict[str, dict[str, str]] = defaultdict(dict)
    for case in root.iter("testcase"):
        store = STORES.get(case.get("classname", "").rpartition(".")[2])
        test = case.get("name", "").partition("[")[0]
        if store is None or test == "test_expected_failures_name_tests":
            continue
        mark, reason = verdict(case)
        if mark == "✗":
            reasons[test][store] = reason
        if marks[test].get(store) != "✗":
            better = mark == "✓" and marks[test].get(store) == "n/a"
            if mark == "✗" or better or store not in marks[test]:
                marks[test][store] = mark
    return marks, reasons


def title(test: str) -> str:
    """Return a test's name as a sentence with its row in front."""
    found = re.fullmatch(r"test_(?:([a-z]\d+)_)?(.*)", test)
    row, words = found.groups() if found else (None, test)
    sentence = words.replace("_", " ")
    return f"{row.upper()}: {sentence}" if row else sentence


def page(marks: dict[str, dict[str, str]], reasons: dict[str, dict[str, str]]) -> str:
    """Return the page."""
    stores = list(STORES.values())
    lines = [_HEAD, f"Measured with {versions()}.\n"]
    lines += ["| behavior | " + " | ".join(stores) + " |", "|---" * (len(stores) + 1) + "|"]
    for test in sorted(marks, key=title):
        cells = [marks[test].get(store, "n/a") for store in stores]
        lines.append(f"| {title(test)} | " + " | ".join(cells) + " |")
    lines.append("\n## The differences\n")
    for store in stores:
        known = [(title(test), found[store]) for test, found in reasons.items() if store in found]
        if known:
            lines += [f"### {store}\n", *(f"- {name}: {why}" for name, why in sorted(known)), ""]
    return "\n".join(lines).rstrip() + "\n"


def versions() -> str:
    """Return the versions of what was measured."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def main() -> None:
    """Run the kit and write the page."""
    marks, reasons = collect(run())
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(page(marks, reasons))


if __name__ == "__main__":
    main()
