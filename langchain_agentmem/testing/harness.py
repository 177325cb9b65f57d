"""What all conformance suites share: capabilities, opening stores, and expected failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from langgraph.store.base import BaseStore, IndexConfig, TTLConfig

from langchain_agentmem.testing.doubles import ManualClock, RecordingEmbeddings
from langchain_agentmem.testing.runners import Runner

_LONGEST_SLEEP_S: Final = 0.05


def index_of(
    embedder: RecordingEmbeddings, fields: Sequence[str] = ("text",), **more: object
) -> dict[str, Any]:
    """Return the configuration of an index with the embedder, by default of the field `text`."""
    return {"dims": embedder.dims, "embed": embedder, "fields": list(fields), **more}


class StoreSuite:
    """Base of the suites: what a subclass says about its store.

    A subclass implements `create_store`, or only overrides the fixture `store` (then tests that
    need an index, a time to live or a second opening are skipped), and overrides the capability
    properties that differ. Every test opens its own store in a fresh directory.
    """

    runner_class: ClassVar[type[Runner]] = Runner

    def create_store(
        self,
        where: Path,  # noqa: ARG002 - for subclasses
        *,
        index: IndexConfig | None = None,  # noqa: ARG002 - for subclasses
        ttl: TTLConfig | None = None,  # noqa: ARG002 - for subclasses
        clock: Callable[[], datetime] | None = None,  # noqa: ARG002 - for subclasses
    ) -> Any:  # noqa: ANN401 - a store, a context manager or an async context manager
        """Return a store, or a context manager that gives one.

        Args:
            where: A directory that belongs to the test. A persistent store called twice with the
                same directory gives the same data.
            index: LangGraph's index configuration, with `distance_type` beside it where a test
                asks for one of `distance_types`.
            ttl: LangGraph's TTL configuration.
            clock: Returns the aware current time; None unless `accepts_clock`.
        """
        pytest.skip("create_store is not implemented, so no store can be opened with options")

    def reopen(
        self,
        where: Path,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> Any:  # noqa: ANN401 - as create_store
        """Return a second store over the data of the first; `create_store` again by default."""
        return self.create_store(where, index=index, ttl=ttl, clock=clock)

    @property
    def supports_vectors(self) -> bool:
        """Whether the store can be opened with an index."""
        return True

    @property
    def supports_ttl(self) -> bool:
        """Whether items can expire."""
        return False

    @property
    def accepts_clock(self) -> bool:
        """Whether `create_store` uses the clock it is given."""
        return False

    @property
    def shortest_ttl_minutes(self) -> float:
        """The time to live the tests use when the store has no clock of its own."""
        return 0.0005

    @property
    def persistent(self) -> bool:
        """Whether data outlives the store object."""
        return False

    @property
    def multi_process(self) -> bool:
        """Whether several open stores, also in several processes, may share the data."""
        return False

    @property
    def dotted_filter_paths(self) -> bool:
        """Whether `"a.b"` in a filter reads field `b` of the object `a`."""
        return False

    @property
    def filter_extensions(self) -> bool:
        """Whether filters know `$in $nin $exists $contains $and $or $not`."""
        return False

    @property
    def distance_types(self) -> tuple[str, ...]:
        """Which of `cosine`, `inner_product` and `l2` the index can use."""
        return ("cosine",)

    @property
    def namespace_delete(self) -> bool:
        """Whether `delete_namespace(prefix)` exists."""
        return False

    @property
    def lexical_search(self) -> bool:
        """Whether `lexical_search(prefix, query)` exists."""
        return False

    @property
    def expected_failures(self) -> Mapping[str, str]:
        """Tests known to fail, by name, with the reason; one that passes turns the run red."""
        return {}

    @property
    def unstable_failures(self) -> Mapping[str, str]:
        """Tests whose wrong result depends on chance, by name; they may pass."""
        return {}

    @pytest.fixture(autouse=True)
    def _mark_expected_failures(self, request: pytest.FixtureRequest) -> None:
        """Turn the tables of known failures into strict and lax xfail marks."""
        names = {request.node.name, getattr(request.node, "originalname", None)}
        for table, strict in ((self.expected_failures, True), (self.unstable_failures, False)):
            for name in names & table.keys():
                reason = table[name]
                request.node.add_marker(pytest.mark.xfail(reason=reason, strict=strict))

    @pytest.fixture
    def runner(self) -> Iterator[Runner]:
        """Give what opens and calls the stores of one test."""
        with self.runner_class() as runner:
            yield runner

    @pytest.fixture
    def opener(self, runner: Runner, tmp_path: Path) -> StoreOpener:
        """Give what opens stores with options."""
        return StoreOpener(self, runner, tmp_path)

    @pytest.fixture
    def store(self, opener: StoreOpener) -> BaseStore:
        """Give a store without index; override it to test one that only exists ready-made."""
        return opener.open()

    @pytest.fixture
    def subject(self, store: BaseStore, runner: Runner) -> BaseStore:
        """Give the store of the fixture `store` behind the calls of this suite."""
        return runner.enter(_Opened(store)) if runner.raw(store) is store else store

    def need(self, *capabilities: str) -> None:
        """Skip the test unless the store has all the capabilities."""
        missing = [name for name in capabilities if not getattr(self, name)]
        if missing:
            pytest.skip(f"the store does not declare {', '.join(missing)}")


class _Opened:
    """A store that somebody else opens and closes."""

    def __init__(self, store: BaseStore) -> None:
        self._store = store

    def __enter__(self) -> BaseStore:
        """Return the store."""
        return self._store

    def __exit__(self, *_: object) -> None:
        """Leave it open."""


class StoreOpener:
    """Opens the stores of one test in its directory, with the clock if the store takes one.

    Args:
        suite: The suite, which knows how to create a store.
        runner: What enters and closes them.
        where: The directory.
    """

    def __init__(self, suite: StoreSuite, runner: Runner, where: Path) -> None:
        self.clock = ManualClock()
        self._suite = suite
        self._runner = runner
        self.where = where

    def open(
        self,
        *,
        index: Mapping[str, Any] | None = None,
        ttl: Mapping[str, Any] | None = None,
        again: bool = False,
    ) -> BaseStore:
        """Return a store, opened; `again` for a second one over the same data."""
        if index is not None:
            self._suite.need("supports_vectors")
        if ttl is not None:
            self._suite.need("supports_ttl")
        create = self._suite.reopen if again else self._suite.create_store
        options: Any = {"index": index, "ttl": ttl}
        clock = self.clock if self._suite.accepts_clock else None
        return self._runner.enter(create(self.where, clock=clock, **options))

    @property
    def ttl_minutes(self) -> float:
        """A time to live that `wait` can outlast: one minute on an injected clock."""
        return 1.0 if self._suite.accepts_clock else self._suite.shortest_ttl_minutes

    def wait(self, minutes: float) -> None:
        """Let time pass; without an injected clock, skip the test if that takes long."""
        if self._suite.accepts_clock:
            self.clock.advance(minutes=minutes)
            return
        if 60 * minutes > _LONGEST_SLEEP_S:
            pytest.skip("the store takes no clock, and waiting for expiry would take too long")
        time.sleep(60 * minutes)

    def tick(self) -> None:
        """Let a little time pass, enough for two timestamps to differ."""
        if self._suite.accepts_clock:
            self.clock.advance(seconds=0.001)
        else:
            time.sleep(0.002)
