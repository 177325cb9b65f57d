"""What can be measured: every memory of the package, the baselines, and code of the user's own."""

from __future__ import annotations

import inspect
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from langgraph.store.memory import InMemoryStore

from langchain_agentmem import memories
from langchain_agentmem.embeddings import default_embeddings
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.evaluation._naming import named_object, taken
from langchain_agentmem.evaluation.baselines import BM25, Dense, FullContext, LastTurns, Nothing
from langchain_agentmem.evaluation.simulation import SimulatedChatModel
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.steps.environment import utc_now

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AnyMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.store.base import BaseStore

    from langchain_agentmem.memories.state import Recall
    from langchain_agentmem.steps.environment import Clock

_BASELINES: Final[Mapping[str, Callable[..., Any]]] = {
    "nothing": Nothing,
    "last_turns": LastTurns,
    "full_context": FullContext,
    "bm25": BM25,
    "dense": Dense,
}
BASELINES: Final = tuple(_BASELINES)
"""Names of the systems that are in every comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What the benchmark gives every system.

    Attributes:
        store: An empty store of its own.
        embeddings: The embedding model of that store.
        model: The chat model that writes memories, if one is configured.
        clock: Shows the time of the conversation.
        rng: Source of randomness, seeded.
    """

    store: BaseStore
    embeddings: Embeddings
    model: BaseChatModel | None
    clock: Clock
    rng: random.Random


class System(Protocol):
    """All that is asked of a system; every `Memory` has it.

    A system that lies in no store may tell with `nbytes` how much it keeps.
    """

    def remember(self, messages: Sequence[AnyMessage], /, *, config: RunnableConfig) -> Any:  # noqa: ANN401 - whatever it returns
        """Remember a piece of the conversation of the user that `config` names."""

    def recall(self, query: str, /, *, config: RunnableConfig, limit: int | None = None) -> Recall:
        """Recall what is relevant to a question of that user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSpec:
    """A system that can be built anew for each conversation.

    Attributes:
        name: As given on the command line; stands in every table.
        make: A `Memory` class, or a function from a `Setup` (and parameters) to a system.
        parameters: What to build it with.
        embed: Name of the embedding model of its store; empty for the benchmark's own.
    """

    name: str
    make: Callable[..., System]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    embed: str = ""

    @property
    def needs_model(self) -> bool:
        """Whether a chat model writes its memories."""
        return bool(inspect.isclass(self.make) and getattr(self.make, "remember_asks", False))

    @property
    def is_memory(self) -> bool:
        """Whether it is a memory of the package's interface, built with a memory's arguments."""
        return inspect.isclass(self.make) and issubclass(self.make, Memory)

    @property
    def is_baseline(self) -> bool:
        """Whether it is one of the baselines."""
        return self.make in _BASELINES.values()

    @property
    def ranks(self) -> bool:
        """Whether it recalls best first, so that recall at k can be measured."""
        return bool(getattr(self.make, "ranks", True))

    @property
    def source(self) -> str:
        """The text of the file that defines it; part of what a result depends on."""
        path = inspect.getsourcefile(self.make)
        return "" if path is None else open_text(path)

    def build(self, setup: Setup) -> System:
        """Return a new system on an empty store.

        Raises:
            ConfigurationError: A parameter is unknown or wrong.
        """
        try:
            if self.is_memory:
                return self.make(
                    store=setup.store,
                    model=setup.model,
                    clock=setup.clock,
                    rng=setup.rng,
                    **self.parameters,
                )
            return self.make(*taken(self.make, setup, **self.parameters), **self.parameters)
        except TypeError as error:
            msg = f"{self.name!r} cannot be built: {error}."
            raise ConfigurationError(msg) from error

    def check(self) -> None:
        """Refuse parameters before anything runs: build a memory once, on a store of its own.

        Code of the user's own that is no `Memory` is not run: its arguments are compared only.

        Raises:
            ConfigurationError: A parameter is unknown or wrong.
        """
        setup = Setup(
            store=InMemoryStore(),
            embeddings=default_embeddings(),
            model=SimulatedChatModel(),
            clock=utc_now,
            rng=random.Random(0),  # noqa: S311 - nothing is drawn
        )
        if self.is_memory:
            self.build(setup)
            return
        try:
            taken(self.make, setup, **self.parameters)
        except TypeError as error:
            msg = f"{self.name!r} cannot be built: {error}."
            raise ConfigurationError(msg) from error


def open_text(path: str) -> str:
    """Return the text of a file of code."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a path as `inspect` gives it
        return file.read()


def _memories() -> dict[str, type[Memory]]:
    found = {name: getattr(memories, name) for name in memories.__all__}
    return {name: each for name, each in found.items() if _stands_alone(each)}


def _stands_alone(found: Any) -> bool:  # noqa: ANN401 - any public name
    """Tell whether something is a memory that can be built without another one."""
    if not (inspect.isclass(found) and issubclass(found, Memory)) or inspect.isabstract(found):
        return False
    parameters = inspect.signature(found).parameters.values()
    named = [each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD]
    return all(each.default is not inspect.Parameter.empty for each in named)


SYSTEMS: Final[Mapping[str, Callable[..., Any]]] = {**_BASELINES, **_memories()}
"""Every system by name: the baselines, then each memory of the package by its class."""


def system(spec: str) -> SystemSpec:
    """Return the system that a specification names.

    Args:
        spec: `name`, or `name:parameter=value,...`; `embed=minilm` chooses the embedding model.
            Code of your own is named as `file.py:Name`, followed by parameters in the same way.

    Raises:
        ConfigurationError: There is no such system, or a parameter is unknown or wrong.
    """
    place, parameters = _split(spec)
    known = {name.lower(): name for name in SYSTEMS}
    make = SYSTEMS.get(known.get(place.lower(), ""))
    if make is None:
        make = named_object(place, what=f"memory; there are {', '.join(SYSTEMS)}")
    embed = str(parameters.pop("embed", ""))
    found = SystemSpec(name=_short(spec), make=make, parameters=parameters, embed=embed)
    found.check()
    return found


def _short(spec: str) -> str:
    """Return a name for tables: of code of one's own, the part behind the file."""
    head, _, rest = spec.partition(".py:")
    return rest or head


def _split(spec: str) -> tuple[str, dict[str, Any]]:
    head, _, tail = spec.rpartition(":")
    if not head or "=" not in tail:
        return spec, {}
    parameters: dict[str, Any] = {}
    for pair in tail.split(","):
        name, equals, value = pair.partition("=")
        if not equals:
            msg = f"{pair!r} of {spec!r} is no parameter; write name=value."
            raise ConfigurationError(msg)
        parameters[name.strip()] = _value(value.strip())
    return head, parameters


def _value(text: str) -> Any:  # noqa: ANN401 - a parameter of any type
    try:
        return json.loads(text)
    except ValueError:
        return text
