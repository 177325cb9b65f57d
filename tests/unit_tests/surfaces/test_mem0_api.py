"""mem0's `Memory` and `AsyncMemory` under their own names."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore

from langchain_agentmem.errors import ConfigurationError, MemoryNotFoundError
from langchain_agentmem.memories import Mem0
from langchain_agentmem.surfaces.mem0 import AsyncMemory, Memory
from tests.unit_tests.scripted import STORES, Scripted, make_store


def said(*texts: str) -> dict[str, Any]:
    """Return an extraction reply."""
    return {"facts": [{"text": text, "attributed_to": "user"} for text in texts]}


class Api:
    """Calls either of both classes."""

    def __init__(self, memory: Memory | AsyncMemory, store: BaseStore) -> None:
        self.memory = memory
        self.store = store

    async def __call__(self, name: str, *args: Any, **given: Any) -> Any:  # noqa: ANN401 - a double of any
        """Call one method."""
        result = getattr(self.memory, name)(*args, **given)
        return await result if inspect.isawaitable(result) else result

    def script(self, *replies: Any) -> None:  # noqa: ANN401 - a double of any
        """Let the model reply so."""
        self.memory.memory.model = Scripted(replies)


@pytest.fixture(params=[(kind, cls) for kind in STORES for cls in (Memory, AsyncMemory)])
def api(request: pytest.FixtureRequest, tmp_path: Path) -> Api:
    """Both classes on both stores."""
    kind, cls = request.param
    store = make_store(kind, tmp_path)
    return Api(cls(model=Scripted(), store=store), store)


async def test_a_mem0_program_runs_with_the_import_changed(api: Api) -> None:
    """Add, search and list give mem0's shapes."""
    api.script(said("Ann lives in Oslo"))
    messages = [{"role": "user", "content": "I live in Oslo"}]
    added = await api("add", messages, user_id="ann", metadata={"source": "crm"})
    (result,) = added["results"]
    assert (result["memory"], result["event"]) == ("Ann lives in Oslo", "ADD")
    (found,) = (await api("search", "Where does Ann live?", user_id="ann", limit=3))["results"]
    assert (found["id"], found["memory"]) == (result["id"], "Ann lives in Oslo")
    assert found["metadata"] == {"source": "crm"}
    assert 0 < found["score"] <= 1
    (listed,) = (await api("get_all", user_id="ann"))["results"]
    assert listed["id"] == result["id"]
    assert (await api("get", result["id"], user_id="ann"))["memory"] == "Ann lives in Oslo"


async def test_a_contradiction_closes_the_old_memory(api: Api) -> None:
    """Both changes are told, and the history of the old one is there."""
    api.script(said("Ann lives in Oslo"))
    (old,) = (await api("add", "I live in Oslo", user_id="ann"))["results"]
    decided = {"operations": [{"fact": 0, "handle": "0", "event": "DELETE"}]}
    api.script(said("Ann lives in Rome"), decided)
    done = (await api("add", "I moved to Rome", user_id="ann"))["results"]
    assert [each["event"] for each in done] == ["ADD", "DELETE"]
    assert await api("get", old["id"], user_id="ann") is None
    events = [each["event"] for each in await api("history", old["id"], user_id="ann")]
    assert events == ["ADD", "DELETE"]
    assert len((await api("get_all", user_id="ann"))["results"]) == 1


async def test_an_update_keeps_the_id_and_the_earlier_text(api: Api) -> None:
    """As mem0's, with its history."""
    (old,) = (await api("add", "Ann likes tea", user_id="ann", infer=False))["results"]
    await api("update", old["id"], data="Ann likes green tea", user_id="ann")
    assert (await api("get", old["id"], user_id="ann"))["memory"] == "Ann likes green tea"
    last = (await api("history", old["id"], user_id="ann"))[-1]
    assert (last["old_memory"], last["new_memory"]) == ("Ann likes tea", "Ann likes green tea")


async def test_deleting_erases_for_good(api: Api) -> None:
    """No journal keeps the text, and other people's memories stay (mem0 #3785)."""
    (old,) = (await api("add", "Ann likes tea", user_id="ann", infer=False))["results"]
    await api("add", "Bob likes tea", user_id="bob", infer=False)
    await api("delete", old["id"], user_id="ann")
    with pytest.raises(MemoryNotFoundError):
        await api("history", old["id"], user_id="ann")
    await api("add", "Ann likes milk", user_id="ann", infer=False)
    await api("delete_all", user_id="ann")
    assert (await api("get_all", user_id="ann"))["results"] == []
    assert len((await api("get_all", user_id="bob"))["results"]) == 1
    assert "Ann" not in str(api.store.search(("_agentmem",), limit=100))


