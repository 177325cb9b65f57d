"""What all chain memories share: keys, session, and one body for sync and async."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from langchain_classic.base_memory import BaseMemory
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from pydantic import ConfigDict, PrivateAttr, model_validator

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.memories.forgetting import OWN
from langchain_agentmem.scopes import current_scope
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.surfaces._recording import with_new_ids
from langchain_agentmem.surfaces.chains._turns import (
    STEPS,
    answered,
    asked,
    input_of,
    output_of,
)

SESSION: Final = "session_id"
_IN_THE_STORE: Final = "the summary is in the store; pass store= and session_id="
_INSTEAD: Final = {
    "chat_memory": (
        "pass store= and session_id=; an old history is taken over by "
        "StoreChatMessageHistory(store, session_id=...).add_messages(old.messages)"
    ),
    "retriever": "pass store=FaissSqliteStore('memory.sqlite') and k=",
    "buffer": _IN_THE_STORE,
    "moving_summary_buffer": _IN_THE_STORE,
    "prompt": "the summarizer's instructions are its own",
    "summary_message_cls": "a summary is a SystemMessage",
}
"""What to do instead of giving a classic class's argument."""


class StoredChainMemory(BaseMemory):
    """Base of the chain memories that keep something in a store.

    One object serves many sessions: which one is meant is found at each call.

    Attributes:
        memory_key: The chain's input that this memory fills.
        input_key: Which input the user said, or several; by default the only one, or the usual
            name among several.
        output_key: Which output the assistant said; by default the only one, or the usual name.
        return_messages: True to fill in messages instead of a text.
        human_prefix: What lines of the user begin with, in a text.
        ai_prefix: What lines of the assistant begin with.
        session_id: The session, or a function that returns it. By default `session_id` or
            `thread_id` of the running config.
        config: Further `configurable` values, such as `{"user_id": "ann"}`.
        sibling_keys: Inputs filled by other memories of the same chain.
        exclude_input_keys: Further inputs that the user did not say.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memory_key: str = "history"
    input_key: str | Sequence[str] | None = None
    output_key: str | Sequence[str] | None = None
    return_messages: bool = False
    human_prefix: str = "Human"
    ai_prefix: str = "AI"
    session_id: str | Callable[[], str] | None = None
    config: Mapping[str, Any] = {}
    sibling_keys: tuple[str, ...] = ()
    exclude_input_keys: Sequence[str] = ()

    _memory: Memory = PrivateAttr()

    @model_validator(mode="before")
    @classmethod
    def _explain(cls, given: Any) -> Any:  # noqa: ANN401 - pydantic's signature
        """Say what takes the place of a classic argument that is not offered here."""
        for name in _INSTEAD.keys() & (given if isinstance(given, Mapping) else {}):
            msg = f"{cls.__name__} has no {name}=: {_INSTEAD[name]}."
            raise ConfigurationError(msg)
        return given

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - pydantic's signature
        """Make the memory behind."""
        super().model_post_init(context)
        self._memory = self._make_memory()

    @abstractmethod
    def _make_memory(self) -> Memory:
        """Return the memory that keeps what is said."""

    @abstractmethod
    def _load(self, question: str) -> Steps[Any]:
        """Return what fills `memory_key`."""

    @property
    def memory_variables(self) -> list[str]:
        """The inputs that this memory fills."""
        return [self.memory_key]

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the memory for a chain's inputs.

        Raises:
            ConfigurationError: It is not clear which input the user said, or which session is
                meant. This is raised here, before the model is called.
        """
        return run(self._load_steps(inputs), self._environment())

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the memory for a chain's inputs; the async twin of `load_memory_variables`."""
        return await arun(self._load_steps(inputs), self._environment())

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Remember one turn, in one piece.

        Raises:
            ConfigurationError: It is not clear which input or output is meant; nothing is saved.
        """
        env = self._environment()
        run(self._save_steps(inputs, outputs, env), env)

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Remember one turn; the async twin of `save_context`."""
        env = self._environment()
        await arun(self._save_steps(inputs, outputs, env), env)

    def clear(self) -> None:
        """Erase everything that was kept for the session, derived texts included."""
        self._memory.forget(OWN, config=self._scope())

    async def aclear(self) -> None:
        """Erase everything that was kept for the session; the async twin of `clear`."""
        await self._memory.aforget(OWN, config=self._scope())

    # --- steps -----------------------------------------------------------------------------------

    def _load_steps(self, inputs: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        question = self._question(inputs) if inputs else ""
        return {self.memory_key: (yield from self._load(question))}

    def _question(self, inputs: Mapping[str, Any]) -> str:
        return str(self._asked(inputs)[-1].text)

    def _save_steps(
        self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], env: Environment
    ) -> Steps[None]:
        said = [
            *self._asked(inputs),
            *answered(output_of(outputs, self.output_key), outputs.get(STEPS)),
        ]
        # Each turn is a new one, even if a chain is given the same message object again.
        named = yield from with_new_ids(said, replace=True)
        yield from self._keep(named, env)

    def _keep(self, messages: list[AnyMessage], env: Environment) -> Steps[None]:  # noqa: ARG002 - for subclasses
        """Keep the messages of a turn."""
        yield from self._memory.remembering({"messages": messages})

    def _asked(self, inputs: Mapping[str, Any]) -> list[AnyMessage]:
        filled = {*self.memory_variables, *self.sibling_keys, *self.exclude_input_keys}
        return asked(input_of(inputs, self.input_key, filled))

    def _environment(self) -> Environment:
        return self._memory.environment(self._scope())

    def _scope(self) -> RunnableConfig:
        """Return the config of this call: what it is given here wins over what is running.

        Raises:
            ConfigurationError: No session is given.
        """
        running = current_scope()
        given = self.session_id() if callable(self.session_id) else self.session_id
        own = {**self.config, SESSION: given} if given else dict(self.config)
        variables = self._memory.namespace.variables
        names = dict.fromkeys([*variables, SESSION, "thread_id"])
        found = {name: own.get(name) or running.resolve(name, None) for name in names}
        session = found[SESSION] or found["thread_id"]
        if session is None and SESSION in variables:
            msg = (
                "Which session is this? Pass session_id='...' to the memory, or run the chain with "
                "config={'configurable': {'session_id': '...'}}."
            )
            raise ConfigurationError(msg)
        found.update({SESSION: session, "thread_id": session})
        named = {name: value for name, value in found.items() if value is not None}
        return {"configurable": {**running.configurable, **own, **named}}


def in_memory_store(*, indexed: bool = False) -> BaseStore:
    """Return a store that lasts as long as the process."""
    from langchain_agentmem.stores.faiss_sqlite import FaissSqliteStore

    return FaissSqliteStore(":memory:", index="default" if indexed else None)
