"""`RAGMemory`: every promise of its docstrings, on every kind of store, sync and async."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.store.base import BaseStore

from langchain_agentmem.errors import ConfigurationError, MemoryNotFoundError
from langchain_agentmem.items import MemoryItem, MemoryOperation
from langchain_agentmem.memories import EVERYTHING, RAGMemory, Recall
from langchain_agentmem.rendering import render_memories
from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.surfaces.tools import create_manage_memory_tool
from tests.unit_tests.floor import START, Calls, Clock, everything
from tests.unit_tests.memories.conftest import Make

ANN: Any = {"configurable": {"user_id": "ann", "thread_id": "t1"}}
BOB: Any = {"configurable": {"user_id": "bob", "thread_id": "t1"}}
HOME = ("memories", "ann")
TURNS = (*HOME, "rag", "turns")
TALK = [
    "My parrot is called Zanzibar.",
    "I moved to Lisbon in spring.",
    "Every morning I drink green tea.",
    "The violin lesson is on Friday.",
    "My sister works at the harbor.",
]


def _texts(recall: Recall) -> list[str]:
    """Return the texts of what was recalled."""
    return [each.text for each in recall.items]


def _said(text: str, when: datetime | None = None, **more: Any) -> HumanMessage:  # noqa: ANN401
    """Return a message of the user, said at a time."""
    told = {"observed_at": when.isoformat()} if when else {}
    return HumanMessage(text, additional_kwargs=told, **more)


def test_what_was_said_is_recalled(memory: Calls) -> None:
    """The best match of a question comes first, and the text marks it as data."""
    for text in TALK:
        memory.remember(text, config=ANN)
    found = memory.recall("What is the parrot called?", config=ANN)
    assert _texts(found)[0] == TALK[0]
    assert TALK[0] in found.text
    assert found.text.startswith("<memories>")
    assert found.tokens > 0
    first = found.items[0]
    assert (first.namespace, first.observed_at) == (TURNS, START)
    assert first.item.attributed_to == "user"


def test_nothing_remembered_is_nothing_recalled(memory: Calls) -> None:
    """An empty scope gives an empty text, not an empty frame."""
    assert memory.recall("anything", config=ANN) == Recall()


def test_a_conversation_asks_with_its_last_user_message(memory: Calls) -> None:
    """Messages instead of a query: what the user said last is the question."""
    memory.remember(TALK[0], config=ANN)
    memory.remember(TALK[1], config=ANN)
    talk = [("user", "hello"), ("ai", "hi"), ("user", "Which parrot?"), ("ai", "Let me see.")]
    assert _texts(memory.recall(talk, config=ANN))[0] == TALK[0]


def test_an_empty_query_lists_the_newest(memory: Calls, clock: Clock) -> None:
    """Without a question the newest come first."""
    for text in TALK[:3]:
        memory.remember(text, config=ANN)
        clock.move(minutes=1)
    assert _texts(memory.recall("", config=ANN, limit=2)) == [TALK[2], TALK[1]]


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_limit_is_the_most_that_is_recalled(memory: Calls, limit: int) -> None:
    """Zero is a limit too: nothing is recalled."""
    memory.remember([("user", f"tea number {n}") for n in range(5)], config=ANN)
    found = memory.recall("tea", config=ANN, limit=limit)
    assert len(found.items) == limit
    assert bool(found.text) == bool(limit)


@pytest.mark.parametrize("limit", [-1, True])
def test_limit_that_is_no_number_of_memories_is_refused(memory: Calls, limit: int) -> None:
    """A negative limit is a mistake, not a request for nothing."""
    with pytest.raises(ValueError, match="limit"):
        memory.recall("tea", config=ANN, limit=limit)


def test_the_text_stays_in_its_budget_of_tokens(make: Make) -> None:
    """Whole memories are left out, the worst first, in items and text alike."""
    memory = make(max_tokens=60)
    memory.remember([("user", f"tea number {n} " + "leaf " * 15) for n in range(6)], config=ANN)
    found = memory.recall("tea number 3", config=ANN)
    assert 0 < len(found.items) < 6
    assert found.text == render_memories(found.items)


def test_remembering_again_changes_nothing(memory: Calls, store: BaseStore) -> None:
    """The same messages twice, as a retried request sends them, are stored once."""
    talk = [_said(text, id=f"m{n}") for n, text in enumerate(TALK)]
    events = [op.event for op in memory.remember(talk, config=ANN)]
    before = everything(store)
    again = memory.remember(talk, config=ANN)
    assert events == ["ADD"] * 5
    assert [(op.event, op.status) for op in again] == [("NOOP", "proposed")] * 5
    assert everything(store) == before


def test_messages_without_ids_are_idempotent_at_one_time(memory: Calls, clock: Clock) -> None:
    """Without ids the same words at the same time are the same turn; later they are new."""
    memory.remember("Yes.", config=ANN)
    assert [op.event for op in memory.remember("Yes.", config=ANN)] == ["NOOP"]
    clock.move(seconds=1)
    assert [op.event for op in memory.remember("Yes.", config=ANN)] == ["ADD"]


def test_the_same_words_twice_in_one_call_are_two_turns(memory: Calls) -> None:
    """A person may say the same thing twice."""
    operations = memory.remember([("user", "Yes."), ("ai", "Sure?"), ("user", "Yes.")], config=ANN)
    assert [op.event for op in operations] == ["ADD"] * 3


def test_an_edited_message_is_a_new_version(memory: Calls) -> None:
    """The same id with other words updates the turn; its first text is in the history."""
    memory.remember([_said("I live in Oslo.", id="m1")], config=ANN)
    (op,) = memory.remember([_said("I live in Bergen.", id="m1")], config=ANN)
    assert (op.event, op.after.version) == ("UPDATE", 2)
    (hit,) = memory.recall("Where do I live?", config=ANN).items
    assert hit.text == "I live in Bergen."
    history = memory.history(hit, config=ANN)
    assert [entry.event for entry in history] == ["ADD", "UPDATE"]
    assert history[1].before.text == "I live in Oslo."
    assert history[0].cause.message_ids == ("m1",)
    memory.undo(hit, config=ANN)
    assert _texts(memory.recall("Where do I live?", config=ANN)) == ["I live in Oslo."]


def test_only_what_people_and_the_assistant_say_is_stored(memory: Calls) -> None:
    """System messages, tool results, empty messages and our own recalled block are not turns."""
    block = memory.remember("My parrot is Zanzibar.", config=ANN) and memory.recall(
        "parrot", config=ANN
    )
    talk = [
        SystemMessage("Be kind."),
        SystemMessage(block.text),
        HumanMessage(block.text),
        HumanMessage("  "),
        AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}]),
        ToolMessage("42", tool_call_id="c"),
        AIMessage("It is 42."),
        HumanMessage("Thanks.", name="Ann"),
    ]
    operations = memory.remember(talk, config=ANN)
    kept = [(op.after.text, op.after.attributed_to) for op in operations]
    assert kept == [("It is 42.", "assistant"), ("Thanks.", "Ann")]


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_text_is_refused(memory: Calls, store: BaseStore, text: str) -> None:
    """There is nothing to remember in it."""
    with pytest.raises(ValueError, match="nothing to remember"):
        memory.remember(text, config=ANN)
    assert everything(store) == {}


def test_a_conversation_without_turns_remembers_nothing(memory: Calls, store: BaseStore) -> None:
    """No message, or none that says something, is no error."""
    assert memory.remember([], config=ANN) == []
    assert memory.remember([SystemMessage("Be kind.")], config=ANN) == []
    assert everything(store) == {}


@pytest.mark.parametrize(
    "text", ["a\0b", "🎉👩‍👩‍👧 e\u0301", "我每天早上喝绿茶。", "مرحبا", "x" * 20_000, "a\r\n\tb "]
)
def test_text_is_stored_byte_identical(memory: Calls, text: str) -> None:
    """No normalizer touches what was said."""
    memory.remember([_said(text)], config=ANN)
    (hit,) = memory.recall("", config=ANN).items if len(text) < 100 else [None]
    (op,) = memory.remember([_said(text)], config=ANN)
    assert hit is None or hit.content == text
    assert op.before.content == text


@pytest.mark.parametrize("query", ["绿茶", "早上"])
def test_chinese_is_found_by_word(memory: Calls, query: str) -> None:
    """Scripts without spaces are searchable."""
    memory.remember([("user", "我每天早上喝绿茶。"), ("user", "他住在上海。")], config=ANN)
    assert _texts(memory.recall(query, config=ANN))[0] == "我每天早上喝绿茶。"


def test_a_lone_surrogate_is_refused_and_nothing_written(memory: Calls, store: BaseStore) -> None:
    """What no file can hold raises, also where it is only one message of several."""
    with pytest.raises(ValueError, match="surrogate"):
        memory.remember([("user", "fine"), ("user", "\ud800")], config=ANN)
    assert everything(store) == {}


@pytest.mark.parametrize(
    "query", ["\ud800", "a\0b", "'; DROP TABLE x; --", '"*" OR NEAR(', "😀", "?"]
)
def test_any_query_is_only_text(memory: Calls, query: str) -> None:
    """No character of a query is syntax, and none makes recall fail."""
    memory.remember(TALK[0], config=ANN)
    assert len(memory.recall(query, config=ANN).items) <= 1


def test_users_do_not_meet(memory: Calls) -> None:
    """What Ann said is nowhere in Bob's recall."""
    memory.remember(TALK[0], config=ANN)
    assert memory.recall("parrot Zanzibar", config=BOB) == Recall()
    assert memory.recall("", config=BOB) == Recall()


