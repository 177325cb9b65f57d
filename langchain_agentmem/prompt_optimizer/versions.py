"""The versions of a prompt in a store: an append-only history and one pointer to the active one.

A prompt lies in `(*scope, "prompts", <name>)`: each version under its number, and the pointer under
`active`. Every change appends a version and moves the pointer in one batch, on the condition that
the pointer is still the one that was read; so of two writers one wins and the other is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal, Self, TypeAlias

from langchain_agentmem.errors import ConflictError, MemoryNotFoundError
from langchain_agentmem.items import (
    Cause,
    MemoryItem,
    MemoryOperation,
    parse_timestamp,
    to_timestamp,
)
from langchain_agentmem.scopes import escape_label
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.effects import Get, List, Namespace, Now, Steps

Verdict: TypeAlias = Literal["accepted", "rejected", "rolled_back", "manual"]
KIND: Final = "prompt_version"
_POINTER: Final = "active"
_MAX_ATTEMPTS: Final = 20


class SupersededError(ConflictError):
    """Another writer changed or pinned the active version meanwhile; nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptVersion:
    """One entry in the history of a prompt; never changed once written.

    Attributes:
        name: The prompt's name.
        text: Its text.
        version: Number of the entry, from 1.
        parent: The version that was active when this one was made; None for the first.
        strategy: What proposed it.
        hypotheses: Why it should be better.
        trajectory_ids: The conversations it was made from.
        evaluation: Mean scores `baseline` and `candidate`, the number `n` of examples, `metric`.
        decision: `accepted`, `rejected`, `rolled_back` or `manual`.
        reason: Why that was decided.
        created_at: When.
        calls: Model calls it cost.
        tokens: Tokens it cost.
    """

    name: str
    text: str
    version: int = 1
    parent: int | None = None
    strategy: str | None = None
    hypotheses: str = ""
    trajectory_ids: tuple[str, ...] = ()
    evaluation: Mapping[str, Any] | None = None
    decision: Verdict = "manual"
    reason: str = ""
    created_at: datetime | None = None
    calls: int = 0
    tokens: int = 0

    def to_item(self) -> MemoryItem:
        """Return the memory to store."""
        content = asdict(self)
        content["trajectory_ids"] = list(self.trajectory_ids)
        content["created_at"] = to_timestamp(self.created_at) if self.created_at else None
        return MemoryItem(
            content=content,
            kind=KIND,
            memory_type="procedural",
            search_text=self.text,
            observed_at=self.created_at,
        )

    @classmethod
    def from_item(cls, item: MemoryItem) -> Self:
        """Read what `to_item` returned."""
        content = dict(item.content) if isinstance(item.content, dict) else {}
        at = content.get("created_at")
        content["created_at"] = parse_timestamp(at) if at else None
        content["trajectory_ids"] = tuple(content.get("trajectory_ids") or ())
        return cls(**content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Active:
    """The active version of a prompt and where it was found.

    Attributes:
        version: The version.
        home: Namespace it lies in; None for a text that was never stored.
        latest: Number of the newest entry of that history.
        pinned: Whether it stays active until it is unpinned.
        pointer: The stored pointer.
    """

    version: PromptVersion
    home: Namespace | None = None
    latest: int = 0
    pinned: bool = False
    pointer: MemoryItem | None = field(default=None, repr=False)


def home_of(scope: Namespace, name: str) -> Namespace:
    """Return where a prompt's versions lie in a scope."""
    return (*scope, "prompts", escape_label(name))


def find(scopes: Sequence[Namespace], name: str) -> Steps[Active | None]:
    """Return the active version in the first scope that has one."""
    homes = [home_of(scope, name) for scope in scopes]
    pointers = yield from Get([(home, _POINTER) for home in homes])
    for home, pointer in zip(homes, pointers, strict=True):
        if pointer is None or not isinstance(pointer.item.content, dict):
            continue
        where = pointer.item.content
        (found,) = yield from Get([(home, str(where["active"]))])
        if found is not None:
            return Active(
                version=PromptVersion.from_item(found.item),
                home=home,
                latest=int(where["latest"]),
                pinned=bool(where.get("pinned")),
                pointer=pointer.item,
            )
    return None


def entry(home: Namespace, name: str, version: int) -> Steps[PromptVersion]:
    """Return one entry of a history.

    Raises:
        MemoryNotFoundError: There is no such version.
    """
    (found,) = yield from Get([(home, str(version))])
    if found is None:
        msg = f"Prompt {name!r} has no version {version} in {home}; see history({name!r})."
        raise MemoryNotFoundError(msg)
    return PromptVersion.from_item(found.item)


def entries(home: Namespace) -> Steps[list[PromptVersion]]:
    """Return a prompt's whole history, oldest first."""
    found = yield from List(home, filter={"kind": KIND})
    read = [PromptVersion.from_item(each.item) for each in found]
    return sorted(read, key=lambda each: each.version)


def append(
    scope: Namespace,
    new: PromptVersion,
    *,
    base: PromptVersion | None,
    activate: int | Literal["new"] | None,
    parent: int | None = None,
    pinned: bool | None = None,
) -> Steps[PromptVersion]:
    """Append an entry and, if asked, move the pointer; in one conditional write.

    Args:
        scope: Where the prompt's history lies or begins.
        new: The entry; its number, parent and time are filled in.
        base: The text that a new history begins with.
        activate: Which version becomes active: a number, the new one, or None for no change.
        parent: The version that must still be the active one; None for any.
        pinned: Pin or unpin the active version; None leaves that as it is.

    Returns:
        The entry as stored.

    Raises:
        SupersededError: Another version than `parent` is active, or it was pinned.
    """
    for _ in range(_MAX_ATTEMPTS):
        active = yield from find([scope], new.name)
        _require(active, parent, home_of(scope, new.name))
        if active and active.pinned and new.decision == "accepted":
            raise SupersededError({(home_of(scope, new.name), _POINTER): (parent, parent)})
        now = yield from Now()
        operations, stored = _operations(
            scope, new, base=base, active=active, activate=activate, pinned=pinned, now=now
        )
        try:
            yield from journal.apply(operations)
        except ConflictError as error:
            conflict = error
        else:
            return stored
    raise conflict


def _require(active: Active | None, parent: int | None, home: Namespace) -> None:
    found = active.version.version if active else 1
    if parent is not None and found != parent:
        raise SupersededError({(home, _POINTER): (parent, found)})


def _operations(
    scope: Namespace,
    new: PromptVersion,
    *,
    base: PromptVersion | None,
    active: Active | None,
    activate: int | Literal["new"] | None,
    pinned: bool | None,
    now: datetime,
) -> tuple[list[MemoryOperation], PromptVersion]:
    home = home_of(scope, new.name)
    first = []
    if active is None and base is not None:
        first = [replace(base, version=1, parent=None, created_at=now)]
    latest = active.latest if active else len(first)
    parent = active.version.version if active else (1 if first else None)
    stored = replace(new, version=latest + 1, parent=parent, created_at=now)
    chosen = stored.version if activate == "new" or parent is None else (activate or parent)
    keep = active.pinned if active else False
    pointer = MemoryItem(
        content={
            "active": chosen,
            "latest": stored.version,
            "pinned": keep if pinned is None else pinned,
        },
        kind="prompt_pointer",
        memory_type="procedural",
        search_text=new.name,
    )
    cause = Cause(surface="prompt_optimizer", note=f"{new.decision}: {new.reason}"[:500])
    added = [
        MemoryOperation(
            event="ADD", namespace=home, key=str(each.version), after=each.to_item(), cause=cause
        )
        for each in (*first, stored)
    ]
    before = active.pointer if active else None
    moved = journal.successor((home, _POINTER), before, pointer, cause)
    return [*added, moved], stored
