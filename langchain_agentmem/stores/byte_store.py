"""`LangGraphByteStore`: a LangGraph store as the byte store of langchain-core."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

from langchain_core.stores import BaseStore as CoreStore
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchOp

from langchain_agentmem.stores._calls import (
    Call,
    Work,
    adrive,
    as_namespace,
    drive,
    require_store,
)

_FIELD: Final = "data"
_PAGE: Final = 1000


class LangGraphByteStore(CoreStore[str, bytes]):
    """A namespace of a LangGraph store as a core `ByteStore`, for caches and document stores.

    Bytes are kept as base64 in `{"data": ...}` and never embedded. Only this very namespace is
    read and written, not what lies below it.

    Args:
        store: The LangGraph store.
        namespace: Where the values live; it must not be empty.

    Raises:
        ConfigurationError: If the store is no LangGraph store or the namespace is empty.

    Example:
        ```python
        from langgraph.store.memory import InMemoryStore

        from langchain_agentmem.stores import LangGraphByteStore

        cache = LangGraphByteStore(InMemoryStore(), ("cache",))
        cache.mset([("a", b"1")])
        cache.mget(["a", "b"])  # [b"1", None]
        ```
    """

    def __init__(self, store: BaseStore, namespace: Sequence[str]) -> None:
        self.store = require_store(store)
        self.namespace = as_namespace(namespace, "LangGraphByteStore")

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the value of each key, None where there is none, in the order of the keys.

        Raises:
            ValueError: If an item of this namespace was not written by a byte store.
        """
        return drive(self._mget(keys))

    async def amget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Do what `mget` does without blocking the loop."""
        return await adrive(self._mget(keys))

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Write values as one batch; an existing key is overwritten.

        Raises:
            TypeError: If a key is no string or a value no bytes; nothing was written.
        """
        drive(self._mset(key_value_pairs))

    async def amset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Do what `mset` does without blocking the loop."""
        await adrive(self._mset(key_value_pairs))

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete keys as one batch; missing ones are ignored."""
        drive(self._mdelete(keys))

    async def amdelete(self, keys: Sequence[str]) -> None:
        """Do what `mdelete` does without blocking the loop."""
        await adrive(self._mdelete(keys))

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield all keys, or those that begin with a prefix; all are read before the first."""
        yield from drive(self._keys(prefix))

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Do what `yield_keys` does without blocking the loop."""
        for key in await adrive(self._keys(prefix)):
            yield key

    def _batch(self, ops: list[Any]) -> Call:
        return Call(self.store, "batch", (ops,))

    def _mget(self, keys: Sequence[str]) -> Work[list[bytes | None]]:
        unique = list(dict.fromkeys(keys))
        found = yield self._batch([GetOp(self.namespace, key) for key in unique])
        values = dict(zip(unique, found, strict=True))
        return [None if values[key] is None else _decoded(values[key]) for key in keys]

    def _mset(self, pairs: Sequence[tuple[str, bytes]]) -> Work[None]:
        for key, value in pairs:
            if not isinstance(key, str) or not isinstance(value, bytes | bytearray | memoryview):
                kinds = f"{type(key).__name__} and {type(value).__name__}"
                msg = f"A byte store keeps bytes under strings, not {kinds} (key {key!r})."
                raise TypeError(msg)
        encoded = {key: base64.b64encode(value).decode() for key, value in pairs}
        yield self._batch(
            [
                PutOp(self.namespace, key, {_FIELD: text}, index=False)
                for key, text in encoded.items()
            ]
        )

    def _mdelete(self, keys: Sequence[str]) -> Work[None]:
        yield self._batch([PutOp(self.namespace, key, None) for key in dict.fromkeys(keys)])

    def _keys(self, prefix: str | None) -> Work[list[str]]:
        keys: dict[str, None] = {}
        offset = 0
        while True:
            op = SearchOp(self.namespace, limit=_PAGE, offset=offset, refresh_ttl=False)
            (page,) = yield self._batch([op])
            own = (item.key for item in page if item.namespace == self.namespace)
            keys.update(dict.fromkeys(key for key in own if key.startswith(prefix or "")))
            if len(page) < _PAGE:
                return list(keys)
            offset += _PAGE


def _decoded(item: Item) -> bytes:
    data = item.value.get(_FIELD)
    if not isinstance(data, str):
        msg = (
            f"The item {item.key!r} in {item.namespace!r} holds no bytes, so that something else "
            "wrote it; give the byte store a namespace of its own."
        )
        raise ValueError(msg)  # noqa: TRY004 - the value in the store is wrong, not the argument
    return base64.b64decode(data)