def test_a_missing_user_is_an_error(memory: Calls) -> None:
    """Without a user there is no scope to fall back to."""
    for call in (memory.recall, memory.remember, memory.forget):
        with pytest.raises(ConfigurationError, match="user_id"):
            call("x", config={"configurable": {"thread_id": "t"}})


def test_context_names_the_user_before_config(memory: Calls) -> None:
    """The context of a call wins over its config."""
    memory.remember(TALK[0], config=BOB, context={"user_id": "ann"})
    assert _texts(memory.recall("parrot", config=ANN)) == [TALK[0]]
    assert memory.recall("parrot", config=BOB) == Recall()


def test_further_levels_are_read_and_named(make: Make) -> None:
    """A listed level is read and each hit says where it lies; it is never written."""
    team: Any = {"configurable": {"user_id": "ann", "org": "acme"}}
    shared = make(namespace=("org", "{org}"))
    own = make(read_namespaces=[("org", "{org}")])
    shared.remember("The office door code is 4711.", config=team)
    own.remember("My locker code is 1234.", config=team)
    found = own.recall("What is the code?", config=team)
    places = {each.text: each.namespace[:2] for each in found.items}
    assert places == {
        "The office door code is 4711.": ("org", "acme"),
        "My locker code is 1234.": ("memories", "ann"),
    }
    assert _texts(shared.recall("locker code", config=team)) == ["The office door code is 4711."]


