"""`agentmem import` of what LangMem and mem0 have written."""

import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.memories import LangMem, Mem0
from tests.unit_tests.cli.conftest import Agentmem
from tests.unit_tests.scripted import Scripted

MEM0: list[dict[str, Any]] = [
    {
        "id": "7f3c",
        "memory": "Ann lives in Oslo",
        "hash": "0f",
        "user_id": "ann",
        "metadata": {"source": "crm", "user_id": "bob"},
        "created_at": "2025-01-02T10:00:00-07:00",
        "updated_at": None,
        "role": "user",
        "agent_id": "helper",
    },
    {"id": "8a", "memory": "鲍勃喜欢茶", "user_id": "bob", "created_at": "2025-01-03"},
]


def langmem_items() -> list[dict[str, Any]]:
    """Return the items of a store in which LangMem has written."""
    store = InMemoryStore()
    store.put(("memories", "ann"), "a1", {"content": "Ann owns a boat"})
    store.put(
        ("memories", "ann"), "default", {"kind": "Memory", "content": {"content": "Ann sails"}}
    )
    store.put(("memories", "ann", "profile"), "default", {"kind": "Person", "content": {"x": 1}})
    items = store.search(("memories",), limit=10)
    return [json.loads(json.dumps(item.dict(), default=str)) for item in items]


def stored(folder: Path, *namespace: str) -> dict[str, dict[str, Any]]:
    """Return the values of one namespace of the command's file."""
    with FaissSqliteStore(folder / "memory.sqlite") as store:
        found = store.search(namespace, limit=100)
        return {each.key: each.value for each in found if each.namespace == namespace}


@pytest.mark.parametrize("wrapped", ["results", "memories", "list", "lines"])
def test_a_mem0_export_is_imported_in_each_of_its_forms(
    agentmem: Agentmem, tmp_path: Path, wrapped: str
) -> None:
    """Each memory keeps its key, its time and the caller's fields; identity is never metadata."""
    path = tmp_path / "export.json"
    lines = "\n".join(json.dumps(each) for each in MEM0)
    forms = {"list": json.dumps(MEM0), "lines": lines}
    path.write_text(forms.get(wrapped) or json.dumps({wrapped: MEM0}), "utf-8")
    done = agentmem("import", path, "--format", "mem0")
    assert (done.status, "2 memories of ann, bob: 2 new" in done.out) == (0, True)
    (value,) = stored(tmp_path, "memories", "ann").values()
    assert value["content"] == "Ann lives in Oslo"
    assert value["metadata"] == {"source": "crm", "_mem0": {"agent_id": "helper"}}
    assert (value["attributed_to"], value["kind"]) == ("user", "fact")
    assert value["observed_at"].startswith("2025-01-02T17:00")
    assert stored(tmp_path, "memories", "bob")["8a"]["content"] == "鲍勃喜欢茶"


def test_imported_memories_are_found_and_kept_current(agentmem: Agentmem, tmp_path: Path) -> None:
    """By the command, by other memories, and by Mem0, which closes them when contradicted."""
    path = tmp_path / "export.json"
    path.write_text(json.dumps(MEM0), "utf-8")
    assert agentmem("import", path, "--format", "mem0").status == 0
    assert "Oslo" in agentmem("search", "Where does Ann live?", "--user", "ann").out
    extracted = {"facts": [{"text": "Ann lives in Rome", "attributed_to": "user"}]}
    decided = {"operations": [{"fact": 0, "handle": "0", "event": "DELETE"}]}
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        memory = Mem0(model=Scripted([extracted, decided]), store=store)
        ann: Any = {"configurable": {"user_id": "ann"}}
        memory.remember("I moved to Rome", config=ann)
        texts = [each.content for each in memory.recall("Where does Ann live?", config=ann).items]
    assert texts == ["Ann lives in Rome"]


