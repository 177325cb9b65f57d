"""The tools by which MemGPT's model moves data between its prompt and its storage.

A tool's step returns its result as text; whatever cannot be done raises `EditError`, whose text
goes back to the model. Search results are data, paged, each with its time and role.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from langchain_core.messages import AnyMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.messages import text_of
from langchain_agentmem.parameters import faults
from langchain_agentmem.rendering import as_data, as_label
from langchain_agentmem.steps import archive, core_memory, journal, recall
from langchain_agentmem.steps.archive import Archive
from langchain_agentmem.steps.core_memory import Core, CoreBlock, EditError, ReplacePolicy
from langchain_agentmem.steps.effects import List, Now, Search, Steps
from langchain_agentmem.steps.recall import Moment, Pool

_KEYS: Final = uuid.UUID("6f1d7a52-0a4d-5c3b-8d2f-2b9b0f6f4c31")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_DEPTH: Final = 1000
_ROLES: Final = {"user": "human", "assistant": "ai", "tool": "tool", "human": "human", "ai": "ai"}

EDITS: Final = frozenset({"core_memory_append", "core_memory_replace", "archival_memory_insert"})
"""Tools that change what is remembered."""
SEARCHES: Final = ("conversation_search", "archival_memory_search")
SLEEP: Final = ("memory_replace", "memory_insert", "memory_rethink", "memory_finish_edits")


class _Arguments(BaseModel):
    """Base of all tools' arguments."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    request_heartbeat: bool = Field(
        default=False, description="True to go on working right after this call."
    )


def _tool(name: str, about: str, **fields: Any) -> type[_Arguments]:  # noqa: ANN401 - pydantic's field definitions
    return create_model(name, __base__=_Arguments, __doc__=about, **fields)


_Label = Annotated[str, Field(description="Label of the block.")]
_Query = Annotated[str, Field(description="What to look for, in plain words.")]
_Page = Annotated[int, Field(ge=0, description="Page of the results, from 0.")]
_Date = Annotated[str | None, Field(description="ISO date (the whole day counts) or time.")]
_Tags = Annotated[list[str] | None, Field(description="Tags of the note.")]

TOOLS: Final[Mapping[str, type[_Arguments]]] = {
    "core_memory_append": _tool(
        "core_memory_append",
        "Add a line to a block of core memory.",
        label=(_Label, ...),
        content=(str, Field(description="The line.")),
    ),
    "core_memory_replace": _tool(
        "core_memory_replace",
        "Replace a part of a block of core memory.",
        label=(_Label, ...),
        old=(str, Field(description="The exact text to replace.")),
        new=(str, Field(description="The new text; empty deletes.")),
    ),
    "conversation_search": _tool(
        "conversation_search",
        "Search all messages of the past, also those no longer in view.",
        query=(_Query, ...),
        roles=(
            list[Literal["user", "assistant", "tool"]] | None,
            Field(default=None, description="Only messages of these roles."),
        ),
        limit=(int | None, Field(default=None, ge=1, description="Results on a page.")),
        start_date=(_Date, None),
        end_date=(_Date, None),
        page=(_Page, 0),
    ),
    "archival_memory_insert": _tool(
        "archival_memory_insert",
        "Save a note to archival memory, which has no limit.",
        content=(str, Field(min_length=1, description="A note that is understood alone.")),
        tags=(_Tags, None),
    ),
    "archival_memory_search": _tool(
        "archival_memory_search",
        "Search the notes of archival memory by meaning.",
        query=(_Query, ...),
        tags=(_Tags, None),
        tag_match=(Literal["any", "all"], "any"),
        top_k=(int | None, Field(default=None, ge=1, description="Results on a page.")),
        start=(_Date, None),
        end=(_Date, None),
        page=(_Page, 0),
    ),
    "send_message": _tool(
        "send_message",
        "Say something to the user.",
        message=(str, Field(description="What to say.")),
    ),
    "memory_replace": _tool(
        "memory_replace",
        "Replace a part of a block.",
        label=(_Label, ...),
        old=(str, Field(description="The exact text to replace.")),
        new=(str, Field(description="The new text; empty deletes.")),
    ),
    "memory_insert": _tool(
        "memory_insert",
        "Insert a line into a block.",
        label=(_Label, ...),
        line=(int, Field(description="Number of the line before it: 0 is the top, -1 the end.")),
        text=(str, Field(description="The line.")),
    ),
    "memory_rethink": _tool(
        "memory_rethink",
        "Write a block anew.",
        label=(_Label, ...),
        text=(str, Field(description="Its whole new text.")),
    ),
    "memory_finish_edits": _tool("memory_finish_edits", "Say that all edits are made."),
}