def test_a_level_that_is_not_listed_is_never_read(make: Make) -> None:
    """Neither a deeper, nor a higher, nor a neighboring namespace is recalled."""
    for template in (("memories",), ("memories", "ann", "deeper"), ("memories", "ann2")):
        make(namespace=template).remember("secret parrot", config=ANN)
    assert make().recall("secret parrot", config=ANN) == Recall()


def test_what_lies_bare_in_the_namespace_is_recalled(memory: Calls, store: BaseStore) -> None:
    """Tools, LangMem's and ours, write there; their items are found with the turns."""
    store.put(HOME, "lm", {"content": "Ann is allergic to peanuts."})
    manager = {"kind": "Memory", "content": {"content": "Ann plays the cello."}}
    store.put(HOME, "manager", manager)
    item = MemoryItem(content="Ann likes peanuts no more.")
    store.put(HOME, "ours", item.to_value(), index=item.index_paths)
    memory.remember(TALK[1], config=ANN)
    found = memory.recall("peanuts", config=ANN)
    assert set(_texts(found)[:2]) == {"Ann is allergic to peanuts.", "Ann likes peanuts no more."}
    assert _texts(memory.recall("cello", config=ANN))[0] == "Ann plays the cello."


def test_expired_memories_are_not_recalled(memory: Calls, store: BaseStore, clock: Clock) -> None:
    """Expiry is decided by the injected clock, whatever the store does."""
    item = MemoryItem(content="The parking code is 99.", expires_at=START + timedelta(hours=1))
    store.put(HOME, "k", item.to_value(), index=item.index_paths)
    assert len(memory.recall("parking code", config=ANN).items) == 1
    clock.move(hours=1)
    assert memory.recall("parking code", config=ANN) == Recall()


