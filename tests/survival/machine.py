"""Random sequences of operations on a store and on a plain model, with restarts in between."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from langgraph.store.base import PutOp

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.testing import CharacterEmbeddings, ManualClock
from tests.survival.model import Model

_DIMS: Final = 8
_NAMESPACES: Final = [("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ("名",)]
_PREFIXES: Final = [(), *_NAMESPACES]
_WORDS: Final = ["red", "green", "blue", "grün", "上海"]

_namespaces = st.sampled_from(_NAMESPACES)
_prefixes = st.sampled_from(_PREFIXES)
_keys = st.sampled_from(["1", "2", "3", "4"])
_texts = st.lists(st.sampled_from(_WORDS), max_size=4).map(" ".join)
_numbers = st.sampled_from([None, 0, 1, 2, 2.5, 2**70])
_values: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {}, optional={"text": _texts, "n": _numbers, "x": st.just([{}])}
)
_filters = st.one_of(
    st.none(),
    st.fixed_dictionaries({"n": _numbers}),
    st.fixed_dictionaries({"n": st.fixed_dictionaries({"$gt": st.integers(0, 2)})}),
)
_ops = st.builds(
    PutOp,
    _namespaces,
    _keys,
    st.one_of(_values, st.none()),
    index=st.sampled_from([None, None, None, False]),
    ttl=st.sampled_from([None, None, 1.0, 3.0]),
)


class SyncMachine(RuleBasedStateMachine):
    """Every answer of the store is the model's; called through the sync methods."""

    @initialize()
    def begin(self) -> None:
        """Start with an empty file."""
        self.folder = tempfile.TemporaryDirectory()
        self.clock = ManualClock()
        self.embedder = CharacterEmbeddings(_DIMS)
        self.model = Model(self.clock, self.embedder)
        self.store = self._open()

    def _open(self) -> FaissSqliteStore:
        index: Any = {"dims": _DIMS, "embed": self.embedder, "fields": ["text"]}
        path = Path(self.folder.name) / "store.sqlite"
        return FaissSqliteStore(path, index=index, clock=self.clock, synchronous="normal")

    def call(self, name: str, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - any method
        """Call a method of the store."""
        return getattr(self.store, name)(*args, **options)

    @rule(ops=st.lists(_ops, min_size=1, max_size=4))
    def write(self, ops: list[PutOp]) -> None:
        """Put and delete in one batch."""
        self.call("batch", ops)
        self.model.write(ops)

    @rule(op=_ops, version=st.sampled_from([None, 1]))
    def write_if(self, op: PutOp, version: int | None) -> None:
        """Write only if the item is there, or is not."""
        place = (op.namespace, op.key)
        if (place in self.model.live()) == (version == 1):
            self.call("batch", [op], expect={place: version})
            self.model.write([op])
        else:
            with pytest.raises(ConflictError):
                self.call("batch", [op], expect={place: version})

    @rule(namespace=_namespaces, key=_keys, refresh=st.booleans())
    def get(self, namespace: tuple[str, ...], key: str, refresh: bool) -> None:
        """Get an item with its times."""
        item = self.call("get", namespace, key, refresh_ttl=refresh)
        entry = self.model.live().get((namespace, key))
        if entry is None:
            assert item is None
        else:
            assert (item.value, item.created_at, item.updated_at) == (
                *(entry.value, entry.created, entry.updated),
            )
            if refresh:
                self.model.refresh((namespace, key))

    @rule(
        prefix=_prefixes,
        filter_=_filters,
        limit=st.integers(0, 6),
        offset=st.integers(0, 3),
    )
    def search(
        self, prefix: tuple[str, ...], filter_: dict[str, Any] | None, limit: int, offset: int
    ) -> None:
        """List a scope, newest first."""
        options = {"filter": filter_, "limit": limit, "offset": offset, "refresh_ttl": False}
        found = self.call("search", prefix, **options)
        wanted = self.model.scope(prefix, filter_)[offset : offset + limit]
        assert [(item.namespace, item.key) for item in found] == wanted

    @rule(prefix=_prefixes, query=_texts.filter(bool))
    def rank(self, prefix: tuple[str, ...], query: str) -> None:
        """Rank a scope by vectors."""
        options = {"query": query, "mode": "dense", "limit": 100, "refresh_ttl": False}
        found = self.call("search", prefix, **options)
        scores = {(item.namespace, item.key): item.score for item in found}
        assert scores == pytest.approx(self.model.ranking(prefix, query), abs=1e-5)
        assert list(scores.values()) == sorted(scores.values(), reverse=True)

    @rule(prefix=_prefixes, words=st.lists(st.sampled_from(_WORDS[:4]), min_size=1, max_size=2))
    def find(self, prefix: tuple[str, ...], words: list[str]) -> None:
        """Find a scope's items by words."""
        query = " ".join(words)
        options = {"query": query, "mode": "lexical", "limit": 100, "refresh_ttl": False}
        found = {(item.namespace, item.key) for item in self.call("search", prefix, **options)}
        assert found == self.model.holding(prefix, set(words))

    @rule(namespace=_namespaces, vacuum=st.booleans())
    def erase(self, namespace: tuple[str, ...], vacuum: bool) -> None:
        """Erase a namespace."""
        count = self.call("delete_namespace", namespace, vacuum=vacuum)
        assert count == self.model.erase(namespace)

    @rule()
    def sweep(self) -> None:
        """Remove what has expired."""
        assert self.call("sweep_ttl") == self.model.sweep()

    @rule(minutes=st.sampled_from([-2, -0.5, 0, 0.5, 1, 2]))
    def wait(self, minutes: float) -> None:
        """Let time pass, or run backwards."""
        self.clock.advance(minutes=minutes)

    @rule()
    def reindex(self) -> None:
        """Rebuild vectors and words; nothing seems to happen."""
        assert self.call("reindex") == len(self.model.rows)

    @rule()
    def restart(self) -> None:
        """Close the file and open it again."""
        self.store.close()
        self.store = self._open()

    @invariant()
    def lists_namespaces(self) -> None:
        """The namespaces are those that hold an item."""
        assert self.call("list_namespaces") == self.model.namespaces()

    def teardown(self) -> None:
        """Close and remove the file, which must be sound."""
        (verdict,) = self.store.conn.execute("PRAGMA integrity_check").fetchone()
        self.store.close()
        self.folder.cleanup()
        assert verdict == "ok"


class AsyncMachine(SyncMachine):
    """The same through the async methods, each call on a loop of its own."""

    def call(self, name: str, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - any method
        """Await the async twin of a method."""
        return asyncio.run(getattr(self.store, f"a{name}")(*args, **options))


MACHINES: Final = (SyncMachine, AsyncMachine)


def run(kind: type[SyncMachine], examples: int, steps: int, *, simplify: bool = True) -> None:
    """Run sequences of random operations.

    Args:
        kind: One of `MACHINES`.
        examples: How many sequences.
        steps: How many operations a sequence has at most.
        simplify: Whether a failure is made as short as it can be, which takes minutes.
    """
    limits = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=[Phase.generate, Phase.shrink] if simplify else [Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_machine(kind, settings=limits)
