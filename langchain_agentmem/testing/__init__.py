"""Published test helpers: a scripted chat model. They import nothing of this package but errors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_agentmem.testing.scripted import Request as Request
    from langchain_agentmem.testing.scripted import ScriptedChatModel as ScriptedChatModel
    from langchain_agentmem.testing.scripted import UnexpectedCallError as UnexpectedCallError

_HOMES = {
    "Request": "scripted",
    "ScriptedChatModel": "scripted",
    "UnexpectedCallError": "scripted",
}

__all__ = ["Request", "ScriptedChatModel", "UnexpectedCallError"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name may be asked for
    """Load a public name from its home at first use (PEP 562)."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
