"""Reading LangChain messages: their text, speaker, time and place in a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_agentmem.items import parse_timestamp

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage, BaseMessage, MessageLikeRepresentation

    Conversation: TypeAlias = str | Sequence[MessageLikeRepresentation]

USER: Final = "user"
ASSISTANT: Final = "assistant"
_ROLES: Final = {"human": USER, "ai": ASSISTANT}


def to_messages(conversation: Conversation) -> list[AnyMessage]:
    """Return a conversation as messages; a bare string is one message of the user.

    Raises:
        ValueError: The conversation has another form than LangChain's messages.
    """
    from langchain_core.messages import HumanMessage, convert_to_messages

    if isinstance(conversation, str):
        return [HumanMessage(conversation)]
    return convert_to_messages(conversation)  # type: ignore[return-value]


def text_of(message: BaseMessage) -> str:
    """Return what a message says in words; images and other blocks as a short placeholder."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(filter(None, map(_block_text, message.content)))


def _block_text(block: str | dict[Any, Any]) -> str:
    if isinstance(block, str):
        return block
    kind = str(block.get("type", "unknown"))
    if kind == "text":
        return str(block.get("text", ""))
    return "" if kind in {"tool_use", "tool_call", "thinking", "reasoning"} else f"[{kind}]"


def encodable(text: str) -> str:
    """Return a text with `?` for lone surrogates, which no store and no model can read."""
    return text.encode("utf-8", "replace").decode()


def speaker_of(message: BaseMessage) -> str | None:
    """Return who speaks: the name, else `"user"` or `"assistant"`; None for other roles.

    A message whose `additional_kwargs` hold `remember: False` has no speaker either: it is shown
    in the conversation, but is nothing to remember, such as an answer that only quotes memories.
    """
    if message.additional_kwargs.get("remember") is False:
        return None
    role = _ROLES.get(message.type)
    return (message.name or role) if role else None


def time_of(message: BaseMessage) -> datetime | None:
    """Return when a message was said, where its `additional_kwargs` hold `observed_at`."""
    given = message.additional_kwargs.get("observed_at")
    if isinstance(given, datetime):
        return given
    return parse_timestamp(given) if isinstance(given, str) else None


def session_of(message: BaseMessage) -> str | None:
    """Return the session a message belongs to, where its `additional_kwargs` hold `session`."""
    given = message.additional_kwargs.get("session")
    return str(given) if given else None


def last_human_text(messages: Iterable[MessageLikeRepresentation]) -> str:
    """Return the text of the last message of the user; empty if there is none."""
    spoken = [each for each in to_messages(list(messages)) if each.type == "human"]
    return text_of(spoken[-1]) if spoken else ""


def check_unicode(text: str) -> None:
    """Refuse a text that no file can hold.

    Raises:
        ValueError: It holds a lone surrogate.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        msg = (
            f"The text {text[:40]!r}... holds a lone surrogate at position {error.start}, which "
            "is not text. Decode its source with the right encoding, or use errors='replace'."
        )
        raise ValueError(msg) from error
