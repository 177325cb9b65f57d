"""`PromptMemory`: the prompts of a scope with their history, read and changed by hand."""

from __future__ import annotations

from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from typing_extensions import TypedDict, Unpack

from langchain_agentmem.prompt_optimizer.levels import PromptSteps
from langchain_agentmem.prompt_optimizer.values import as_trajectory
from langchain_agentmem.prompt_optimizer.versions import PromptVersion
from langchain_agentmem.scopes import Scope, current_scope, running
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Steps
from langchain_agentmem.steps.environment import Environment

T = TypeVar("T")


class CallScope(TypedDict, total=False):
    """Whose prompts a call is about.

    Attributes:
        config: The call's config; its `configurable` names the scope.
        context: The runtime context, which wins over the config.
    """

    config: RunnableConfig | None
    context: Any


class PromptMemory(PromptSteps):
    """Prompts with versions, under namespaces from the most specific to the most general.

    What is changed is changed in `namespace`; what is read comes from the first level that has
    the prompt: `namespace`, then `read_namespaces` in order, then the given texts. So a user's
    own version wins over the agent's, and the agent's over the organization's.

    Nothing is ever overwritten: each change appends an entry to the history, and one pointer
    names the active version. Of two writers that start from one version, the second is refused.

    Each method takes `config` and `context` as keywords, see `CallScope`; inside of a running graph
    neither is needed.

    Args:
        prompts: The texts to begin with: prompts with a name, or one bare text named "prompt".
        namespace: Where versions are written, e.g. `("memories", "{user_id}")`.
        read_namespaces: Further levels that are read, most specific first.
        store: A LangGraph store; without it the running graph's store is used.
        clock: Gives the present time, aware.

    Raises:
        ConfigurationError: A prompt or template is wrong.

    Example:
        ```python
        prompts = PromptMemory(prompts="Answer {question} politely.", store=InMemoryStore())
        ann = {"configurable": {"user_id": "ann"}}
        prompts.set("prompt", "Answer {question} in one sentence.", config=ann)
        prompts.rollback("prompt", config=ann)
        prompts.get("prompt", config=ann).text  # "Answer {question} politely."
        ```
    """

    def get(self, name: str, **scope: Unpack[CallScope]) -> PromptVersion:
        """Return the active version of a prompt.

        Raises:
            MemoryNotFoundError: No level has such a prompt.
        """
        return self._run(self.active(name), scope).version

    async def aget(self, name: str, **scope: Unpack[CallScope]) -> PromptVersion:
        """Return the active version of a prompt; the async twin of `get`."""
        return (await self._arun(self.active(name), scope)).version

    def history(self, name: str, **scope: Unpack[CallScope]) -> list[PromptVersion]:
        """Return every entry of the level that the prompt is read from, oldest first."""
        return self._run(self.entries(name), scope)

    async def ahistory(self, name: str, **scope: Unpack[CallScope]) -> list[PromptVersion]:
        """Return every entry of a prompt; the async twin of `history`."""
        return await self._arun(self.entries(name), scope)

    def diff(self, name: str, a: int, b: int, **scope: Unpack[CallScope]) -> str:
        """Return the difference of two versions as a unified diff.

        Raises:
            MemoryNotFoundError: One of them does not exist.
        """
        return self._run(self.difference(name, a, b), scope)

    async def adiff(self, name: str, a: int, b: int, **scope: Unpack[CallScope]) -> str:
        """Return the difference of two versions; the async twin of `diff`."""
        return await self._arun(self.difference(name, a, b), scope)

    def set(self, name: str, text: str, **scope: Unpack[CallScope]) -> PromptVersion:
        """Make a text of your own the active version; a pin is taken off.

        Raises:
            ConfigurationError: The text is empty.
        """
        return self._run(self.change(name, text), scope)

    async def aset(self, name: str, text: str, **scope: Unpack[CallScope]) -> PromptVersion:
        """Make a text of your own the active version; the async twin of `set`."""
        return await self._arun(self.change(name, text), scope)

    def rollback(
        self, name: str, version: int | None = None, **scope: Unpack[CallScope]
    ) -> PromptVersion:
        """Make an earlier version active again, by default the parent; a pin is taken off.

        Returns:
            The version that is active now.

        Raises:
            MemoryNotFoundError: There is no such version, or none before the active one.
        """
        return self._run(self.roll_back(name, version), scope)

    async def arollback(
        self, name: str, version: int | None = None, **scope: Unpack[CallScope]
    ) -> PromptVersion:
        """Make an earlier version active again; the async twin of `rollback`."""
        return await self._arun(self.roll_back(name, version), scope)

    def pin(self, name: str, version: int | None, **scope: Unpack[CallScope]) -> PromptVersion:
        """Make a version active and keep every optimizer from changing that; None unpins.

        Raises:
            MemoryNotFoundError: There is no such version.
        """
        return self._run(self.pin_to(name, version), scope)

    async def apin(
        self, name: str, version: int | None, **scope: Unpack[CallScope]
    ) -> PromptVersion:
        """Pin a version, or unpin; the async twin of `pin`."""
        return await self._arun(self.pin_to(name, version), scope)

    def record(
        self,
        trajectory: Any,  # noqa: ANN401 - any form of trajectory
        **scope: Unpack[CallScope],
    ) -> str:
        """Store a conversation with its feedback for the next optimization; return its id.

        A known id is updated, so that feedback can come later than the conversation.
        """
        return self._run(self.store_trajectory(as_trajectory(trajectory)), scope)

    async def arecord(
        self,
        trajectory: Any,  # noqa: ANN401 - any form of trajectory
        **scope: Unpack[CallScope],
    ) -> str:
        """Store a conversation with its feedback; the async twin of `record`."""
        return await self._arun(self.store_trajectory(as_trajectory(trajectory)), scope)

    def forget(self, name: str | None = None, **scope: Unpack[CallScope]) -> int:
        """Erase a prompt with its whole history in `namespace`, everywhere and for good.

        Args:
            name: The prompt; None for all prompts and all recorded conversations of the scope.
            **scope: See `CallScope`.

        Returns:
            How many versions, pointers and conversations are gone.
        """
        return self._run(self.erase(name), scope)

    async def aforget(self, name: str | None = None, **scope: Unpack[CallScope]) -> int:
        """Erase a prompt, or everything; the async twin of `forget`."""
        return await self._arun(self.erase(name), scope)

    def monitor(
        self,
        name: str,
        *,
        rollback_margin: float = 0.1,
        min_evaluations: int = 3,
        **scope: Unpack[CallScope],
    ) -> dict[str, Any]:
        """Compare the scores of conversations since the active version with its parent's.

        If the mean is lower by `rollback_margin` or more, with at least `min_evaluations` scores
        on both sides, the parent becomes active again; a pinned version stays.

        Returns:
            `{name, version, parent, active, baseline, current, n, rolled_back}`.
        """
        steps = self.compare_scores(name, rollback_margin, min_evaluations)
        return self._run(steps, scope)

    async def amonitor(
        self,
        name: str,
        *,
        rollback_margin: float = 0.1,
        min_evaluations: int = 3,
        **scope: Unpack[CallScope],
    ) -> dict[str, Any]:
        """Compare the active version with its parent; the async twin of `monitor`."""
        steps = self.compare_scores(name, rollback_margin, min_evaluations)
        return await self._arun(steps, scope)

    def environment(
        self,
        config: RunnableConfig | None = None,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
    ) -> Environment:
        """Return what a call's steps run with; without arguments, the running graph's scope."""
        given = config is not None or context is not None
        return self._environment(Scope.of(config, context) if given else current_scope())

    def node_environment(self, config: RunnableConfig) -> Environment:
        """Return what a graph node's steps run with."""
        return self._environment(Scope.of(config, getattr(running(), "context", None)))

    def _environment(self, scope: Scope) -> Environment:
        runtime = running()
        return Environment(
            store=self.store if self.store is not None else getattr(runtime, "store", None),
            scope=scope,
            clock=self.clock,
            emitter=getattr(runtime, "stream_writer", None),
        )

    def _run(self, steps: Steps[T], scope: CallScope) -> T:
        return run(steps, self.environment(**scope))

    async def _arun(self, steps: Steps[T], scope: CallScope) -> T:
        return await arun(steps, self.environment(**scope))
