"""Searching a store with this package's options: one body for all stores that have them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, cast

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.stores._ops import StoreSearchOp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langgraph.store.base import Result, SearchItem, TTLConfig

    from langchain_agentmem.stores._indexing import IndexSettings
    from langchain_agentmem.stores._ops import SearchMode, StoreOp


class Searching(ABC):
    """The search methods of a store whose `batch` takes `StoreSearchOp`."""

    ttl_config: TTLConfig | None
    _settings: IndexSettings | None

    @abstractmethod
    def batch(self, ops: Iterable[StoreOp]) -> list[Result]:
        """Run ops as one whole."""

    @abstractmethod
    async def abatch(self, ops: Iterable[StoreOp]) -> list[Result]:
        """Do what `batch` does without blocking the loop."""

    def search(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
        mode: SearchMode | None = None,
        exact: bool = False,
    ) -> list[SearchItem]:
        """Search the items below a prefix.

        Args:
            namespace_prefix: The scope; `()` for everything but the reserved root.
            query: What to rank by; without one the newest update comes first.
            filter: Conditions on the values: fields, dotted paths, `$eq $ne $gt $gte $lt $lte $in
                $nin $exists $contains $and $or $not`. A missing field reads as null.
            limit: How many items to return at most.
            offset: How many to skip; pages follow each other without gap or repeat.
            refresh_ttl: Whether returned items start their time to live anew.
            mode: `"dense"`, `"lexical"` or `"hybrid"`; the store's own by default.
            exact: Whether to look in this very namespace only, not below it.

        Returns:
            Items with a score, higher is better; None without a query. They are `ScoredItem`s,
            whose `parts` say what a score is made of.

        Raises:
            ValueError: If a number, the filter or the namespace is not acceptable.
        """
        refresh = self._refreshes(refresh_ttl)
        op = StoreSearchOp(
            *(namespace_prefix, filter, limit, offset, query),
            refresh_ttl=refresh,
            mode=mode,
            exact=exact,
        )
        return cast("list[SearchItem]", self.batch([op])[0])

    async def asearch(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
        mode: SearchMode | None = None,
        exact: bool = False,
    ) -> list[SearchItem]:
        """Do what `search` does without blocking the loop."""
        refresh = self._refreshes(refresh_ttl)
        op = StoreSearchOp(
            *(namespace_prefix, filter, limit, offset, query),
            refresh_ttl=refresh,
            mode=mode,
            exact=exact,
        )
        return cast("list[SearchItem]", (await self.abatch([op]))[0])

    def _refreshes(self, refresh_ttl: bool | None) -> bool:
        """Return what a read does to the time to live when the call does not say."""
        if refresh_ttl is not None:
            return refresh_ttl
        return (self.ttl_config or {}).get("refresh_on_read", True)

    def lexical_search(
        self,
        namespace_prefix: tuple[str, ...],
        query: str,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        limit: int = 10,
        offset: int = 0,
    ) -> list[SearchItem]:
        """Search by words only (BM25 with k1 .9 and b .4 over the items of the scope).

        Args:
            namespace_prefix: The scope.
            query: Plain text; no character in it is syntax.
            filter: Conditions on the values.
            limit: How many items to return at most.
            offset: How many to skip.

        Returns:
            Items that share a word with the query, best first, scored from 0 to 1.

        Raises:
            ConfigurationError: If the store has no index.
        """
        self._need_index()
        if not query:
            return []
        return self.search(
            namespace_prefix,
            query=query,
            filter=filter,
            limit=limit,
            offset=offset,
            mode="lexical",
        )

    async def alexical_search(
        self,
        namespace_prefix: tuple[str, ...],
        query: str,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        limit: int = 10,
        offset: int = 0,
    ) -> list[SearchItem]:
        """Do what `lexical_search` does without blocking the loop."""
        self._need_index()
        if not query:
            return []
        return await self.asearch(
            namespace_prefix,
            query=query,
            filter=filter,
            limit=limit,
            offset=offset,
            mode="lexical",
        )

    def _need_index(self) -> None:
        if self._settings is None:
            msg = "The store has no index; open it with index='default' or index={'fields': [...]}."
            raise ConfigurationError(msg)
