"""From what a model decided about facts to operations that are safe to apply.

`checked` is pure: it turns proposed changes into changes whose targets are known, and says what it
refused. `planned` gives them keys against what is stored. Nothing is ever destroyed: a closed
memory keeps its text, its key and its end of validity.
"""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

from langchain_agentmem.items import Cause, Event, Link, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.retrieval.text import terms
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.effects import Steps

_KEYS: Final = uuid.UUID("0d9c3f1e-6f0b-5c86-9d51-1c2f0e6a7b42")
_MAX_SUFFIX: Final = 1000
_LEAST_TERMS: Final = 3  # shorter texts stand in any longer one by chance

Style = Literal["crud", "supersede"]
"""Whether a change rewrites the memory under its key, or closes it and adds a successor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One new fact, as extracted.

    Attributes:
        text: The fact, self-contained.
        attributed_to: Who said it.
        observed_at: When it was said.
        message_ids: The messages it was said in.
        related: Keys of known memories it belongs with.
        metadata: The caller's own fields.
    """

    text: str
    attributed_to: str | None = None
    observed_at: datetime | None = None
    message_ids: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """One change as a model proposed it, its handle already looked up.

    Attributes:
        event: What to do.
        fact: Position of the fact that causes it; None for none.
        handle: The handle as written.
        target: The memory behind the handle; None for an unknown handle, or none.
        text: The new text.
    """

    event: Event
    fact: int | None = None
    handle: str | None = None
    target: StoredMemory | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change that passed the checks.

    Attributes:
        event: What to do.
        fact: The fact that causes it.
        target: The memory it is about; None for `ADD`.
        text: The new text.
    """

    event: Event
    fact: Fact | None = None
    target: StoredMemory | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """One proposed change that was not accepted.

    Attributes:
        event: What was proposed.
        reason: Why it was refused.
        target: The memory it was about, if known.
        text: The proposed text.
    """

    event: Event
    reason: str
    target: StoredMemory | None = None
    text: str = ""

    def operation(self, home: tuple[str, ...], cause: Cause) -> MemoryOperation:
        """Return the rejected operation to report."""
        return MemoryOperation(
            event=self.event,
            namespace=self.target.namespace if self.target else home,
            key=self.target.key if self.target else "",
            before=self.target.item if self.target else None,
            cause=cause,
        ).rejected(self.reason)


def normalized(text: str) -> str:
    """Return a text for comparison: compatibility forms, case and spacing folded, nothing lost."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def checked(
    facts: Sequence[Fact],
    candidates: Sequence[StoredMemory],
    proposed: Sequence[Proposed],
    *,
    forbidden: str = "",
) -> tuple[list[Change], list[Refused]]:
    """Check proposed changes against the facts and what was shown to the model.

    Args:
        facts: The new facts.
        candidates: Live memories that the model was shown.
        proposed: Its changes, in its order.
        forbidden: Normalized text of prompts and recalled memories: no fact may be a piece of it.

    Returns:
        What to do, and what was refused and why.
    """
    return _Check(facts, candidates, forbidden).run(proposed)


