"""Entities that facts mention: found by their spelling, merged, and kept with links to the facts.

No model is asked: names are capitalized words, quoted phrases, and identifiers (addresses, codes,
hashtags). They only help to find facts and never become facts themselves.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from langchain_agentmem.items import Link, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.retrieval._words import ENGLISH_STOP_WORDS
from langchain_agentmem.steps.effects import Get, List, Put, Ref, Search, Steps, Write
from langchain_agentmem.steps.facts import normalized

EntityType = Literal["PROPER", "QUOTED", "IDENTIFIER"]

_KEYS: Final = uuid.UUID("8a2f7c54-1f5d-5a3b-b0f4-64c1f3f0a9d6")
_OWN: Final = "_entity"
_MENTIONS: Final = "mentions"
_QUOTED: Final = re.compile(
    '"([^"]{2,60})"|\u201c([^\u201d]{2,60})\u201d|\u00ab([^\u00bb]{2,60})\u00bb'
    "|\u300a([^\u300b]{1,60})\u300b|\u300c([^\u300d]{1,60})\u300d|\u300e([^\u300f]{1,60})\u300f"
)
_IDENTIFIER: Final = re.compile(
    r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+\w|https?://[^\s<>\"]+|#\w+"
    r"|\b(?=\w*\d)(?=\w*[^\W\d_])[\w-]*\w\b|\b\w+_\w+\b"
)
_NAME_WORD: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
_NOT_NAMES: Final = ENGLISH_STOP_WORDS | {"user", "assistant", "user's", "assistant's"}
_GAP: Final = re.compile(r"[ \t]+")


@dataclass(frozen=True, slots=True)
class Entity:
    """Something a text mentions.

    Attributes:
        name: As it is written.
        type: How it was recognized.
    """

    name: str
    type: EntityType


@dataclass(frozen=True, slots=True)
class Mentions:
    """What a write has to do about entities.

    Attributes:
        operations: The operations, their new memories linked to the entities.
        puts: The entities' records.
        expect: The versions those records must still have.
    """

    operations: list[MemoryOperation]
    puts: list[Put]
    expect: dict[Ref, int | None]


def entities_in(text: str) -> list[Entity]:
    """Return the entities a text mentions, each once."""
    quoted = [next(filter(None, found.groups())) for found in _QUOTED.finditer(text)]
    identifiers = [found.group() for found in _IDENTIFIER.finditer(text)]
    names = _proper_names(_IDENTIFIER.sub(" . ", text))
    found: dict[str, Entity] = {}
    kinds: tuple[tuple[EntityType, list[str]], ...] = (
        ("QUOTED", quoted),
        ("IDENTIFIER", identifiers),
        ("PROPER", names),
    )
    for kind, each in kinds:
        for name in each:
            found.setdefault(normalized(name), Entity(name, kind))
    return list(found.values())


def _proper_names(text: str) -> list[str]:
    """Return runs of capitalized words."""
    runs: list[list[str]] = []
    end = -1
    for word in _NAME_WORD.finditer(text):
        written = word.group().removesuffix("'s").removesuffix("\u2019s")
        named = written[0].isupper() and len(written) > 1 and written.lower() not in _NOT_NAMES
        joined = bool(runs and end >= 0 and _GAP.fullmatch(text, end, word.start()))
        if named and joined:
            runs[-1].append(written)
        elif named:
            runs.append([written])
        end = word.end() if named and written == word.group() else -1
    return [" ".join(run) for run in runs]


def mention(
    home: tuple[str, ...], operations: Sequence[MemoryOperation], *, merge: float
) -> Steps[Mentions]:
    """Link new memories to the entities they mention.

    An entity is known by its normalized name, or by a name with at least `merge` cosine.
    """
    mentioned = {
        op.key: entities_in(op.after.text)
        for op in operations
        if op.after is not None and op.after.status == "active"
    }
    everything = {
        normalized(each.name): each for entities in mentioned.values() for each in entities
    }
    stored = yield from _stored(home, everything, merge)
    names = {name: each.key if each else entity_key(home, name) for name, each in stored.items()}
    facts: dict[str, list[str]] = {}
    for fact, entities in mentioned.items():
        for each in entities:
            facts.setdefault(names[normalized(each.name)], []).append(fact)
    puts, expect = [], {}
    for name, known in stored.items():
        key = names[name]
        if key not in facts:
            continue
        record = _extended(known, everything[name], facts.pop(key))
        puts.append(_put(home, key, record))
        expect[home, key] = known.item.version if known else None
    linked = [
        _linked(op, [names[normalized(each.name)] for each in mentioned.get(op.key, [])])
        for op in operations
    ]
    return Mentions(linked, puts, expect)


def _stored(
    home: tuple[str, ...], wanted: Mapping[str, Entity], merge: float
) -> Steps[dict[str, StoredMemory | None]]:
    refs = [(home, entity_key(home, name)) for name in wanted]
    known = dict(zip(wanted, (yield from Get(refs)), strict=True))
    for name, each in known.items():
        if each is None:
            near = yield from nearest(home, wanted[name].name, merge, limit=1)
            known[name] = near[0][1] if near else None
    return known


def nearest(
    home: tuple[str, ...], name: str, floor: float, *, limit: int
) -> Steps[list[tuple[float, StoredMemory]]]:
    """Return the entities with at least `floor` cosine to a name, with that cosine."""
    try:
        hits = yield from Search(home, name, limit=limit, mode="dense")
    except ValueError:  # a store that is searched by words alone
        return []
    scored = ((each.parts.get("cosine", each.score), each) for each in hits)
    return [(score, each) for score, each in scored if score is not None and score >= floor]


def _extended(known: StoredMemory | None, entity: Entity, facts: Iterable[str]) -> MemoryItem:
    old = known.item if known else None
    own = {
        "type": _own(old)["type"] if old else entity.type,
        "facts": list(dict.fromkeys([*(_own(old)["facts"] if old else ()), *facts])),
    }
    if old is None:
        return MemoryItem(kind="entity", content=entity.name, metadata={_OWN: own})
    return replace(old, metadata={_OWN: own}, version=old.version + 1)


def _linked(op: MemoryOperation, keys: Sequence[str]) -> MemoryOperation:
    if op.after is None or op.after.status != "active":
        return op
    kept = [link for link in op.after.links if link.type != _MENTIONS]
    links = (*kept, *(Link(_MENTIONS, key) for key in dict.fromkeys(keys)))
    return replace(op, after=replace(op.after, links=links))


def entity_key(home: tuple[str, ...], name: str) -> str:
    """Return the key of an entity by its name."""
    return str(uuid.uuid5(_KEYS, "\x1f".join((*home, normalized(name)))))


def facts_of(entity: StoredMemory) -> list[str]:
    """Return the keys of the facts that mention an entity."""
    return list(_own(entity.item)["facts"])


def _own(item: MemoryItem) -> Mapping[str, Any]:
    own = item.metadata.get(_OWN)
    return {"type": "PROPER", "facts": [], **(own if isinstance(own, Mapping) else {})}


def _put(home: tuple[str, ...], key: str, record: MemoryItem) -> Put:
    return Put(home, key, record.to_value(), record.index_paths)


def drop_mentions(home: tuple[str, ...], gone: Iterable[str]) -> Steps[int]:
    """Take facts out of the entities that mention them; entities left without any are deleted.

    Returns:
        How many entities were changed or deleted.
    """
    lost = set(gone)
    changed = 0
    for entity in (yield from List(home)):
        facts = facts_of(entity)
        kept = [key for key in facts if key not in lost]
        if len(kept) == len(facts):
            continue
        own = {**_own(entity.item), "facts": kept}
        record = replace(entity.item, metadata={_OWN: own}, version=entity.item.version + 1)
        put = _put(home, entity.key, record) if kept else Put(home, entity.key, None)
        yield from Write([put], {(home, entity.key): entity.item.version})
        changed += 1
    return changed
