"""Where extracted facts come from: which speaker, which message, which time. Code decides that."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from langchain_agentmem.items import Cause
from langchain_agentmem.messages import ASSISTANT
from langchain_agentmem.steps.effects import Emit, Steps
from langchain_agentmem.steps.extraction import Decision, Handles
from langchain_agentmem.steps.facts import Fact
from langchain_agentmem.steps.proposals import ExtractedFact
from langchain_agentmem.steps.turns import Turn

IDENTITY: Final = frozenset({"user_id", "agent_id", "run_id", "thread_id", "org_id", "actor_id"})

logger = logging.getLogger(__name__)


def callers_fields(
    given: Mapping[str, Any] | None, variables: Iterable[str]
) -> Steps[Mapping[str, Any]]:
    """Return the caller's own fields; fields that look like identity are refused, loudly.

    Args:
        given: Metadata of new memories.
        variables: Names that say whose memory it is.
    """
    refused = sorted(IDENTITY.union(variables).intersection(given or ()))
    if refused:
        yield from Emit("metadata_identity_ignored", {"fields": refused})
        logger.warning("Metadata never sets whose memory it is; %s ignored.", refused)
    return {name: value for name, value in (given or {}).items() if name not in refused}


def located(
    each: ExtractedFact,
    said: Sequence[Turn],
    known: Handles,
    metadata: Mapping[str, Any],
    clean: Callable[[str], str],
) -> Fact:
    """Return an extracted fact with its speaker, time and messages.

    The speaker is one of those who spoke and the time that of a message, whatever the model wrote:
    of several messages of the speaker, the last one of the day the model names, or the last.

    Args:
        each: What the model wrote.
        said: The turns it read.
        known: The memories it was shown.
        metadata: The caller's own fields.
        clean: Returns what may be stored of a text.
    """
    speaker = speaker_of(each.attributed_to, said)
    own = [turn for turn in said if turn.speaker == speaker]
    day = each.observed_at or "-"
    dated = [turn for turn in own if day.startswith(f"{turn.observed_at:%Y-%m-%d}")]
    related = [known.get(handle) for handle in each.related]
    return Fact(
        text=clean(each.text),
        attributed_to=speaker,
        observed_at=(dated or own)[-1].observed_at,
        message_ids=tuple(turn.message_id for turn in own),
        related=tuple(dict.fromkeys(one.key for one in related if one is not None)),
        metadata=metadata,
    )


def verbatim(turn: Turn, metadata: Mapping[str, Any]) -> Fact:
    """Return a turn, word for word, as a fact."""
    return Fact(
        text=turn.content,
        attributed_to=turn.speaker,
        observed_at=turn.observed_at,
        message_ids=(turn.message_id,),
        metadata=metadata,
    )


def speaker_of(written: str | None, said: Sequence[Turn]) -> str:
    """Return the speaker a model means; a person rather than the assistant when that is unclear."""
    speakers = list(dict.fromkeys(turn.speaker for turn in said))
    people = [each for each in speakers if each != ASSISTANT]
    fallback = people[0] if people else speakers[0]
    named = {each.casefold(): each for each in speakers}
    return named.get((written or fallback).casefold(), fallback)


def cause(said: Sequence[Turn], decision: Decision[Any] | None = None) -> Cause:
    """Return the cause of what is remembered of some turns."""
    ids, thread = [turn.message_id for turn in said], said[0].thread
    if decision is None:
        return Cause(message_ids=tuple(ids), thread_id=thread or None)
    return decision.cause(ids, thread)