async def test_an_id_of_somebody_else_is_unknown(api: Api) -> None:
    """mem0 finds a memory by its id alone, whoever asks."""
    (old,) = (await api("add", "Ann likes tea", user_id="ann", infer=False))["results"]
    assert await api("get", old["id"], user_id="bob") is None
    with pytest.raises(MemoryNotFoundError, match="get_all"):
        await api("update", old["id"], data="x", user_id="bob")
    assert "0 memories" in (await api("delete", old["id"], user_id="bob"))["message"]
    assert await api("get", old["id"], user_id="ann")


async def test_whose_memory_it_is_must_be_said(api: Api) -> None:
    """Nothing falls into a memory of everybody."""
    for name, args in (("add", ["x"]), ("search", ["x"]), ("get", ["1"]), ("delete_all", [])):
        with pytest.raises(ConfigurationError, match="user_id"):
            await api(name, *args)
    with pytest.raises(ConfigurationError, match="agents apart"):
        await api("add", "x", user_id="ann", agent_id="helper")
    with pytest.raises(ConfigurationError, match="Unknown argument"):
        await api("add", "x", usr_id="ann")


async def test_ids_in_filters_name_the_owner(api: Api) -> None:
    """As mem0's second version passes them; the rest filters."""
    await api("add", "Ann likes tea", user_id="ann", infer=False, metadata={"team": "a"})
    await api("add", "Ann likes milk", user_id="ann", infer=False, metadata={"team": "b"})
    given = {"filters": {"user_id": "ann", "team": "a"}}
    for result in (await api("get_all", **given), await api("search", "likes", top_k=5, **given)):
        assert [each["memory"] for each in result["results"]] == ["Ann likes tea"]


async def test_agents_may_have_memories_of_their_own(tmp_path: Path) -> None:
    """With a namespace that tells them apart."""
    store = make_store("sqlite", tmp_path)
    memory = Memory(Mem0(store=store, namespace=("memories", "{user_id}", "{agent_id}")))
    memory.add("tea", user_id="ann", agent_id="a", infer=False)
    assert memory.get_all(user_id="ann", agent_id="b")["results"] == []
    with pytest.raises(ConfigurationError, match="not both"):
        Memory(Mem0(store=store), model=None)


async def test_delete_all_of_a_run_never_erases_the_whole_user(api: Api) -> None:
    """A run that the namespace does not tell apart is refused by every method."""
    await api("add", "Ann likes tea", user_id="ann", infer=False)
    calls = {
        "add": ["x"],
        "search": ["x"],
        "get_all": [],
        "get": ["1"],
        "update": ["1", "x"],
        "delete": ["1"],
        "delete_all": [],
        "history": ["1"],
    }
    for name, args in calls.items():
        with pytest.raises(ConfigurationError, match="runs apart"):
            await api(name, *args, user_id="ann", run_id="r1")
    with pytest.raises(ConfigurationError, match="runs apart"):
        await api("get_all", filters={"user_id": "ann", "run_id": "r1"})
    assert len((await api("get_all", user_id="ann"))["results"]) == 1


@pytest.mark.parametrize("variable", ["run_id", "thread_id"])
async def test_runs_may_have_memories_of_their_own(tmp_path: Path, variable: str) -> None:
    """With a namespace that tells them apart, one run is searched, listed and erased alone."""
    store = make_store("sqlite", tmp_path)
    memory = Memory(Mem0(store=store, namespace=("memories", "{user_id}", f"{{{variable}}}")))
    memory.add("tea", user_id="ann", run_id="a", infer=False)
    memory.add("milk", user_id="ann", run_id="b", infer=False)
    for found in (
        memory.search("tea or milk", user_id="ann", run_id="a"),
        memory.get_all(user_id="ann", run_id="a"),
    ):
        assert [each["memory"] for each in found["results"]] == ["tea"]
    memory.delete_all(user_id="ann", run_id="a")
    assert memory.get_all(user_id="ann", run_id="a")["results"] == []
    assert len(memory.get_all(user_id="ann", run_id="b")["results"]) == 1


async def test_delete_all_counts_memories_and_not_what_lies_beside_them(api: Api) -> None:
    """The messages that are kept as context are erased, too, but are no memories."""
    for text in ("tea", "milk", "wine"):
        await api("add", text, user_id="ann", infer=False)
    assert (await api("delete_all", user_id="ann"))["message"] == "3 memories erased."