def test_validity_bounds_what_is_recalled(memory: Calls, store: BaseStore) -> None:
    """A memory that held only until before now, or holds only later, is not recalled now."""
    day = timedelta(days=1)
    past = MemoryItem(content="code was 1", valid_to=START - day, observed_at=START - 9 * day)
    future = MemoryItem(content="code will be 2", valid_from=START + day, observed_at=START - day)
    for key, item in (("past", past), ("future", future)):
        store.put(HOME, key, item.to_value(), index=item.index_paths)
    assert memory.recall("code", config=ANN) == Recall()
    assert _texts(memory.recall("code", config=ANN, as_of=START - 2 * day)) == ["code was 1"]


def test_as_of_recalls_what_was_known_then(memory: Calls, clock: Clock) -> None:
    """Later turns are unknown, and what was closed since is seen as it was."""
    memory.remember("I live in Oslo.", config=ANN)
    clock.move(days=2)
    memory.remember("I live in Bergen.", config=ANN)
    then = START + timedelta(days=1)
    assert _texts(memory.recall("Where do I live?", config=ANN, as_of=then)) == ["I live in Oslo."]
    assert len(memory.recall("Where do I live?", config=ANN).items) == 2
    hits = memory.recall("Oslo", config=ANN).items
    memory.undo(next(hit for hit in hits if "Oslo" in hit.text), config=ANN)
    assert _texts(memory.recall("Where do I live?", config=ANN)) == ["I live in Bergen."]
    assert _texts(memory.recall("Where do I live?", config=ANN, as_of=then)) == ["I live in Oslo."]


def test_as_of_shows_the_words_of_then_and_not_those_of_a_later_edit(
    memory: Calls, store: BaseStore, clock: Clock
) -> None:
    """A changed memory is found by its earlier words, also after it was deleted; or not at all."""
    manage = create_manage_memory_tool(HOME, store=store, clock=clock)
    said = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", manage.invoke({"content": "I live in Oslo."}))
    assert said
    clock.move(days=2)
    then = clock() - timedelta(days=1)
    manage.invoke({"content": "My home is Rome.", "action": "update", "id": said[0]})
    assert _texts(memory.recall("home", config=ANN)) == ["My home is Rome."]
    assert _texts(memory.recall("Oslo", config=ANN, as_of=then)) == ["I live in Oslo."]
    clock.move(days=2)
    manage.invoke({"action": "delete", "id": said[0]})
    assert memory.recall("Oslo", config=ANN) == Recall()
    assert _texts(memory.recall("Oslo", config=ANN, as_of=then)) == ["I live in Oslo."]
    between = clock() - timedelta(days=1)
    assert _texts(memory.recall("Rome", config=ANN, as_of=between)) == ["My home is Rome."]
    assert memory.recall("Oslo", config=ANN, as_of=then - timedelta(days=9)) == Recall()


