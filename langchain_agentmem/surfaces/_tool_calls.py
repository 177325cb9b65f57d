"""What the memory tools share: the scope and store of a call, handles, errors, one tool type."""

from __future__ import annotations

import base64
import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, get_type_hints

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import ToolRuntime
from pydantic import BaseModel, ValidationError

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.messages import to_messages
from langchain_agentmem.scopes import NamespaceTemplate, Scope, current_scope, running
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
        source: Any = runtime if isinstance(runtime, ToolRuntime) else running()
        if isinstance(runtime, ToolRuntime):
            scope = Scope.of(runtime.config, runtime.context)
        else:
            scope = current_scope()
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
    """A tool whose functions take no config and no callbacks of LangChain's.

    LangChain looks for these at every call, by evaluating the annotations of its functions. The
    two of this class have none, and the tool's own are called without looking at them.
    """

    def _run(self, *texts: Any, **named: Any) -> Any:  # noqa: ANN401 - as the base
        return self.func(*texts, **named)  # type: ignore[misc] # make_tool gives it

    async def _arun(self, *texts: Any, **named: Any) -> Any:  # noqa: ANN401 - as the base
        return await self.coroutine(*texts, **named)  # type: ignore[misc] # make_tool gives it


for _each in (_MemoryTool._run, _MemoryTool._arun):  # noqa: SLF001 - this module's own class
    _each.__annotations__ = {}


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
    first = next(iter(args_schema.model_fields))

    def arguments(texts: tuple[str, ...], named: dict[str, Any]) -> Mapping[str, Any]:
        return dict(args_schema.model_validate({first: texts[0]})) if texts else named

    # LangGraph recognizes an injected argument by its plain annotation only, so no `| None`.
    def call(*texts: str, runtime: ToolRuntime[Any, Any] = None, **named: Any) -> Any:  # type: ignore[assignment] # noqa: ANN401
        return run(steps(arguments(texts, named), runtime), environment(runtime))

    async def acall(*texts: str, runtime: ToolRuntime[Any, Any] = None, **named: Any) -> Any:  # type: ignore[assignment] # noqa: ANN401
        return await arun(steps(arguments(texts, named), runtime), environment(runtime))

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
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}"
        for fault in error.errors(include_input=False, include_url=False)
    ]
    return f"Nothing was done. Correct the arguments and call again: {'; '.join(faults)}."


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
