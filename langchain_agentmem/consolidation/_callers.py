"""What of a submitter's call is kept for the later run: the JSON part of config and context."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from langchain_agentmem.scopes import Scope

INTERNAL: Final = ("__", "checkpoint_")
"""What the names begin with that LangGraph itself keeps in a config."""


def caller_config(caller: Scope) -> dict[str, Any]:
    """Return the JSON part of a call's `configurable` and context, for the later run."""
    context = caller.context
    if is_dataclass(context) and not isinstance(context, type):
        context = {each.name: getattr(context, each.name) for each in fields(context)}
    found = {
        "configurable": {
            name: value
            for name, value in caller.configurable.items()
            if not name.startswith(INTERNAL) and _is_json(value)
        },
        "context": {
            name: value
            for name, value in (context if isinstance(context, Mapping) else {}).items()
            if _is_json(value)
        },
    }
    return {name: each for name, each in found.items() if each}


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
