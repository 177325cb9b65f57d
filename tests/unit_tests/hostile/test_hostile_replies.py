"""A thousand hostile replies: the store stays what the rules say, and each of them is reported."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, PutOp

from langchain_agentmem import FaissSqliteStore
from langchain_agentmem.items import MemoryItem
from langchain_agentmem.memories import AMem, LangMem, Mem0
from langchain_agentmem.scopes import closed
from langchain_agentmem.steps.facts import key_of
from tests.unit_tests.hostile import replies
from tests.unit_tests.hostile.references import (
    Expected,
    Notes,
    after_amem,
    after_langmem,
    after_mem0,
    handle_of,
    text_of,
)
from tests.unit_tests.scripted import STORES, Scripted, Table, make_store, watch

CASES = {"mem0": 334, "a_mem": 333, "langmem": 333}
"""A thousand replies on each store."""
KNOWN = ("Ann lives in Oslo", "Ann is a nurse", "Ann has a cat called Mio")
SAID = "I moved to Rome last week."
REPORTS = {"reply_rejected", "operation_rejected", "link_dropped", "neighbour_updates_dropped"}


@dataclass
class Case:
    """One user of the shared store, whose model is hostile once."""

    number: int
    rng: random.Random
    store: BaseStore
    loop: asyncio.AbstractEventLoop
    events: list[dict[str, Any]] = field(default_factory=list)
    valid_and_wrong: bool = False
    is_read_as_empty: bool = False

    @property
    def home(self) -> tuple[str, ...]:
        """Namespace of the user."""
        return ("memories", f"u{self.number}")

    def seed(self, home: tuple[str, ...], **fields: Any) -> None:  # noqa: ANN401 - an item's fields
        """Store what is known."""
        self.store.batch(
            [
                PutOp(home, key_of(home, text), MemoryItem(content=text, **fields).to_value())
                for text in KNOWN
            ]
        )

    def remember(self, memory: Any) -> list[Any]:  # noqa: ANN401 - a memory
        """Remember one turn, sync or async; nothing may be raised."""
        watch(memory, self.events)
        config: Any = {"configurable": {"user_id": self.home[1]}}
        if self.number % 2:
            return self.loop.run_until_complete(memory.aremember(SAID, config=config))
        return memory.remember(SAID, config=config)  # type: ignore[no-any-return]

    def texts(self, home: tuple[str, ...]) -> Counter[str]:
        """Return the texts of one namespace."""
        found = self.store.search(home, limit=100_000)
        return Counter(str(one.value["content"]) for one in found if one.namespace == home)

    def is_reported(self, operations: list[Any]) -> bool:
        """Tell whether something told of the reply."""
        return bool(operations) or any(each["event"] in REPORTS for each in self.events)

    def check(self, home: tuple[str, ...], expected: Expected, operations: list[Any]) -> None:
        """Compare the store with the reference."""
        assert self.texts(home) == expected.live
        assert self.texts(closed(home)) == expected.closed
        assert self.is_reported(operations)
        if expected.rejected:
            assert sum(op.status == "rejected" for op in operations) == expected.rejected


def broken(case: Case, *names: str) -> Any:  # noqa: ANN401 - what a scripted model takes
    """Return a reply that no schema fits; a list of misfits is read as an empty list."""
    if case.rng.random() < 0.5:
        return replies.unreadable(case.rng)
    value = replies.wrong_types(case.rng, names)
    given = value.get(names[0]) if isinstance(value, dict) else value
    case.is_read_as_empty |= isinstance(given, list)
    return replies.in_some_form(case.rng, value)


def operation(case: Case, handles: list[str]) -> dict[str, Any]:
    """Return a decision that fits its schema and does harm."""
    rng = case.rng
    handle = rng.choice([*handles, *replies.FOREIGN, None, "[1]", 0, 7])
    return {
        "event": rng.choice(["ADD", "UPDATE", "DELETE", "DELETE", "NOOP"]),
        "handle": handle,
        "fact": rng.choice([0, 0, 1, 5, -1, None]),
        "text": rng.choice([None, replies.hostile_text(rng), replies.hostile_text(rng)]),
    }


def mem0_case(case: Case) -> None:
    """Make the extraction or the decision hostile."""
    home = (*case.home, "mem0", "facts")
    case.seed(home, kind="fact")
    attack = case.rng.choice(["broken facts", "broken decision", "wrong", "wrong", "delete all"])
    case.valid_and_wrong = attack in {"wrong", "delete all"}
    facts = [replies.hostile_text(case.rng) for _ in range(case.rng.randrange(1, 4))]
    honest = attack == "broken decision"
    facts = ["Ann lives in Rome"] if honest or attack == "delete all" else facts
    told: list[Any] = []
    shown: replies.Shown = replies.Shown()

    def answer(prompt: str) -> Any:  # noqa: ANN401 - what a scripted model takes
        if '"index"' not in prompt:
            if attack == "broken facts":
                return broken(case, "facts")
            found = [{"text": each, "attributed_to": "bob"} for each in facts]
            return replies.in_some_form(case.rng, {"facts": found})
        if honest:
            return broken(case, "operations")
        if not told:
            shown.rows = replies.shown_in(prompt, "handle").rows
            handles = list(shown.rows)
            told.extend(
                [{"event": "DELETE", "handle": each} for each in handles]
                if attack == "delete all"
                else [operation(case, handles) for _ in range(case.rng.randrange(8))]
            )
        return replies.in_some_form(case.rng, {"operations": told})

    operations = case.remember(Mem0(model=Scripted(answer), store=case.store))
    known = {handle: str(row["text"]) for handle, row in shown.rows.items()}
    unseen = [text for text in KNOWN if text not in known.values()]
    if case.is_read_as_empty:
        expected = Expected(Counter([*KNOWN, *(facts if honest else ())]))
    elif honest or attack == "broken facts":
        expected = Expected(Counter(KNOWN), rejected=1)
        assert case.texts((*case.home, "mem0", "turns")) == Counter([SAID])
    else:
        expected = after_mem0(known, facts, told)
        expected.live += Counter(unseen if known else KNOWN)
    case.check(home, expected, operations)


def langmem_case(case: Case) -> None:
    """Make the one reply hostile."""
    case.seed(case.home)
    deletes = case.rng.random() < 0.5
    attack = case.rng.choice(["broken", "wrong", "wrong", "delete all"])
    case.valid_and_wrong = attack != "broken"
    told: list[Any] = []
    shown = replies.Shown()

    def proposal(handles: list[str]) -> dict[str, Any]:
        contents: list[Any] = [
            replies.hostile_text(case.rng),
            replies.hostile_text(case.rng),
            None,
            [],
            {},
        ]
        return {
            "action": case.rng.choice(["create", "update", "delete"]),
            "id": case.rng.choice([*handles, *replies.FOREIGN, None, "[1]", 0, 7]),
            "content": case.rng.choice(contents),
            "kind": case.rng.choice([None, "text", "../bob", "\ud800"]),
        }

    def answer(prompt: str) -> Any:  # noqa: ANN401 - what a scripted model takes
        if attack == "broken":
            return broken(case, "memories")
        if not told:
            shown.rows = replies.shown_in(prompt, "id").rows
            handles = list(shown.rows)
            told.extend(
                [{"action": "delete", "id": each} for each in handles]
                if attack == "delete all"
                else [proposal(handles) for _ in range(case.rng.randrange(1, 8))]
            )
        return replies.in_some_form(case.rng, {"memories": told})

    memory = LangMem(model=Scripted(answer), store=case.store, enable_deletes=deletes)
    operations = case.remember(memory)
    known = {handle: str(row["content"]) for handle, row in shown.rows.items()}
    if attack == "broken":
        expected = Expected(Counter(KNOWN), rejected=0 if case.is_read_as_empty else 1)
        is_lost = not case.is_read_as_empty
    else:
        expected = after_langmem(known, told, deletes=deletes)
        permitted = [each for each in told if deletes or each["action"] != "delete"]
        is_lost = bool(permitted) and expected.rejected == len(told)
    kept = Counter([SAID] if is_lost else [])
    assert case.texts((*case.home, "langmem", "turns")) == kept
    case.check(case.home, expected, operations)


def evolution(case: Case) -> dict[str, Any]:
    """Return an evolution that fits its schema and does harm."""
    rng = case.rng

    def texts(most: int) -> list[str]:
        return [replies.hostile_text(rng) for _ in range(rng.randrange(most))]

    return {
        "should_evolve": rng.random() < 0.9,
        "actions": rng.choice([["strengthen"], ["update_neighbor"], ["strengthen"] * 2, ["drop"]])
        + rng.choice([[], ["update_neighbor"]]),
        "suggested_connections": rng.choices([*replies.FOREIGN, "1", "2", "[3]", "0"], k=5),
        "tags_to_update": texts(4),
        "new_context_neighborhood": texts(7),
        "new_tags_neighborhood": [texts(3) for _ in range(rng.randrange(7))],
    }


def amem_case(case: Case) -> None:
    """Make the construction or the evolution hostile."""
    home = (*case.home, "a_mem", "notes")
    metadata = {"context": "before", "tags": ["t"], "keywords": ["k"]}
    case.seed(home, kind="note", metadata=metadata)
    attack = case.rng.choice(["broken note", "broken evolution", "wrong", "wrong"])
    case.valid_and_wrong = attack == "wrong"
    decided: dict[str, Any] = evolution(case)
    described = {name: [replies.hostile_text(case.rng)] for name in ("keywords", "tags")}
    described["context"] = replies.hostile_text(case.rng)  # type: ignore[assignment]
    shown = replies.Shown()

    def answer(prompt: str) -> Any:  # noqa: ANN401 - what a scripted model takes
        if "Earlier notes" not in prompt:
            if attack == "broken note":
                return replies.unreadable(case.rng)
            return replies.in_some_form(case.rng, described)
        shown.rows = replies.shown_in(prompt, "handle").rows
        if attack == "broken evolution":
            return broken(case, "actions", "should_evolve")
        return replies.in_some_form(case.rng, decided)

    operations = case.remember(AMem(model=Scripted(answer), store=case.store))
    case.check(home, Expected(Counter([*KNOWN, SAID])), operations)
    before = Notes(dict.fromkeys(shown.rows, "before"), {each: ["t"] for each in shown.rows})
    expected = before if attack == "broken evolution" else after_amem(before, decided)
    found = {str(one.value["content"]): one for one in case.store.search(home, limit=100)}
    keys = {}
    for handle, row in shown.rows.items():
        note = found[row["content"]].value["metadata"]
        keys[found[row["content"]].key] = handle
        assert note["context"] == expected.contexts[handle]
        assert note["tags"] == expected.tags[handle]
    links = [keys[link["target"]] for link in found[SAID].value.get("links", [])]
    assert links == expected.links
    if expected.own_tags:
        assert found[SAID].value["metadata"]["tags"] == expected.own_tags


ATTACKS: dict[str, Callable[[Case], None]] = {
    "mem0": mem0_case,
    "a_mem": amem_case,
    "langmem": langmem_case,
}


def victims(store: BaseStore) -> str:
    """Return everything of the victim."""
    home = ("memories", replies.VICTIM)
    places = [home, closed(home), ("_agentmem", "journal", *home), ("_agentmem", "queue", *home)]
    found = [store.search(place, limit=1000) for place in places]
    return json.dumps([[one.dict() for one in each] for each in found], default=str)


def fast_store(kind: str, folder: Path) -> BaseStore:
    """Return a store that need not survive a power cut."""
    if kind == "memory":
        return make_store(kind, folder)
    index: Any = {"embed": Table(), "dims": 26, "fields": ["content"], "mode": "hybrid"}
    return FaissSqliteStore(folder / "memory.sqlite", index=index, synchronous="normal")


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop for all async calls of a test."""
    with asyncio.Runner() as runner:
        yield runner.get_loop()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("attacked", ATTACKS)
