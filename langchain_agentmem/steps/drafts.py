"""Drafts: memories as they will be, while one or more model calls still change them.

A draft is a known memory, changed or not, or a new one. What a model proposes is checked and put
into the drafts here (`edited`, pure); what they differ by from the store becomes operations at the
end (`operations`), so that any number of phases is one write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from pydantic import AliasChoices, BaseModel, Field, ValidationError

from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.steps.extraction import Handles, Proposal
from langchain_agentmem.steps.facts import key_for, normalized

Schema: TypeAlias = type[str] | type[BaseModel]
Action: TypeAlias = Literal["create", "update", "delete"]

TEXT: Final = "text"
EVENTS: Final[Mapping[Action, Literal["ADD", "UPDATE", "DELETE"]]] = {
    "create": "ADD",
    "update": "UPDATE",
    "delete": "DELETE",
}


class ProposedMemory(Proposal):
    """One change a model proposes."""

    action: Action
    id: str | None = Field(None, validation_alias=AliasChoices("id", "handle"))
    kind: str | None = None
    content: Any = Field(None, description="text or object")


class ProposedMemories(Proposal):
    """All changes a model proposes."""

    memories: list[ProposedMemory]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One memory as it will be.

    Attributes:
        content: Its content.
        kind: Name of the content's schema.
        origin: What is stored; None for a new memory.
        key: Key of a new memory that must have a certain one.
        removed: Whether it is to be archived.
    """

    content: str | dict[str, Any]
    kind: str = TEXT
    origin: StoredMemory | None = None
    key: str | None = None
    removed: bool = False

    @classmethod
    def of(cls, stored: StoredMemory) -> Draft:
        """Return the unchanged draft of a stored memory."""
        return cls(content=stored.content, kind=stored.item.kind, origin=stored)

    @property
    def is_changed(self) -> bool:
        """Whether it differs from what is stored."""
        if self.origin is None or self.removed:
            return True
        return (self.content, self.kind) != (self.origin.content, self.origin.item.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a model may do to the drafts.

    Attributes:
        schemas: What memories are made of.
        actions: What is permitted.
        clean: Returns what may be stored of a text.
    """

    schemas: Sequence[Schema]
    actions: Sequence[Action]
    clean: Callable[[str], str] = str.strip

    @property
    def models(self) -> dict[str, type[BaseModel]]:
        """The schemas that are models, by name."""
        return {each.__name__: each for each in self.schemas if issubclass(each, BaseModel)}


@dataclass(frozen=True, slots=True)
class Refusal:
    """One proposal that was not accepted.

    Attributes:
        action: What was proposed.
        key: Key of the memory it was about; empty for none.
        reason: Why it was refused.
    """

    action: Action
    key: str
    reason: str

    def operation(self, home: tuple[str, ...], cause: Cause) -> MemoryOperation:
        """Return the rejected operation to report."""
        op = MemoryOperation(event=EVENTS[self.action], namespace=home, key=self.key, cause=cause)
        return op.rejected(self.reason)


@dataclass(slots=True)
class _Edit:
    """The drafts while one reply is put into them."""

    drafts: list[Draft]
    shown: dict[str, int]
    rules: Rules
    taken: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, drafts: Sequence[Draft], rules: Rules) -> _Edit:
        """Begin with the drafts as a model was shown them."""
        kept = (at for at, each in enumerate(drafts) if not each.removed)
        return cls(list(drafts), {str(n): at for n, at in enumerate(kept)}, rules)

    def target(self, each: ProposedMemory) -> int | None:
        """Return the position of the draft that a proposal names."""
        return None if each.id is None else self.shown.get(Handles.plain(each.id))

    def draft(self, each: ProposedMemory) -> Draft:
        """Return what a proposal makes of its draft.

        Raises:
            ValueError: It names no draft, or its content does not fit.
        """
        at = self.target(each)
        old = None if at is None or each.action == "create" else self.drafts[at]
        if each.action != "create" and old is None:
            msg = f"No memory was shown as {each.id!r}."
            raise ValueError(msg)
        if each.action == "delete" and old is not None:
            return replace(old, removed=True)
        try:
            content, kind = _read(each.content, each.kind, old, self.rules)
        except ValueError as error:
            msg = f"A content does not fit its schema: {error}."
            raise ValueError(msg) from error
        return (
            replace(old, content=content, kind=kind) if old else Draft(content=content, kind=kind)
        )

    def put(self, each: ProposedMemory) -> str | None:
        """Put a proposal into the drafts; return why not, if it is refused."""
        at = self.target(each) if each.action != "create" else None
        try:
            draft = self.draft(each)
        except ValueError as error:
            return str(error)
        if each.action not in self.rules.actions:
            return f"{each.action} is not permitted"
        if at is None:
            self.drafts.append(draft)
        elif at in self.taken:
            return "the memory already has a change"
        else:
            self.taken.add(at)
            self.drafts[at] = draft
        return None

    def key_of(self, each: ProposedMemory) -> str:
        """Return the key of the stored memory that a proposal is about; empty for a new one."""
        at = self.target(each)
        origin = None if at is None else self.drafts[at].origin
        return origin.key if origin else ""


def shown(drafts: Sequence[Draft]) -> list[Draft]:
    """Return the drafts that a model is shown; their handles are "0", "1", ... in this order."""
    return [each for each in drafts if not each.removed]


def problems(
    drafts: Sequence[Draft], proposed: Sequence[ProposedMemory], rules: Rules
) -> list[str]:
    """Return what a model should repair: unknown handles, and contents that do not fit."""
    edit = _Edit.of(drafts, rules)
    found = []
    for each in proposed:
        try:
            edit.draft(each)
        except ValueError as error:
            found.append(str(error))
    return found


def edited(
    drafts: Sequence[Draft], proposed: Sequence[ProposedMemory], rules: Rules
) -> tuple[list[Draft], list[Refusal]]:
    """Put permitted changes of known memories into the drafts, one a memory.

    Args:
        drafts: The drafts so far.
        proposed: What the model wrote.
        rules: What it may do.

    Returns:
        The new drafts, and what was refused and why.
    """
    edit = _Edit.of(drafts, rules)
    refused = []
    for each in proposed:
        reason = edit.put(each)
        if reason is not None:
            refused.append(Refusal(each.action, edit.key_of(each), reason))
    kept = [each for each in edit.drafts if each.origin is not None or not each.removed]
    return kept, refused


def _read(
    content: Any,  # noqa: ANN401 - any JSON
    kind: str | None,
    old: Draft | None,
    rules: Rules,
) -> tuple[str | dict[str, Any], str]:
    """Return a content in the form of its schema; of an unknown kind only an update is taken.

    Raises:
        ValueError: It fits no schema.
    """
    kind = kind or (old.kind if old else None)
    models = rules.models
    chosen = models.get(kind or "")
    if chosen is None and len(rules.schemas) == 1 and models and not (old and kind):
        (chosen,) = models.values()
    if chosen is not None:
        return _modeled(content, chosen, rules), chosen.__name__
    if not old and str not in rules.schemas:
        msg = f"{kind!r} is none of {sorted(models)}"
        raise ValueError(msg)
    if old and isinstance(old.content, dict):
        if not content or not isinstance(content, dict):
            msg = "an object is needed"
            raise ValueError(msg)
        return _clean(content, rules), kind or "object"
    text = rules.clean(_as_text(content))
    if not text:
        msg = "it is empty"
        raise ValueError(msg)
    return text, kind if old and kind else TEXT


def _as_text(content: Any) -> str:  # noqa: ANN401 - any JSON
    """Return a content as text: the only text of an object, else its JSON."""
    if isinstance(content, dict) and len(content) == 1:
        (content,) = content.values()
    if isinstance(content, dict | list):
        return json.dumps(content, ensure_ascii=False) if content else ""
    return "" if content is None else str(content)


def _modeled(content: Any, model: type[BaseModel], rules: Rules) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    try:
        value = model.model_validate(content).model_dump(mode="json")
    except ValidationError as error:
        raise ValueError(str(error.errors()[0]["msg"])) from error
    return _clean(value, rules)


def _clean(value: Mapping[str, Any], rules: Rules) -> dict[str, Any]:
    cleaned: dict[str, Any] = _cleaned(dict(value), rules)
    return cleaned


def _cleaned(value: Any, rules: Rules) -> Any:  # noqa: ANN401 - any JSON
    """Return a JSON value with every text in it cleaned, however deep."""
    if isinstance(value, str):
        return rules.clean(value)
    if isinstance(value, dict):
        return {name: _cleaned(each, rules) for name, each in value.items()}
    return [_cleaned(each, rules) for each in value] if isinstance(value, list) else value


def operations(
    home: tuple[str, ...], drafts: Sequence[Draft], cause: Cause, said_at: datetime
) -> Steps[list[MemoryOperation]]:
    """Return what has to be done so that the store holds the drafts.

    Args:
        home: Namespace of new memories.
        drafts: The drafts.
        cause: Where they come from.
        said_at: When the new ones were said.
    """
    found: dict[str, MemoryOperation] = {}
    for each in drafts:
        if each.origin is not None:
            op = _changed(each, each.origin, cause) if each.is_changed else None
        else:
            op = yield from _added(home, each, cause, said_at)
        if op is not None:
            found.setdefault(op.key, op)
    return list(found.values())


def _added(
    home: tuple[str, ...], draft: Draft, cause: Cause, said_at: datetime
) -> Steps[MemoryOperation]:
    item = MemoryItem(
        kind=draft.kind,
        content=draft.content,
        observed_at=said_at,
        source_message_ids=cause.message_ids,
    )
    key, known = (draft.key, None) if draft.key else (yield from key_for(home, item.text))
    op = MemoryOperation(event="ADD", namespace=home, key=key, cause=cause)
    if known is not None:
        return replace(op, event="NOOP", before=known.item, reason="already remembered")
    return replace(op, after=item)


def _changed(draft: Draft, stored: StoredMemory, cause: Cause) -> MemoryOperation:
    old = stored.item
    op = MemoryOperation(
        event="DELETE" if draft.removed else "UPDATE",
        namespace=stored.namespace,
        key=stored.key,
        before=old,
        cause=cause,
    )
    if draft.removed:
        return replace(op, after=replace(old, status="archived", version=old.version + 1))
    new = replace(
        old,
        kind=draft.kind,
        content=draft.content,
        version=old.version + 1,
        source_message_ids=tuple(dict.fromkeys([*old.source_message_ids, *cause.message_ids])),
    )
    if normalized(new.text) == normalized(old.text):
        return replace(op, event="NOOP", reason="already known")
    return replace(op, after=new)


def reread(
    home: tuple[str, ...], drafts: Sequence[Draft], lost: set[str], *, twice: set[str]
) -> Steps[list[Draft]]:
    """Return drafts with what is stored now of those that other writers changed.

    Args:
        home: Namespace of the memories.
        drafts: The drafts.
        lost: Keys that others have changed.
        twice: Those of them that are given up, because that happened before.
    """
    fresh: list[Draft] = []
    for each in drafts:
        key = each.origin.key if each.origin else each.key
        if key not in lost:
            fresh.append(each)
        elif key is not None and key not in twice and each.is_changed:
            (stored,) = yield from journal.read([(home, key)])
            if stored is not None and stored.item.status == "active":
                fresh.append(replace(each, origin=stored, key=None))
    return fresh
