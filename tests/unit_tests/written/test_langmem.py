"""LangMem: schemas, queries, defaults, phases and flags, over stores that LangMem wrote too."""

from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from langchain_agentmem.errors import ConfigurationError, ModelCallError
from langchain_agentmem.items import StoredMemory
from langchain_agentmem.memories import LangMem
from tests.unit_tests.scripted import Scripted
from tests.unit_tests.written.conftest import ANN, BOB, World

HOME = ("memories", "ann")


class Preference(BaseModel):
    """What somebody wants."""

    about: str
    wish: str = ""


class Person(BaseModel):
    """Somebody."""

    name: str


def changes(*memories: Mapping[str, Any]) -> dict[str, Any]:
    """Return an extraction reply."""
    return {"memories": list(memories)}


def create(content: object, kind: str | None = None) -> dict[str, Any]:
    """Return a proposal of a new memory."""
    return {"action": "create", "content": content, "kind": kind}


def update(handle: str, content: object) -> dict[str, Any]:
    """Return a proposal to change a memory."""
    return {"action": "update", "id": handle, "content": content}


def delete(handle: str) -> dict[str, Any]:
    """Return a proposal to archive a memory."""
    return {"action": "delete", "id": handle}


def values(world: World) -> dict[str, Any]:
    """Return what lies in Ann's namespace, by key."""
    found = world.store.search(HOME, limit=100)
    return {each.key: each.value for each in found if each.namespace == HOME}


async def test_recall_reads_its_own_and_a_tools_memories(world: World) -> None:
    """All lie in the bare namespace of one user, where LangMem's own code finds them too."""
    call = world.make(LangMem)
    world.store.put(HOME, "t", {"content": "Ann owns a boat"})
    world.model.extend(changes(create("Ann likes tea")))
    await call("remember", "I like tea", config=ANN)
    found = await call("recall", "tea", config=ANN)
    assert {each.content for each in found.items} == {"Ann owns a boat", "Ann likes tea"}
    assert (await call("recall", "tea", config=BOB)).items == []
    assert len(world.model.prompts) == 1


async def test_a_conversation_costs_one_call_and_each_option_one_more(world: World) -> None:
    """The query model is asked apart, and each phase once."""
    asker = Scripted([{"queries": ["what Ann likes"]}])
    call = world.make(LangMem, query_model=asker, phases=[{}, {"include_messages": True}])
    world.model.extend(changes(create("Ann likes tea")), changes(), changes())
    await call("remember", "I like tea", config=ANN)
    assert len(asker.prompts) == 1
    assert len(world.model.prompts) == 3
    assert [each["purpose"] for each in world.named("model_called")] == [
        "query",
        "extract",
        "phase",
        "phase",
    ]


async def test_memories_take_the_form_of_their_schema(world: World) -> None:
    """Several schemas at once; a content that fits none is repaired once, then refused."""
    call = world.make(LangMem, schemas=[Preference, Person])
    bad = changes(
        create({"about": "tea", "wish": "green"}, "Preference"),
        create({"title": "x"}, "Person"),
        create("just words"),
    )
    world.model.extend(bad, bad)
    done = await call("remember", "green tea, please", config=ANN)
    assert [(op.event, op.status) for op in done] == [
        ("ADD", "rejected"),
        ("ADD", "rejected"),
        ("ADD", "applied"),
    ]
    (value,) = values(world).values()
    assert (value["kind"], value["content"]) == ("Preference", {"about": "tea", "wish": "green"})
    assert len(world.model.prompts) == 2


@pytest.mark.parametrize("content", ["Ann likes tea", {"content": "Ann likes tea"}])
async def test_text_is_text_however_the_model_wraps_it(world: World, content: object) -> None:
    """An object around one text is not stored as Python's form of it."""
    call = world.make(LangMem)
    world.model.extend(changes(create(content)))
    await call("remember", "tea", config=ANN)
    assert [each["content"] for each in values(world).values()] == ["Ann likes tea"]


