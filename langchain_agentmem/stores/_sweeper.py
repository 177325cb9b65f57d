"""A daemon thread that removes expired items now and then, started only when asked for."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from langchain_agentmem.errors import StorageError

_logger = logging.getLogger(__name__)


class Sweeper:
    """Calls a function at an interval until it is stopped.

    Args:
        sweep: Removes expired items and returns how many.
    """

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._future: Future[None] = Future()

    def start(self, interval_s: float) -> Future[None]:
        """Start the thread unless it runs; cancelling the future stops it."""
        if self._thread is not None and self._thread.is_alive():
            return self._future
        self._stop = stop = threading.Event()
        future: Future[None] = Future()
        self._future = future
        future.add_done_callback(lambda done: stop.set() if done.cancelled() else None)
        self._thread = threading.Thread(
            target=self._run, args=(interval_s, stop, future), name="agentmem-sweeper", daemon=True
        )
        self._thread.start()
        return future

    def stop(self, timeout: float | None = None) -> bool:
        """Stop the thread; returns whether it has ended within `timeout` seconds."""
        self._stop.set()
        if self._thread is None or self._thread is threading.current_thread():
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self, interval_s: float, stop: threading.Event, future: Future[None]) -> None:
        while not stop.wait(interval_s):
            try:
                self._sweep()
            except StorageError:
                _logger.exception("Expired items could not be removed; the sweeper tries again.")
        if not future.cancelled():
            future.set_result(None)
