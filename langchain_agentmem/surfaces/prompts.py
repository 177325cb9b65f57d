"""The active version of a prompt where an agent needs it: as a node, and as middleware.

Both read the version at each call, so that a new one takes effect without a restart, and both
leave in the state which version was used: pass it on with `PromptMemory.record`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, TypeAlias

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import SystemMessage

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.prompt_optimizer.prompt_memory import PromptMemory
from langchain_agentmem.prompt_optimizer.settings import merged
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.flow import as_node

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable
    from langgraph.runtime import Runtime

    from langchain_agentmem.prompt_optimizer.values import TemplateFormat
    from langchain_agentmem.prompt_optimizer.versions import PromptVersion
    from langchain_agentmem.steps.effects import Steps

Values: TypeAlias = "Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]"
_VERSIONS: Final = "prompt_versions"


def load_prompt_node(
    memory: PromptMemory,
    names: str | Sequence[str] = (),
    *,
    prompts_key: str = "prompts",
    versions_key: str = _VERSIONS,
) -> Runnable[Any, Any]:
    """Return a node that puts the active texts of prompts into the state.

    Args:
        memory: The prompts.
        names: Which ones; without any, all that the memory was given.
        prompts_key: State key that receives the texts by name.
        versions_key: State key that receives the versions' numbers by name.

    Raises:
        ConfigurationError: No prompt is named, and the memory was given none.

    Example:
        ```python
        builder.add_node("load_prompt", load_prompt_node(PromptMemory(prompts="Be brief.")))
        ```
    """
    wanted = [names] if isinstance(names, str) else list(names or memory.prompts)
    if not wanted:
        msg = "Name the prompts to load: load_prompt_node(memory, 'support')."
        raise ConfigurationError(msg)

    def load_prompt(_: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        found = {}
        for name in wanted:
            found[name] = (yield from memory.active(name)).version
        return {
            prompts_key: {name: each.text for name, each in found.items()},
            versions_key: {name: each.version for name, each in found.items()},
        }

    return as_node(load_prompt, memory.node_environment)


class PromptState(AgentState[Any]):
    """State of an agent with a `PromptMiddleware`.

    Attributes:
        prompt_versions: Which version of each prompt the last model call used.
    """

    prompt_versions: NotRequired[Annotated[dict[str, Any], merged]]


class PromptMiddleware(AgentMiddleware[PromptState, Any, Any]):
    """Serve the active version of a prompt as the agent's system prompt.

    The version is read before each model call and noted in the state as `prompt_versions`; the
    text of just that version is what the model is shown. Another system prompt of the agent is
    kept and follows it.

    Args:
        memory: The prompts.
        prompt: Name of the prompt.
        values: Values of the template's variables: a mapping, or a function of the model request.
        template_format: How the variables are written.
        name: Name of the middleware.

    Example:
        ```python
        prompts = PromptMemory(prompts={"name": "support", "prompt": "Help {user} politely."})
        agent = create_agent(
            "openai:gpt-4.1-mini",
            middleware=[PromptMiddleware(prompts, "support", values={"user": "Ann"})],
            store=store,
        )
        ```
    """

    state_schema = PromptState

    def __init__(
        self,
        memory: PromptMemory,
        prompt: str = "prompt",
        *,
        values: Values | None = None,
        template_format: TemplateFormat = "f-string",
        name: str = "Prompt",
    ) -> None:
        super().__init__()
        self._memory = memory
        self._prompt = prompt
        self._values = values
        self._template_format: TemplateFormat = template_format
        self._name = name

    @property
    def name(self) -> str:
        """Name of the middleware."""
        return self._name

    def before_model(self, state: PromptState, runtime: Runtime[Any]) -> dict[str, Any]:  # noqa: ARG002 - LangChain's signature
        """Note which version is active."""
        active = run(self._memory.active(self._prompt), self._memory.environment())
        return {_VERSIONS: {self._prompt: active.version.version}}

    async def abefore_model(self, state: PromptState, runtime: Runtime[Any]) -> dict[str, Any]:  # noqa: ARG002 - LangChain's signature
        """Note which version is active; the async twin of `before_model`."""
        active = await arun(self._memory.active(self._prompt), self._memory.environment())
        return {_VERSIONS: {self._prompt: active.version.version}}

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Show the model the version that was noted."""
        version = run(self._noted(request.state), self._memory.environment())
        return handler(self._with_prompt(request, version))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Show the model the version; the async twin of `wrap_model_call`."""
        version = await arun(self._noted(request.state), self._memory.environment())
        return await handler(self._with_prompt(request, version))

    def _noted(self, state: Mapping[str, Any]) -> Steps[PromptVersion]:
        """Return the version that the state names, or the active one."""
        number = (state.get(_VERSIONS) or {}).get(self._prompt)
        active = yield from self._memory.active(self._prompt)
        if number in {None, active.version.version}:
            return active.version
        history = yield from self._memory.entries(self._prompt)
        return next((each for each in history if each.version == number), active.version)

    def _with_prompt(self, request: ModelRequest[Any], version: PromptVersion) -> ModelRequest[Any]:
        text = self._filled(version.text, request)
        before = request.system_message
        if before is None or before.text == text:
            return request.override(system_message=SystemMessage(text))
        blocks: list[Any] = [{"type": "text", "text": text}]
        old = before.content
        blocks += [{"type": "text", "text": old}] if isinstance(old, str) else old
        return request.override(system_message=SystemMessage(blocks))

    def _filled(self, text: str, request: ModelRequest[Any]) -> str:
        """Fill the variables in.

        Raises:
            ConfigurationError: One of them has no value.
        """
        if self._template_format == "none":
            return text
        from langchain_core.prompts import PromptTemplate

        template = PromptTemplate.from_template(text, template_format=self._template_format)
        values = self._values(request) if callable(self._values) else self._values or {}
        missing = sorted(set(template.input_variables) - set(values))
        if missing:
            msg = f"Prompt {self._prompt!r} needs {missing}: PromptMiddleware(..., values={{...}})."
            raise ConfigurationError(msg)
        return template.format(**{name: values[name] for name in template.input_variables})
