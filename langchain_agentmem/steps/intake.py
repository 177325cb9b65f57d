"""What of a conversation may be remembered at all: no system text, no recalled text, no secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from langchain_agentmem.messages import ASSISTANT, to_messages
from langchain_agentmem.retrieval._words import ENGLISH_STOP_WORDS
from langchain_agentmem.retrieval.text import words
from langchain_agentmem.steps.effects import Emit, Now, Setting, Steps
from langchain_agentmem.steps.turns import Turn

Redact: TypeAlias = Callable[[str], str | None]
"""Returns a text without what must not be stored; None or an empty text to store nothing of it."""

_REQUEST: Final = re.compile(
    r"(?:do(?:n['\u2019]?t| not)|please never|never) (?:ever )?(?:remember|store|save|memori[sz]e"
    r"|record|keep) (?:this|that|it|what i)\b"
    r"|\boff the record\b|\bforget (?:what i (?:just )?said|that i (?:just )?said)\b"
    r"|\b(?:merk|speicher)\w* (?:dir )?(?:das|dies\w*) (?:bitte )?nicht\b"
    r"|\bno (?:recuerdes|guardes) (?:esto|eso)\b"
    r"|\bne (?:retiens|m\u00e9morise\w*) pas (?:\u00e7a|cela|ceci)\b"
    r"|\u4e0d\u8981(?:\u8bb0\u4f4f|\u8a18\u4f4f|\u4fdd\u5b58|\u8bb0\u5f55)|\u522b\u8bb0(?:\u4f4f|\u5f55)?"
    r"|\u899a\u3048\u306a\u3044\u3067",
    re.IGNORECASE,
)
_POLITE: Final = ENGLISH_STOP_WORDS | {"please", "ok", "okay", "thanks", "thank", "bitte", "\u8bf7"}


def hear(messages: Iterable[Any], redact: Redact | None = None) -> Steps[list[Turn]]:
    """Return the turns of a conversation that may be remembered, each with speaker and time.

    System messages, tool results, rendered memories, what a speaker asked not to remember, and
    what `redact` takes out are no part of them. Of the last two an event tells how many.
    """
    now = yield from Now()
    thread = str((yield from Setting("thread_id", "")))
    read = (
        Turn.of(message, position, thread, now)
        for position, message in enumerate(to_messages(list(messages)))
    )
    said = [turn for turn in read if turn is not None]
    allowed = without_refused(said)
    if len(allowed) < len(said):
        yield from Emit("not_remembered_on_request", {"messages": len(said) - len(allowed)})
    kept = [clean for turn in allowed if (clean := _redacted(turn, redact)) is not None]
    if len(kept) < len(allowed):
        yield from Emit("redacted", {"messages": len(allowed) - len(kept)})
    return kept


def _redacted(turn: Turn, redact: Redact | None) -> Turn | None:
    text = redacted(turn.content, redact)
    return replace(turn, content=text) if text.strip() else None


def redacted(text: str, redact: Redact | None) -> str:
    """Return what `redact` leaves of a text; the text itself without a hook."""
    return text if redact is None else (redact(text) or "")


def asks_not_to_remember(text: str) -> bool:
    """Tell whether a text asks, in one of the common wordings, not to be remembered."""
    return _REQUEST.search(text) is not None


def without_refused(turns: Sequence[Turn]) -> list[Turn]:
    """Return turns without those that their speaker asked not to remember.

    That is the turn with the request and the answer to it; a bare "don't remember that" also takes
    back the speaker's turn before it, with whatever was said since.
    """
    refused: set[int] = set()
    for position, turn in enumerate(turns):
        if turn.speaker == ASSISTANT or not asks_not_to_remember(turn.content):
            continue
        refused.add(position)
        if set(words(_REQUEST.sub(" ", turn.content))) <= _POLITE:  # about what was said before it
            earlier = [at for at in range(position) if turns[at].speaker == turn.speaker]
            refused.update(range(earlier[-1], position) if earlier else ())
        answer = position + 1
        if answer < len(turns) and turns[answer].speaker != turn.speaker:
            refused.add(answer)
    return [turn for position, turn in enumerate(turns) if position not in refused]


def turns_of(turns: Iterable[dict[str, Any]]) -> list[Turn]:
    """Return the turns of a graph state."""
    return [Turn.from_dict(turn) for turn in turns]
