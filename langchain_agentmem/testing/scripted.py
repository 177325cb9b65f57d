"""`ScriptedChatModel`: a chat model that says what a test tells it to, and nothing else."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr, SkipValidation

from langchain_agentmem.errors import AgentMemoryError

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
    from langchain_core.language_models import LanguageModelInput
    from langchain_core.runnables import Runnable

Answer: TypeAlias = str | AIMessage | Mapping[str, Any] | Exception
Reply: TypeAlias = Answer | Callable[[list[BaseMessage]], Answer]
T = TypeVar("T")

_PIECES: Final = re.compile(r"\S+\s*|\s+")
_LETTERS_PER_TOKEN: Final = 4


class UnexpectedCallError(AgentMemoryError, AssertionError):
    """A scripted model was called more often, or in another way, than its script foresees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request that a scripted model received.

    Attributes:
        messages: The messages.
        number: Its place among the requests, from 1.
        tools: The bound tools in OpenAI's form.
        tool_choice: Which tool had to be called, if any.
        response_format: The native structured output that was asked for, if any.
        stop: Stop sequences.
    """

    messages: list[BaseMessage]
    number: int
    tools: list[dict[str, Any]] = field(default_factory=list)
    tool_choice: Any = None
    response_format: Any = None
    stop: list[str] | None = None

    @property
    def text(self) -> str:
        """All that the model was shown, as one text."""
        return "\n".join(str(message.text) for message in self.messages)

    @property
    def tool_names(self) -> list[str]:
        """Names of the bound tools."""
        return [tool["function"]["name"] for tool in self.tools if "function" in tool]


class ScriptedChatModel(BaseChatModel):
    """A chat model for tests: it gives prepared replies in order and records every request.

    A reply is a text; an `AIMessage`, tool calls included; a mapping, which becomes the arguments
    of the bound tool or, without tools, a JSON text; an exception, which is raised; or a function
    from the request's messages to one of these. A single function instead of a list answers every
    request. A request beyond the script raises, and `check` tells of it even if the caller
    swallowed the error.

    Sync and async calls and streams take from the same script. Token usage is estimated at four
    letters a token where a reply does not state it.

    Args:
        replies: The script.
        latency: Seconds before each reply.

    Example:
        ```python
        model = ScriptedChatModel(replies=["Hello!", {"name": "Ann"}])
        model.invoke("Hi").content  # "Hello!"
        model.with_structured_output(Person).invoke("Who?")  # Person(name="Ann")
        model.check()
        ```
    """

    replies: SkipValidation[Sequence[Reply] | Callable[[list[BaseMessage]], Answer]] = Field(
        default_factory=list
    )
    latency: float = 0.0
    model_name: str = "scripted"

    _requests: list[Request] = PrivateAttr(default_factory=list)
    _refused: list[str] = PrivateAttr(default_factory=list)
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in the order received."""
        return self._requests

    def check(self) -> None:
        """Make sure that the script was followed to its end.

        Raises:
            UnexpectedCallError: Replies are left over, or a request was refused.
        """
        if self._refused:
            raise UnexpectedCallError(self._refused[0])
        if not callable(self.replies) and len(self._requests) < len(self.replies):
            msg = (
                f"Only {len(self._requests)} of {len(self.replies)} scripted replies were asked "
                f"for; the next would have been {str(self.replies[len(self._requests)])[:80]!r}."
            )
            raise UnexpectedCallError(msg)

    def bind_tools(
        self,
        tools: Sequence[Any],
        *,
        tool_choice: Any = None,  # noqa: ANN401 - providers differ
        strict: bool | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools; a mapping in the script becomes the arguments of one of them."""
        forms = [convert_to_openai_tool(tool, strict=strict) for tool in tools]
        return self.bind(tools=forms, tool_choice=tool_choice, **kwargs)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _answer(self, messages: list[BaseMessage], options: Mapping[str, Any]) -> AIMessage:
        """Record a request and return what the script says to it."""
        with self._lock:
            request = Request(
                messages=list(messages),
                number=len(self._requests) + 1,
                tools=list(options.get("tools") or []),
                tool_choice=options.get("tool_choice"),
                response_format=options.get("response_format"),
                stop=options.get("stop"),
            )
            reply = self._next(request)
            self._requests.append(request)
        if callable(reply):
            reply = reply(request.messages)
        if isinstance(reply, Exception):
            raise reply
        return _with_usage(self._message(reply, request), request)

    def _next(self, request: Request) -> Reply:
        if callable(self.replies):
            return self.replies
        if request.number <= len(self.replies):
            return self.replies[request.number - 1]
        why = f"only {len(self.replies)} replies are scripted"
        raise self._refusal(why, request)

    def _message(self, reply: Answer, request: Request) -> AIMessage:
        if isinstance(reply, AIMessage):
            return reply.model_copy(deep=True)
        if isinstance(reply, str):
            return AIMessage(reply)
        if not isinstance(reply, Mapping):
            why = f"{type(reply).__name__} is no kind of reply"
            raise self._refusal(why, request)
        if not request.tools:
            return AIMessage(json.dumps(reply, ensure_ascii=False))
        call = {
            "name": self._tool_for_mapping(request),
            "args": dict(reply),
            "id": f"call_{request.number}",
            "type": "tool_call",
        }
        return AIMessage("", tool_calls=[call])

    def _tool_for_mapping(self, request: Request) -> str:
        choice = request.tool_choice
        if isinstance(choice, Mapping):
            choice = choice.get("function", choice).get("name")
        if choice in request.tool_names:
            return str(choice)
        if len(request.tool_names) == 1:
            return request.tool_names[0]
        why = f"a mapping fits several tools {request.tool_names}; script an AIMessage instead"
        raise self._refusal(why, request)

    def _refusal(self, why: str, request: Request) -> UnexpectedCallError:
        msg = (
            f"Unexpected call {request.number} of the scripted model: {why}. It was shown "
            f"{request.text[-80:]!r} and the tools {request.tool_names}."
        )
        self._refused.append(msg)
        return UnexpectedCallError(msg)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - LangChain's signature
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> ChatResult:
        if self.latency:
            time.sleep(self.latency)
        return _result(self._answer(messages, {**kwargs, "stop": stop}))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002 - LangChain's signature
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> ChatResult:
        if self.latency:
            await asyncio.sleep(self.latency)
        return _result(self._answer(messages, {**kwargs, "stop": stop}))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> Iterator[ChatGenerationChunk]:
        if self.latency:
            time.sleep(self.latency)
        for chunk in _chunks(self._answer(messages, {**kwargs, "stop": stop})):
            if run_manager:
                run_manager.on_llm_new_token(str(chunk.text), chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> AsyncIterator[ChatGenerationChunk]:
        if self.latency:
            await asyncio.sleep(self.latency)
        for chunk in _chunks(self._answer(messages, {**kwargs, "stop": stop})):
            if run_manager:
                await run_manager.on_llm_new_token(str(chunk.text), chunk=chunk)
            yield chunk


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


def _with_usage(message: AIMessage, request: Request) -> AIMessage:
    """Return a reply with estimated token usage where it states none."""
    if message.usage_metadata is None:
        said = str(message.text) + "".join(json.dumps(call["args"]) for call in message.tool_calls)
        read, written = (-(-len(text) // _LETTERS_PER_TOKEN) for text in (request.text, said))
        message.usage_metadata = UsageMetadata(
            input_tokens=read, output_tokens=written, total_tokens=read + written
        )
    return message


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """Cut a reply into words, followed by its tool calls and usage."""
    content = message.content
    pieces = _PIECES.findall(content) if isinstance(content, str) else [content]
    for piece in pieces:
        yield ChatGenerationChunk(message=AIMessageChunk(content=piece, id=message.id))
    calls = [
        tool_call_chunk(
            name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=number
        )
        for number, call in enumerate(message.tool_calls)
    ]
    yield ChatGenerationChunk(
        message=AIMessageChunk(
            content="",
            id=message.id,
            tool_call_chunks=calls,
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
        )
    )
