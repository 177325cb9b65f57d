"""A chain's inputs and outputs as messages: which value counts, and what it says."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)

from langchain_agentmem.errors import ConfigurationError

Keys: TypeAlias = str | Sequence[str] | None

USUAL_INPUTS: Final = ("input", "question", "query", "human_input", "prompt")
USUAL_OUTPUTS: Final = ("answer", "output", "response", "text", "result")
STEPS: Final = "intermediate_steps"
_NEVER_OUTPUT: Final = frozenset({STEPS, "source_documents"})
_KEYS: Final = uuid.UUID("5b0c5c3e-2d1b-5e0a-8f1e-6a4d9c7b1f02")


def input_of(inputs: Mapping[str, Any], given: Keys, excluded: Iterable[str]) -> Any:  # noqa: ANN401 - what a chain takes
    """Return the input of a chain that is what the user said.

    Args:
        inputs: All inputs of the chain.
        given: The key to take; several keys are joined as `key: value` lines.
        excluded: Keys that memories fill.

    Raises:
        ConfigurationError: None, or more than one, can be meant.
    """
    if isinstance(given, str):
        return _value(inputs, given, "input_key")
    if given is not None:
        return "\n".join(f"{key}: {_value(inputs, key, 'input_key')}" for key in given)
    keys = sorted(set(inputs) - {*excluded, "stop"})
    return inputs[_picked(keys, USUAL_INPUTS, "input")]


def output_of(outputs: Mapping[str, Any], given: Keys) -> Any:  # noqa: ANN401 - what a chain returns
    """Return the output of a chain that is what the assistant said.

    Raises:
        ConfigurationError: None, or more than one, can be meant.
    """
    if isinstance(given, str):
        return _value(outputs, given, "output_key")
    if given is not None:
        found = next((key for key in given if key in outputs), None)
        return _value(outputs, found or str(list(given)), "output_key")
    keys = sorted(set(outputs) - _NEVER_OUTPUT)
    return outputs[_picked(keys, USUAL_OUTPUTS, "output")]


def _picked(keys: Sequence[str], usual: Sequence[str], what: str) -> str:
    if len(keys) == 1:
        return keys[0]
    for key in usual:
        if key in keys:
            return key
    msg = f"Which {what} of the chain is to be remembered? Pass {what}_key= one of {list(keys)}."
    raise ConfigurationError(msg)


def _value(values: Mapping[str, Any], key: str, name: str) -> Any:  # noqa: ANN401 - a chain's values
    if key not in values:
        msg = f"{name}={key!r} is not among the chain's {sorted(values)}."
        raise ConfigurationError(msg)
    return values[key]


def asked(value: Any) -> list[AnyMessage]:  # noqa: ANN401 - what a chain takes
    """Return what the user said as messages: a text, message, content blocks, or a list."""
    if isinstance(value, BaseMessage):
        return [value]  # type: ignore[list-item]  # every message class is one of the union
    if isinstance(value, list) and value:
        if all(isinstance(each, BaseMessage) for each in value):
            return list(value)
        if all(isinstance(each, dict) and "type" in each and "role" not in each for each in value):
            return [HumanMessage(value)]
        if all(isinstance(each, dict | tuple) for each in value):
            return convert_to_messages(value)  # type: ignore[return-value]  # as above
    return [HumanMessage(_text(value))]


def answered(value: Any, steps: Any) -> list[AnyMessage]:  # noqa: ANN401 - what a chain returns
    """Return what the assistant did and said as messages.

    Args:
        value: A text, message, list of messages, or anything JSON can hold.
        steps: The `intermediate_steps` of a classic agent: pairs of an action and what it saw.
    """
    tools = [each for step in steps or () for each in _tool_messages(step)]
    if isinstance(value, BaseMessage):
        return [*tools, value]  # type: ignore[list-item]  # every message class is one of the union
    if isinstance(value, list) and value and all(isinstance(each, BaseMessage) for each in value):
        return [*tools, *value]
    return [*tools, AIMessage(_text(value))]


def _tool_messages(step: Any) -> list[AnyMessage]:  # noqa: ANN401 - an agent's step
    action, seen = step
    given = action.tool_input
    args = given if isinstance(given, dict) else {"input": given}
    made = uuid.uuid5(_KEYS, "\x1f".join((action.tool, str(given), str(seen)))).hex[:16]
    call_id = getattr(action, "tool_call_id", None) or f"call-{made}"  # short: it costs tokens
    call = {"name": action.tool, "args": args, "id": call_id}
    return [
        AIMessage("", tool_calls=[call]),
        ToolMessage(_text(seen), name=action.tool, tool_call_id=call_id),
    ]


def _text(value: Any) -> str:  # noqa: ANN401 - anything
    if isinstance(value, str):
        return value
    if isinstance(value, BaseMessage):
        return str(value.text)
    return json.dumps(value, ensure_ascii=False, default=str)
