"""What the memory tools share: the scope and store of a call, handles, errors, one tool type."""

from __future__ import annotations

import base64
import inspect
import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, get_type_hints

from langchain_core.tools import FILTERED_ARGS, BaseTool, StructuredTool
from langgraph.prebuilt import ToolRuntime
from pydantic import BaseModel, ValidationError

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.messages import to_messages
from langchain_agentmem.parameters import faults
from langchain_agentmem.scopes import NamespaceTemplate, Scope, running, scope_within
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.environment import Clock, Environment, utc_now
from langchain_agentmem.surfaces._budget import without_budget

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.store.base import BaseStore

    from langchain_agentmem.memories.base import Memory, Template
    from langchain_agentmem.steps.effects import Steps

T = TypeVar("T")
ResponseFormat = Literal["content", "content_and_artifact"]

_HANDLE_LENGTH: Final = 22
_UUID_BYTES: Final = 16
_RUNTIME: Final = "runtime"  # the parameter of a tool's functions that LangGraph injects
_NOT_SHOWN: Final = frozenset({_RUNTIME, *FILTERED_ARGS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where a tool's memories lie; scope and store are found anew on every call.

    Attributes:
        template: Namespace of the memories.
        store: The tool's own store, which wins over every other.
        memory: The memory that the tool belongs to, if any.
        clock: Gives the present time.
        rng: Gives ids.
    """

    template: NamespaceTemplate
    store: BaseStore | None
    memory: Memory | None
    clock: Clock
    rng: random.Random

    @classmethod
    def of(
        cls,
        namespace: Template | None,
        store: BaseStore | None,
        memory: Memory | None,
        clock: Clock | None,
        rng: random.Random | None,
    ) -> Self:
        """Check what a tool is made with.

        Raises:
            ConfigurationError: There is no namespace, or it is not that of the memory.
        """
        given = namespace if namespace is not None else getattr(memory, "namespace", None)
        if given is None:
            msg = "The tool needs a namespace such as ('memories', '{user_id}'), or memory=."
            raise ConfigurationError(msg)
        template = NamespaceTemplate(given)
        if memory is not None and template != memory.namespace:
            msg = (
                f"The tool's namespace {template.template} is not {memory.namespace.template}, "
                "where its memory= reads; leave the namespace out or make them equal."
            )
            raise ConfigurationError(msg)
        return cls(
            template=template,
            store=store,
            memory=memory,
            clock=clock or (utc_now if memory is None else memory.clock),
            rng=rng or (random.Random() if memory is None else memory.rng),  # noqa: S311 - ids
        )

    def environment(self, runtime: object) -> Environment:
        """Return what one call's steps run with.

        Args:
            runtime: The injected `ToolRuntime`. Anything else, such as a value that a model made
                up, is ignored in favor of the run that the tool is called in.
        """
        injected = runtime if isinstance(runtime, ToolRuntime) else None
        source: Any = injected or running()
        scope = Scope.of(injected.config, injected.context) if injected else scope_within(source)
        stores = (self.store, getattr(self.memory, "store", None), getattr(source, "store", None))
        own = Environment(
            store=next((store for store in stores if store is not None), None),
            scope=scope,
            clock=self.clock,
            rng=self.rng,
            emitter=getattr(source, "stream_writer", None),
        )
        if self.memory is None:
            return own
        config: RunnableConfig = {"configurable": dict(scope.configurable)}
        full = self.memory.environment(config, scope.context, without_budget(self.memory))
        return replace(full, store=own.store, clock=own.clock, rng=own.rng, emitter=own.emitter)


def last_human_ids(runtime: object) -> tuple[str, ...]:
    """Return the id of the last message of the user in the state of the call, if there is one."""
    state = getattr(runtime, "state", None)
    if isinstance(state, Mapping):
        state = state.get("messages")
    messages = state if isinstance(state, list) else getattr(state, "messages", None) or []
    for message in reversed(messages):
        (said,) = to_messages([message])
        if said.type == "human":
            return (said.id,) if said.id else ()
    return ()


class _MemoryTool(StructuredTool):
    """A tool that is not looked at anew on every call.

    LangChain reads signatures, annotations and the schema's fields at each call of a tool, to find
    a config, callbacks and injected arguments among its parameters. They are known here: the tool's
    functions take no config and no callbacks, and one injected argument, `runtime`, which no
    schema names. `_run`, `_arun` and `_parse_input` are what LangChain lets subclasses define;
    `_filter_injected_args` is its own, and where a version has none, nothing but time is lost.
    """

    def _run(self, *texts: Any, **named: Any) -> Any:  # noqa: ANN401 - as the base
        return self.func(*texts, **named)  # type: ignore[misc]  # make_tool gives it

    async def _arun(self, *texts: Any, **named: Any) -> Any:  # noqa: ANN401 - as the base
        return await self.coroutine(*texts, **named)  # type: ignore[misc]  # make_tool gives it

    def _parse_input(self, tool_input: str | dict[str, Any], _: str | None) -> dict[str, Any]:
        """Return the checked arguments of a call; a text alone is the first of them."""
        schema: Any = self.args_schema
        if isinstance(tool_input, str):
            tool_input = {next(iter(schema.model_fields)): tool_input}
        checked = dict(vars(schema.model_validate(tool_input)))
        if _RUNTIME in tool_input:
            checked[_RUNTIME] = tool_input[_RUNTIME]
        return checked

    def _filter_injected_args(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        """Return what callbacks are shown of a call's arguments."""
        return {name: given for name, given in tool_input.items() if name not in _NOT_SHOWN}


# LangChain asks `inspect.signature` and `get_type_hints` of both at each call; they answer at once.
_looked_at: tuple[Any, ...] = (_MemoryTool._run, _MemoryTool._arun)  # noqa: SLF001 - of this module
for _each in _looked_at:
    _each.__signature__ = inspect.signature(_each)
    _each.__no_type_check__ = True


def make_tool(
    *,
    name: str,
    description: str,
    args_schema: type[BaseModel],
    steps: Callable[[Mapping[str, Any], object], Steps[Any]],
    environment: Callable[[object], Environment],
    response_format: ResponseFormat = "content",
) -> BaseTool:
    """Make a tool with a sync and an async path from one step.

    What a model got wrong is returned to it: invalid arguments and `ToolException`s become the
    result, with `status="error"`.
    """

    # LangGraph recognizes an injected argument by its plain annotation only, so no `| None`.
    def call(runtime: ToolRuntime[Any, Any] = None, **named: Any) -> Any:  # type: ignore[assignment]  # noqa: ANN401 - injected, any result
        return run(steps(named, runtime), environment(runtime))

    async def acall(runtime: ToolRuntime[Any, Any] = None, **named: Any) -> Any:  # type: ignore[assignment]  # noqa: ANN401 - injected, any result
        return await arun(steps(named, runtime), environment(runtime))

    for each in (call, acall):
        # LangChain evaluates annotations that are text anew at every call.
        each.__annotations__ = get_type_hints(each)
    return _MemoryTool(
        name=name,
        description=description,
        args_schema=args_schema,
        func=call,
        coroutine=acall,
        response_format=response_format,
        handle_tool_error=True,
        handle_validation_error=_explain,
    )


def _explain(error: Any) -> str:  # noqa: ANN401 - LangChain also names pydantic's first version
    """Say what is wrong with a call's arguments, without repeating their values."""
    if not isinstance(error, ValidationError):
        return f"Invalid arguments: {type(error).__name__}."
    return f"Nothing was done. Correct the arguments and call again: {faults(error)}."


def handle_of(key: str) -> str:
    """Return a short name of a key: 22 characters for a UUID, else the key itself."""
    try:
        number = uuid.UUID(key)
    except ValueError:
        return key
    if str(number) != key:
        return key
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")


def keys_of(handle: str) -> list[str]:
    """Return the keys that a model may mean: the text as it is, and what it is a handle of."""
    keys = [handle]
    if len(handle) == _HANDLE_LENGTH:
        try:
            raw = base64.b64decode(f"{handle}==", altchars=b"-_", validate=True)
        except ValueError:
            return keys
        if len(raw) == _UUID_BYTES:
            keys.append(str(uuid.UUID(bytes=raw)))
    return keys
