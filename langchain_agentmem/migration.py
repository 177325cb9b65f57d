"""Taking over memories that other packages wrote: dumps of LangMem's stores, exports of mem0.

A **LangMem dump** holds the items of a LangGraph store as JSON, one a line or in a list, as
`item.dict()` gives them: `namespace`, `key`, `value`, and times. A **mem0 export** is what
`memory.get_all(...)` returns: objects with `id`, `memory`, `metadata`, times and `user_id`, in a
list, one a line, or under `results` or `memories`.

Every memory keeps its key, so importing again changes nothing. It comes to lie in its user's bare
namespace, where every memory of this package reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from langchain_agentmem.errors import ConversationFormatError
from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation, parse_timestamp
from langchain_agentmem.messages import check_unicode
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.effects import Now, Steps
from langchain_agentmem.steps.origin import IDENTITY

ForeignFormat: TypeAlias = Literal["langmem", "mem0"]
FOREIGN_FORMATS: Final = ("langmem", "mem0")
Reject: TypeAlias = Callable[[str], None]

_ROOT: Final = "memories"
_LISTS: Final = ("results", "memories", "items")
_TEXTS: Final = ("memory", "data", "text")
_OWNERS: Final = ("user_id", "agent_id", "run_id")
_OWN: Final = "_mem0"
_CAUSE: Final = Cause(surface="import")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMemory:
    """One memory of another package.

    Attributes:
        user: Whose it is; None if the file does not say.
        below: Labels of its namespace below the user's.
        key: Its key there, which it keeps.
        item: What is remembered.
    """

    user: str | None
    below: tuple[str, ...] = ()
    key: str
    item: MemoryItem


class _UnreadableError(ValueError):
    """An entry cannot be read; the message says why, without the place."""


def read_memories(path: Path, form: ForeignFormat, reject: Reject) -> Iterator[ForeignMemory]:
    """Yield the memories of a file.

    Args:
        path: The file.
        form: Which package wrote it.
        reject: Called with the reason for each entry that cannot be read; may raise.

    Raises:
        ConversationFormatError: The file as a whole cannot be read.
    """
    read = _of_langmem if form == "langmem" else _of_mem0
    for place, entry in _entries(path):
        try:
            memory = read(_object(entry))
            check_unicode(memory.item.text)
        except ValueError as error:
            reject(f"{path}, {place}: {str(error).rstrip('.')}.")
        else:
            yield memory


def _object(entry: object) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        msg = f"a JSON object is needed, not {type(entry).__name__}"
        raise _UnreadableError(msg)
    return entry


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a file with their places.

    Raises:
        ConversationFormatError: It cannot be read, or is no JSON.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path} cannot be read: {getattr(error, 'strerror', None) or error}."
        raise ConversationFormatError(msg) from error
    try:
        whole = json.loads(text)
    except ValueError:
        yield from _lines(path, text)
        return
    if isinstance(whole, Mapping):
        named = next((whole[name] for name in _LISTS if isinstance(whole.get(name), list)), None)
        whole = [whole] if named is None else named
    if not isinstance(whole, list):
        msg = f"{path} holds a {type(whole).__name__}; give the list of memories."
        raise ConversationFormatError(msg)
    for number, entry in enumerate(whole, 1):
        yield f"entry {number}", entry


def _lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield f"line {number}", json.loads(line)
        except ValueError as error:
            msg = f"{path}, line {number} is no JSON: {error}."
            raise ConversationFormatError(msg) from error


def _of_langmem(entry: Mapping[str, Any]) -> ForeignMemory:
    namespace, key, value = entry.get("namespace"), entry.get("key"), entry.get("value")
    if not isinstance(value, Mapping) or not _is_text(key):
        msg = "an item of a store has 'namespace', 'key' and an object as 'value'"
        raise _UnreadableError(msg)
    labels = tuple(map(str, namespace)) if isinstance(namespace, list | tuple) else ()
    item = MemoryItem.from_value(value)
    if item.observed_at is None:
        item = replace(item, observed_at=_time(entry))
    owned = len(labels) > 1 and labels[0] == _ROOT
    return ForeignMemory(
        user=labels[1] if owned else None,
        below=labels[2:] if owned else (),
        key=str(key),
        item=replace(item, version=1),
    )


def _of_mem0(entry: Mapping[str, Any]) -> ForeignMemory:
    key = entry.get("id")
    text = next((entry[name] for name in _TEXTS if _is_text(entry.get(name))), None)
    if not _is_text(key) or text is None:
        msg = "a memory of mem0 has an 'id' and a 'memory' in words"
        raise _UnreadableError(msg)
    given = entry.get("metadata")
    metadata = dict(given) if isinstance(given, Mapping) else {}
    kept = {name: each for name, each in metadata.items() if name not in IDENTITY}
    further = {name: str(entry[name]) for name in ("agent_id", "run_id") if entry.get(name)}
    owner = next((entry[name] for name in _OWNERS if entry.get(name)), None)
    said_by = entry.get("actor_id") or entry.get("role")
    return ForeignMemory(
        user=None if owner is None else str(owner),
        key=str(key),
        item=MemoryItem(
            kind="fact",
            content=str(text),
            metadata={**kept, **({_OWN: further} if further else {})},
            observed_at=_time(entry),
            attributed_to=str(said_by) if said_by else None,
        ),
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _time(entry: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a datetime or None
    """Return when a memory was last written, if that can be read."""
    for name in ("updated_at", "created_at"):
        try:
            return parse_timestamp(str(entry[name]))
        except (KeyError, ValueError):
            continue
    return None


def import_steps(
    scope: tuple[str, ...], memories: Sequence[ForeignMemory]
) -> Steps[list[MemoryOperation]]:
    """Write memories of one user, in one batch.

    What is there already under the same key is left alone if it is the same or was archived here,
    and else gets the other content as a new version.

    Args:
        scope: The user's namespace.
        memories: The memories, each key at most once in a namespace.

    Raises:
        ConflictError: Another writer changed one of them at the same moment.
    """
    now = yield from Now()
    refs = [((*scope, *each.below), each.key) for each in memories]
    operations = []
    for ref, each, stored in zip(refs, memories, (yield from journal.read(refs)), strict=True):
        op = MemoryOperation(event="ADD", namespace=ref[0], key=ref[1], cause=_CAUSE)
        item = replace(each.item, observed_at=each.item.observed_at or now)
        if stored is None:
            operations.append(replace(op, after=item))
            continue
        old = stored.item
        changed = old.status == "active" and (old.content, old.kind) != (item.content, item.kind)
        op = replace(op, event="UPDATE" if changed else "NOOP", before=old)
        after = replace(item, version=old.version + 1) if changed else None
        operations.append(replace(op, after=after, reason=None if changed else "already there"))
    return (yield from journal.apply(operations))
