"""Reading LangChain messages: their text, speaker, time and place in a conversation."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from langchain_agentmem.items import parse_timestamp

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage, BaseMessage, MessageLikeRepresentation

    Conversation: TypeAlias = (
        str | MessageLikeRepresentation | Sequence[MessageLikeRepresentation] | Mapping[str, Any]
    )

USER: Final = "user"
ASSISTANT: Final = "assistant"
_ROLES: Final = {"human": USER, "ai": ASSISTANT}
_ROLE_NAMES: Final = frozenset({"user", "human", "ai", "assistant", "system", "developer", "tool"})
_NO_SPEAKERS: Final = _ROLE_NAMES | {"function"}


def to_messages(conversation: Conversation) -> list[AnyMessage]:
    """Return a conversation as messages.

    Args:
        conversation: Messages in any form LangChain takes; a single message; a bare string, which
            is a message of the user; or a graph state with `messages`.

    Raises:
        TypeError: It is something else.
        ValueError: A message has another form than LangChain's.
    """
    from langchain_core.messages import BaseMessage, HumanMessage

    if isinstance(conversation, str):
        return [HumanMessage(conversation)]
    if isinstance(conversation, Mapping) and "messages" in conversation:
        return to_messages(conversation["messages"])
    if isinstance(conversation, BaseMessage | Mapping) or _is_pair(conversation):
        return _converted([conversation])
    if isinstance(conversation, bytes) or not isinstance(conversation, Iterable):
        msg = (
            f"A conversation is a text, a message or a list of messages, not a "
            f"{type(conversation).__name__}; e.g. [('user', 'Hello'), ('ai', 'Hi!')]."
        )
        raise TypeError(msg)
    return _converted(conversation)


def _converted(conversation: Iterable[Any]) -> list[AnyMessage]:
    """Return messages in any of LangChain's forms as its messages.

    Raises:
        ValueError: One of them has another form.
    """
    from langchain_core.messages import convert_to_messages

    try:
        return cast("list[AnyMessage]", convert_to_messages(cast("Sequence[Any]", conversation)))
    except KeyError as error:
        msg = f"A message cannot be read: {error} is missing; a tool's needs its ToolMessage form."
        raise ValueError(msg) from error
    except NotImplementedError as error:
        msg = f"A message cannot be read: {error}; e.g. [('user', 'Hello'), ('ai', 'Hi!')]."
        raise ValueError(msg) from error


def _is_pair(conversation: object) -> bool:
    """Tell whether a tuple is one message, such as `("user", "Hello")`."""
    return (
        isinstance(conversation, tuple)
        and len(conversation) == 2  # noqa: PLR2004 - role and text
        and all(isinstance(part, str) for part in conversation)
        and conversation[0] in _ROLE_NAMES
    )


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

    A name that is itself a role, such as `"system"`, is not taken: nobody speaks as another role.

    A message whose `additional_kwargs` hold `remember: False` has no speaker either: it is shown
    in the conversation, but is nothing to remember, such as an answer that only quotes memories.
    """
    if message.additional_kwargs.get("remember") is False:
        return None
    role = _ROLES.get(message.type)
    if role is None or message.name is None or _claims_a_role(message.name):
        return role
    return message.name or role


def _claims_a_role(name: str) -> bool:
    """Tell whether a name reads like a role, in whatever letters, spacing or punctuation."""
    letters = unicodedata.normalize("NFKC", name).casefold()
    return "".join(filter(str.isalnum, letters)) in _NO_SPEAKERS


def time_of(message: BaseMessage) -> datetime | None:
    """Return when a message was said, where its `additional_kwargs` hold `observed_at`.

    Raises:
        ValueError: It is there and no time, which would be taken for now.
    """
    given = message.additional_kwargs.get("observed_at")
    if given is None or isinstance(given, datetime):
        return given
    try:
        return parse_timestamp(given)
    except (TypeError, ValueError) as error:
        msg = (
            f"observed_at of a message is {given!r}; give an aware datetime, such as "
            "datetime.fromtimestamp(seconds, UTC), or ISO 8601 text."
        )
        raise ValueError(msg) from error


def session_of(message: BaseMessage) -> str | None:
    """Return the session a message belongs to, where its `additional_kwargs` hold `session`."""
    given = message.additional_kwargs.get("session")
    return str(given) if given else None


def title_of(message: BaseMessage) -> str:
    """Return the title of the document a message holds: `title` of its `additional_kwargs`."""
    given = message.additional_kwargs.get("title")
    return given if isinstance(given, str) else ""


def last_human_text(messages: Iterable[MessageLikeRepresentation]) -> str:
    """Return the text of the last message of the user; empty if there is none."""
    spoken = [each for each in to_messages(list(messages)) if each.type == "human"]
    return text_of(spoken[-1]) if spoken else ""


def whole_text(text: str) -> str:
    """Return a text that any file can hold: what is half of a character becomes U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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
