"""The search tool's steps: find what the scope may see, and show it to a model as data."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_core.messages import HumanMessage
from langchain_core.tools import ToolException
from langgraph.store.base import SearchItem

from langchain_agentmem.items import StoredMemory, to_timestamp
from langchain_agentmem.rendering import as_data
from langchain_agentmem.retrieval.budget import fit
from langchain_agentmem.scopes import closed
from langchain_agentmem.steps import recall
from langchain_agentmem.steps.effects import List, Now, Resolve, Search, Steps
from langchain_agentmem.stores._filters import compile_filter
from langchain_agentmem.stores._values import dump
from langchain_agentmem.surfaces._tool_calls import handle_of

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_agentmem.memories.base import Memory
    from langchain_agentmem.scopes import NamespaceTemplate

ResultFormat = Literal["json", "compact"]

MAX_LIMIT: Final = 50
_PAGE: Final = 50
_RECALL_POOL: Final = 200
_BINARY: Final = re.compile(
    r"data:[\w.+/-]*(?:;[\w=-]+)*;base64,[A-Za-z0-9+/=_-]*|[A-Za-z0-9+/_-]{200,}={0,2}"
)
_BINARY_NOTE: Final = "[binary data left out]"
# Whether there is a long run at all is known much quicker from the text with one letter for all 64.
_BASE64: Final = (string.ascii_letters + string.digits + "+/_-").encode()
_ONE_LETTER: Final = bytes.maketrans(_BASE64, b"0" * len(_BASE64))
_LONG_RUN: Final = b"0" * 200
_ESCAPED: Final = "<>\x85\u2028\u2029"
_ESCAPES: Final = {ord(each): f"\\u{ord(each):04x}" for each in _ESCAPED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a model searches for, brought within bounds.

    Attributes:
        text: The question.
        limit: At most this many.
        offset: Skip so many of the best.
        filter: Conditions on the stored values.
        notes: What was changed about the request.
    """

    text: str
    limit: int = 10
    offset: int = 0
    filter: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def wanted(self) -> int:
        """How many matches must be found to fill the page."""
        return self.offset + self.limit

    @property
    def passes(self) -> Callable[[StoredMemory], bool]:
        """The filter as a test of a memory as it is shown."""
        test = compile_filter(self.filter)
        return lambda memory: test is None or test(memory.item.to_value())


def bounded(text: str, limit: int, offset: int, conditions: object) -> Query:
    """Return a model's request as a query.

    Raises:
        ToolException: The filter cannot be used.
    """
    notes = []
    if not 1 <= limit <= MAX_LIMIT:
        notes.append(f"limit {limit} is out of bounds; it must be 1 to {MAX_LIMIT}")
    if offset < 0:
        notes.append(f"offset {offset} is out of bounds; it must be 0 or more")
    return Query(
        text=text.encode(errors="replace").decode(),
        limit=min(max(limit, 1), MAX_LIMIT),
        offset=max(offset, 0),
        filter=_filter(conditions),
        notes=tuple(notes),
    )


def _filter(given: object) -> Mapping[str, Any]:
    try:
        conditions = json.loads(given) if isinstance(given, str) and given.strip() else given
        compile_filter(conditions or None)  # type: ignore[arg-type]  # refuses what is no mapping
    except (ValueError, TypeError) as error:
        msg = (
            f"The filter cannot be used ({str(error)[:300]}). Give a JSON object of field and "
            'value or operators, e.g. {"kind": "text", "observed_at": {"$gte": "2026-01-01"}}; '
            "operators: $eq, $ne, $gt, $gte, $lt, $lte."
        )
        raise ToolException(msg) from error
    return conditions if isinstance(conditions, Mapping) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """Searches one namespace as a leaf, or through a memory's recall.

    Attributes:
        template: The namespace.
        memory: The memory whose recall finds; None for a search of the store.
        result_format: How results are written.
        min_score: Matches with a lower score are left out.
        max_tokens: Most tokens of the results.
    """

    template: NamespaceTemplate
    memory: Memory | None = None
    result_format: ResultFormat = "json"
    min_score: float | None = None
    max_tokens: int | None = None

    def steps(self, query: Query) -> Steps[tuple[str, list[StoredMemory]]]:
        """Return the results as text and as memories."""
        home = yield from Resolve(self.template)
        now = yield from Now()
        if _names_status(query.filter):
            found = yield from _everything(home, query)
        elif self.memory is not None:
            found = yield from _recalled(self.memory, query)
        else:
            found = yield from _current(home, query, now)
        good = [each for each in found if self._is_good(each)][query.offset : query.wanted]
        line = _compact_line if self.result_format == "compact" else _json_line
        kept = good if self.max_tokens is None else fit(good, self.max_tokens, text=line)
        notes = [*query.notes, *_left_out(len(good) - len(kept))]
        write = _compact if self.result_format == "compact" else _json
        return write([line(each) for each in kept], notes), kept

    def _is_good(self, memory: StoredMemory) -> bool:
        if self.min_score is None or memory.score is None:
            return True
        return memory.score >= self.min_score