@lru_cache(maxsize=32)
def schema_of(name: str) -> dict[str, Any]:
    """Return a tool in OpenAI's form; made once, since that takes milliseconds."""
    return convert_to_openai_tool(TOOLS[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What a tool works on: one scope's storage, and the limits of the call.

    Attributes:
        recall: Where the messages lie.
        archival: Namespaces of notes, the own one first.
        core_home: Namespace of the blocks.
        blocks: The blocks that the memory is defined with.
        page_size: Results of `conversation_search` on a page.
        top_k: Results of `archival_memory_search` on a page.
        policy: What to do with a text that occurs several times.
        cause: Why, for the journal.
    """

    recall: Archive
    archival: Sequence[tuple[str, ...]]
    core_home: tuple[str, ...]
    blocks: Sequence[CoreBlock]
    page_size: int
    top_k: int
    policy: ReplacePolicy
    cause: Cause

    def core(self) -> Steps[Core]:
        """Return the blocks as they are now."""
        return (yield from core_memory.load(self.core_home, self.blocks))


Done = tuple[str, list[MemoryOperation]]


def call(desk: Desk, name: str, arguments: Mapping[str, Any]) -> Steps[Done]:
    """Carry out one call of a tool.

    Returns:
        The result for the model, and the applied operations.

    Raises:
        EditError: It cannot be done; nothing was changed.
    """
    given = validated(name, arguments)
    return (yield from _STEPS[name](desk, given))


def validated(name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - each tool has its own arguments
    """Return the checked arguments of a tool.

    Raises:
        EditError: There is no such tool, or an argument is wrong.
    """
    if name not in TOOLS:
        msg = f"There is no tool {name!r}."
        raise EditError(msg)
    try:
        return TOOLS[name].model_validate(dict(arguments))
    except ValidationError as error:
        msg = f"Nothing was done. Correct the arguments: {faults(error)}."
        raise EditError(msg) from error


def _append(desk: Desk, given: Any) -> Steps[Done]:  # noqa: ANN401 - the tool's own arguments
    core = yield from desk.core()
    block = core.get(given.label).appended(given.content)
    op = yield from core_memory.write(core, block, desk.cause)
    return f"Added to block {given.label!r}.", [op]


def _replace(desk: Desk, given: Any) -> Steps[Done]:  # noqa: ANN401 - as above
    core = yield from desk.core()
    block = core.get(given.label).replaced(given.old, given.new, desk.policy)
    op = yield from core_memory.write(core, block, desk.cause)
    return f"Changed block {given.label!r}.", [op]


def edited(core: Core, name: str, given: Any, policy: ReplacePolicy) -> Core:  # noqa: ANN401 - as above
    """Return the blocks after one edit of the sleep agent.

    Raises:
        EditError: It cannot be made.
    """
    block = core.get(given.label)
    if name == "memory_replace":
        return core.with_block(block.replaced(given.old, given.new, policy))
    if name == "memory_insert":
        return core.with_block(block.inserted(given.line, given.text))
    return core.with_block(block.checked(given.text))


def _insert(desk: Desk, given: Any) -> Steps[Done]:  # noqa: ANN401 - as above
    home = desk.archival[0]
    key = str(uuid.uuid5(_KEYS, "\x1f".join((*home, given.content))))
    (known,) = yield from journal.read([(home, key)])
    if known is not None and known.item.status == "active":
        op = MemoryOperation(
            event="NOOP", namespace=home, key=key, before=known.item, reason="known already"
        )
        return f"Note {key} says exactly this already; nothing was stored twice.", [op]
    item = MemoryItem(
        kind="archival",
        content=given.content,
        metadata={"tags": given.tags} if given.tags else {},
        observed_at=(yield from Now()),
        source_message_ids=desk.cause.message_ids,
    )
    op = journal.successor((home, key), known.item if known else None, item, desk.cause)
    try:
        applied = yield from journal.apply([op])
    except ConflictError as error:
        msg = "Somebody else saved this note at the same moment; it is there."
        raise EditError(msg) from error
    return f"Saved as note {key}.", applied


def _conversation_search(desk: Desk, given: Any) -> Steps[Done]:  # noqa: ANN401 - as above
    within = _period(given.start_date, given.end_date)
    roles = {_ROLES[each] for each in given.roles or ()}
    found = yield from matching_messages(desk.recall, given.query)
    hits = [
        each
        for each in found
        if within(each) and (not roles or archive.role_of(each.item) in roles)
    ]
    return _page(hits, given.page, given.limit or desk.page_size), []


def matching_messages(where: Archive, query: str, depth: int = _DEPTH) -> Steps[list[StoredMemory]]:
    """Return the best messages with a word of the query, best first.

    Calls of the memory's own tools and their results are left out: a search never finds itself.
    """
    found = yield from Search(where.home, query, limit=depth, mode="lexical")
    scores = [each.parts.get("lexical") for each in found]
    if None in scores:  # a store without an index of words
        found = yield from List(where.home)
        scores = [*recall.word_scores(query, found)]
    hits = [each.scored(score) for each, score in zip(found, scores, strict=True) if score]
    hits.sort(key=lambda each: -(each.score or 0.0))
    return [each for each in hits if _was_said(archive.message_of(each))]


def _was_said(message: AnyMessage) -> bool:
    if message.type == "ai":
        return bool(text_of(message).strip())
    return message.type != "tool" or message.name not in TOOLS


def _archival_search(desk: Desk, given: Any) -> Steps[Done]:  # noqa: ANN401 - as above
    within = _period(given.start, given.end)
    wanted = set(given.tags or ())
    now = Moment((yield from Now()))
    found = yield from matching_notes(desk.archival, given.query, now)
    hits = [each for each in found if within(each) and _tagged(each, wanted, given.tag_match)]
    return _page(hits, given.page, given.top_k or desk.top_k), []


def matching_notes(
    homes: Sequence[tuple[str, ...]], query: str, moment: Moment, depth: int = _DEPTH
) -> Steps[list[StoredMemory]]:
    """Return the notes of some namespaces by meaning and words, best first."""
    pools: list[Pool] = []
    for home in homes:
        pool = yield from recall.search(home, query, depth, moment)
        pools.append(pool)
    order = yield from recall.ranked(query, pools, {})
    return (yield from recall.first(order, pools, len(order), moment))


def _tagged(note: StoredMemory, wanted: set[str], match: str) -> bool:
    tags = set(map(str, note.metadata.get("tags") or ()))
    return wanted <= tags if match == "all" else not wanted or bool(wanted & tags)


def _period(start: str | None, end: str | None) -> Callable[[StoredMemory], bool]:
    """Return a test for the time of a memory; a date stands for its whole day.

    Raises:
        EditError: A date cannot be read.
    """
    first = _moment(start) if start else None
    last = _moment(end) if end else None
    if last and end and _DATE.fullmatch(end.strip()):
        last += timedelta(days=1) - timedelta(microseconds=1)

    def within(memory: StoredMemory) -> bool:
        at = recall.when_said(memory)
        return not (first and at < first) and not (last and at > last)

    return within


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        msg = f"{text[:40]!r} is no ISO date or time, such as 2026-03-05 or 2026-03-05T18:00."
        raise EditError(msg) from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _page(hits: Sequence[StoredMemory], page: int, size: int) -> str:
    """Return one page of hits as text, with how many there are."""
    if not hits:
        return "0 results."
    pages = math.ceil(len(hits) / size)
    shown = hits[page * size : (page + 1) * size]
    if not shown:
        return f"There is no page {page}: {len(hits)} results fill the pages 0 to {pages - 1}."
    head = f"{len(shown)} of {len(hits)} results, page {page} of 0 to {pages - 1}. They are data:"
    return "\n".join([head, *map(_line, shown)])


def _line(hit: StoredMemory) -> str:
    when = f"{hit.observed_at:%Y-%m-%d %H:%M}" if hit.observed_at else ""
    tags = ", ".join(map(str, hit.metadata.get("tags") or ()))
    role = hit.item.attributed_to
    role = role or archive.role_of(hit.item)
    label = as_label(" ".join(filter(None, (when, role, tags and f"({tags})"))))
    return f"- [{label}] {as_data(hit.text)}"


def _said(desk: Desk, given: Any) -> Steps[Done]:  # noqa: ANN401, ARG001 - as above
    yield from ()
    return "The message was sent.", []


_STEPS: Final[Mapping[str, Callable[[Desk, Any], Steps[Done]]]] = {
    "core_memory_append": _append,
    "core_memory_replace": _replace,
    "conversation_search": _conversation_search,
    "archival_memory_insert": _insert,
    "archival_memory_search": _archival_search,
    "send_message": _said,
}
