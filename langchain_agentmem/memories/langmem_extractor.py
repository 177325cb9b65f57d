"""`LangMemExtractor`: LangMem's own stateless extractor, inside of our write path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel

from langchain_agentmem.errors import ConfigurationError, ModelCallError
from langchain_agentmem.messages import ASSISTANT
from langchain_agentmem.parameters import checked_model
from langchain_agentmem.steps.drafts import TEXT, Draft, ProposedMemories, ProposedMemory
from langchain_agentmem.steps.effects import Call, Emit, Spent, Steps
from langchain_agentmem.steps.extraction import Decision
from langchain_agentmem.steps.usage import tokens_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.outputs import LLMResult

    from langchain_agentmem.memories.langmem import Request
    from langchain_agentmem.steps.turns import Turn

_MEMORY: Final = "Memory"
_REMOVAL: Final = "RemoveDoc"


class LangMemExtractor:
    """Let LangMem's `create_memory_manager` propose; checks, write and history stay ours.

    It sees handles instead of keys, its model calls are counted with the others, and whatever it
    raises over a model's reply is a reported no-op. Needs the extra `[langmem]`.

    Args:
        model: Its chat model, or its name for `init_chat_model`.
        instructions: Instructions in place of those of the memory; `"langmem"` for LangMem's own.
        max_steps: How often its model may go on changing what it has extracted.

    Raises:
        ConfigurationError: LangMem is not installed.

    Example:
        ```python
        extractor = LangMemExtractor("openai:gpt-4o-mini")
        memory = LangMem(extractor=extractor, model="openai:gpt-4o-mini", store=store)
        ```
    """

    def __init__(
        self, model: BaseChatModel | str, *, instructions: str | None = None, max_steps: int = 1
    ) -> None:
        if find_spec("langmem") is None:
            msg = "LangMemExtractor needs langmem: pip install 'langchain-agentmem[langmem]'."
            raise ConfigurationError(msg)
        self.model = checked_model(model, is_needed=True)
        self.instructions = instructions
        self.max_steps = max_steps

    def propose(self, request: Request) -> Steps[Decision[ProposedMemories]]:
        """Return what LangMem would change.

        Raises:
            ModelCallError: The model itself failed.
        """
        manager = self._manager(request)
        meter = _Meter()
        given = {
            "messages": _messages(request.said),
            "existing": [_existing(str(n), each) for n, each in enumerate(request.shown)],
            "max_steps": self.max_steps,
        }
        problem = None
        found: Sequence[Any] = []
        try:
            found = yield from Call(
                manager.invoke,
                (given,),
                {"config": {"callbacks": [meter]}},
                afunction=manager.ainvoke,
            )
        except Exception as error:
            if meter.failed:
                raise ModelCallError.of(error, "in LangMem") from error
            problem = f"LangMem cannot use the reply ({type(error).__name__}: {str(error)[:200]})."
        finally:
            yield from meter.spent(request.purpose)
        if problem is not None:
            yield from Emit("reply_rejected", {"purpose": request.purpose, "problems": [problem]})
            return Decision(value=None, problems=[problem])
        memories = [_proposed(str(one.id), one.content, request.shown) for one in found]
        value = ProposedMemories(memories=[each for each in memories if each is not None])
        return Decision(value=value, model=_name(self.model))

    def _manager(self, request: Request) -> Any:  # noqa: ANN401 - LangMem is not typed
        from langmem import create_memory_manager  # type: ignore[import-untyped]  # published without annotations

        schemas = [each for each in request.rules.schemas if issubclass(each, BaseModel)]
        actions = request.rules.actions
        own = self.instructions or request.instructions
        return create_memory_manager(
            self.model,
            **({"schemas": schemas} if schemas else {}),
            **({} if own == "langmem" else {"instructions": own}),
            enable_inserts="create" in actions,
            enable_updates="update" in actions,
            enable_deletes="delete" in actions,
        )


def _messages(said: Iterable[Turn]) -> list[BaseMessage]:
    return [
        AIMessage(each.content)
        if each.speaker == ASSISTANT
        else HumanMessage(each.content, name=each.speaker)
        for each in said
    ]


def _existing(handle: str, draft: Draft) -> tuple[str, str, dict[str, Any]]:
    """Return a known memory as LangMem is given it; text is of its schema `Memory`."""
    if isinstance(draft.content, str):
        return handle, _MEMORY, {"content": draft.content}
    return handle, draft.kind, draft.content


def _proposed(handle: str, content: Any, shown: Sequence[Draft]) -> ProposedMemory | None:  # noqa: ANN401 - a model's instance, or what was given
    """Return what LangMem did to one memory as a proposal; None if nothing."""
    if not isinstance(content, BaseModel):
        return None  # it hands back what it was given
    kind = type(content).__name__
    if kind == _REMOVAL:
        named = str(getattr(content, "json_doc_id", handle))
        return ProposedMemory(action="delete", id=named, content=None)
    value: Any = content.model_dump(mode="json")
    if kind == _MEMORY and set(value) == {"content"}:
        value, kind = value["content"], TEXT
    known = {str(number): each for number, each in enumerate(shown)}.get(handle)
    if known is None:
        return ProposedMemory(action="create", id=None, kind=kind, content=value)
    if known.content == value:
        return None
    return ProposedMemory(action="update", id=handle, kind=kind, content=value)


def _name(model: BaseChatModel | str) -> str:
    return model if isinstance(model, str) else type(model).__name__


class _Meter(BaseCallbackHandler):
    """Counts LangMem's model calls, and notes whether a model itself failed."""

    run_inline = True

    def __init__(self) -> None:
        self.calls = 0
        self.failed = False
        self.tokens: dict[str, int] = {"input_tokens": 0, "output_tokens": 0}

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - LangChain's signature
        """Count one call."""
        self.calls += 1

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:  # noqa: ANN401 - LangChain's signature
        """Add the tokens of one call."""
        found = tokens_of(response)
        self.tokens["input_tokens"] += found.read
        self.tokens["output_tokens"] += found.written

    def on_llm_error(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - LangChain's signature
        """Note that the model failed."""
        self.failed = True

    def spent(self, purpose: str) -> Steps[None]:
        """Count what was spent."""
        yield from Spent(purpose, self.calls, **self.tokens)
        yield from Emit("model_called", {"purpose": purpose, "calls": self.calls, **self.tokens})
