"""A chat model that follows a script, an embedder with known similarities, and both stores."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from pydantic import PrivateAttr

from langchain_agentmem.stores import FaissSqliteStore

Reply = str | dict[str, Any] | list[Any] | AIMessage | Exception
Script = Sequence[Reply] | Callable[[str], Reply]


class Scripted(BaseChatModel):
    """Gives scripted replies in order and records every prompt; an unexpected call fails."""

    _script: Any = PrivateAttr()
    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _prompts: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    latency: float = 0.0
    model_name: str = "scripted-1"

    def __init__(self, script: Script = (), **given: Any) -> None:
        super().__init__(**given)
        self._script = script if callable(script) else list(script)

    @property
    def prompts(self) -> list[list[BaseMessage]]:
        """The prompts so far."""
        return self._prompts

    def prompt(self, number: int = -1) -> str:
        """Return one prompt as text."""
        return "\n".join(str(message.content) for message in self._prompts[number])

    def extend(self, *replies: Reply) -> None:
        """Add replies to the script."""
        self._script += replies

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - LangChain's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - as above
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> ChatResult:
        time.sleep(self.latency)
        with self._lock:
            self._prompts.append(messages)
            text = "\n".join(str(message.content) for message in messages)
            if callable(self._script):
                reply = self._script(text)
            else:
                assert self._script, f"unexpected call:\n{text}"
                reply = self._script.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if not isinstance(reply, AIMessage):
            content = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
            usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
            reply = AIMessage(content, usage_metadata=usage)  # type: ignore[arg-type]
        return ChatResult(generations=[ChatGeneration(message=reply)])


class Table(Embeddings):
    """Gives texts the vectors of a table; any other text a vector made of its letters."""

    name = "table"

    def __init__(self, table: dict[str, list[float]] | None = None, dims: int = 26) -> None:
        self.table = table or {}
        self.dims = dims
        self.documents: list[str] = []
        self.queries: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text."""
        self.documents += texts
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        self.queries.append(text)
        return self._vector(text)

    def _vector(self, text: str) -> list[float]:
        for start, vector in self.table.items():
            if start in text:
                return vector + [0.0] * (self.dims - len(vector))
        return [
            float(text.lower().count(chr(ord("a") + place))) + 0.01 for place in range(self.dims)
        ]


class Ticking:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime | None = None) -> None:
        self.now = now or datetime(2026, 3, 1, 10, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


STORES = ("memory", "sqlite")


def make_store(kind: str, folder: Path, embed: Embeddings | None = None) -> BaseStore:
    """Return an indexed store of a kind."""
    embed = embed or Table()
    index = {"dims": embed.dims, "embed": embed, "fields": ["content"]}  # type: ignore[attr-defined]
    if kind == "memory":
        return InMemoryStore(index=index)  # type: ignore[arg-type]
    return FaissSqliteStore(folder / "memory.sqlite", index={**index, "mode": "hybrid"})  # type: ignore[arg-type]


class Calls:
    """Calls a memory's methods by their sync names, through sync or async."""

    def __init__(self, memory: Any, *, is_async: bool) -> None:
        self._memory = memory
        self._is_async = is_async

    async def __call__(self, name: str, *args: Any, **given: Any) -> Any:
        """Call one method."""
        if self._is_async:
            return await getattr(self._memory, f"a{name}")(*args, **given)
        return getattr(self._memory, name)(*args, **given)