async def test_both_formats_that_langmem_writes_are_read_and_changed(world: World) -> None:
    """Tools write no kind and its manager a nested one; both keep key and become items (B2)."""
    call = world.make(LangMem, enable_deletes=True)
    world.store.put(HOME, "a", {"content": "Ann owns a boat"})
    world.store.put(HOME, "b", {"kind": "Memory", "content": {"content": "Ann likes tea"}})
    world.store.put(HOME, "c", {"kind": "Gone", "content": {"x": 1}})

    def answer(prompt: str) -> Any:  # noqa: ANN401 - a double of any
        shown = [line for line in prompt.splitlines() if line.startswith('{"id"')]
        handle = {key: f"{number}" for number, line in enumerate(shown) for key in "btx"}
        for number, line in enumerate(shown):
            handle.update({name: str(number) for name in ("boat", "tea", '"x"') if name in line})
        return changes(
            update(handle["boat"], "Ann owns two boats"),
            update(handle['"x"'], {"x": 2}),
            delete(handle["tea"]),
        )

    world.memory.model = Scripted(answer)
    done = await call("remember", "two boats, no tea", config=ANN)
    assert [op.status for op in done] == ["applied"] * 3
    assert values(world)["a"]["content"] == "Ann owns two boats"
    assert values(world)["a"]["version"] == 2
    assert (values(world)["c"]["kind"], values(world)["c"]["content"]) == ("Gone", {"x": 2})
    assert set(values(world)) == {"a", "c"}
    await call("undo", StoredMemory.from_dict(_where(done, "DELETE")), config=ANN)
    assert values(world)["b"]["content"] == "Ann likes tea"


def _where(done: Any, event: str) -> dict[str, Any]:  # noqa: ANN401 - operations
    op = next(each for each in done if each.event == event)
    return {"namespace": op.namespace, "key": op.key, "value": op.after.to_value()}


@pytest.mark.parametrize(
    ("flag", "proposal"),
    [
        ("enable_inserts", create("Ann likes tea")),
        ("enable_updates", update("0", "Ann owns two boats")),
        ("enable_deletes", delete("0")),
    ],
)
async def test_what_is_not_enabled_is_refused(
    world: World, flag: str, proposal: dict[str, Any]
) -> None:
    """The prompt does not offer it, and a model that does it all the same is reported."""
    call = world.make(LangMem, **{"enable_deletes": True, flag: False})
    world.store.put(HOME, "a", {"content": "Ann owns a boat"})
    world.model.extend(changes(proposal))
    (op,) = await call("remember", "something", config=ANN)
    assert (op.status, op.reason) == ("rejected", f"{proposal['action']} is not permitted")
    offered = next(line for line in world.model.prompt().splitlines() if "is one of" in line)
    assert proposal["action"] not in offered
    assert values(world) == {"a": {"content": "Ann owns a boat"}}


async def test_deletes_must_be_enabled(world: World) -> None:
    """As in LangMem's `create_memory_store_manager`."""
    call = world.make(LangMem)
    world.store.put(HOME, "a", {"content": "Ann owns a boat"})
    world.model.extend(changes(delete("0")))
    (op,) = await call("remember", "sold it", config=ANN)
    assert op.status == "rejected"


async def test_query_limit_is_kept_and_each_query_has_its_share(world: World) -> None:
    """LangMem's own sync and async ways show different numbers of memories."""
    world.embed.table.update(
        {"tea": [1.0, 0.0], "boat": [0.0, 1.0], "question": [0.7, 0.7]},
    )
    for number in range(6):
        world.store.put(HOME, f"t{number}", {"content": f"tea {number}"})
        world.store.put(HOME, f"b{number}", {"content": f"boat {number}"})
    asker = Scripted([{"queries": ["tea", "boat", "tea"]}])
    call = world.make(LangMem, query_model=asker, query_limit=4)
    world.model.extend(changes())
    await call("remember", "question", config=ANN)
    shown = [line for line in world.model.prompt().splitlines() if line.startswith('{"id"')]
    assert len(shown) == 4
    assert sum("tea" in line for line in shown) == 2


async def test_an_unusable_query_falls_back_on_the_messages(world: World) -> None:
    """Known memories are found by what was said."""
    world.store.put(HOME, "a", {"content": "boat"})
    call = world.make(LangMem, query_model=Scripted(["no idea", "none"]))
    world.model.extend(changes())
    await call("remember", "boat", config=ANN)
    assert '{"id": "0"' in world.model.prompt()


async def test_long_conversations_are_searched_by_their_end_and_as_a_whole(world: World) -> None:
    """The last 1, 2 and 4 messages, and all of them."""
    call = world.make(LangMem)
    world.model.extend(changes())
    said = [HumanMessage(letter * 3) for letter in "abcdefgh"]
    await call("remember", said, config=ANN)
    asked = [query.replace("\n", " ") for query in world.embed.queries]
    assert list(dict.fromkeys(asked))[:3] == ["hhh", "ggg hhh", "eee fff ggg hhh"]
    assert any(query.startswith("aaa") for query in asked)


