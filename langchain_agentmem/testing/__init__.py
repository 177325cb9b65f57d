"""Published test tools: the store conformance kit, its doubles, and a scripted chat model.

The kit needs pytest and langgraph only. Names load at first use, so that one tool does not import
what another needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_agentmem._lazy import lazy_names

if TYPE_CHECKING:
    from langchain_agentmem.testing.conformance import (
        AsyncBaseStoreConformance as AsyncBaseStoreConformance,
    )
    from langchain_agentmem.testing.conformance import (
        BaseStoreConformance as BaseStoreConformance,
    )
    from langchain_agentmem.testing.doubles import AsymmetricEmbeddings as AsymmetricEmbeddings
    from langchain_agentmem.testing.doubles import CharacterEmbeddings as CharacterEmbeddings
    from langchain_agentmem.testing.doubles import ManualClock as ManualClock
    from langchain_agentmem.testing.doubles import TableEmbeddings as TableEmbeddings
    from langchain_agentmem.testing.scripted import Request as Request
    from langchain_agentmem.testing.scripted import ScriptedChatModel as ScriptedChatModel
    from langchain_agentmem.testing.scripted import UnexpectedCallError as UnexpectedCallError

_HOMES = {
    "AsymmetricEmbeddings": "doubles",
    "AsyncBaseStoreConformance": "conformance",
    "BaseStoreConformance": "conformance",
    "CharacterEmbeddings": "doubles",
    "ManualClock": "doubles",
    "Request": "scripted",
    "ScriptedChatModel": "scripted",
    "TableEmbeddings": "doubles",
    "UnexpectedCallError": "scripted",
}

__all__ = [
    "AsymmetricEmbeddings",
    "AsyncBaseStoreConformance",
    "BaseStoreConformance",
    "CharacterEmbeddings",
    "ManualClock",
    "Request",
    "ScriptedChatModel",
    "TableEmbeddings",
    "UnexpectedCallError",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