@pytest.mark.parametrize("form", ["list", "lines"])
def test_a_langmem_store_is_imported_where_it_lay(
    agentmem: Agentmem, tmp_path: Path, form: str
) -> None:
    """Both formats of LangMem, keys such as `default`, and namespaces below the user's."""
    items = langmem_items()
    path = tmp_path / "store.json"
    lines = "\n".join(json.dumps(each) for each in items)
    path.write_text(json.dumps(items) if form == "list" else lines, "utf-8")
    assert agentmem("import", path, "--format", "langmem").status == 0
    found = stored(tmp_path, "memories", "ann")
    assert {key: value["content"] for key, value in found.items()} == {
        "a1": "Ann owns a boat",
        "default": "Ann sails",
    }
    assert stored(tmp_path, "memories", "ann", "profile")["default"]["content"] == {"x": 1}
    with FaissSqliteStore(tmp_path / "memory.sqlite") as store:
        recalled = LangMem(store=store).recall("boat", config={"configurable": {"user_id": "ann"}})
    assert "Ann owns a boat" in [each.content for each in recalled.items]


def test_importing_again_changes_nothing_and_a_newer_text_is_a_version(
    agentmem: Agentmem, tmp_path: Path
) -> None:
    """What was archived meanwhile stays archived."""
    path = tmp_path / "export.json"
    path.write_text(json.dumps(MEM0), "utf-8")
    agentmem("import", path, "--format", "mem0")
    again = agentmem("import", path, "--format", "mem0", "--json").json
    assert (again["new"], again["known"], again["users"]) == (0, 2, ["ann", "bob"])
    newer = [{**MEM0[0], "memory": "Ann lives in Bergen"}]
    path.write_text(json.dumps(newer), "utf-8")
    assert agentmem("import", path, "--format", "mem0", "--json").json["changed"] == 1
    assert stored(tmp_path, "memories", "ann")["7f3c"]["version"] == 2


def test_a_user_that_is_given_owns_all(agentmem: Agentmem, tmp_path: Path) -> None:
    """And a store whose namespace names nobody belongs to the command's user."""
    path = tmp_path / "export.json"
    path.write_text(json.dumps(MEM0), "utf-8")
    agentmem("import", path, "--format", "mem0", "--user", "cleo")
    assert set(stored(tmp_path, "memories", "cleo")) == {"7f3c", "8a"}
    path.write_text(json.dumps([{"namespace": ["chat"], "key": "k", "value": {"content": "x"}}]))
    agentmem("import", path, "--format", "langmem")
    assert set(stored(tmp_path, "memories", "me")) == {"k"}


@pytest.mark.parametrize(
    ("form", "text", "why"),
    [
        ("mem0", '[{"id": "1"}]', "'memory'"),
        ("mem0", "[7]", "JSON object"),
        ("langmem", '[{"key": "1", "value": "x"}]', "'value'"),
        ("mem0", "no json", "line 1"),
        ("mem0", '"text"', "list of memories"),
        ("mem0", '[{"id": "1", "memory": "\\ud800"}]', "surrogate"),
    ],
)
def test_what_cannot_be_read_is_named_and_nothing_is_written(
    agentmem: Agentmem, tmp_path: Path, form: str, text: str, why: str
) -> None:
    """The place and the reason; the file of memories is not even made."""
    path = tmp_path / "export.json"
    path.write_text(text, "utf-8")
    done = agentmem("import", path, "--format", form)
    assert (done.status, why in done.err) == (1, True)
    assert not (tmp_path / "memory.sqlite").exists()


def test_unreadable_memories_can_be_left_out(agentmem: Agentmem, tmp_path: Path) -> None:
    """The others are imported, and each that is not is reported."""
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"id": "1"}, *MEM0]), "utf-8")
    done = agentmem("import", path, "--format", "mem0", "--skip-invalid", "--json").json
    assert (done["imported"], len(done["invalid"])) == (2, 1)
