"""The manage tool: what a model may do to memories, and what it may not."""

import asyncio
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_agentmem import (
    ConfigurationError,
    FaissSqliteStore,
    MemoryItem,
    RAGMemory,
    StoredMemory,
    create_manage_memory_tool,
    create_search_memory_tool,
)
from langchain_agentmem.consolidation import (
    LocalConsolidator,
    MemoryQueue,
    create_consolidation_graph,
)
from langchain_agentmem.scopes import closed
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.drivers import run
from langchain_agentmem.steps.environment import Environment
from tests.unit_tests.floor import Clock
from tests.unit_tests.surfaces.conftest import ANN, HOME, TEMPLATE, Invoke, Tools, id_in


class Profile(BaseModel):
    """A user's profile."""

    name: str
    age: int | None = None


class Place(TypedDict):
    """A place."""

    city: str


class Visit(BaseModel):
    """A visit with nested parts."""

    place: Place
    guests: list[Profile] = []


def contents(store: BaseStore, home: tuple[str, ...] = HOME) -> list[Any]:
    """Return all contents of one namespace."""
    return [each.value["content"] for each in store.search(home, limit=100)]


def test_create_stores_a_memory_item(tools: Tools) -> None:
    """A created memory is a complete item under the reported id, dated by the clock."""
    message = tools.manage(content="Ann lives in Oslo")

    assert message.status == "success"
    found = tools.store.get(HOME, id_in(message))
    assert found is not None
    assert message.content == f"created memory {found.key}"
    assert (
        found.value
        == MemoryItem(content="Ann lives in Oslo", observed_at=tools.clock.now).to_value()
    )


def test_same_content_is_not_stored_twice(tools: Tools) -> None:
    """Other case and spacing give the id that exists; other accents are another memory."""
    first = tools.manage(content="Ann lives in Oslo")
    again = tools.manage(content="  ann  LIVES in\nOslo ")

    assert id_in(again) == id_in(first)
    assert len(contents(tools.store)) == 1
    assert id_in(tools.manage(content="Ann líves in Oslo")) != id_in(first)


def test_duplicates_can_be_allowed(tools: Tools) -> None:
    """With `on_duplicate="allow"` the same content becomes two memories."""
    options = {"on_duplicate": "allow"}
    ids = {id_in(tools.manage(content="same", options=options)) for _ in range(2)}

    assert len(ids) == 2
    assert contents(tools.store) == ["same", "same"]


def test_duplicate_written_by_others_is_found(tools: Tools) -> None:
    """What LangMem wrote counts as known, whatever its key."""
    tools.store.put(HOME, "default", {"content": "Ann lives in Oslo"})

    assert id_in(tools.manage(content="ann lives in oslo")) == "default"


def test_archived_content_can_be_saved_again(tools: Tools) -> None:
    """A memory that was taken out of use does not block saving its content anew."""
    first = id_in(tools.manage(content="Ann lives in Oslo"))
    tools.manage(action="delete", id=first)
    second = id_in(tools.manage(content="Ann lives in Oslo"))

    assert first != second
    assert contents(tools.store) == ["Ann lives in Oslo"]


def test_content_of_an_updated_memory_can_be_saved_again(tools: Tools) -> None:
    """A memory that says something else by now is no duplicate of what it said first."""
    first = id_in(tools.manage(content="Ann lives in Oslo"))
    tools.manage(action="update", id=first, content="Ann lives in Rome")
    tools.manage(content="Ann lives in Oslo")

    assert sorted(contents(tools.store)) == ["Ann lives in Oslo", "Ann lives in Rome"]


@pytest.mark.parametrize("content", [None, "", "  \n", "\ud800"])
def test_create_without_usable_content_stores_nothing(tools: Tools, content: str | None) -> None:
    """Null, blank or broken content is reported to the model (LangMem stores null)."""
    message = tools.manage(content=content)

    assert (message.status, contents(tools.store)) == ("error", [])
    assert "content" in message.content


def test_create_with_an_id_stores_nothing(tools: Tools) -> None:
    """A model cannot choose the id of a new memory."""
    message = tools.manage(content="x", id="mine")

    assert (message.status, contents(tools.store)) == ("error", [])