def test_hostile_replies_change_nothing_but_what_the_rules_allow(
    kind: str, attacked: str, tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    """After each the store equals the reference, it is reported, and nobody else is touched."""
    store = fast_store(kind, tmp_path)
    for key in replies.VICTIM_KEYS:
        value = MemoryItem(content=f"Bob's {key}").to_value()
        for home in ((), ("mem0", "facts"), ("a_mem", "notes")):
            store.put(("memories", replies.VICTIM, *home), key, value, index=["content"])
    before = victims(store)
    wrong = 0
    for number in range(CASES[attacked]):
        rng = random.Random(f"{attacked}{number}")  # noqa: S311 - test data
        case = Case(number, rng, store, loop)
        ATTACKS[attacked](case)
        wrong += case.valid_and_wrong
        assert victims(store) == before
    assert wrong >= 120
    for name in store.list_namespaces(limit=100_000):
        if name[:2] == ("_agentmem", "erased"):
            continue  # a hash of the scope
        own = name[2:] if name[0] == "_agentmem" else name
        assert own[0] == "memories"
        assert own[1] == replies.VICTIM or own[1].startswith("u")


def test_the_reference_tells_a_wrong_store(tmp_path: Path, loop: asyncio.AbstractEventLoop) -> None:
    """A change that the rules forbid is noticed: the comparison can fail."""
    case = Case(0, random.Random(0), make_store("memory", tmp_path), loop)  # noqa: S311 - test data
    case.seed(case.home)
    expected = after_langmem({"0": KNOWN[0]}, [{"action": "delete", "id": "0"}], deletes=False)
    expected.live += Counter(KNOWN[1:])
    assert expected.rejected == 1
    assert case.texts(case.home) == expected.live
    case.store.delete(case.home, key_of(case.home, KNOWN[0]))
    assert case.texts(case.home) != expected.live
    assert (handle_of({"handle": "[1]"}), text_of("\ud800 a")) == ("1", "\ufffd a")