class _Check:
    """The rules for one reply; see `checked`."""

    def __init__(
        self, facts: Sequence[Fact], candidates: Sequence[StoredMemory], forbidden: str
    ) -> None:
        self.facts = facts
        self.changes: list[Change] = []
        self.refused: list[Refused] = []
        self.taken: set[str] = set()
        self.settled: set[int] = set()
        self.known = {normalized(each.text): each for each in candidates}
        new = {normalized(fact.text) for fact in facts}
        self.repeated = {each.key for text, each in self.known.items() if text in new}
        for position, fact in enumerate(facts):
            self._settle_at_once(position, fact, forbidden)

    def _settle_at_once(self, position: int, fact: Fact, forbidden: str) -> None:
        text = normalized(fact.text)
        if not text:
            self._refuse("ADD", "the text is empty")
        elif text in forbidden and len(terms(text)) >= _LEAST_TERMS:
            self._refuse("ADD", "the text comes from a prompt or a recalled memory", text=fact.text)
        elif text in self.known:
            target = self.known[text]
            self.changes.append(Change(event="NOOP", fact=fact, target=target, text=fact.text))
        else:
            return
        self.settled.add(position)

    def run(self, proposed: Sequence[Proposed]) -> tuple[list[Change], list[Refused]]:
        """Take or refuse each proposal in turn; a fact that none of them settled is added."""
        done_by_change = set(self.settled)
        for each in proposed:
            if each.fact is not None and each.fact in self.settled and each.event != "DELETE":
                continue
            self._check(each, done_by_change)
        for position, fact in enumerate(self.facts):
            if position not in done_by_change:
                self.changes.append(Change(event="ADD", fact=fact, text=fact.text))
        return self.changes, self.refused

    def _check(self, each: Proposed, done: set[int]) -> None:
        fact = self._fact(each)
        if each.event == "ADD":
            self._add(each, fact, done)
        elif each.target is None and each.handle is not None:
            self._refuse(each.event, f"no memory was shown as {each.handle!r}", text=each.text)
            if each.event == "UPDATE":
                self._add(each, fact, done)
        elif each.event == "NOOP":
            if each.fact is not None:
                done.add(each.fact)
            self.taken.update({each.target.key} if each.target else ())
            self.changes.append(Change(event="NOOP", fact=fact, target=each.target))
        elif each.target is None:
            self._refuse(each.event, "it names no memory", text=each.text)
        elif each.target.key in self.taken:
            self._refuse(each.event, "the memory already has a change", each.target, each.text)
        elif each.target.key in self.repeated:
            self._refuse(each.event, "a new fact says the same", each.target, each.text)
        elif each.event == "UPDATE":
            self._update(each, fact, each.target, done)
        else:
            self.taken.add(each.target.key)
            self.changes.append(Change(event="DELETE", fact=fact, target=each.target))

    def _fact(self, each: Proposed) -> Fact | None:
        if each.fact is not None and 0 <= each.fact < len(self.facts):
            return self.facts[each.fact]
        return self.facts[0] if len(self.facts) == 1 and each.event != "ADD" else None

    def _add(self, each: Proposed, fact: Fact | None, done: set[int]) -> None:
        text = each.text.strip() or (fact.text if fact else "")
        if not text:
            self._refuse(each.event, "the text is empty")
            return
        if each.fact is not None and fact is not None:
            if each.fact in done:
                return
            done.add(each.fact)
        self.changes.append(Change(event="ADD", fact=fact or self._like(text), text=text))

    def _like(self, text: str) -> Fact:
        """Return a fact the model stated only in its decision, with the origin of the others."""
        return replace(self.facts[0], text=text, related=()) if self.facts else Fact(text=text)

    def _update(
        self, each: Proposed, fact: Fact | None, target: StoredMemory, done: set[int]
    ) -> None:
        text = each.text.strip() or (fact.text if fact else "")
        if not text:
            self._refuse("UPDATE", "the text is empty", target)
            return
        if each.fact is not None:
            done.add(each.fact)
        elif fact is not None:
            done.add(0)
        self.taken.add(target.key)
        same = normalized(text) == normalized(target.text)
        event: Event = "NOOP" if same else "UPDATE"
        self.changes.append(Change(event=event, fact=fact, target=target, text=text))

    def _refuse(
        self, event: Event, reason: str, target: StoredMemory | None = None, text: str = ""
    ) -> None:
        self.refused.append(Refused(event=event, reason=reason, target=target, text=text))


def key_of(home: tuple[str, ...], text: str, number: int = 0) -> str:
    """Return the key of a fact: the same text in the same namespace always gets the same."""
    suffix = f"\x1f{number}" if number else ""
    return str(uuid.uuid5(_KEYS, "\x1f".join((*home, normalized(text))) + suffix))


def without_target(change: Change, lost: set[str]) -> Change:
    """Return a change whose target others have changed as an addition, or as nothing."""
    if change.target is None or change.target.key not in lost or change.event == "NOOP":
        return change
    event: Event = "ADD" if change.event == "UPDATE" else "NOOP"
    return replace(change, event=event, target=None)


