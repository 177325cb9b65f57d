"""What a process leaves behind, the next one finds."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.consolidation import (
    LocalConsolidator,
    MemoryQueue,
    create_consolidation_graph,
)
from tests.unit_tests.consolidation.test_consolidation import HOME, create
from tests.unit_tests.scripted import Scripted

SCRIPT = """
import os, signal, sys, time
from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.consolidation import (
    LocalConsolidator, MemoryQueue, create_consolidation_graph)
from langchain_agentmem.memories import Mem0

store = FaissSqliteStore(sys.argv[1], index=None)
queue = MemoryQueue(store=store, after_seconds=60)
worker = LocalConsolidator(queue, create_consolidation_graph(Mem0(store=store)))
worker.start()
queue.submit("hello", config={"configurable": {"user_id": "ann", "thread_id": "t1"}})
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
print(time.time())
"""


@pytest.mark.parametrize("way", ["ended", "killed"])
def test_a_script_ends_at_once_and_its_turn_waits_for_the_next_process(
    tmp_path: Path, way: str
) -> None:
    """No thread keeps it alive, and nothing that was submitted is lost (LangMem B14)."""
    path = tmp_path / "memory.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), way], check=False, capture_output=True, timeout=25
    )
    if way == "ended":
        assert done.returncode == 0, done.stderr.decode()
        assert time.time() - float(done.stdout) < 20
    else:
        assert done.returncode == -signal.SIGKILL
    with FaissSqliteStore(path, index=None) as store:
        queue = MemoryQueue(store=store)
        (record,) = queue.pending()
        model = Scripted([create("Ann said hello")])
        graph = create_consolidation_graph(model=model, store=store)
        worker = LocalConsolidator(queue, graph)
        queue.flush()
        assert worker.run_due() == 1
        assert queue.ticket(record.id).status() == "done"
        assert [item.value["content"] for item in store.search(HOME)] == ["Ann said hello"]
        worker.close()
