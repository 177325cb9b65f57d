"""What a damaged file makes the store raise: this package's errors, whatever a column holds."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langgraph.store.base import PutOp

from langchain_agentmem.errors import AgentMemoryError, CorruptStoreError
from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.stores.copying import copy_store
from tests.unit_tests.stores.conftest import Open

COLUMNS = {
    "meta": ("key", "value"),
    "namespaces": ("path", "scope"),
    "items": (
        *("namespace_id", "key", "value", "fields", "created_at", "updated_at", "seq", "change"),
        *("ttl_minutes", "expires_at", "checksum"),
    ),
    "removed": ("item", "places"),
    "units": ("digest", "vector", "terms"),
}
STRANGE = (b"", b"\x7f" * 72, "abc", 2**62, 1e300)
FLIPS = 50

Work = Callable[[FaissSqliteStore], object]
WORKS: dict[str, Work] = {
    "get": lambda store: [store.get(("a",), str(n)) for n in range(4)],
    "newest": lambda store: store.search(("a",)),
    "dense": lambda store: store.search(("a",), query="abc", mode="dense"),
    "lexical": lambda store: store.search(("a",), query="abc", mode="lexical"),
    "hybrid": lambda store: store.search((), query="abc", mode="hybrid", filter={"n": {"$gt": 0}}),
    "list": lambda store: store.list_namespaces(),
    "all keys": lambda store: store.all_keys(("a",)),
    "statistics": lambda store: store.statistics(),
    "check": lambda store: store.check(),
    "copy": lambda store: copy_store(store, FaissSqliteStore(":memory:", index=None)),
    "put": lambda store: store.put(("a",), "1", {"text": "abd", "n": 5}),
    "put again": lambda store: store.put(("a",), "2", {"text": "abc 2", "n": 2}),
    "expect": lambda store: store.batch(
        [PutOp(("a",), "0", {"text": "x"})], expect={(("a",), "0"): 1}
    ),
    "searched then": lambda store: store.search((), query="abc", mode="hybrid"),
    "delete": lambda store: store.delete(("a",), "3"),
    "sweep": lambda store: store.sweep_ttl(),
    "reindex": lambda store: store.reindex(),
    "delete all": lambda store: store.delete_namespace(("b",)),
}


@pytest.fixture
def sound(open_store: Open, tmp_path: Path) -> Path:
    """A sound file of a few items, with everything a file can hold."""
    store = open_store(tmp_path / "sound.db")
    for n in range(6):
        store.put(("a",), str(n), {"text": f"abc {n}", "n": n}, ttl=5 if n == 2 else None)
    store.put(("b", "ü"), "fields", {"other": "xyz"}, index=["other"])
    store.delete(("a",), "5")
    store.checkpoint()
    store.close()
    return tmp_path / "sound.db"


def _unexpected(store: FaissSqliteStore) -> Iterator[str]:
    """Do everything with a damaged file; yields what is raised that is not this package's."""
    for name, work in WORKS.items():
        try:
            work(store)
        except AgentMemoryError:
            pass
        except Exception as err:  # noqa: BLE001 - what must not be
            yield f"{name}: {type(err).__name__}: {err}"
    store.close()


@pytest.mark.parametrize("column", [f"{t}.{c}" for t, names in COLUMNS.items() for c in names])
def test_strange_value_in_a_column_raises_only_our_errors(
    open_store: Open, sound: Path, column: str
) -> None:
    """A value of another type, size or range never ends in an error of Python's own."""
    table, name = column.split(".")
    found: list[str] = []
    damaged = sound.with_name("damaged.db")
    for value in STRANGE:
        damaged.write_bytes(sound.read_bytes())
        store = open_store(damaged, synchronous="normal")
        store.search((), query="abc", filter={"n": 1})
        store.conn.execute(f"UPDATE OR IGNORE {table} SET {name} = ?", (value,))  # noqa: S608
        if table == "items":
            store.conn.execute("UPDATE items SET change = 900 WHERE typeof(change) = 'integer'")
        found += (f"{value!r}: {text}" for text in _unexpected(store))
    assert found == []


def test_flipped_bit_raises_only_our_errors(open_store: Open, sound: Path) -> None:
    """Whichever bit of the file flips, it is read, refused with our error, or told by check."""
    data, rng = sound.read_bytes(), random.Random(5)  # noqa: S311 - to choose bits
    found: list[str] = []
    for _ in range(FLIPS):
        place, bit = rng.randrange(len(data)), rng.randrange(8)
        flipped = bytearray(data)
        flipped[place] ^= 1 << bit
        damaged = sound.with_name("damaged.db")
        damaged.write_bytes(flipped)
        store = open_store(damaged, synchronous="normal")
        found += (f"byte {place} bit {bit}: {text}" for text in _unexpected(store))
    assert found == []


@pytest.mark.parametrize("change", ["created_at = 4611686018427387904", "key = x'33'"])
def test_row_with_a_strange_time_or_key_hides_no_other(open_store: Open, change: str) -> None:
    """Lists and searches leave the row out, and a page is filled with the next ones."""
    store = open_store()
    for n in range(6):
        store.put(("a",), str(n), {"text": "abc"})
    store.conn.execute(f"UPDATE items SET {change} WHERE key = '3'")  # noqa: S608 - ours
    assert [item.key for item in store.search(("a",), limit=3)] == ["5", "4", "2"]
    for mode in ("dense", "lexical", "hybrid"):
        found = store.search(("a",), query="abc", mode=mode, limit=3)
        assert [item.key for item in found] == ["5", "4", "2"]
    assert store.get(("a",), "3") is None


@pytest.mark.parametrize("blob", [b"", b"\0" * 71, b"\xff" * 72, b"\xff" * 76])
def test_damaged_vector_is_refused_and_made_anew(open_store: Open, blob: bytes) -> None:
    """A vector of a wrong size, or not finite, raises; reindex, which the message names, heals."""
    store = open_store()
    store.put(("a",), "1", {"text": "abc"})
    store.conn.execute("UPDATE units SET vector = ?", (blob,))
    with pytest.raises(CorruptStoreError, match="agentmem doctor"):
        store.search(("a",), query="abc")
    assert store.check() == [
        "1 items have no sound vector; run 'agentmem doctor --repair', or call reindex()."
    ]
    store.reindex()
    assert store.search(("a",), query="abc")[0].score == pytest.approx(1)