def planned(
    home: tuple[str, ...], changes: Sequence[Change], *, style: Style, cause: Cause, now: datetime
) -> Steps[list[MemoryOperation]]:
    """Return the operations of some changes, each new memory under a key of its own.

    Reads what is stored under the keys: an equal live text makes a `NOOP`, a key that another
    text or a closed memory holds is passed over.

    Args:
        home: Namespace of the memories.
        changes: What to do.
        style: Whether updates rewrite or supersede.
        cause: Where the changes come from.
        now: The present, for facts without a time.
    """
    keys: dict[str, str] = {}
    operations: dict[str, MemoryOperation] = {}
    for change in changes:
        adding = change.event == "ADD" or (change.event == "UPDATE" and style == "supersede")
        if adding and normalized(change.text) not in keys:
            added = yield from _added(home, change, cause, now)
            keys[normalized(change.text)] = added.key
            operations[added.key] = added
    for change in changes:
        if change.target is None or change.event == "ADD":
            continue
        op = _changed(change, keys, style=style, cause=cause, now=now)
        operations.setdefault(op.key, op)
    return list(operations.values())


def _added(
    home: tuple[str, ...], change: Change, cause: Cause, now: datetime
) -> Steps[MemoryOperation]:
    key, known = yield from key_for(home, change.text)
    op = MemoryOperation(event="ADD", namespace=home, key=key, cause=cause)
    if known is not None:
        return replace(op, event="NOOP", before=known.item, reason="already remembered")
    return replace(op, after=_item(change, now))


def key_for(home: tuple[str, ...], text: str) -> Steps[tuple[str, StoredMemory | None]]:
    """Return the key of a new memory, and the live memory under it that says just that already.

    A key that another text or a closed memory holds is passed over.

    Raises:
        OverflowError: A thousand closed memories say the same.
    """
    for number in range(_MAX_SUFFIX):
        key = key_of(home, text, number)
        (stored,) = yield from journal.read([(home, key)])
        if stored is None:
            return key, None
        if stored.item.status == "active" and normalized(stored.text) == normalized(text):
            return key, stored
    msg = f"{_MAX_SUFFIX} closed memories say the same as a new one; forget some of them."
    raise OverflowError(msg)


def _item(change: Change, now: datetime) -> MemoryItem:
    fact = change.fact or Fact(text=change.text)
    links = [Link("related", key) for key in fact.related]
    if change.target is not None:
        links.append(Link("updates", change.target.key))
    return MemoryItem(
        kind="fact",
        content=change.text,
        metadata=fact.metadata,
        observed_at=fact.observed_at or now,
        links=tuple(dict.fromkeys(links)),
        source_message_ids=fact.message_ids,
        attributed_to=fact.attributed_to,
    )


def _changed(
    change: Change,
    keys: Mapping[str, str],
    *,
    style: Style,
    cause: Cause,
    now: datetime,
) -> MemoryOperation:
    target = change.target
    if target is None:
        msg = f"A change of the kind {change.event} needs a target."
        raise ValueError(msg)
    old = target.item
    op = MemoryOperation(
        event=change.event, namespace=target.namespace, key=target.key, before=old, cause=cause
    )
    if change.event == "NOOP":
        return replace(op, reason="already known")
    if change.event == "UPDATE" and style == "crud":
        return replace(op, after=_rewritten(old, change))
    new_text = change.text or (change.fact.text if change.fact else "")
    successor = keys.get(normalized(new_text)) if new_text and style == "supersede" else None
    closed_at = (change.fact.observed_at if change.fact else None) or now
    after = replace(
        old,
        status="superseded" if successor else "archived",
        superseded_by=successor,
        valid_to=max(closed_at, old.observed_at or closed_at),
        version=old.version + 1,
    )
    return replace(op, event="DELETE", after=after)


def _rewritten(old: MemoryItem, change: Change) -> MemoryItem:
    ids = change.fact.message_ids if change.fact else ()
    observed = change.fact.observed_at if change.fact else None
    return replace(
        old,
        content=change.text,
        version=old.version + 1,
        observed_at=observed or old.observed_at,
        source_message_ids=tuple(dict.fromkeys([*old.source_message_ids, *ids])),
    )
