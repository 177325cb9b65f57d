"""A chat model that follows a script, an embedder with known similarities, and both stores."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.stores import FaissSqliteStore
from langchain_agentmem.testing.scripted import ScriptedChatModel

Given = str | dict[str, Any] | list[Any] | AIMessage | Exception
Script = Sequence[Given] | Callable[[str], Given]


def _reply(given: Given) -> str | dict[str, Any] | AIMessage | Exception:
    """Return a reply in a form the scripted model takes; bare lists as text."""
    return json.dumps(given, ensure_ascii=False) if isinstance(given, list) else given


class Scripted(ScriptedChatModel):
    """The published scripted model, with its prompts as text and a script that can grow.

    It has tools, so structured replies come as tool calls; texts come as texts.
    """

    def __init__(self, script: Script = (), **given: Any) -> None:  # noqa: ANN401 - a double of any
        if callable(script):
            replies: Any = lambda messages: _reply(script(_text(messages)))  # noqa: E731 - a value
        else:
            replies = [_reply(each) for each in script]
        super().__init__(replies=replies, **given)

    @property
    def prompts(self) -> list[list[BaseMessage]]:
        """The prompts so far."""
        return [request.messages for request in self.requests]

    def prompt(self, number: int = -1) -> str:
        """Return one prompt as text."""
        return _text(self.prompts[number])

    def extend(self, *replies: Given) -> None:
        """Add replies to the script."""
        self.replies = [*self.replies, *map(_reply, replies)]  # type: ignore[misc]


def _text(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(str(message.content) for message in messages)


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

    def __init__(self, memory: Any, *, is_async: bool) -> None:  # noqa: ANN401 - a double of any
        self._memory = memory
        self._is_async = is_async

    async def __call__(self, name: str, *args: Any, **given: Any) -> Any:  # noqa: ANN401 - a double of any
        """Call one method."""
        if self._is_async:
            return await getattr(self._memory, f"a{name}")(*args, **given)
        return getattr(self._memory, name)(*args, **given)


def watch(memory: Any, events: list[dict[str, Any]]) -> None:  # noqa: ANN401 - a double of any
    """Let a memory's events be added to a list."""
    original = memory._environment

    def watched(*args: Any) -> Any:  # noqa: ANN401 - a double of any
        env = original(*args)
        env.emitter = events.append
        return env

    memory._environment = watched
