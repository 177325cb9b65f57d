"""What Mem0 writes: extraction, decisions, validation, journal."""

import asyncio
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import ConfigurationError, ModelCallError
from langchain_agentmem.items import MemoryItem, StoredMemory
from langchain_agentmem.memories.mem0 import Mem0
from langchain_agentmem.rendering import render_memories
from tests.unit_tests.scripted import Scripted, make_store
from tests.unit_tests.written.conftest import ANN, BOB, World

FACTS = ("memories", "ann", "mem0", "facts")
MESSAGES = ("memories", "ann", "mem0", "messages")


def said(*texts: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - a double of any
    """Return an extraction reply."""
    return {"facts": [{"text": text, "attributed_to": "user", **given} for text in texts]}


def ops(*operations: tuple[Any, ...]) -> dict[str, Any]:
    """Return a decision reply from `(event, handle, fact, text)`."""
    names = ("event", "handle", "fact", "text")
    return {"operations": [dict(zip(names, each, strict=False)) for each in operations]}


def journal_rows(world: World) -> int:
    """Return how many journal records the facts have."""
    return len(world.store.search(("_agentmem", "journal", *FACTS), limit=1000))


async def test_the_first_fact_costs_one_call_and_one_journal_record(world: World) -> None:
    """Nothing is known yet, so nothing has to be decided."""
    call = world.make(Mem0)
    world.model.extend(said("Ann loves coffee"))
    (op,) = await call("remember", "I love coffee", config=ANN)
    assert (op.event, op.status) == ("ADD", "applied")
    assert world.live(*FACTS) == ["Ann loves coffee"]
    assert journal_rows(world) == 1
    assert len(world.model.prompts) == 1
    assert op.key not in world.model.prompt()


@pytest.mark.parametrize("mode", ["crud", "supersede"])
async def test_a_repeated_fact_survives_a_delete_of_itself(world: World, mode: str) -> None:
    """A model that deletes what the new fact repeats is overruled (mem0 #1674)."""
    call = world.make(Mem0, mode=mode)
    world.model.extend(
        said("Ann loves coffee"),
        *(said("Ann loves coffee"), ops(("DELETE", "0", 0))),
        *(said("ann  LOVES coffee"), ops(("ADD", None, 0, "Ann loves coffee"))),
    )
    for _ in range(3):
        await call("remember", "I love coffee", config=ANN)
    assert world.live(*FACTS) == ["Ann loves coffee"]
    assert journal_rows(world) == 1
    assert len(world.named("operation_rejected")) == 1


@pytest.mark.parametrize("fact", [None, 0])
async def test_a_contradicted_fact_is_closed_and_its_successor_stored(
    world: World, fact: int | None
) -> None:
    """A canned DELETE alone never loses the new fact, and the past stays askable (mem0 #4536)."""
    call = world.make(Mem0)
    world.model.extend(said("Ann loves coffee"))
    await call("remember", "I love coffee", config=ANN)
    before = world.clock()
    world.clock.move(86400)
    world.model.extend(said("Ann hates coffee"), ops(("DELETE", "0", fact)))
    await call("remember", "I hate coffee now", config=ANN)
    assert world.live(*FACTS) == ["Ann hates coffee"]
    now = await call("recall", "coffee", config=ANN)
    then = await call("recall", "coffee", config=ANN, as_of=before)
    assert [each.content for each in now.items] == ["Ann hates coffee"]
    assert [each.content for each in then.items] == ["Ann loves coffee"]
    assert then.items[0].item.superseded_by == now.items[0].key
    assert then.items[0].item.status == "superseded"


async def test_a_crud_update_keeps_everything_but_the_text(world: World) -> None:
    """Key, creation, caller's metadata, attribution and scope stay (mem0 #5160, #4490)."""
    call = world.make(Mem0, mode="crud")
    world.model.extend(said("Ann likes tea"))
    await call("remember", "I like tea", config=ANN, metadata={"source": "crm"})
    (old,) = world.store.search(FACTS)
    world.clock.move(60)
    world.model.extend(said("Ann likes green tea"), ops(("UPDATE", "0", 0, "Ann likes green tea")))
    (op,) = await call("remember", "green tea, I mean", config=ANN, metadata={"source": "web"})
    (new,) = world.store.search(FACTS)
    assert new.key == old.key
    if world.kind == "sqlite":  # InMemoryStore dates every put anew
        assert new.created_at == old.created_at
    assert new.value["metadata"] == {"source": "crm"}
    assert new.value["attributed_to"] == old.value["attributed_to"]
    assert new.value["version"] == 2
    history = await call("history", StoredMemory.from_store(new), config=ANN)
    assert [entry.after.content for entry in history] == ["Ann likes tea", "Ann likes green tea"]
    assert op.event == "UPDATE"


async def test_a_superseding_update_links_to_what_it_replaces(world: World) -> None:
    """The default mode adds a successor with a link and closes the old fact."""
    call = world.make(Mem0)
    world.model.extend(said("Ann likes tea"))
    (first,) = await call("remember", "I like tea", config=ANN)
    world.model.extend(
        said("Ann likes green tea"), ops(("UPDATE", "[0]", 0, "Ann likes green tea"))
    )
    done = await call("remember", "green tea, I mean", config=ANN)
    added = next(op for op in done if op.event == "ADD")
    closed = next(op for op in done if op.event == "DELETE")
    assert closed.key == first.key
    assert closed.after.superseded_by == added.key
    assert ("updates", first.key) in [(link.type, link.target) for link in added.after.links]


async def test_a_tools_memory_is_known_and_kept_current(world: World) -> None:
    """What lies in the bare namespace is compared too, and closed there when contradicted."""
    call = world.make(Mem0)
    world.store.put(("memories", "ann"), "t", {"content": "Ann loves coffee"}, index=["content"])
    world.model.extend(said("Ann hates coffee"), ops(("DELETE", "0", 0)))
    await call("remember", "I hate coffee now", config=ANN)
    assert world.store.get(("memories", "ann"), "t") is None
    assert world.live(*FACTS) == ["Ann hates coffee"]
    known = StoredMemory(item=MemoryItem(content=""), namespace=("memories", "ann"), key="t")
    (entry,) = await call("history", known, config=ANN)
    assert entry.after.superseded_by == world.store.search(FACTS)[0].key
    world.model.extend(said("ann hates COFFEE"), ops())
    (op,) = await call("remember", "really", config=ANN)
    assert op.event == "NOOP"


async def test_unknown_handles_cost_their_operation_only(world: World) -> None:
    """The rest of the reply is carried out and each refusal is reported (mem0 #3931)."""
    call = world.make(Mem0)
    world.model.extend(said("aaa", "bbb", "ccc"))
    await call("remember", "abc", config=ANN)
    world.model.extend(
        said("ddd", "eee"),
        ops(("ADD", None, 0, "ddd"), ("UPDATE", "12", 1, "eee"), ("DELETE", "13", None)),
    )
    done = await call("remember", "de", config=ANN)
    assert world.live(*FACTS) == ["aaa", "bbb", "ccc", "ddd", "eee"]
    assert len(world.named("operation_rejected")) == 2
    assert [op.status for op in done].count("rejected") == 2


async def test_the_model_sees_handles_and_never_a_key(world: World) -> None:
    """Short numbers stand for stored facts."""
    call = world.make(Mem0)
    world.model.extend(said("aaa", "bbb"))
    known = await call("remember", "ab", config=ANN)
    world.model.extend(said("ccc"), ops())
    await call("remember", "c", config=ANN)
    prompt = world.model.prompt()
    assert '"handle": "0"' in prompt
    assert '"handle": "1"' in prompt
    assert not any(op.key in prompt for op in known)


async def test_the_first_operation_on_a_handle_wins(world: World) -> None:
    """A later one is reported."""
    call = world.make(Mem0, mode="crud")
    world.model.extend(said("Ann likes tea"))
    await call("remember", "tea", config=ANN)
    world.model.extend(
        said("Ann likes green tea"),
        ops(("UPDATE", "0", 0, "Ann likes green tea"), ("DELETE", "0", 0)),
    )
    done = await call("remember", "green tea", config=ANN)
    assert world.live(*FACTS) == ["Ann likes green tea"]
    assert [op.reason for op in done if op.status == "rejected"] == [
        "the memory already has a change"
    ]


async def test_a_change_after_a_noop_of_the_same_memory_is_reported(world: World) -> None:
    """The first operation on a handle wins, a NOOP too; the later one does not vanish silently."""
    call = world.make(Mem0)
    world.model.extend(said("Ann likes tea"))
    await call("remember", "tea", config=ANN)
    world.model.extend(said("Ann is here"), ops(("NOOP", "0", 0), ("DELETE", "0", 0)))
    done = await call("remember", "here", config=ANN)
    assert world.live(*FACTS) == ["Ann likes tea"]
    assert [op.event for op in done if op.status == "rejected"] == ["DELETE"]


async def test_an_update_never_closes_what_a_new_fact_repeats(world: World) -> None:
    """As with a DELETE: what the user has just said again stays."""
    call = world.make(Mem0)
    world.model.extend(said("Ann likes tea"))
    await call("remember", "tea", config=ANN)
    world.model.extend(
        said("Ann likes tea", "Ann is here"), ops(("UPDATE", "0", 1, "Ann likes nothing"))
    )
    await call("remember", "tea, here", config=ANN)
    assert world.live(*FACTS) == ["Ann is here", "Ann likes tea"]


async def test_an_empty_fact_is_reported(world: World) -> None:
    """It is left out, and an event tells of it."""
    call = world.make(Mem0)
    world.model.extend(said("", "Ann likes tea"))
    await call("remember", "tea", config=ANN)
    assert world.live(*FACTS) == ["Ann likes tea"]
    assert [each["why"] for each in world.named("operation_rejected")] == ["the text is empty"]


async def test_a_fact_without_spaces_is_searched_for_names_in_linear_time(world: World) -> None:
    """A hundred thousand letters without a space took hours (an address may begin anywhere)."""
    call = world.make(Mem0)
    world.model.extend(said("x" * 100_000))
    started = time.monotonic()
    await call("remember", "long", config=ANN)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("bad", ["", "I cannot do that.", '{"facts": [{"text": "a'])
async def test_an_unusable_extraction_keeps_the_turn_after_one_repair(
    world: World, bad: str
) -> None:
    """Two bad replies are reported and the words kept, no fact is made (mem0 #1854, #3391)."""
    call = world.make(Mem0)
    world.model.extend(bad, bad)
    op, kept = await call("remember", "I like tea", config=ANN)
    assert (op.status, kept.status) == ("rejected", "applied")
    assert world.live(*FACTS) == []
    assert world.live(*MESSAGES) == []
    assert (await call("recall", "tea", config=ANN)).items[0].content == "I like tea"
    assert len(world.model.prompts) == 2
    assert len(world.named("reply_rejected")) == 1


async def test_facts_without_a_word_keep_the_turn(world: World) -> None:
    """The reply was well formed and of no use, and what was said was lost."""
    call = world.make(Mem0)
    world.model.extend(said(" "))
    (kept,) = await call("remember", "I like tea", config=ANN)
    assert kept.status == "applied"
    assert (await call("recall", "tea", config=ANN)).items[0].content == "I like tea"
    world.model.extend(said())
    assert await call("remember", "Hm.", config=ANN) == []


async def test_a_failing_model_leaves_everything_and_can_be_retried(world: World) -> None:
    """A model that raises during the decision is a typed error."""
    call = world.make(Mem0)
    world.model.extend(said("Ann likes tea"))
    await call("remember", [HumanMessage("tea", id="m1")], config=ANN)
    second = [HumanMessage("Oslo", id="m2")]
    world.model.extend(said("Ann lives in Oslo"), OSError("down"))
    with pytest.raises(ModelCallError, match="decide"):
        await call("remember", second, config=ANN)
    assert world.live(*FACTS) == ["Ann likes tea"]
    assert world.live(*MESSAGES) == ["tea"]
    world.model.extend(said("Ann lives in Oslo"), ops())
    await call("remember", second, config=ANN)
    assert world.live(*FACTS) == ["Ann likes tea", "Ann lives in Oslo"]


async def test_recalled_and_system_text_is_never_extracted_again(world: World) -> None:
    """Neither is shown, and a fact that only repeats them is refused (mem0 #4573)."""
    call = world.make(Mem0)
    recalled = StoredMemory(item=MemoryItem(content="Ann owns a zebra"), namespace=("x",), key="k")
    block = render_memories([recalled])
    world.model.extend(said("Ann owns a zebra"))
    await call(
        "remember",
        [SystemMessage("Answer like a pirate."), HumanMessage(f"{block}\nWhat do I own?")],
        config=ANN,
    )
    prompt = world.model.prompt()
    assert "zebra" not in prompt
    assert "pirate" not in prompt
    assert "What do I own?" in prompt
    assert world.live(*FACTS) == []


async def test_the_speakers_language_is_kept(world: World) -> None:
    """A Chinese fact is stored byte-identical and found by a word of two characters (#3707)."""
    call = world.make(Mem0)
    text = "安娜喜欢喝普洱茶"
    world.model.extend(said(text))
    await call("remember", "我喜欢喝普洱茶", config=ANN)
    assert "language its speaker used" in world.model.prompt(0)
    assert "我喜欢喝普洱茶" in world.model.prompt(0)
    assert world.live(*FACTS) == [text]
    found = await call("recall", "普洱", config=ANN)
    assert [each.content for each in found.items] == [text]


async def test_metadata_never_decides_whose_fact_it_is(world: World) -> None:
    """A user id in the metadata is ignored with a warning (mem0 #6277, #6655)."""
    call = world.make(Mem0)
    world.model.extend(said("Ann likes tea"))
    await call("remember", "tea", config=ANN, metadata={"user_id": "bob", "team": "a"})
    (item,) = world.store.search(FACTS)
    assert item.value["metadata"] == {"team": "a"}
    assert world.named("metadata_identity_ignored")[0]["fields"] == ["user_id"]
    assert (await call("recall", "tea", config=BOB)).items == []


async def test_relative_dates_are_counted_from_the_message(world: World) -> None:
    """The prompt shows the message's date and the fact is observed then (mem0 #4963)."""
    call = world.make(Mem0)
    when = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    message = HumanMessage("I ran yesterday", additional_kwargs={"observed_at": when.isoformat()})
    world.model.extend(said("Ann ran on 2023-05-07", observed_at="2023-05-07"))
    await call("remember", [message], config=ANN)
    assert "2023-05-08 13:56 (Monday)" in world.model.prompt()
    assert (await call("recall", "ran", config=ANN)).items[0].observed_at == when


class _Breaking(InMemoryStore):
    """Fails at the second put of a batch, before anything is written."""

    broken = True

    def batch(self, ops: Any) -> Any:  # noqa: ANN401 - a double of any
        """Refuse batches of several puts."""
        ops = list(ops)
        if self.broken and sum(isinstance(op, PutOp) for op in ops) > 1:
            msg = "disk full"
            raise OSError(msg)
        return super().batch(ops)

    async def abatch(self, ops: Any) -> Any:  # noqa: ANN401 - a double of any
        """Refuse batches of several puts."""
        return self.batch(ops)


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_a_failed_batch_writes_nothing_at_all(mode: str, tmp_path: Path) -> None:
    """Items, journal and result are one: all or none."""
    world = World("memory", tmp_path, is_async=mode == "async")
    world.store = _Breaking()
    call = world.make(Mem0)
    world.model.extend(said("a", "b", "c"))
    with pytest.raises(OSError, match="disk full"):
        await call("remember", "abc", config=ANN)
    assert world.store.search(("memories",)) == []
    assert world.store.search(("_agentmem",)) == []


async def test_without_inference_messages_are_stored_word_for_word(world: World) -> None:
    """System messages are left out, and no model is needed."""
    call = world.make(Mem0, infer=False, model=None)
    messages = [SystemMessage("be kind"), HumanMessage("I like tea"), AIMessage("Noted!")]
    await call("remember", messages, config=ANN)
    assert world.live(*FACTS) == ["I like tea", "Noted!"]
    assert world.named("model_called") == []


@pytest.mark.parametrize(
    ("given", "calls"),
    [
        ({"mode": "additive"}, 1),
        ({"preset": "reference_v2"}, 1),
        ({"mode": "crud"}, 2),
        ({"preset": "reference_v1"}, 2),
        ({}, 2),
        ({"mode": "crud", "decide": "per_fact"}, 4),
        ({"preset": "paper"}, 4),
    ],
)
async def test_calls_are_as_the_paper_and_its_codes_make_them(
    world: World, given: dict[str, Any], calls: int
) -> None:
    """Three facts that all have candidates cost what each algorithm says."""
    call = world.make(Mem0, **given)
    world.model.extend(said("aaa"))
    await call("remember", "a", config=ANN)
    assert len(world.model.prompts) == 1
    world.model.extend(said("bbb", "ccc", "ddd"), *[ops()] * 3)
    await call("remember", "bcd", config=ANN)
    assert len(world.model.prompts) == 1 + calls
    assert world.live(*FACTS) == ["aaa", "bbb", "ccc", "ddd"]


async def test_additive_links_what_the_model_relates(world: World) -> None:
    """Handles shown to the extraction become links; reference code parses and drops them."""
    call = world.make(Mem0, mode="additive")
    world.model.extend(said("Ann has a dog"))
    (first,) = await call("remember", "I have a dog", config=ANN)
    world.model.extend(said("The dog is called Rex", related=["0", "7"]))
    (second,) = await call("remember", "He is called Rex", config=ANN)
    related = [link.target for link in second.after.links if link.type == "related"]
    assert related == [first.key]


async def test_a_key_that_is_taken_is_never_overwritten(world: World) -> None:
    """After an update the old text may come back as a fact of its own."""
    call = world.make(Mem0, mode="crud")
    world.model.extend(
        said("Ann likes tea"),
        *(said("Ann likes milk"), ops(("UPDATE", "0", 0, "Ann likes milk"))),
        *(said("Ann likes tea"), ops()),
    )
    for text in ("tea", "milk", "tea again"):
        await call("remember", text, config=ANN)
    assert world.live(*FACTS) == ["Ann likes milk", "Ann likes tea"]


async def test_without_a_model_turns_are_kept_and_recalled(world: World) -> None:
    """Nothing poses as a model; the words are there for later."""
    call = world.make(Mem0, model=None)
    (op,) = await call("remember", "I like tea", config=ANN)
    assert op.event == "ADD"
    assert world.live("memories", "ann", "mem0", "turns") == ["I like tea"]
    assert world.live(*FACTS) == []
    assert len(world.named("no_model_configured")) == 1
    assert [e.content for e in (await call("recall", "tea", config=ANN)).items] == ["I like tea"]


@pytest.mark.parametrize(
    "request_text",
    ["Don't remember this: my PIN is 1234", "不要记住我的密码1234", "off the record, 1234"],
)
async def test_what_shall_not_be_remembered_is_neither_shown_nor_stored(
    world: World, request_text: str
) -> None:
    """The request takes its own message and the answer out."""
    call = world.make(Mem0)
    messages = [
        HumanMessage("I like tea"),
        HumanMessage(request_text),
        AIMessage("OK, 1234 is forgotten"),
    ]
    world.model.extend(said("Ann likes tea"))
    await call("remember", messages, config=ANN)
    assert "1234" not in world.model.prompt()
    assert world.live(*MESSAGES) == ["I like tea"]


async def test_a_bare_request_takes_back_what_was_said_before_it(world: World) -> None:
    """The speaker's last message and the answer to it go too; earlier ones stay."""
    call = world.make(Mem0)
    messages = [
        HumanMessage("I like tea"),
        HumanMessage("My PIN is 1234"),
        AIMessage("1234, noted"),
        HumanMessage("Please don't remember that."),
    ]
    world.model.extend(said("Ann likes tea"))
    await call("remember", messages, config=ANN)
    assert "1234" not in world.model.prompt()
    assert world.live(*MESSAGES) == ["I like tea"]


async def test_redaction_comes_before_model_and_store(world: World) -> None:
    """The hook sees what goes in and what the model writes."""
    call = world.make(Mem0, redact=lambda text: text.replace("4242", "[card]"))
    world.model.extend(said("Ann pays with 4242", "Ann pays by card"))
    await call("remember", "My card is 4242", config=ANN)
    assert "4242" not in world.model.prompt()
    assert world.live(*FACTS) == ["Ann pays by card", "Ann pays with [card]"]
    assert world.live(*MESSAGES) == ["My card is [card]"]


async def test_the_journal_knows_message_model_and_prompt(world: World) -> None:
    """Why do you remember this? The history tells, and the change can be undone."""
    call = world.make(Mem0)
    world.model.extend(said("Ann likes tea"))
    await call("remember", [HumanMessage("tea", id="m7")], config=ANN)
    (found,) = (await call("recall", "tea", config=ANN)).items
    (entry,) = await call("history", found, config=ANN)
    assert entry.cause.message_ids == ("m7",)
    assert entry.cause.model == "scripted"
    assert entry.cause.thread_id == "t1"
    assert len(entry.cause.prompt_hash or "") == 64
    await call("undo", found, config=ANN)
    assert (await call("recall", "tea", config=ANN)).items == []


async def test_the_ring_buffer_holds_the_last_messages_only(world: World) -> None:
    """Older ones are context of earlier extractions and go."""
    call = world.make(Mem0, recent_messages=2)
    world.model.extend(*[said()] * 3)
    for number in range(3):
        await call("remember", f"message {number}", config=ANN)
        world.clock.move(60)
    assert world.live(*MESSAGES) == ["message 1", "message 2"]
    assert "message 1" in world.model.prompt()


async def test_earlier_messages_are_shown_within_a_budget(world: World) -> None:
    """The newest stay, and one that is too long alone is passed over."""
    call = world.make(Mem0, recent_tokens=6)
    world.model.extend(*[said()] * 4)
    for text in ("oldest thing", "word " * 50, "newer thing"):
        await call("remember", text, config=ANN)
        world.clock.move(60)
    await call("remember", "now", config=ANN)
    earlier = world.model.prompt().partition("New messages:")[0]
    assert "newer thing" in earlier
    assert "oldest thing" in earlier
    assert "word word" not in earlier


async def test_a_target_changed_meanwhile_is_decided_again_once(world: World) -> None:
    """The second decision sees the other writer's text."""
    call = world.make(Mem0, mode="crud")
    world.model.extend(said("Ann likes tea"))
    await call("remember", "tea", config=ANN)
    replies = [
        said("Ann likes green tea"),
        ops(("UPDATE", "0", 0, "Ann likes green tea")),
        ops(("UPDATE", "0", 0, "Ann likes green and black tea")),
    ]

    def answer(prompt: str) -> Any:  # noqa: ANN401 - a double of any
        if "New facts" in prompt and len(replies) == 2:
            (item,) = world.store.search(FACTS)
            value = {**item.value, "content": "Ann likes black tea", "version": 2}
            world.store.put(FACTS, item.key, value, index=["content"])
        return replies.pop(0)

    world.memory.model = Scripted(answer)
    await call("remember", "green tea", config=ANN)
    assert world.live(*FACTS) == ["Ann likes green and black tea"]
    assert "black tea" in world.memory.model.prompt()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_many_threads_remembering_one_fact_leave_one_item(kind: str, tmp_path: Path) -> None:
    """Deterministic keys and conditional writes: no double, no locked file (#7196, #3184)."""
    store = make_store(kind, tmp_path)
    model = Scripted(lambda prompt: ops() if "New facts" in prompt else said("Ann likes tea"))
    memory = Mem0(model=model, store=store)
    failures: list[Exception] = []

    def work() -> None:
        try:
            memory.remember("tea", config=ANN)
            memory.recall("tea", config=ANN)
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(store.search(FACTS, limit=100)) == 1


async def test_many_tasks_remembering_one_fact_leave_one_item(tmp_path: Path) -> None:
    """The same within one event loop."""
    store = make_store("sqlite", tmp_path)
    model = Scripted(lambda prompt: ops() if "New facts" in prompt else said("Ann likes tea"))
    memory = Mem0(model=model, store=store)
    await asyncio.gather(*(memory.aremember("tea", config=ANN) for _ in range(20)))
    assert len(store.search(FACTS, limit=100)) == 1


async def test_the_graph_does_what_the_call_does(world: World) -> None:
    """Every step is a node, and the stored facts are the same."""
    world.make(Mem0)
    graph = world.memory.remember_graph()
    nodes = set(graph.get_graph().nodes)
    assert {"load_context", "extract", "retrieve", "decide", "validate", "apply"} <= nodes
    world.model.extend(said("Ann likes tea"), said("Ann hates tea"), ops(("DELETE", "0", 0)))
    for text in ("I like tea", "I hate tea"):
        given = {"messages": [HumanMessage(text)]}
        if world.is_async:
            out = await graph.ainvoke(given, ANN)
        else:
            out = graph.invoke(given, ANN)
    assert world.live(*FACTS) == ["Ann hates tea"]
    assert [op["event"] for op in out["memory_operations"]] == ["ADD", "DELETE"]


def test_a_wrong_parameter_is_refused() -> None:
    """The message names what may be chosen."""
    with pytest.raises(ConfigurationError, match="supersede"):
        Mem0(mode="overwrite")
    with pytest.raises(ConfigurationError, match="Unknown parameter"):
        Mem0().recall("x", config=ANN, colour="red")