async def test_the_default_is_known_first_and_written_with_the_rest(world: World) -> None:
    """It lies under `default`, is shown to the model, and is written even if nothing changes."""
    call = world.make(LangMem, schemas=[Preference], default={"about": "tone", "wish": "kind"})
    world.model.extend(changes())
    (op,) = await call("remember", "hello", config=ANN)
    assert '"wish": "kind"' in world.model.prompt()
    assert (op.event, op.key) == ("ADD", "default")
    assert values(world)["default"]["content"] == {"about": "tone", "wish": "kind"}
    world.model.extend(changes(update("0", {"about": "tone", "wish": "short"})))
    await call("remember", "shorter!", config=ANN)
    assert values(world)["default"]["content"] == {"about": "tone", "wish": "short"}


async def test_a_changed_default_is_one_write_and_an_unusable_reply_none(world: World) -> None:
    """LangMem writes the default before it asks, and again after."""
    call = world.make(LangMem, default="Ann is new here.")
    world.model.extend("?", "?")
    await call("remember", "hello", config=ANN)
    assert values(world) == {}
    world.model.extend(changes(update("0", "Ann is from Oslo.")))
    (op,) = await call("remember", "I am from Oslo", config=ANN)
    assert values(world)["default"]["content"] == "Ann is from Oslo."
    assert values(world)["default"]["version"] == 1
    assert op.event == "ADD"


async def test_an_archived_default_does_not_come_back(world: World) -> None:
    """What was taken out stays out; LangMem puts it again."""
    call = world.make(LangMem, default="Ann is new here.", enable_deletes=True)
    world.model.extend(changes(), changes(delete("0")), changes())
    for text in ("hello", "not any more", "hello"):
        await call("remember", text, config=ANN)
    assert values(world) == {}


async def test_a_default_may_be_made_from_the_config(world: World) -> None:
    """The factory is given whose memory it is."""

    def make(config: RunnableConfig) -> str:
        return f"{config['configurable']['user_id']} is new here."

    call = world.make(LangMem, default_factory=make)
    world.model.extend(changes())
    await call("remember", "hello", config=ANN)
    assert values(world)["default"]["content"] == "ann is new here."


def test_two_defaults_and_a_default_of_no_schema_are_refused() -> None:
    """The message says what to do."""
    with pytest.raises(ConfigurationError, match="not both"):
        LangMem(default="a", default_factory=lambda _: "b")
    memory = LangMem(schemas=[Preference], default={"x": 1}, model=Scripted([changes()]))
    memory.store = World("memory", None, is_async=False).store  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="Preference"):
        memory.remember("hello", config=ANN)


async def test_phases_work_on_what_the_extraction_made_and_are_one_write(world: World) -> None:
    """A new memory that a phase takes out is never written; what phases change is one version."""
    world.store.put(HOME, "a", {"content": "Ann owns a boat"})
    call = world.make(LangMem, phases=[{"instructions": "Join what belongs together."}])
    world.model.extend(
        changes(update("0", "Ann owns two boats"), create("Her boats are red")),
        changes(update("0", "Ann owns two red boats"), delete("1")),
    )
    done = await call("remember", "two red boats", config=ANN)
    prompt = world.model.prompt()
    assert "Join what belongs together." in prompt
    assert "Conversation" not in prompt
    assert '"content": "Her boats are red"' in prompt
    assert [(op.event, op.key) for op in done] == [("UPDATE", "a")]
    assert values(world)["a"]["content"] == "Ann owns two red boats"
    assert values(world)["a"]["version"] == 2


async def test_a_phase_has_flags_and_may_see_the_conversation(world: World) -> None:
    """Its flags are its own; what it may not do is reported."""
    call = world.make(
        LangMem, phases=[{"include_messages": True, "enable_inserts": False}], enable_deletes=False
    )
    world.model.extend(changes(create("Ann likes tea")), changes(create("Ann likes milk")))
    done = await call("remember", "tea and milk", config=ANN)
    assert "tea and milk" in world.model.prompt()
    assert [each["content"] for each in values(world).values()] == ["Ann likes tea"]
    assert [op.reason for op in done if op.status == "rejected"] == ["create is not permitted"]


async def test_a_useless_phase_leaves_what_was_extracted(world: World) -> None:
    """It is reported, and the extraction's memories are written."""
    call = world.make(LangMem, phases=[{}])
    world.model.extend(changes(create("Ann likes tea")), "?", "?")
    done = await call("remember", "tea", config=ANN)
    assert sorted((op.event, op.status) for op in done) == [
        ("ADD", "applied"),
        ("NOOP", "rejected"),
    ]


