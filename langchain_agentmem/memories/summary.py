"""Short-term memories with a running summary of what left the prompt.

`SummaryMemory` keeps the summary and the open turn, `SummaryBufferMemory` the summary and the
newest turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.memories.short_term_base import Told
from langchain_agentmem.memories.summarizing import SummarizingMemory, SummarizingParameters
from langchain_agentmem.parameters import described
from langchain_agentmem.windows import (
    Size,
    Trigger,
    Unit,
    checked_size,
    flat,
    is_answered,
    trigger_clauses,
)


@dataclass(frozen=True, kw_only=True)
class SummaryParameters(SummarizingParameters):
    """Parameters of `SummaryMemory`.

    Attributes:
        summarize_every: So many answered turns are summarized together.
    """

    summarize_every: int = described(1, "Answered turns to summarize together.")

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        super().__post_init__()
        self.require(least={"summarize_every": 1})


class SummaryMemory(SummarizingMemory):
    """A running summary of all answered turns, and the open turn."""

    graph_name: ClassVar[str | None] = "summary"
    Parameters: ClassVar[type[Any]] = SummaryParameters

    def overflow(self, told: Told, params: SummaryParameters) -> list[Unit]:
        """Return the answered turns, if there are enough of them."""
        units = told.units
        if not units:
            return []
        open_turn = None if is_answered(flat(units)) else units[-1].turn
        answered = [unit for unit in units if unit.turn != open_turn]
        enough = len({unit.turn for unit in answered}) >= params.summarize_every
        return answered if enough else []


@dataclass(frozen=True, kw_only=True)
class SummaryBufferParameters(SummarizingParameters):
    """Parameters of `SummaryBufferMemory`.

    Attributes:
        max_tokens: Most tokens of the view; not used where a trigger is given.
        trigger: When to summarize: tokens, `("messages", 50)`, `("turns", 20)`,
            `("fraction", 0.8)`, a mapping (all of its sizes) or a list (any of them). By default
            three quarters of `max_tokens`, which leaves room for the turn to come.
        keep: The newest units that stay: a size as above. By default half of `max_tokens`.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "default": {},
        "reference": {"max_tokens": 2000, "trigger": 2000, "keep": ("tokens", 2000)},
        "middleware": {"trigger": 4000, "keep": ("messages", 20)},
    }

    max_tokens: int = described(2000, "Most tokens of the view.")
    trigger: Trigger | None = field(
        default=None, metadata={"description": "When to summarize: tokens, or another size."}
    )
    keep: int | Size | None = field(
        default=None, metadata={"description": "The newest messages that stay: such a size."}
    )

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        super().__post_init__()
        self.require(least={"max_tokens": 1})
        if self.trigger is not None:
            trigger_clauses(self.trigger)
        if self.keep is not None:
            checked_size(self.keep)

    @property
    def clauses(self) -> Sequence[Mapping[str, float]]:
        """The trigger in its one form."""
        return trigger_clauses(self.max_tokens * 3 // 4 if self.trigger is None else self.trigger)

    @property
    def kept(self) -> Size:
        """What stays, as a size."""
        return checked_size(self.max_tokens // 2 if self.keep is None else self.keep)


class SummaryBufferMemory(SummarizingMemory):
    """A running summary, and the newest units verbatim.

    Example:
        ```python
        memory = SummaryBufferMemory(
            model="openai:gpt-5-mini", store=store, trigger=("tokens", 8000), keep=("turns", 10)
        )
        ```
    """

    graph_name: ClassVar[str | None] = "summary_buffer"
    Parameters: ClassVar[type[Any]] = SummaryBufferParameters

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401 - those of `ShortTermMemory`
        super().__init__(**kwargs)
        params: SummaryBufferParameters = self.parameters  # type: ignore[assignment]  # the class's own
        fractions = [kind for clause in params.clauses for kind in clause] + [params.kept[0]]
        if "fraction" in fractions and self.measure(params).window is None:
            msg = "A fraction needs the size of the model's context: pass window=128_000 or so."
            raise ConfigurationError(msg)

    def cap(self, params: SummaryBufferParameters) -> int | None:
        """Return `max_tokens`, or the model's context where a trigger governs."""
        return params.max_tokens if params.trigger is None else self.measure(params).window

    def overflow(self, told: Told, params: SummaryBufferParameters) -> list[Unit]:
        """Return all but the newest units, once the trigger is exceeded."""
        measure = self.measure(params)
        if not measure.exceeds([*told.fixed, *flat(told.units)], params.clauses):
            return []
        return measure.keep(told.units, params.kept).evicted