def test_update_replaces_content_and_keeps_the_rest(tools: Tools) -> None:
    """Everything but content, version and search text stays, and the journal knows the change."""
    item = MemoryItem(
        content="old", search_text="old words", metadata={"topic": "home"}, attributed_to="user"
    )
    tools.store.put(HOME, "m1", item.to_value())

    message = tools.manage(action="update", id="m1", content="new")

    assert message.content == "updated memory m1"
    found = tools.store.get(HOME, "m1")
    assert found is not None
    assert MemoryItem.from_value(found.value) == MemoryItem(
        content="new", version=2, metadata={"topic": "home"}, attributed_to="user"
    )
    entries = run(journal.history(HOME, "m1"), Environment(store=tools.store))
    assert [(entry.event, entry.version, entry.before) for entry in entries] == [
        ("UPDATE", 2, item)
    ]
    assert entries[0].cause.surface == "tool"


@pytest.mark.parametrize("action", ["update", "delete"])
@pytest.mark.parametrize("key", [str(uuid.UUID(int=7)), "nope", "\ud800", "a\x00b", "", "x" * 22])
def test_unknown_id_changes_nothing(tools: Tools, action: str, key: str) -> None:
    """An id that does not exist is an error that tells to search (LangMem reports success)."""
    tools.manage(content="Ann lives in Oslo")

    message = tools.manage(action=action, id=key, content="Bob lives in Rome")

    assert message.status == "error"
    assert "search" in message.content.lower()
    assert contents(tools.store) == ["Ann lives in Oslo"]


def test_id_of_another_scope_reads_like_an_unknown_one(tools: Tools) -> None:
    """A model cannot tell, change or delete what belongs to someone else."""
    key = id_in(tools.manage(content="Bob's secret", config={"configurable": {"user_id": "bob"}}))
    unknown = "0" * 8 + key[8:]

    for action in ("update", "delete"):
        foreign = tools.manage(action=action, id=key, content="mine now")
        missing = tools.manage(action=action, id=unknown, content="mine now")
        assert foreign.content.replace(key, "?") == missing.content.replace(unknown, "?")
    assert contents(tools.store, ("memories", "bob")) == ["Bob's secret"]


def test_delete_archives_and_undo_brings_back(tools: Tools) -> None:
    """A deleted memory is out of sight, a filter naming status finds it, undo revives its key."""
    tools.store.put(HOME, "default", {"content": "Ann likes tea"})

    assert tools.manage(action="delete", id="default").content == "Deleted memory default"

    assert tools.store.get(HOME, "default") is None
    assert tools.store.search(HOME) == []
    assert json.loads(tools.search(query="tea").content) == []
    (found,) = json.loads(tools.search(query="tea", filter={"status": "archived"}).content)
    assert (found["key"], found["namespace"]) == ("default", list(HOME))
    memory = RAGMemory(store=tools.store, clock=tools.clock)
    archived = StoredMemory(item=MemoryItem(content=""), namespace=HOME, key="default")
    memory.undo(archived, config=ANN)
    revived = tools.store.get(HOME, "default")
    assert revived is not None
    assert revived.value["content"] == "Ann likes tea"
    assert tools.store.search(closed(HOME)) == []


def test_expired_memory_cannot_be_addressed(tools: Tools) -> None:
    """What recall does not show any more, a model cannot change either."""
    item = MemoryItem(content="old", expires_at=tools.clock.now)
    tools.store.put(HOME, "m1", item.to_value())

    assert tools.manage(action="update", id="m1", content="new").status == "error"


@pytest.mark.parametrize(
    "value", [{"content": "x"}, {"kind": "Memory", "content": {"content": "x"}}]
)
def test_langmem_items_can_be_updated(tools: Tools, value: dict[str, Any]) -> None:
    """Both of LangMem's formats become a full item at version 2 under their own key."""
    tools.store.put(HOME, "k", value)

    tools.manage(action="update", id="k", content="y")

    found = tools.store.get(HOME, "k")
    assert found is not None
    assert (found.value["content"], found.value["version"]) == ("y", 2)
    assert found.value["kind"] == value.get("kind", "text")


def test_update_keeps_created_at(tmp_path: Any, clock: Any) -> None:  # noqa: ANN401
    """The time of creation survives an update (LangGraph's own store resets it on every put)."""
    with FaissSqliteStore(tmp_path / "memory.sqlite", clock=clock) as store:
        tool = create_manage_memory_tool(TEMPLATE, store=store, clock=clock)
        key = id_in(tool.invoke({"content": "one"}, ANN))
        created = clock.now
        clock.move(hours=1)
        tool.invoke({"action": "update", "id": key, "content": "two"}, ANN)
        found = store.get(HOME, key)

    assert found is not None
    assert (found.created_at, found.updated_at) == (created, clock.now)