async def test_a_phase_without_anything_to_see_costs_nothing(world: World) -> None:
    """There is nothing to put in order."""
    call = world.make(LangMem, phases=[{}])
    world.model.extend(changes())
    assert await call("remember", "hm", config=ANN) == []
    assert len(world.model.prompts) == 1


def test_an_unknown_setting_of_a_phase_is_refused() -> None:
    """A typing error does not pass in silence."""
    with pytest.raises(ConfigurationError, match="enable_insert"):
        LangMem(phases=[{"enable_insert": False}])


async def test_every_pass_is_a_node(world: World) -> None:
    """The graph shows query, default, extraction and phases, and does what the call does."""
    world.make(LangMem, phases=[{}])
    graph = world.memory.remember_graph()
    nodes = set(graph.get_graph().nodes)
    assert {"query", "recall", "take_default", "extract", "validate", "phase", "apply"} <= nodes
    world.model.extend(changes(create("Ann likes tea")), changes(update("0", "Ann loves tea")))
    given = {"messages": [HumanMessage("tea"), AIMessage("Noted.")]}
    out = await graph.ainvoke(given, ANN) if world.is_async else graph.invoke(given, ANN)
    assert [op["event"] for op in out["memory_operations"]] == ["ADD"]
    assert [each["content"] for each in values(world).values()] == ["Ann loves tea"]
    assert out["usage"]["calls"] == {"extract": 1, "phase": 1}


async def test_unknown_and_repeated_handles_are_refused_after_one_repair(world: World) -> None:
    """The rest is carried out, and no exception reaches the conversation."""
    world.store.put(HOME, "a", {"content": "Ann owns a boat"})
    call = world.make(LangMem, enable_deletes=True)
    reply = changes(update("7", "x"), update("[0]", "Ann owns two boats"), delete("0"))
    world.model.extend(reply, reply)
    done = await call("remember", "two boats", config=ANN)
    assert len(world.model.prompts) == 2
    assert [op.status for op in done] == ["rejected", "rejected", "applied"]
    assert values(world)["a"]["content"] == "Ann owns two boats"


@pytest.mark.parametrize("proposal", [update("7", "x"), create(" "), delete("7")])
async def test_a_turn_of_which_every_change_is_refused_is_kept_word_for_word(
    world: World, proposal: dict[str, Any]
) -> None:
    """The reply was well formed and of no use, and what was said was lost."""
    call = world.make(LangMem, enable_deletes=True)
    world.model.extend(changes(proposal), changes(proposal))
    refused, kept = await call("remember", "Ann sails", config=ANN)
    assert (refused.status, kept.status) == ("rejected", "applied")
    assert (await call("recall", "sails", config=ANN)).items[0].content == "Ann sails"


async def test_a_memory_changed_meanwhile_is_changed_once_more(world: World) -> None:
    """The update is written over the other writer's version, whose text stays in the history."""
    world.store.put(HOME, "a", {"content": "Ann owns a boat"})
    call = world.make(LangMem)

    def answer(_: str) -> Any:  # noqa: ANN401 - a double of any
        world.store.put(HOME, "a", {"content": "Ann sold the boat", "kind": "text", "version": 5})
        return changes(update("0", "Ann owns two boats"))

    world.memory.model = Scripted(answer)
    (op,) = await call("remember", "two boats", config=ANN)
    assert op.before.content == "Ann sold the boat"
    assert values(world)["a"]["version"] == 6


async def test_what_is_written_is_redacted_however_deep(world: World) -> None:
    """Texts in lists and objects too."""

    class Card(BaseModel):
        """A card."""

        numbers: list[str]
        owner: dict[str, str]

    call = world.make(LangMem, schemas=[Card], redact=lambda text: text.replace("4242", "[card]"))
    world.model.extend(changes(create({"numbers": ["4242"], "owner": {"pin": "4242"}})))
    await call("remember", "my card is 4242", config=ANN)
    assert "4242" not in world.model.prompt()
    assert "4242" not in str(values(world))


async def test_a_failing_model_changes_nothing(world: World) -> None:
    """A model that raises in a phase is a typed error, and nothing was written."""
    call = world.make(LangMem, phases=[{}])
    world.model.extend(changes(create("Ann likes tea")), OSError("down"))
    with pytest.raises(ModelCallError, match="phase"):
        await call("remember", "tea", config=ANN)
    assert values(world) == {}
