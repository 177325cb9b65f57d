"""How a conformance test reaches a store: directly, or through its async methods on one loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from langgraph.store.base import BaseStore

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from typing import Self

    from langgraph.store.base import Item, Op, Result, SearchItem

_PATIENCE_S: Final = 120


class LoopThread:
    """An event loop in a thread of its own, so that async stores are tested without a plugin."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - any result
        """Run a coroutine on the loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_S)

    def close(self) -> None:
        """Cancel what is left and stop the loop."""
        self.run(_cancel_others())
        self.run(self._loop.shutdown_asyncgens())
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE_S)
        self._loop.close()


async def _cancel_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class AsyncCalls(BaseStore):
    """A store whose sync methods call the async methods of another one on a loop.

    Args:
        wrapped: The store under test.
        loop: Where its coroutines run.
    """

    def __init__(self, wrapped: BaseStore, loop: LoopThread) -> None:
        self.wrapped = wrapped
        self.supports_ttl = wrapped.supports_ttl
        self._loop = loop

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run `abatch`."""
        result: list[Result] = self._loop.run(self.wrapped.abatch(ops))
        return result

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Pass on."""
        return await self.wrapped.abatch(ops)

    def get(self, *args: Any, **options: Any) -> Item | None:  # noqa: ANN401 - passed on
        """Run `aget`."""
        result: Item | None = self._loop.run(self.wrapped.aget(*args, **options))
        return result

    def search(self, *args: Any, **options: Any) -> list[SearchItem]:  # noqa: ANN401 - passed on
        """Run `asearch`."""
        result: list[SearchItem] = self._loop.run(self.wrapped.asearch(*args, **options))
        return result

    def put(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - passed on
        """Run `aput`."""
        self._loop.run(self.wrapped.aput(*args, **options))

    def delete(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - passed on
        """Run `adelete`."""
        self._loop.run(self.wrapped.adelete(*args, **options))

    def list_namespaces(
        self,
        *args: Any,  # noqa: ANN401 - passed on
        **options: Any,  # noqa: ANN401 - passed on
    ) -> list[tuple[str, ...]]:
        """Run `alist_namespaces`."""
        result: list[tuple[str, ...]] = self._loop.run(
            self.wrapped.alist_namespaces(*args, **options)
        )
        return result


class Runner:
    """Opens stores and calls them synchronously; closes everything it opened."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Return the runner."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what was opened, the last one first."""
        self._stack.close()

    def enter(self, opened: Any) -> BaseStore:  # noqa: ANN401 - a store or a context manager
        """Return the store of a context manager, or a store as it is."""
        if hasattr(opened, "__enter__"):
            store: BaseStore = self._stack.enter_context(opened)
            return store
        return _a_store(opened)

    def raw(self, store: BaseStore) -> BaseStore:
        """Return the store under test itself."""
        return store

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - any result
        """Run a coroutine on a new loop."""
        return asyncio.run(work)

    def call(self, store: BaseStore, name: str, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - any method's
        """Call a method that LangGraph's interface does not have."""
        return getattr(store, name)(*args, **options)


class AsyncRunner(Runner):
    """Opens stores on one loop and calls their async methods there."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = LoopThread()
        self._stack.callback(self._loop.close)

    def enter(self, opened: Any) -> BaseStore:  # noqa: ANN401 - a store or a context manager
        """Enter the context manager on the loop, the async one first."""
        if hasattr(opened, "__aenter__"):
            store = self._loop.run(_enter(opened))
            self._stack.callback(lambda: self._loop.run(_leave(opened)))
        elif hasattr(opened, "__enter__"):
            store = self._stack.enter_context(opened)
        else:
            store = _a_store(opened)
        return AsyncCalls(store, self._loop)

    def raw(self, store: BaseStore) -> BaseStore:
        """Return the store under test itself."""
        return store.wrapped if isinstance(store, AsyncCalls) else store

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - any result
        """Run a coroutine on the loop of the stores."""
        return self._loop.run(work)

    def call(self, store: BaseStore, name: str, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - any method's
        """Call the async twin if there is one."""
        raw = self.raw(store)
        return self._loop.run(_await_if_needed(raw, name, args, options))


async def _enter(opened: Any) -> BaseStore:  # noqa: ANN401 - an async context manager
    store: BaseStore = await opened.__aenter__()
    return store


async def _leave(opened: Any) -> None:  # noqa: ANN401 - an async context manager
    await opened.__aexit__(None, None, None)


async def _await_if_needed(
    store: BaseStore, name: str, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:  # noqa: ANN401 - any result
    result = getattr(store, f"a{name}", getattr(store, name, None))(*args, **options)  # type: ignore[misc]  # either twin
    return await result if inspect.isawaitable(result) else result


def _a_store(opened: object) -> BaseStore:
    if not isinstance(opened, BaseStore):
        msg = f"create_store must return a store or a context manager, not {opened!r}"
        raise TypeError(msg)
    return opened