@pytest.mark.parametrize(
    ("permitted", "names", "default"),
    [
        (["update", "create"], ["create", "update"], "create"),
        (("update",), ["update"], "update"),
        ({"delete"}, ["delete"], "delete"),
        (iter(["delete", "update"]), ["update", "delete"], "update"),
    ],
)
def test_any_iterable_of_actions_is_taken(permitted: Any, names: Any, default: str) -> None:  # noqa: ANN401
    """The documented list form works too (langmem#36: it makes LangMem's tool unusable)."""
    tool = create_manage_memory_tool("m", actions_permitted=permitted)

    action = convert_to_openai_tool(tool)["function"]["parameters"]["properties"]["action"]
    assert (action.get("enum") or [action.get("const")], action["default"]) == (names, default)
    for name in ("create", "update", "delete"):
        assert (f"- {name}:" in tool.description) is (name in names)


@pytest.mark.parametrize("permitted", [(), ["erase"], "", None])
def test_wrong_actions_are_refused_at_construction(permitted: Any) -> None:  # noqa: ANN401
    """Empty or unknown actions are the programmer's error."""
    with pytest.raises(ConfigurationError, match="actions_permitted"):
        create_manage_memory_tool("m", actions_permitted=permitted)


def test_forbidden_action_writes_nothing(tools: Tools) -> None:
    """An action outside of the permitted ones is an error of the model."""
    key = id_in(tools.manage(content="Ann lives in Oslo"))

    message = tools.manage(
        action="delete", id=key, options={"actions_permitted": ["create", "update"]}
    )

    assert (message.status, contents(tools.store)) == ("error", ["Ann lives in Oslo"])


def test_nulls_of_strict_models_mean_left_out(tools: Tools) -> None:
    """Models in strict mode fill in every argument; null and an empty id are no arguments."""
    assert tools.manage(content="x", action=None, id=None).status == "success"
    assert tools.manage(content="y", action="create", id="").status == "success"


def test_content_blocks_are_described(tools: Tools) -> None:
    """Blocks of text become text, an image a placeholder, never base64."""
    image = {"type": "image", "source_type": "base64", "data": "AAAA" * 100}

    tools.manage(content=[{"type": "text", "text": "Ann's cat:"}, image])

    assert contents(tools.store) == ["Ann's cat:\n[image]"]


@pytest.mark.parametrize(
    ("schema", "given", "stored"),
    [
        (Profile, {"name": "Ann"}, {"name": "Ann", "age": None}),
        (Profile, '{"name": "Ann", "age": 3}', {"name": "Ann", "age": 3}),
        (Place, {"city": "Oslo"}, {"city": "Oslo"}),
    ],
)
def test_typed_content_is_validated_and_stored_as_json(
    tools: Tools, schema: type, given: object, stored: object
) -> None:
    """A pydantic model or TypedDict is stored as an object named by its schema."""
    message = tools.manage(content=given, options={"schema": schema})

    found = tools.store.get(HOME, id_in(message))
    assert found is not None
    assert (found.value["kind"], found.value["content"]) == (schema.__name__, stored)


def test_invalid_typed_content_is_returned_to_the_model(tools: Tools) -> None:
    """The error names the faulty field and does not repeat the value."""
    message = tools.manage(content={"age": "secret"}, options={"schema": Profile})

    assert (message.status, contents(tools.store)) == ("error", [])
    assert "name" in message.content
    assert "secret" not in message.content


def test_unusable_schema_is_refused_at_construction() -> None:
    """A schema that cannot be validated says what to give instead."""
    with pytest.raises(ConfigurationError, match="TypedDict"):
        create_manage_memory_tool("m", schema=Clock)


def _assert_strict(schema: Any) -> None:  # noqa: ANN401 - JSON schema
    if isinstance(schema, list):
        for part in schema:
            _assert_strict(part)
    elif isinstance(schema, dict):
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert set(schema.get("required", [])) == set(schema.get("properties", {}))
        for part in schema.values():
            _assert_strict(part)


