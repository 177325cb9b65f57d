"""The same text saved by many at once is one memory: threads, coroutines, processes."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore

from langchain_agentmem import FaissSqliteStore, create_manage_memory_tool
from langchain_agentmem.embeddings import default_embeddings
from tests.unit_tests.memories.conversations import at_once
from tests.unit_tests.surfaces.conftest import ANN, HOME, TEMPLATE, id_in

COUNT = 12
SPELLINGS = ("Ann lives in Oslo", "ann lives  in Oslo", "Ann Lives In Oslo\n")

PROCESS = """
import sys
from langchain_agentmem import FaissSqliteStore, create_manage_memory_tool

with FaissSqliteStore(sys.argv[1]) as store:
    tool = create_manage_memory_tool(("memories", "{user_id}"), store=store)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(20):
        tool.invoke({"content": f"Fact {number} is so."}, {"configurable": {"user_id": "ann"}})
"""


def saved_by_all(tool: Any, *, later: bool) -> set[str]:  # noqa: ANN401 - the tool
    """Return the ids that twelve savings of one text at once are told."""

    def given(number: int) -> dict[str, str]:
        return {"content": SPELLINGS[number % len(SPELLINGS)]}

    async def all_at_once() -> list[str]:
        calls = (tool.ainvoke(given(each), ANN) for each in range(COUNT))
        return list(await asyncio.gather(*calls))

    if later:
        return set(map(id_in, asyncio.run(all_at_once())))
    told: list[str] = []
    at_once(lambda number: told.append(tool.invoke(given(number), ANN)), COUNT)
    assert len(told) == COUNT
    return set(map(id_in, told))


@pytest.mark.parametrize("later", [False, True], ids=["threads", "coroutines"])
@pytest.mark.parametrize("earlier", ["nothing", "archived", "changed", "by others"])
def test_one_text_saved_twelve_times_at_once(store: BaseStore, earlier: str, later: bool) -> None:
    """All are told one id, whether its key is new, was used before, or is somebody else's."""
    tool = create_manage_memory_tool(TEMPLATE, store=store)
    if earlier == "by others":
        store.put(HOME, "default", {"content": "ann lives in oslo"})
    elif earlier != "nothing":
        key = id_in(tool.invoke({"content": SPELLINGS[0]}, ANN))
        action = "delete" if earlier == "archived" else "update"
        tool.invoke({"action": action, "id": key, "content": "Ann moved away"}, ANN)

    ids = saved_by_all(tool, later=later)

    saying_so = [
        each.key for each in store.search(HOME, limit=100) if "oslo" in str(each.value).lower()
    ]
    assert list(ids) == saying_so


def test_two_processes_save_the_same_texts(tmp_path: Path) -> None:
    """Twenty texts saved by two programs at once are twenty memories."""
    path = tmp_path / "memory.sqlite"
    FaissSqliteStore(path).close()
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for each in programs:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in programs:
        each.communicate("go\n", timeout=60)

    assert [each.returncode for each in programs] == [0, 0]
    with FaissSqliteStore(path) as store:
        texts = [each.value["content"] for each in store.search(HOME, limit=100)]
    assert sorted(texts) == sorted(f"Fact {number} is so." for number in range(20))


def test_conflicts_with_others_are_decided_anew(tmp_path: Path) -> None:
    """A writer that took the key for free, and was second, is told the first one's id."""
    embedder = default_embeddings()

    class Overtaken(FaissSqliteStore):
        rival: Any = None

        def batch(self, ops: Any, **options: Any) -> Any:  # noqa: ANN401 - as the base
            rival, self.rival = (self.rival, None) if options.get("expect") else (None, self.rival)
            if rival is not None:
                rival()
            return super().batch(ops, **options)

    index: Any = {"dims": embedder.dims, "embed": embedder, "fields": ["content"]}
    with Overtaken(tmp_path / "memory.sqlite", index=index) as store:
        tool = create_manage_memory_tool(TEMPLATE, store=store)
        told: list[str] = []
        store.rival = lambda: told.append(tool.invoke({"content": SPELLINGS[1]}, ANN))

        told.append(tool.invoke({"content": SPELLINGS[0]}, ANN))

        assert len(set(map(id_in, told))) == 1
        assert [each.value["content"] for each in store.search(HOME)] == [SPELLINGS[1]]