def test_as_of_shows_a_turn_as_it_was_first_imported(memory: Calls, clock: Clock) -> None:
    """An edit that was imported later is not what was known, whenever the turn was said."""
    long_ago = START - timedelta(days=90)
    for text in ("I live in Oslo.", "I live in Rome."):
        told = {"observed_at": long_ago}
        memory.remember([HumanMessage(text, id="m1", additional_kwargs=told)], config=ANN)
        clock.move(days=1)
    then = long_ago + timedelta(days=1)
    assert _texts(memory.recall("live", config=ANN, as_of=then)) == ["I live in Oslo."]
    assert _texts(memory.recall("live", config=ANN)) == ["I live in Rome."]


def test_as_of_without_zone_is_refused(memory: Calls) -> None:
    """A naive time could mean any of 24 hours."""
    with pytest.raises(ValueError, match="time zone"):
        memory.recall("x", config=ANN, as_of=START.replace(tzinfo=None))


def test_neighbors_come_with_their_hit(make: Make) -> None:
    """The turns before and after a hit follow it, those of other sessions never."""
    memory = make(neighbors=1)
    memory.remember([("user", text) for text in TALK], config=ANN)
    other = {"configurable": {"user_id": "ann", "thread_id": "t2"}}
    memory.remember("Something else entirely.", config=other)
    found = memory.recall("green tea", config=ANN, limit=1)
    assert _texts(found) == [TALK[2], TALK[1], TALK[3]]
    assert "neighbor" in found.items[1].parts


@pytest.mark.parametrize("given", ["beside", "first line"])
def test_a_document_that_is_named_in_another_follows_it(make: Make, given: str) -> None:
    """A title leads from one document to the next, whether told apart or the first line."""
    documents = {
        "Intrepid Farm": "A farm in Adair County of the state of Iowa, in the Midwest.",
        "Ohio": "A state of the United States, bordering Kentucky.",
        "Iowa": "Bordered by two rivers; its capital is Des Moines.",
    }
    said = [
        HumanMessage(text, additional_kwargs={"title": title, "session": title})
        if given == "beside"
        else HumanMessage(f"{title}\n{text}", additional_kwargs={"session": title})
        for title, text in documents.items()
    ]
    memory = make()
    memory.remember(said, config=ANN)
    found = memory.recall("In which state is Intrepid Farm?", config=ANN, limit=2).items
    assert [each.parts.get("title", 0.0) > 0 for each in found] == [False, True]
    assert "Des Moines" in found[1].text


def test_day_and_importer_are_no_words_of_a_document(make: Make) -> None:
    """A document is searched by its title and words; a turn by its day and speaker, too."""
    memory = make()
    paper = HumanMessage("On whales.", name="Ann", additional_kwargs={"title": "Moby"})
    memory.remember([paper, _said("Hello.", START, name="Ann")], config=ANN)
    found = memory.recall("", config=ANN).items
    document, turn = sorted(found, key=lambda each: each.text == "Hello.")
    assert document.item.search_text == "Moby\nOn whales."
    assert str(turn.item.search_text).endswith("Ann: Hello.")


def test_edited_document_takes_its_new_title_and_speaker(make: Make) -> None:
    """What the index says of an edited message, the memory says, too; a new title is an edit."""
    memory = make()

    def tell(text: str, title: str, name: str) -> list[MemoryOperation]:
        told = HumanMessage(text, id="1", name=name, additional_kwargs={"title": title})
        return list(memory.remember([told], config=ANN))

    tell("It is wet.", "Warsaw", "Bob")
    assert [op.event for op in tell("It is wet and cold.", "Zagreb", "Carol")] == ["UPDATE"]
    (found,) = memory.recall("Zagreb", config=ANN).items
    assert (found.metadata["title"], found.item.attributed_to) == ("Zagreb", "Carol")
    assert [op.event for op in tell("It is wet and cold.", "Split", "Carol")] == ["UPDATE"]
    (found,) = memory.recall("Split", config=ANN).items
    assert found.item.search_text == "Split\nIt is wet and cold."
    assert [op.event for op in tell("It is wet and cold.", "Split", "Carol")] == ["NOOP"]


