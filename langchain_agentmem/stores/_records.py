"""Stored items with everything a copy must keep, read from and written to any LangGraph store.

Our SQLite file and PostgreSQL are read and written below LangGraph's interface where it has no
words: the fields an item is indexed by, its timestamps, its expiry, and its vectors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from langgraph.store.base import BaseStore, PutOp

from langchain_agentmem.stores._indexing import extract
from langchain_agentmem.stores._namespaces import RESERVED_ROOT, decode, encode
from langchain_agentmem.stores._ops import check_op
from langchain_agentmem.stores._schema import MISREAD, UNIT_BITS
from langchain_agentmem.stores._values import from_micros, leave_out, load, to_micros
from langchain_agentmem.stores._vectors import decode as decode_vectors
from langchain_agentmem.stores.faiss_sqlite import FaissSqliteStore

if TYPE_CHECKING:
    from langchain_agentmem.stores._groups import Transaction
    from langchain_agentmem.stores.postgres import PooledPostgresStore

_PAGE: Final = 1000

Index = Literal[False] | list[str] | None


@dataclass(frozen=True, slots=True)
class Record:
    """One item as a copy keeps it.

    Attributes:
        namespace: Where it lies.
        key: Its key.
        value: Its value.
        index: What it was put with: its own fields, False for none, None for the store's.
        created_at: When it was first put.
        updated_at: When it was last put.
        ttl: Minutes to live from a read that refreshes; None for no end.
        expires_at: When it expires.
        vectors: The vectors of its texts, as far as they are known.
    """

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    index: Index
    created_at: datetime
    updated_at: datetime
    ttl: float | None = None
    expires_at: datetime | None = None
    vectors: dict[str, list[float]] = field(default_factory=dict)

    @property
    def put(self) -> PutOp:
        """The op that writes it, with the time it has left to live."""
        return PutOp(self.namespace, self.key, self.value, index=self.index, ttl=self.ttl)


def pooled(store: BaseStore) -> PooledPostgresStore | None:
    """Return the store if it is our PostgreSQL store."""
    try:
        from langchain_agentmem.stores.postgres import PooledPostgresStore
    except ImportError:
        return None
    return store if isinstance(store, PooledPostgresStore) else None


def read(store: BaseStore) -> Iterator[Sequence[Record]]:
    """Yield all live items in chunks, oldest update first where the store knows it."""
    if isinstance(store, FaissSqliteStore):
        return _read_file(store)
    postgres = pooled(store)
    return _read_interface(store) if postgres is None else _read_postgres(postgres)


def count(store: BaseStore) -> int | None:
    """Return how many live items there are, if the store can tell without reading them."""
    if isinstance(store, FaissSqliteStore):
        found = store.statistics()
        return found.items - found.expired
    postgres = pooled(store)
    if postgres is None:
        return None
    sql = "SELECT count(*) AS n FROM store WHERE expires_at IS NULL OR expires_at > now()"
    with postgres.connection() as connection:
        row = connection.execute(sql).fetchone()
    return None if row is None else int(row["n"])


def stamp(store: BaseStore, records: Iterable[Record]) -> bool:
    """Give written items the times of their records; returns whether the store can."""
    if isinstance(store, FaissSqliteStore):
        _stamp_file(store, list(records))
        return True
    postgres = pooled(store)
    if postgres is not None:
        _stamp_postgres(postgres, records)
    return postgres is not None


def _read_file(store: FaissSqliteStore) -> Iterator[Sequence[Record]]:
    now = to_micros(datetime.now(UTC))
    sql = "SELECT id FROM items WHERE expires_at IS NULL OR expires_at > ? ORDER BY updated_at, seq"
    connection, errors = store.conn, store._database.errors  # noqa: SLF001 - this room owns the file format
    with errors():
        rows = connection.execute(sql, (now,)).fetchall()
    for start in range(0, len(rows), _PAGE):
        ids = [row[0] for row in rows[start : start + _PAGE]]
        with errors():
            page = [record for item in ids for record in _file_record(store, item)]
        yield page


def _file_record(store: FaissSqliteStore, item: int) -> Iterator[Record]:
    row = store.conn.execute(
        "SELECT n.path, i.key, CAST(i.value AS BLOB), i.fields, i.created_at, i.updated_at, "
        "i.ttl_minutes, i.expires_at, i.checksum FROM items i "
        "JOIN namespaces n ON n.id = i.namespace_id WHERE i.id = ?",
        (item,),
    ).fetchone()
    if row is None:
        return
    path, key, text, fields, created, updated, ttl, expires, expected = row
    value = load(text, path, key, expected)
    if value is None:
        return
    try:
        index: Index = None if fields is None else json.loads(fields)
        record = Record(
            decode(path),
            key,
            value,
            index,
            from_micros(created),
            from_micros(updated),
            ttl,
            None if expires is None else from_micros(expires),
            _file_vectors(store, item, value, index),
        )
        check_op(record.put)
    except MISREAD:
        leave_out(path, key)
    else:
        yield record


def _file_vectors(
    store: FaissSqliteStore, item: int, value: dict[str, Any], index: Index
) -> dict[str, list[float]]:
    settings = store._settings  # noqa: SLF001 - this room owns the file format
    if settings is None or settings.dims is None:
        return {}
    rows = store.conn.execute(
        "SELECT digest, vector FROM units WHERE id >= ? AND id < ? AND vector IS NOT NULL",
        (item << UNIT_BITS, (item + 1) << UNIT_BITS),
    ).fetchall()
    stored = dict(rows)
    texts = {
        u.text: stored[u.digest] for u in extract(value, index, settings) if u.digest in stored
    }
    try:
        matrix = decode_vectors(list(texts.values()), settings.dims)
    except (ValueError, TypeError):
        return {}  # damaged; they are made anew
    return {text: vector.tolist() for text, vector in zip(texts, matrix, strict=True)}


def _stamp_file(store: FaissSqliteStore, records: Sequence[Record]) -> None:
    def work(transaction: Transaction) -> None:
        for record in records:
            expires = None if record.expires_at is None else to_micros(record.expires_at)
            change = transaction.next_change()
            transaction.connection.execute(
                "UPDATE items SET created_at = ?, updated_at = ?, expires_at = ?, seq = ?, "
                "change = ? "
                "WHERE namespace_id = (SELECT id FROM namespaces WHERE path = ?) AND key = ?",
                (
                    *(to_micros(record.created_at), to_micros(record.updated_at), expires),
                    *(change, change, encode(record.namespace), record.key),
                ),
            )

    store._open().committer.run(work)  # noqa: SLF001 - this room owns the file format


def _read_postgres(store: PooledPostgresStore) -> Iterator[Sequence[Record]]:
    fields = "NULL::text[]"
    if store.index_config is not None:
        fields = (
            "ARRAY(SELECT DISTINCT v.field_name FROM store_vectors v "
            "WHERE v.prefix = s.prefix AND v.key = s.key)"
        )
    sql = (
        f"SELECT prefix, key, value, created_at, updated_at, ttl_minutes, expires_at, "  # noqa: S608 - fixed text
        f"{fields} AS fields FROM store s WHERE (expires_at IS NULL OR expires_at > now()) "
        "ORDER BY updated_at, prefix, key LIMIT %s OFFSET %s"
    )
    offset = 0
    while True:
        with store.connection() as connection:
            rows = connection.execute(sql, (_PAGE, offset)).fetchall()
        yield [_postgres_record(row) for row in rows]
        if len(rows) < _PAGE:
            return
        offset += _PAGE


def _postgres_record(row: dict[str, Any]) -> Record:
    index: Index = None
    if row["fields"] is not None:
        # A path that gives several texts is noted with a number behind a dot for each.
        index = sorted({_path(name) for name in row["fields"]}) or False
    ttl = None if row["ttl_minutes"] is None else float(row["ttl_minutes"])
    return Record(
        tuple(row["prefix"].split(".")),
        row["key"],
        row["value"],
        index,
        row["created_at"].astimezone(UTC),
        row["updated_at"].astimezone(UTC),
        ttl,
        row["expires_at"],
    )


def _path(name: str) -> str:
    head, _, number = name.rpartition(".")
    return head if head and number.isdecimal() else name


def _stamp_postgres(store: PooledPostgresStore, records: Iterable[Record]) -> None:
    with store.connection() as connection:
        for record in records:
            connection.execute(
                "UPDATE store SET created_at = %s, updated_at = %s, expires_at = %s "
                "WHERE prefix = %s AND key = %s",
                (
                    *(record.created_at, record.updated_at, record.expires_at),
                    *(".".join(record.namespace), record.key),
                ),
            )


def _read_interface(store: BaseStore) -> Iterator[Sequence[Record]]:
    namespaces = {*_namespaces(store, None), *_namespaces(store, (RESERVED_ROOT,))}
    for namespace in sorted(namespaces):
        offset = 0
        index: Index = False if namespace[0] == RESERVED_ROOT else None
        while True:
            page = store.search(namespace, limit=_PAGE, offset=offset, refresh_ttl=False)
            yield [
                Record(
                    *(item.namespace, item.key, item.value, index),
                    *(item.created_at, item.updated_at),
                )
                for item in reversed(page)
                if item.namespace == namespace
            ]
            if len(page) < _PAGE:
                break
            offset += _PAGE


def _namespaces(store: BaseStore, prefix: tuple[str, ...] | None) -> Iterator[tuple[str, ...]]:
    offset = 0
    while True:
        page = store.list_namespaces(prefix=prefix, limit=_PAGE, offset=offset)
        yield from page
        if len(page) < _PAGE:
            return
        offset += _PAGE
