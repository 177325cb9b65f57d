"""Counting what model calls cost, within a budget, and replaying replies that are known."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.caches import BaseCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import ChatGeneration

from langchain_agentmem.errors import AgentMemoryError
from langchain_agentmem.evaluation._lines import JsonLines
from langchain_agentmem.messages import text_of
from langchain_agentmem.retrieval.budget import count_tokens
from langchain_agentmem.transcripts import message_from_json, message_to_json

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import Generation, LLMResult


class BudgetSpentError(AgentMemoryError, RuntimeError):
    """The run's budget of tokens is spent; it goes on where it stopped when run again."""


class StoppedError(AgentMemoryError, RuntimeError):
    """The run was stopped by whoever started it; what was finished is kept."""


class Budget:
    """The tokens that a run may spend, over all threads, and whether it is to stop.

    Args:
        tokens: The most; None for no limit.
    """

    def __init__(self, tokens: int | None = None) -> None:
        self.tokens = tokens
        self.spent = 0
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    def spend(self, tokens: int) -> None:
        """Add what a call has used."""
        with self._lock:
            self.spent += tokens

    def stop(self) -> None:
        """Have every trial end at its next step."""
        self._stopped.set()

    def go_on(self) -> None:
        """End the trial if the run was stopped.

        Raises:
            StoppedError: It was.
        """
        if self._stopped.is_set():
            msg = "The run was stopped; run it again to go on."
            raise StoppedError(msg)

    def check(self) -> None:
        """Refuse another call when the budget is spent.

        Raises:
            BudgetSpentError: It is.
        """
        if self.tokens is not None and self.spent >= self.tokens:
            msg = f"The budget of {self.tokens} tokens is spent; run again with more to go on."
            raise BudgetSpentError(msg)


@dataclass(slots=True)
class Usage:
    """What model calls used.

    Attributes:
        calls: How many.
        input_tokens: Tokens read; estimated where the model does not report them.
        output_tokens: Tokens written.
        replayed: How many of the calls were answered from the cache, at no cost and no time.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    replayed: int = 0

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens


class Meter(BaseCallbackHandler):
    """Counts the calls of one model; `take` returns what was used since it was last asked.

    Args:
        budget: What the run may spend.
    """

    raise_error = True  # so that a spent budget stops the call

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.usage = Usage()
        self._asked = 0

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - LangChain's signature
        messages: list[list[BaseMessage]],
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> None:
        """Note what is asked, in case the model does not report it."""
        self.budget.check()
        self._asked = sum(count_tokens(text_of(each)) for batch in messages for each in batch)

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:  # noqa: ANN401 - LangChain's signature
        """Count a reply."""
        generation = response.generations[0][0]
        message = getattr(generation, "message", None)
        known = getattr(message, "usage_metadata", None) or {}
        read = int(known.get("input_tokens", self._asked))
        written = int(known.get("output_tokens", count_tokens(generation.text)))
        self.usage.calls += 1
        self.usage.input_tokens += read
        self.usage.output_tokens += written
        if (generation.generation_info or {}).get(_REPLAYED):
            self.usage.replayed += 1
        else:
            self.budget.spend(read + written)

    def take(self) -> Usage:
        """Return what was used, and begin anew."""
        used, self.usage = self.usage, Usage()
        return used


_REPLAYED = "agentmem_replayed"


@dataclass
class ReplyCache(BaseCache):
    """Model replies by their prompts, in one file that only grows.

    A run that was cut off repeats its calls from here for nothing.

    Args:
        path: The file; a last line that was cut off is ignored.
    """

    path: Path
    _known: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Read what is known."""
        self._lines = JsonLines(self.path)
        self._known = {each["key"]: each["replies"] for each in self._lines.read()}

    def lookup(self, prompt: str, llm_string: str) -> Sequence[Generation] | None:
        """Return the known replies to a prompt."""
        replies = self._known.get(_digest(prompt, llm_string))
        if replies is None:
            return None
        return [
            ChatGeneration(message=message_from_json(each), generation_info={_REPLAYED: True})
            for each in replies
        ]

    def update(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        """Keep the replies to a prompt."""
        replies = [message_to_json(each.message) for each in return_val]  # type: ignore[attr-defined]  # chat models give chat generations
        with self._lock:
            key = _digest(prompt, llm_string)
            self._known[key] = replies
            self._lines.append({"key": key, "replies": replies})

    def clear(self, **_: Any) -> None:  # noqa: ANN401 - LangChain's signature
        """Forget everything."""
        self._known = {}
        self.path.unlink(missing_ok=True)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()


def metered(
    model: BaseChatModel | None, budget: Budget, cache: BaseCache | None
) -> tuple[BaseChatModel | None, Meter]:
    """Return a copy of a model that is counted by a meter of its own and replays known replies."""
    meter = Meter(budget)
    if model is None:
        return None, meter
    return model.model_copy(update={"callbacks": [meter], "cache": cache}), meter