@pytest.mark.parametrize("schema", [str, Profile, Place, Visit])
def test_schema_is_valid_in_strict_mode(schema: Any) -> None:  # noqa: ANN401
    """Strict mode lists every argument as required; otherwise none is (langmem#113)."""
    tool = create_manage_memory_tool("m", schema=schema)

    strict = convert_to_openai_tool(tool, strict=True)["function"]["parameters"]
    _assert_strict(strict)
    assert list(strict["properties"]) == ["content", "action", "id"]
    assert not convert_to_openai_tool(tool)["function"]["parameters"].get("required")


def test_search_schema_is_valid_in_strict_mode() -> None:
    """The filter can be given as a JSON string where an object may have no keys."""
    strict = convert_to_openai_tool(create_search_memory_tool("m"), strict=True)
    parameters = strict["function"]["parameters"]

    _assert_strict(parameters)
    assert list(parameters["properties"]) == ["query", "limit", "offset", "filter"]
    assert {"type": "string"} in parameters["properties"]["filter"]["anyOf"]


def test_store_failures_are_raised(invoke: Invoke) -> None:
    """A failing store is no error of the model and is not swallowed."""

    class Broken(InMemoryStore):
        def batch(self, ops: Any) -> Any:  # noqa: ANN401, ARG002
            msg = "disk full"
            raise OSError(msg)

        async def abatch(self, ops: Any) -> Any:  # noqa: ANN401
            return self.batch(ops)

    tool = create_manage_memory_tool("m", store=Broken())

    with pytest.raises(OSError, match="disk full"):
        invoke(tool, {"content": "x"})


def test_parallel_creation_of_one_content_gives_one_memory(store: BaseStore) -> None:
    """Tool calls of one message run in parallel threads; the same fact is stored once."""
    tool = create_manage_memory_tool(TEMPLATE, store=store)

    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(tool.invoke, {"content": "Ann lives in Oslo"}, ANN) for _ in range(8)]
        ids = {id_in(call.result()) for call in calls}

    assert len(ids) == 1
    assert contents(store) == ["Ann lives in Oslo"]


def test_concurrent_updates_lose_no_version(store: BaseStore) -> None:
    """Every update of many at once is applied and in the journal."""
    tool = create_manage_memory_tool(TEMPLATE, store=store)
    key = id_in(tool.invoke({"content": "start"}, ANN))

    async def update_all() -> None:
        given = [{"action": "update", "id": key, "content": f"v{n}"} for n in range(8)]
        await asyncio.gather(*(tool.ainvoke(each, ANN) for each in given))

    asyncio.run(update_all())
    entries = run(journal.history(HOME, key), Environment(store=store))
    assert [entry.version for entry in entries] == list(range(1, 10))


def test_new_memories_may_be_queued(tools: Tools) -> None:
    """A queue takes them once, in the scope of the call; whoever works it off writes them."""
    queue = MemoryQueue(TEMPLATE, store=tools.store, clock=tools.clock, after_seconds=0)
    options = {"queue": queue}
    for _ in range(2):
        message = tools.manage(ANN, options, content="Ann lives in Oslo")
        assert (message.status, message.content.split()[0]) == ("success", "queued")
    assert tools.manage(ANN, options, content=" ").status == "error"
    assert contents(tools.store) == []
    (waiting,) = queue.pending()
    assert (waiting.scope, len(waiting.messages)) == (HOME, 1)
    memory = RAGMemory(store=tools.store, clock=tools.clock)
    with LocalConsolidator(queue, create_consolidation_graph(memory)) as worker:
        worker.run_due()
    (known,) = memory.recall("Where does Ann live?", config=ANN).items
    assert known.text == "Ann lives in Oslo"


def test_what_is_queued_can_only_be_new(tools: Tools) -> None:
    """With a queue, changes and deletions are still made at once."""
    queue = MemoryQueue(TEMPLATE, store=tools.store, clock=tools.clock)
    key = id_in(tools.manage(content="Ann lives in Oslo"))
    tools.manage(ANN, {"queue": queue}, content="Ann lives in Rome", action="update", id=key)
    assert contents(tools.store) == ["Ann lives in Rome"]
    assert queue.pending() == []


def test_queue_of_another_namespace_is_refused() -> None:
    """What is queued there would be remembered elsewhere."""
    queue = MemoryQueue(("others", "{user_id}"))
    with pytest.raises(ConfigurationError, match="queue="):
        create_manage_memory_tool(TEMPLATE, queue=queue)
