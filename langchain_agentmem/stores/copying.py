"""Copying a store: from a file to a server and back, resumable and verified."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, GetOp, Item

from langchain_agentmem.embeddings import default_embeddings
from langchain_agentmem.errors import StorageError
from langchain_agentmem.stores._calls import require_store
from langchain_agentmem.stores._records import Record, count, read, stamp
from langchain_agentmem.stores.open import file_of, open_store

_CHUNK: Final = 200
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What a copy did, after it was verified.

    Attributes:
        items: How many items the source has.
        written: How many had to be written; the others were there already, equal.
        kept_times: Whether the target took over timestamps and expiry.
        sha256: Digest of all copied namespaces, keys and values, equal on both sides.
        reused: How many texts kept the source's vectors; `copy_urls` counts them.
        embedded: How many texts were embedded anew; `copy_urls` counts them.
        unreadable: How many items the source has besides whose values cannot be read.
    """

    items: int
    written: int
    kept_times: bool
    sha256: str
    reused: int = 0
    embedded: int = 0
    unreadable: int = 0


class _Reused(Embeddings):
    """An embedder that knows some vectors already.

    Attributes:
        known: Vectors by text.
        reused: How many texts were answered from `known`.
        embedded: How many texts the model embedded.
    """

    def __init__(self, model: Embeddings) -> None:
        self._model = model
        self.known: dict[str, list[float]] = {}
        self.reused = 0
        self.embedded = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of the model
        """Give the model's own attributes, its name and dimensions above all."""
        return getattr(self._model, name)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return known vectors, and the model's for the other texts."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        vectors = dict(zip(new, self._model.embed_documents(new) if new else [], strict=True))
        self.embedded += len(new)
        self.reused += len(texts) - len(new)
        return [self.known.get(text) or vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the model's vector of a query."""
        return self._model.embed_query(text)


def copy_urls(
    source: str,
    target: str,
    *,
    embeddings: Embeddings | None = None,
    fields: Sequence[str] = ("$",),
    progress: Callable[[int, int | None], None] | None = None,
) -> CopyReport:
    """Copy everything from one store to another; both were indexed with the same model.

    Items that are there already and equal are not written again, so that an interrupted copy
    continues. Items only the target has stay. Nothing else should write to either meanwhile.

    Args:
        source: The URL of the store to read, as in `open_store`.
        target: The URL of the store to write.
        embeddings: The model of both stores; the bundled one by default.
        fields: Paths both stores index unless an item has its own.
        progress: Called after each chunk with the number of items done, and of all if it is known.

    Returns:
        What was done; the target has been read back and compared.

    Raises:
        ConfigurationError: If a URL or the model cannot be used.
        StorageError: If the source does not exist, or the comparison finds a difference.
    """
    path = file_of(source)
    if path is not None and not Path(path).exists():
        msg = f"There is no store file {path} to copy from."
        raise StorageError(msg)
    model = embeddings or default_embeddings()
    reusing = _reusing(model)
    with (
        open_store(source, index=_index(model, fields)) as old,
        open_store(target, index=_index(reusing, fields)) as new,
    ):
        report = copy_store(old, new, progress=progress, vectors=reusing.known)
    return replace(report, reused=reusing.reused, embedded=reusing.embedded)


def copy_store(
    source: BaseStore,
    target: BaseStore,
    *,
    progress: Callable[[int, int | None], None] | None = None,
    vectors: dict[str, list[float]] | None = None,
) -> CopyReport:
    """Copy everything from one open store to another and compare the result.

    Args:
        source: The store to read.
        target: The store to write; items it has beyond the source's stay.
        progress: Called after each chunk with the number of items done, and of all if it is known.
        vectors: Filled with the source's vectors by text before each chunk is written.

    Returns:
        What was done.

    Raises:
        StorageError: If reading the target back finds a difference.
    """
    require_store(source)
    require_store(target)
    done = written = 0
    kept, total = True, count(source)
    for page in read(source):
        for start in range(0, len(page), _CHUNK):
            chunk = page[start : start + _CHUNK]
            if vectors is not None:
                vectors.clear()
                vectors.update({t: v for record in chunk for t, v in record.vectors.items()})
            written += _write(target, chunk)
            kept = stamp(target, chunk) and kept
            done += len(chunk)
            if progress is not None:
                progress(done, total)
    items, digest = _compare(source, target, times=kept)
    unreadable = 0 if total is None else max(total - done, 0)
    return CopyReport(
        items=items,
        written=written,
        kept_times=kept,
        sha256=digest,
        unreadable=unreadable,
    )


def _write(target: BaseStore, records: Sequence[Record]) -> int:
    """Write the records the target does not have as they are; returns how many."""
    found = target.batch([GetOp(r.namespace, r.key, refresh_ttl=False) for r in records])
    changed = [
        record
        for record, item in zip(records, found, strict=True)
        if not isinstance(item, Item) or _text(item.value) != _text(record.value)
    ]
    if changed:
        target.batch([record.put for record in changed])
    return len(changed)


def _compare(source: BaseStore, target: BaseStore, *, times: bool) -> tuple[int, str]:
    """Read both sides; returns the number of items and the digest of their contents."""
    hashes, different = list[bytes](), list[str]()
    for page in read(source):
        found = target.batch([GetOp(r.namespace, r.key, refresh_ttl=False) for r in page])
        for record, item in zip(page, found, strict=True):
            text = _text(record.value)
            if not (
                isinstance(item, Item)
                and _text(item.value) == text
                and (not times or _same_times(item, record))
            ):
                different.append(f"{record.key!r} in {record.namespace}")
            content = _text([record.namespace, record.key, text])
            hashes.append(hashlib.sha256(content.encode()).digest())
    if different:
        msg = (
            f"{len(different)} of {len(hashes)} items differ after copying: "
            f"{', '.join(different[:_SHOWN])}. Did something write meanwhile? Copy again."
        )
        raise StorageError(msg)
    return len(hashes), hashlib.sha256(b"".join(sorted(hashes))).hexdigest()


def _same_times(item: Item, record: Record) -> bool:
    return (item.created_at, item.updated_at) == (record.created_at, record.updated_at)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _reusing(model: Embeddings) -> _Reused:
    """Wrap a model under its own class name, which is part of a file's fingerprint."""
    kind: type[_Reused] = type(type(model).__name__, (_Reused,), {})
    return kind(model)


def _index(model: Embeddings, fields: Iterable[str]) -> Any:  # noqa: ANN401 - an index configuration
    """Return one configuration that both kinds of store understand."""
    dims = getattr(model, "dims", None) or len(model.embed_query("dimensions"))
    config: Mapping[str, Any] = {"dims": dims, "embed": model, "fields": list(fields)}
    return dict(config)
