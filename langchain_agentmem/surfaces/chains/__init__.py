"""Memory for classic LangChain chains: `ConversationChain(llm=llm, memory=...)`.

The classic class names and arguments, plus `store=` and `session_id=`; and `ChainMemory`, which
makes any architecture the memory of a chain. Needs the extra `[classic]`, because a chain accepts
nothing but subclasses of `langchain_classic.base_memory.BaseMemory`.

Users of the classic entity, knowledge-graph and vector-token-buffer memories: take `ChainMemory`
over a memory that extracts facts or a graph, or over `SummaryBufferMemory`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_agentmem._lazy import lazy_names

if TYPE_CHECKING:
    from langchain_agentmem.surfaces.chains.classic import (
        ConversationBufferMemory as ConversationBufferMemory,
    )
    from langchain_agentmem.surfaces.chains.classic import (
        ConversationBufferWindowMemory as ConversationBufferWindowMemory,
    )
    from langchain_agentmem.surfaces.chains.classic import (
        ConversationStringBufferMemory as ConversationStringBufferMemory,
    )
    from langchain_agentmem.surfaces.chains.classic import (
        ConversationSummaryBufferMemory as ConversationSummaryBufferMemory,
    )
    from langchain_agentmem.surfaces.chains.classic import (
        ConversationSummaryMemory as ConversationSummaryMemory,
    )
    from langchain_agentmem.surfaces.chains.classic import (
        ConversationTokenBufferMemory as ConversationTokenBufferMemory,
    )
    from langchain_agentmem.surfaces.chains.combined import CombinedMemory as CombinedMemory
    from langchain_agentmem.surfaces.chains.combined import (
        ReadOnlySharedMemory as ReadOnlySharedMemory,
    )
    from langchain_agentmem.surfaces.chains.combined import SimpleMemory as SimpleMemory
    from langchain_agentmem.surfaces.chains.recalling import ChainMemory as ChainMemory
    from langchain_agentmem.surfaces.chains.recalling import (
        VectorStoreRetrieverMemory as VectorStoreRetrieverMemory,
    )

_HOMES = {
    "ChainMemory": "recalling",
    "CombinedMemory": "combined",
    "ConversationBufferMemory": "classic",
    "ConversationBufferWindowMemory": "classic",
    "ConversationStringBufferMemory": "classic",
    "ConversationSummaryBufferMemory": "classic",
    "ConversationSummaryMemory": "classic",
    "ConversationTokenBufferMemory": "classic",
    "ReadOnlySharedMemory": "combined",
    "SimpleMemory": "combined",
    "VectorStoreRetrieverMemory": "recalling",
}

__all__ = [
    "ChainMemory",
    "CombinedMemory",
    "ConversationBufferMemory",
    "ConversationBufferWindowMemory",
    "ConversationStringBufferMemory",
    "ConversationSummaryBufferMemory",
    "ConversationSummaryMemory",
    "ConversationTokenBufferMemory",
    "ReadOnlySharedMemory",
    "SimpleMemory",
    "VectorStoreRetrieverMemory",
]

_load, __dir__ = lazy_names(__name__, _HOMES, __all__)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name may be asked for
    """Load a public name from its home at first use.

    Raises:
        ImportError: The extra `[classic]` is not installed.
    """
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("langchain_classic"):
            raise
        msg = (
            f"{name} is a memory for classic chains, which need an extra package; "
            "run: pip install 'langchain-agentmem[classic]'"
        )
        raise ImportError(msg) from error
