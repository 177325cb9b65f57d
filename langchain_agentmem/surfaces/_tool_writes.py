"""The manage tool's steps: what a model proposes is checked, then applied through the journal."""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_core.tools import ToolException

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.effects import Get, List, NewId, Now, Resolve, Search, Setting, Steps
from langchain_agentmem.stores._values import check_json
from langchain_agentmem.surfaces._tool_calls import keys_of

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_agentmem.scopes import NamespaceTemplate

Action = Literal["create", "update", "delete"]
HandOver = Callable[[str], Steps[None]]

_KEYS: Final = uuid.UUID("3c0e2f5a-6f0b-5d0e-9a41-0b7c64f1d2ae")
_SEPARATOR: Final = "\x1f"
_SIMILAR: Final = 3
_MAX_ATTEMPTS: Final = 100
_SHOWN: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a model wants to be done.

    Attributes:
        action: Which change.
        content: The validated content, or None.
        key: Key or handle of the memory to change, or None.
        message_ids: The user's message that led to it.
    """

    action: Action
    content: Any
    key: str | None
    message_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Carries proposals out in one namespace.

    Attributes:
        template: The namespace.
        kind: Name of the content's schema.
        to_json: From validated content to JSON.
        allow_duplicates: Whether the same content may be stored twice.
    """

    template: NamespaceTemplate
    kind: str
    to_json: Callable[[Any], Any]
    allow_duplicates: bool = False

    def steps(self, proposal: Proposal, hand_over: HandOver | None = None) -> Steps[str]:
        """Check and apply a proposal; decide anew if another writer was quicker.

        Args:
            proposal: What the model wants.
            hand_over: Takes the text of a new memory instead of storing it, e.g. into a queue.

        Raises:
            ToolException: The proposal is wrong; nothing was written.
            ConflictError: Other writers were quicker a hundred times in a row.
        """
        for number in range(_MAX_ATTEMPTS - 1):
            try:
                return (yield from self._attempt(proposal, hand_over, first=number == 0))
            except ConflictError:
                continue
        return (yield from self._attempt(proposal, hand_over))

    def _attempt(
        self, proposal: Proposal, hand_over: HandOver | None, *, first: bool = False
    ) -> Steps[str]:
        home = yield from Resolve(self.template)
        now = yield from Now()
        thread = yield from Setting("thread_id")
        cause = Cause(
            surface="tool",
            message_ids=proposal.message_ids,
            thread_id=None if thread is None else str(thread),
        )
        if proposal.action == "create":
            item = self._new_item(proposal, now)
            if hand_over is None:
                return (yield from self._create(item, home, cause, first=first))
            yield from hand_over(item.text)
            return "queued memory; it can be searched for once it was worked off"
        stored = yield from _addressed(proposal, home, now)
        operation = MemoryOperation(
            event="UPDATE" if proposal.action == "update" else "DELETE",
            namespace=home,
            key=stored.key,
            before=stored.item,
            after=self._changed(proposal, stored.item),
            cause=cause,
        )
        yield from journal.apply([operation])
        verb = "updated" if proposal.action == "update" else "Deleted"
        return f"{verb} memory {stored.key}"

    def _new_item(self, proposal: Proposal, now: datetime) -> MemoryItem:
        """Return the item to create.

        Raises:
            ToolException: The proposal names an id, or no content.
        """
        if proposal.key:
            msg = (
                "Nothing was stored: leave `id` out when creating, the memory gets its own; to "
                "change a memory use action 'update'."
            )
            raise ToolException(msg)
        return MemoryItem(
            content=self._content(proposal),
            kind=self.kind,
            observed_at=now,
            source_message_ids=proposal.message_ids,
        )

    def _create(
        self, item: MemoryItem, home: tuple[str, ...], cause: Cause, *, first: bool
    ) -> Steps[str]:
        if self.allow_duplicates:
            key = yield from NewId()
        else:
            twin, key = yield from _twin_or_key(home, item, first=first)
            if twin is not None:
                return f"created memory {twin} (it was known already; nothing was stored twice)"
        operation = MemoryOperation(event="ADD", namespace=home, key=key, after=item, cause=cause)
        yield from journal.apply([operation])
        return f"created memory {key}"

    def _changed(self, proposal: Proposal, before: MemoryItem) -> MemoryItem:
        """Return the item after an update or a deletion."""
        version = before.version + 1
        if proposal.action == "delete":
            return replace(before, status="archived", version=version)
        content = self._content(proposal)
        same_form = self.kind == "text" and isinstance(before.content, str)
        kind = before.kind if same_form else self.kind
        # A search text belongs to the content it was made from.
        return replace(before, content=content, kind=kind, search_text=None, version=version)

    def _content(self, proposal: Proposal) -> str | dict[str, Any]:
        """Return the content to store.

        Raises:
            ToolException: There is none, or it is not text or JSON.
        """
        content = None if proposal.content is None else self.to_json(proposal.content)
        if content is None or content == {} or (isinstance(content, str) and not content.strip()):
            msg = (
                f"Nothing was stored: {proposal.action} needs `content`, the memory itself in "
                "words that can be understood without this conversation."
            )
            raise ToolException(msg)
        try:
            check_json(content)
        except (TypeError, ValueError) as error:
            msg = "Nothing was stored: `content` holds broken characters or numbers."
            raise ToolException(msg) from error
        return content if isinstance(content, str | dict) else {"content": content}


