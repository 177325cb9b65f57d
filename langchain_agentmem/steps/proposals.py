"""What a model is asked for when it extracts facts and decides what they change."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, Field, field_validator

from langchain_agentmem.steps.extraction import Proposal


class ExtractedFact(Proposal):
    """One fact a model found."""

    text: str = Field(validation_alias=AliasChoices("text", "fact", "memory", "content"))
    attributed_to: str | None = None
    observed_at: str | None = Field(None, description="date of the message, YYYY-MM-DD")
    related: list[str] = Field(default_factory=list)


class Extracted(Proposal):
    """All facts a model found."""

    facts: list[ExtractedFact]


class Operation(Proposal):
    """One change a model proposes."""

    fact: int | None = None
    handle: str | None = Field(None, validation_alias=AliasChoices("handle", "id"))
    event: Literal["ADD", "UPDATE", "DELETE", "NOOP"]
    text: str | None = None

    @field_validator("event", mode="before")
    @classmethod
    def _plain(cls, value: object) -> object:
        written = str(value).strip().upper()
        return "NOOP" if written in {"NONE", "NOOP"} else written


class Operations(Proposal):
    """All changes a model proposes."""

    operations: list[Operation]