def _current(home: tuple[str, ...], query: Query, now: datetime) -> Steps[list[StoredMemory]]:
    """Return the best current memories of a namespace, by the store's own ranking.

    A store that does not rank is read whole: by words for a query, the newest first without.
    """
    try:
        found = yield from _pages(home, query, now, query.filter)
    except (ValueError, TypeError, NotImplementedError):
        if not query.filter:
            raise
        # Stores differ in the filters they can do; what one refuses is compared here.
        found = yield from _pages(home, query, now, None)
    if not found or found[0].score is not None:
        return found
    listed = yield from _listed(home, query, now)
    if query.text:
        return _by_words(query.text, listed)
    return sorted(listed, key=recall.when_said, reverse=True)


def _pages(
    home: tuple[str, ...], query: Query, now: datetime, conditions: Mapping[str, Any] | None
) -> Steps[list[StoredMemory]]:
    """Read page after page until enough current memories are found."""
    page = Search(home, query.text or None, limit=query.wanted, filter=conditions)
    passes = query.passes if conditions is None else _always
    shown: list[StoredMemory] = []
    while len(shown) < query.wanted:
        found = yield from page
        shown += [each for each in found if each.item.is_current(now) and passes(each)]
        if len(found) < page.limit:
            break
        page = replace(page, offset=page.offset + page.limit, limit=max(query.wanted, _PAGE))
    return shown


def _always(_: StoredMemory) -> bool:
    return True


def _listed(home: tuple[str, ...], query: Query, now: datetime) -> Steps[list[StoredMemory]]:
    passes = query.passes
    found = yield from List(home)
    return [each for each in found if each.item.is_current(now) and passes(each)]


def _everything(home: tuple[str, ...], query: Query) -> Steps[list[StoredMemory]]:
    """Return all memories that pass the filter, superseded and archived ones too."""
    live = yield from List(home)
    hidden = yield from List(closed(home))
    everything = [*live, *(replace(each, namespace=home) for each in hidden)]
    passes = query.passes
    return _by_words(query.text, [each for each in everything if passes(each)])


def _by_words(query: str, found: Sequence[StoredMemory]) -> list[StoredMemory]:
    """Rank memories by the query's words; for equal scores their order stays."""
    scores = recall.word_scores(query, found)
    scored = [each.scored(score) for each, score in zip(found, scores, strict=True)]
    return sorted(scored, key=lambda each: each.score or 0.0, reverse=True)


def _recalled(memory: Memory, query: Query) -> Steps[list[StoredMemory]]:
    limit = _RECALL_POOL if query.filter else query.wanted
    state = {"messages": [HumanMessage(query.text)], "query": query.text, "limit": limit}
    final = yield from memory.recall_flow().drive(state)
    found = map(StoredMemory.from_dict, final.get("memories", []))
    return list(filter(query.passes, found))


def _names_status(conditions: object) -> bool:
    """Tell whether a filter says something about `status`, at its top or within its logic."""
    if isinstance(conditions, Mapping):
        return "status" in conditions or any(
            _names_status(part) for key, part in conditions.items() if str(key).startswith("$")
        )
    return isinstance(conditions, list) and any(map(_names_status, conditions))


def _left_out(count: int) -> list[str]:
    return [f"{count} more left out for length; narrow the query or use offset"] if count else []


def _value_and_meta(memory: StoredMemory) -> dict[str, Any]:
    return {
        "namespace": list(memory.namespace),
        "key": memory.key,
        "value": memory.item.to_value(),
        "created_at": to_timestamp(memory.created_at) if memory.created_at else None,
        "updated_at": to_timestamp(memory.updated_at) if memory.updated_at else None,
        "score": memory.score,
    }


def _json_line(memory: StoredMemory) -> str:
    """Return a memory as one line of JSON without markup characters and binary data."""
    text = _without_binary(dump(_value_and_meta(memory)))
    return text.translate(_ESCAPES) if any(each in text for each in _ESCAPED) else text


def _json(lines: Iterable[str], notes: Iterable[str]) -> str:
    return f"[{', '.join([*lines, *(json.dumps({'note': note}) for note in notes)])}]"


def _compact_line(memory: StoredMemory) -> str:
    """Return a memory as handle, date and content on one line."""
    when = memory.observed_at or memory.created_at
    day = f"{when.date()} " if when else ""
    content = as_data(_without_binary(memory.text)).replace("\n  ", "\\n")
    return f"{as_data(handle_of(memory.key))} {day}{content}"


def _compact(lines: Sequence[str], notes: Iterable[str]) -> str:
    return "\n".join([*(lines or ["No memories found."]), *(f"({note})" for note in notes)])


def _without_binary(text: str) -> str:
    found = ";base64," in text or _LONG_RUN in text.encode(errors="replace").translate(_ONE_LETTER)
    return _BINARY.sub(_BINARY_NOTE, text) if found else text


def as_search_item(memory: StoredMemory) -> SearchItem:
    """Return a memory as an item of a LangGraph store's search."""
    return SearchItem(
        namespace=memory.namespace,
        key=memory.key,
        value=memory.item.to_value(),
        created_at=memory.created_at or recall.when_said(memory),
        updated_at=memory.updated_at or recall.when_said(memory),
        score=memory.score,
    )