def _addressed(proposal: Proposal, home: tuple[str, ...], now: datetime) -> Steps[StoredMemory]:
    """Return the live memory that a proposal names.

    Raises:
        ToolException: There is none in this namespace, whatever lies in others.
    """
    if not proposal.key:
        msg = f"Nothing was done: {proposal.action} needs the `id` of a memory; search first."
        raise ToolException(msg)
    keys = keys_of(proposal.key) if _is_key(proposal.key) else []
    for found in (yield from Get([(home, key) for key in keys])):
        if found is not None and found.item.is_current(now):
            return found
    msg = (
        f"Nothing was done: there is no memory {proposal.key[:_SHOWN]!r}. Search first and pass "
        "the id of a result unchanged."
    )
    raise ToolException(msg)


def _is_key(text: str) -> bool:
    """Tell whether a store can hold something under a text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


def _twin_or_key(
    home: tuple[str, ...], item: MemoryItem, *, first: bool
) -> Steps[tuple[str | None, str]]:
    """Return the key of a live memory with the same content, if any, and a key for a new one.

    Keys are made from the content, the first that never was used is free: two writers that create
    the same at once collide on it, so only one of them succeeds. What others wrote is found by
    searching for the text. At the `first` attempt the first key is taken for free without a look:
    if it is not, the write is refused and the next attempt looks.
    """
    now = yield from Now()
    form = _form(item)
    key = _key(home, form, 0)
    for number in () if first else count():
        key = _key(home, form, number)
        (used,) = yield from journal.read([(home, key)])
        if used is None:
            break
        if _says(form, used, now):
            return used.key, key
    similar = yield from Search(home, item.text, limit=_SIMILAR)
    if similar and similar[0].score is None:
        similar = yield from List(home)
    return next((each.key for each in similar if _says(form, each, now)), None), key


def _key(home: tuple[str, ...], form: str, number: int) -> str:
    return str(uuid.uuid5(_KEYS, _SEPARATOR.join((*home, str(number), form))))


def _says(form: str, stored: StoredMemory, now: datetime) -> bool:
    return stored.item.is_current(now) and _form(stored.item) == form


def _form(item: MemoryItem) -> str:
    """Return a content's form for comparing: without case and spacing; accents do count."""
    return " ".join(unicodedata.normalize("NFC", item.text).casefold().split())