def test_limit_beyond_the_pool_is_met(make: Make) -> None:
    """Whoever asks for more memories than are ranked by default gets them."""
    memory = make(pool=3, max_tokens=10_000)
    days = [START + timedelta(days=n) for n in range(8)]
    memory.remember([_said(f"A dog, number {n}.", day) for n, day in enumerate(days)], config=ANN)
    assert len(memory.recall("dog", config=ANN, limit=8).items) == 8


def test_a_document_is_a_session_of_its_own(make: Make) -> None:
    """Documents that are imported on one day are no neighbors of each other."""
    memory = make(neighbors=1)
    texts = {"Whales": "They sing.", "Ships": "They float.", "Songs": "They end."}
    said = [HumanMessage(text, additional_kwargs={"title": name}) for name, text in texts.items()]
    memory.remember(said, config=ANN)
    assert _texts(memory.recall("Ships float", config=ANN, limit=1)) == ["They float."]


class _Meaning(Embeddings):
    """A model of any script for which only one text means what is asked."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts."""
        return [[1.0, 0.0] if "奥斯陆" in text else [0.0, 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return [1.0, 0.0] if text else [0.0, 0.0]


def test_similarity_weighs_what_the_embedding_model_deserves(tmp_path: Path) -> None:
    """A model that knows every script votes on Chinese, the bundled one is silent on it."""
    shares = {}
    own: Any = {"embed": _Meaning(), "dims": 2, "mode": "hybrid"}
    stores = {
        "own": FaissSqliteStore(tmp_path / "own.db", index=own),
        "bundled": FaissSqliteStore(tmp_path / "bundled.db"),
    }
    for name, store in stores.items():
        with store:
            memory = RAGMemory(store=store)
            memory.remember([("user", "她住在奥斯陆。"), ("user", "我养了一条狗。")], config=ANN)
            best = memory.recall("家在哪里", config=ANN, limit=1).items[0]
        shares[name] = best.parts.get("dense", 0.0)
    assert shares["own"] > 0
    assert shares["bundled"] == 0


def test_a_session_is_a_thread_on_a_day(memory: Calls, store: BaseStore, clock: Clock) -> None:
    """The next day and another thread begin a session of their own, each with all its turns."""
    memory.remember([("user", "one"), ("ai", "two")], config=ANN)
    clock.move(days=1)
    memory.remember("three", config=ANN)
    memory.remember("four", config={"configurable": {"user_id": "ann", "thread_id": "t2"}})
    records = [each.value["content"] for each in store.search((*HOME, "rag", "sessions"))]
    assert sorted(len(record["turns"]) for record in records) == [1, 1, 2]
    assert {record["thread"] for record in records} == {"t1", "t2"}


def test_forgetting_a_key_erases_it_everywhere(memory: Calls, store: BaseStore) -> None:
    """Neither item, journal nor session keeps a trace; the other turns stay."""
    memory.remember([("user", text) for text in TALK], config=ANN)
    hit = memory.recall("parrot", config=ANN).items[0]
    (op,) = memory.forget(hit.key, config=ANN)
    assert (op.event, op.key, op.before, op.after) == ("DELETE", hit.key, None, None)
    left = everything(store)
    assert not [place for place, value in left.items() if hit.key in f"{place} {value}"]
    assert len([place for place in left if place[0] == TURNS]) == 4
    assert _texts(memory.recall("parrot", config=ANN, limit=1)) != [TALK[0]]
    with pytest.raises(MemoryNotFoundError):
        memory.history(hit, config=ANN)


def test_forgetting_by_filter_finds_closed_memories_too(memory: Calls, store: BaseStore) -> None:
    """A filter on the stored values selects, closed ones included."""
    memory.remember([_said("a", name="Ann"), _said("b", name="Ann"), _said("c")], config=ANN)
    memory.undo(next(h for h in memory.recall("a", config=ANN).items if h.text == "a"), config=ANN)
    erased = memory.forget({"attributed_to": "Ann"}, config=ANN)
    assert len(erased) == 2
    assert [each.value["content"] for each in store.search(TURNS)] == ["c"]


def test_forgetting_everything_leaves_only_others(memory: Calls, store: BaseStore) -> None:
    """A whole scope is gone, bare items included; another user's is untouched."""
    memory.remember([("user", text) for text in TALK], config=ANN)
    store.put(HOME, "tool", {"content": "x"})
    memory.undo(memory.recall("parrot", config=ANN).items[0], config=ANN)
    memory.remember("Bob's own.", config=BOB)
    before = {place for place in everything(store) if "bob" in place[0]}
    erased = memory.forget(EVERYTHING, config=ANN)
    assert len([op for op in erased if op.namespace == TURNS]) == 5
    assert set(everything(store)) == before
    assert memory.recall("", config=ANN) == Recall()


def test_forgetting_all_turns_of_a_speaker_erases_the_name(memory: Calls, store: BaseStore) -> None:
    """A name is personal too: it goes with the last turn of its speaker, others' names stay."""
    talk = [_said("a", name="Zoe"), _said("b", name="Max"), _said("c")]
    keys = [op.key for op in memory.remember(talk, config=ANN)]
    memory.forget(keys[0], config=ANN)
    left = repr(everything(store))
    assert "Zoe" not in left
    assert "Max" in left
    memory.forget(keys[1:], config=ANN)
    assert everything(store) == {}


def test_an_empty_filter_is_refused(memory: Calls) -> None:
    """A forgotten condition must not erase a scope."""
    with pytest.raises(ValueError, match="EVERYTHING"):
        memory.forget({}, config=ANN)


def test_another_user_s_memory_is_neither_shown_nor_undone(memory: Calls) -> None:
    """A memory value from elsewhere does not open its scope."""
    memory.remember(TALK[0], config=ANN)
    (hit,) = memory.recall("parrot", config=ANN).items
    for call in (memory.history, memory.undo):
        with pytest.raises(ConfigurationError, match="outside of the scope"):
            call(hit, config=BOB)
    assert memory.forget(hit.key, config=BOB) == []
    assert memory.recall("parrot", config=ANN).items


def test_a_call_may_set_parameters(memory: Calls) -> None:
    """The config of a call overrides a parameter by its name."""
    memory.remember([("user", f"tea number {n}") for n in range(5)], config=ANN)
    config: Any = {"configurable": {"user_id": "ann", "limit": 2}}
    assert len(memory.recall("tea", config=config).items) == 2


def test_operations_come_back_from_their_json(memory: Calls) -> None:
    """What `remember` returns is the same as what the graph's state holds."""
    (op,) = memory.remember("a", config=ANN)
    assert MemoryOperation.from_dict(op.to_dict()) == op


@pytest.mark.parametrize(
    "parameters",
    [
        {"limit": -1},
        {"max_tokens": 0},
        {"neighbors": -1},
        {"pool": 0},
        {"limits": 3},
        {"preset": "x"},
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any]) -> None:
    """A parameter that makes no sense, or that does not exist, is told at once."""
    with pytest.raises(ConfigurationError):
        RAGMemory(**parameters)


def test_no_store_is_an_error() -> None:
    """Outside of a graph a store must be given, and the message says how."""
    with pytest.raises(ConfigurationError, match="store="):
        RAGMemory().recall("x", config=ANN)


def test_a_store_of_another_kind_is_refused() -> None:
    """A path or a vector store in place of a store is told at once."""
    with pytest.raises(ConfigurationError, match="BaseStore"):
        RAGMemory(store="memory.sqlite")  # type: ignore[arg-type]
