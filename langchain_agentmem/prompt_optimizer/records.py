"""Records: what a run knows about one prompt, as plain JSON in the graph's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_agentmem.prompt_optimizer.levels import unified
from langchain_agentmem.prompt_optimizer.scoring import Comparison
from langchain_agentmem.prompt_optimizer.settings import Record
from langchain_agentmem.prompt_optimizer.values import Prompt, Split, Trajectory
from langchain_agentmem.prompt_optimizer.versions import PromptVersion

TOLD: Final = ("name", "decision", "reason", "version", "calls", "tokens")
"""What the event about a decision tells."""


def new_record(prompt: Prompt, parent: int, found: Split, used: Sequence[str], seed: int) -> Record:
    """Return the record of a prompt at the beginning of a run.

    Args:
        prompt: The prompt with its active text.
        parent: Number of the active version.
        found: Conversations to learn from and to decide with.
        used: Ids of all these conversations.
        seed: Seed of whatever is drawn for this prompt.
    """
    return {
        "name": prompt["name"],
        "prompt": dict(prompt),
        "parent": parent,
        "asked": True,
        "trajectories": found.shown,
        "held_out": found.held_out,
        "trajectory_ids": list(used),
        "seed": seed,
        "budget": None,
        "strategy": None,
        "candidates": [],
        "refused": [],
        "chosen": None,
        "evaluation": None,
        "decision": None,
        "reason": "",
        "version": parent,
    }


def resolved(decision: str, reason: str) -> Record:
    """Return the update that ends the work on a prompt."""
    return {"decision": decision, "reason": reason}


def waiting(work: Mapping[str, Record]) -> list[Record]:
    """Return copies of the records that are not decided yet."""
    return [dict(each) for each in work.values() if not each["decision"]]


def comparison_of(record: Record) -> Comparison | None:
    """Return what the evaluation measured."""
    measured = record["evaluation"]
    if measured is None:
        return None
    return Comparison(**{name: value for name, value in measured.items() if name != "metric"})


def proposed_text(record: Record) -> str | None:
    """Return the text that was accepted or rejected."""
    if record["chosen"]:
        return str(record["chosen"]["text"])
    if record["refused"]:
        text = record["refused"][0]["text"]
        return text if isinstance(text, str) else None
    return None


def as_version(record: Record, text: str) -> PromptVersion:
    """Return the entry for the history."""
    cost = record["budget"] or {"calls": 0, "tokens": 0}
    accepted = record["decision"] == "accepted"
    return PromptVersion(
        name=record["name"],
        text=text,
        strategy=record["strategy"],
        hypotheses=(record["chosen"] or {}).get("hypotheses", ""),
        trajectory_ids=tuple(record["trajectory_ids"]),
        evaluation=record["evaluation"],
        decision="accepted" if accepted else "rejected",
        reason=record["reason"],
        calls=cost["calls"],
        tokens=cost["tokens"],
    )


def report_row(record: Record) -> Record:
    """Return what the report says about a prompt."""
    before, text = record["prompt"]["prompt"], proposed_text(record)
    cost = record["budget"] or {"calls": 0, "tokens": 0, "exhausted": False}
    chosen: Mapping[str, Any] = record["chosen"] or {}
    accepted = record["decision"] == "accepted"
    return {
        "name": record["name"],
        "decision": record["decision"],
        "reason": record["reason"],
        "version": record["version"],
        "parent": record["parent"],
        "text": text if accepted else before,
        "candidate": text,
        "diff": unified(before, text) if text is not None else "",
        "evaluation": record["evaluation"],
        "evaluated": record["evaluation"] is not None,
        "refused": record["refused"],
        "strategy": record["strategy"],
        "operator": chosen.get("operator"),
        "hypotheses": chosen.get("hypotheses", ""),
        "trajectories": len(record["trajectory_ids"]),
        "calls": cost["calls"],
        "tokens": cost["tokens"],
        "budget_exhausted": record["decision"] == "not_reached" or cost["exhausted"],
    }


def fresh(
    known: Sequence[Trajectory],
    name: str,
    history: Sequence[PromptVersion],
    active: int,
    since: int,
) -> list[Trajectory]:
    """Return the conversations that can teach something new about the active version.

    Left out are those that were used for it before, and those held with an older version.

    Args:
        known: All conversations.
        name: The prompt.
        history: Its entries so far.
        active: Number of the active version.
        since: The oldest version that counts; 0 for the active one.
    """
    used = {
        each
        for entry in history
        if active in (entry.parent, entry.version)
        for each in entry.trajectory_ids
    }
    oldest = since or active
    return [
        each
        for each in known
        if each["id"] not in used and each["prompt_versions"].get(name, oldest) >= oldest
    ]
