"""Items as they lie in the file, and those that were read lately."""

import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from langchain_agentmem.stores._namespaces import decode
from langchain_agentmem.stores._schema import MISREAD
from langchain_agentmem.stores._values import from_micros, leave_out, load

FIELDS: Final = (
    "i.id, n.path, i.key, CAST(i.value AS BLOB), i.created_at, i.updated_at, i.ttl_minutes, "
    "i.checksum"
)
_MOST_SHARE: Final = 8  # a row that takes more than this part of the budget is not held
_ROW_BYTES: Final = 1_500
_VALUE_FACTOR: Final = 8  # a value, and what is made of it, take about as many times its text


class ItemRow:
    """One item as one write left it.

    Attributes:
        identity: The item's id.
        namespace: Its namespace.
        key: Its key.
        text: Its value as JSON text, known to be readable.
        created_at: When the key was first written.
        updated_at: When it was last written.
        has_ttl: Whether reading it may refresh its time to live.
        derived: What readers have made of the value, by their own names.
    """

    __slots__ = (
        "created_at",
        "derived",
        "has_ttl",
        "identity",
        "key",
        "namespace",
        "text",
        "updated_at",
    )

    def __init__(self, columns: Sequence[Any]) -> None:
        identity, path, key, text, created, updated, ttl, _ = columns
        self.identity: int = identity
        self.namespace: tuple[str, ...] = decode(path)
        self.key: str = key
        self.text: bytes = text
        self.created_at: datetime = from_micros(created)
        self.updated_at: datetime = from_micros(updated)
        self.has_ttl: bool = ttl is not None
        self.derived: dict[str, Any] = {}

    @classmethod
    def of(cls, columns: Sequence[Any]) -> "ItemRow | None":
        """Return the row of some columns, those of `FIELDS`; None if its value cannot be read."""
        _, path, key, text, _, _, _, expected = columns
        if load(text, path, key, expected) is None:
            return None
        try:
            return cls(columns)
        except MISREAD:
            leave_out(path, key)
            return None

    @property
    def nbytes(self) -> int:
        """Return about how many bytes it takes, with what is made of it."""
        return _ROW_BYTES + _VALUE_FACTOR * len(self.text)


class ItemRows:
    """Rows that searches have read, so that an unchanged item is read once.

    A row is known by its item and its write sequence, which every write makes anew: what a
    snapshot says of an item is never answered by a row of another snapshot. Safe for threads.

    Args:
        budget: How many bytes to hold; beyond, all rows are dropped and read anew.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._rows: dict[int, tuple[int, ItemRow]] = {}
        self._held = 0

    def __len__(self) -> int:
        """Return how many rows are held."""
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """Return about how many bytes are held."""
        return self._held

    def find(self, item: int, seq: int) -> ItemRow | None:
        """Return the row of an item as a write left it, if it is held."""
        held = self._rows.get(item)
        return held[1] if held is not None and held[0] == seq else None

    def keep(self, seq: int, row: ItemRow) -> None:
        """Hold a row."""
        if row.nbytes > self._budget // _MOST_SHARE:
            return
        with self._lock:
            self._forget(row.identity)
            if self._held + row.nbytes > self._budget:
                self._rows, self._held = {}, 0
            self._held += row.nbytes
            self._rows[row.identity] = seq, row

    def drop(self, item: int) -> None:
        """Forget the row of a removed item."""
        with self._lock:
            self._forget(item)

    def clear(self) -> None:
        """Forget all rows."""
        with self._lock:
            self._rows, self._held = {}, 0

    def _forget(self, item: int) -> None:
        _, row = self._rows.pop(item, (0, None))
        self._held -= row.nbytes if row else 0
