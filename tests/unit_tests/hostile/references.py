"""What a store must hold after a reply, worked out anew from the written rules of each memory.

Nothing here calls the package: known memories are texts by handle, replies are plain JSON, and a
result is the texts that are live and those that are closed.
"""

import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

Known = dict[str, str]
Json = dict[str, Any]


@dataclass
class Expected:
    """What a store must hold, and how many proposals must be reported as rejected."""

    live: Counter[str] = field(default_factory=Counter)
    closed: Counter[str] = field(default_factory=Counter)
    rejected: int = 0


def text_of(value: object) -> str:
    """Return a text as it can be stored: without halves of characters and outer spaces."""
    text = str(value if value is not None else "")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()


def same(text: str) -> str:
    """Return what two texts that say the same have in common."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def handle_of(operation: Json) -> str | None:
    """Return the handle a model wrote, whatever signs it put around it."""
    written = operation.get("handle", operation.get("id"))
    if written is None:
        return None
    plain = "".join(one for one in text_of(written) if one.isalnum() or one in "_-")
    return plain.lower()


def after_mem0(known: Known, facts: list[Any], operations: list[Json]) -> Expected:
    """Return what superseding facts leaves: spec "validate" and "apply"."""
    rules = _Mem0(known, [text for each in facts if (text := text_of(each))])
    for operation in operations:
        rules.follow(operation)
    return rules.result()


class _Mem0:
    """The rules of one decision."""

    def __init__(self, known: Known, new: list[str]) -> None:
        self.known = known
        self.new = new
        self.repeated = {same(each) for each in new} & {same(each) for each in known.values()}
        self.settled = {place for place, each in enumerate(new) if same(each) in self.repeated}
        self.placed: set[int | None] = set(self.settled)
        self.touched: set[str | None] = set()
        self.added: list[str] = []
        self.closing: set[str] = set()
        self.rejected = 0

    def follow(self, operation: Json) -> None:
        number = operation.get("fact")
        if number not in range(len(self.new)):
            number = 0 if len(self.new) == 1 else None
        event, handle = operation["event"], handle_of(operation)
        if number in self.settled and event != "DELETE":
            return
        text = text_of(operation.get("text")) or ("" if number is None else self.new[number])
        unknown = event != "ADD" and handle is not None and handle not in self.known
        self.rejected += unknown
        if event == "ADD" or (unknown and event == "UPDATE"):
            self.add(text, number)
        elif event == "NOOP" and not unknown:
            self.placed |= {number} - {None}
            self.touched |= {handle} - {None}
        elif not unknown:
            self.change(event, handle, text, number)

    def add(self, text: str, number: int | None) -> None:
        if not text:
            self.rejected += 1
        elif number is None or number not in self.placed:
            self.added.append(text)
            self.placed |= {number} - {None}

    def change(self, event: str, handle: str | None, text: str, number: int | None) -> None:
        target = same(self.known[handle]) if handle is not None else ""
        if (
            handle is None
            or handle in self.touched
            or target in self.repeated
            or (event == "UPDATE" and not text)
        ):
            self.rejected += 1
            return
        self.touched.add(handle)
        if event == "UPDATE":
            self.placed |= {number} - {None}
            if same(text) == target:
                return
            self.added.append(text)
        self.closing.add(handle)

    def result(self) -> Expected:
        left = [text for place, text in enumerate(self.new) if place not in self.placed]
        added = {same(text): text for text in reversed([*self.added, *left])}
        closed = [self.known[each] for each in self.closing if same(self.known[each]) not in added]
        live = [text for text in self.known.values() if text not in closed]
        words = {same(text) for text in live}
        live += [text for each, text in added.items() if each not in words]
        return Expected(Counter(live), Counter(closed), self.rejected)


def after_langmem(known: Known, proposals: list[Json], *, deletes: bool) -> Expected:
    """Return what LangMem's inserts, updates and deletes of plain texts leave."""
    live = dict(known)
    closed: list[str] = []
    added: dict[str, str] = {}
    touched: set[str] = set()
    rejected = 0
    for each in proposals:
        action, handle = each["action"], handle_of(each)
        content = each.get("content")
        text = text_of(content) if isinstance(content, str) else ""
        unknown = action != "create" and handle not in known
        if (
            unknown
            or (action == "delete" and not deletes)
            or (action != "delete" and not text)
            or (action != "create" and handle in touched)
        ):
            rejected += 1
            continue
        if action != "create" and handle is not None:
            touched.add(handle)
        if action == "create":
            added.setdefault(same(text), text)
        elif action == "delete" and handle is not None:
            closed.append(live.pop(handle))
        elif handle is not None and same(text) != same(known[handle]):
            live[handle] = text
    before = {same(text) for text in known.values()}
    stored = [text for words, text in added.items() if words not in before]
    return Expected(Counter([*live.values(), *stored]), Counter(closed), rejected)


@dataclass
class Notes:
    """What A-MEM's notes must look like: contexts and tags by handle, links of the new note."""

    contexts: dict[str, str]
    tags: dict[str, list[str]]
    links: list[str] = field(default_factory=list)
    own_tags: list[str] | None = None


def after_amem(before: Notes, decided: Json) -> Notes:
    """Return what an evolution leaves: spec "strengthen" and "update_neighbor"."""
    after = Notes(dict(before.contexts), dict(before.tags))
    if not decided["should_evolve"]:
        return after
    if "strengthen" in decided["actions"]:
        wanted = [handle_of({"handle": each}) for each in decided["suggested_connections"]]
        after.links = [each for each in dict.fromkeys(wanted) if each in before.contexts]
        after.own_tags = _texts(decided["tags_to_update"]) or None
    if "update_neighbor" in decided["actions"]:
        contexts, tags = decided["new_context_neighborhood"], decided["new_tags_neighborhood"]
        for position, handle in enumerate(before.contexts):
            if position < len(contexts) and text_of(contexts[position]):
                after.contexts[handle] = text_of(contexts[position])
            if position < len(tags) and _texts(tags[position] or []):
                after.tags[handle] = _texts(tags[position])
    return after


def _texts(values: list[Any]) -> list[str]:
    return list(dict.fromkeys(text for each in values if (text := text_of(each))))
