"""The border at which a turn goes on without its memory."""

from __future__ import annotations

import logging
from typing import TypeVar

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.steps.effects import Emit, Steps

T = TypeVar("T")

logger = logging.getLogger(__name__)


def fail_open(name: str, what: str, steps: Steps[T], *, raises: bool = False) -> Steps[T | None]:
    """Carry steps out; where they fail, log it, report `<what>_failed`, and return None.

    Args:
        name: Who does it.
        what: What it is, e.g. `"recall"`.
        steps: The steps.
        raises: Raise nevertheless.

    Raises:
        ConfigurationError: Something is set up wrongly; that is never passed over.
    """
    try:
        return (yield from steps)
    except ConfigurationError:
        raise
    except Exception as error:
        if raises:
            raise
        logger.warning("%s: %s failed: %r", name, what, error)
        yield from Emit(f"{what}_failed", {"name": name, "error": type(error).__name__})
        return None
