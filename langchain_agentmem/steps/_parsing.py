"""Reading a typed value out of whatever a model wrote: tool calls, JSON, or JSON amid prose.

Weak local models fence their JSON, think aloud before it, explain it afterwards, leave a comma
before a bracket, answer with a bare list, or write a tool call out as text. All of that is read
here. What was cut off is not guessed at: it is a problem to report.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from langchain_agentmem.messages import text_of, whole_text

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage
    from pydantic.fields import FieldInfo

S = TypeVar("S", bound=BaseModel)

_THOUGHTS: Final = "think|thinking|reasoning|reflection|scratchpad"
_CLOSED_THOUGHT: Final = re.compile(rf"<({_THOUGHTS})>.*?</\1>", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT: Final = re.compile(rf"</(?:{_THOUGHTS})>", re.IGNORECASE)
_OPEN_THOUGHT: Final = re.compile(rf"<(?:{_THOUGHTS})>.*", re.DOTALL | re.IGNORECASE)
_START: Final = re.compile(r"[{\[]")
_LOOKS_BEGUN: Final = re.compile(r"\{\s*(?:$|[\"}])|\[\s*(?:$|[{\"\[])")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TRAILING_COMMA: Final = re.compile(r",(\s*[}\]])")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input")
_CALL_KEYS: Final = frozenset({"name", "id", "type", "function", "tool", *_ARGUMENTS})
_CLOSERS: Final = {"{": "}", "[": "]"}
_DEEPEST: Final = 50

TRUNCATED: Final = "The reply ends in the middle of its JSON."
NOTHING: Final = "The reply holds no JSON."
TOO_DEEP: Final = "The reply's JSON is nested too deep."


def read_reply(schema: type[S], reply: AIMessage, *, salvage: bool) -> tuple[S | None, list[str]]:
    """Read a model's reply as a schema.

    Args:
        schema: What the reply should hold.
        reply: The reply.
        salvage: Leave out list elements that do not fit instead of refusing the whole reply.

    Returns:
        The value, or None; and what is wrong with the reply, empty if nothing is.
    """
    values, problem = values_in(reply)
    if not values:
        return None, [problem or NOTHING]
    problems: list[str] = []
    for value in values:
        found, wrong = fit(schema, value, salvage=salvage)
        if found is not None:
            return found, wrong
        problems = problems or wrong
    return None, problems


def cut_off_reply(error: Exception) -> AIMessage | None:
    """Return the reply that a client refused because it ended at the limit of its length.

    OpenAI's client raises `LengthFinishReasonError` for it under native structured output, with
    the completion inside. Any other error gives None.
    """
    from langchain_core.messages import AIMessage

    if type(error).__name__ != "LengthFinishReasonError":
        return None
    choices = getattr(getattr(error, "completion", None), "choices", None) or []
    texts = (getattr(getattr(each, "message", None), "content", None) for each in choices)
    return AIMessage(next((text for text in texts if isinstance(text, str)), ""))


def values_in(reply: AIMessage) -> tuple[list[Any], str | None]:
    """Return the JSON values a reply holds, the likeliest first, and a problem if one was cut."""
    if reply.tool_calls:
        values, problem = [call["args"] for call in reply.tool_calls], None
    else:
        invalid = (str(call["args"] or "") for call in reply.invalid_tool_calls)
        values, problem = json_values("\n".join([text_of(reply), *invalid]))
    shallow = [value for value in values if not _is_deep(value)]
    return [_storable(value) for value in shallow], TOO_DEEP if values and not shallow else problem


def _is_deep(value: Any) -> bool:  # noqa: ANN401 - any JSON
    """Tell whether a value is nested deeper than any schema is."""
    level = [value]
    for _ in range(_DEEPEST):
        inner = (each.values() if isinstance(each, Mapping) else each for each in level)
        level = [one for each in inner for one in each if isinstance(one, Mapping | list)]
        if not level:
            return False
    return True


def _storable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a JSON value that any file can hold: no lone surrogates, no infinite numbers."""
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {whole_text(str(name)): _storable(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_storable(each) for each in value]
    return value


def json_values(text: str) -> tuple[list[Any], str | None]:
    """Return the JSON objects and lists in a text, the last one first, tool calls unwrapped."""
    whole = _loads(text)
    if isinstance(whole, dict | list):
        return [_unwrapped(whole)], None
    text = _CLOSED_THOUGHT.sub("", text)
    text = _OPEN_THOUGHT.sub("", _END_OF_THOUGHT.split(text)[-1])
    found: list[Any] = []
    at = 0
    while (start := _START.search(text, at)) is not None:
        end = _end_of(text, start.start())
        if end is None and _LOOKS_BEGUN.match(text, start.start()):
            return [], TRUNCATED
        value = _loads(text[start.start() : end]) if end else None
        at = end if end and value is not None else start.end()
        if value is not None:
            found.append(_unwrapped(value))
    return found[::-1], None


def _end_of(text: str, start: int) -> int | None:
    """Return where the bracket at `start` is closed, strings passed over; None if nowhere.

    Brackets nested too deep count as not closed, so that no reply is slow to read.
    """
    closers: list[str] = []
    at = start
    while at < len(text):
        character = text[at]
        if character == '"':
            string = _STRING.match(text, at)
            if string is None:
                return None
            at = string.end()
            continue
        if character in _CLOSERS:
            closers.append(_CLOSERS[character])
            if len(closers) > _DEEPEST:
                return None
        elif character in "}]":
            if closers.pop() != character:
                return None
            if not closers:
                return at + 1
        at += 1
    return None


def _loads(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return a text's JSON value, a comma before a closing bracket forgiven; None for none."""
    for attempt in (text, _without_trailing_commas(text)):
        try:
            return json.loads(attempt, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _without_trailing_commas(text: str) -> str:
    kept, at = [], 0
    for string in _STRING.finditer(text):
        kept += [_TRAILING_COMMA.sub(r"\1", text[at : string.start()]), string.group()]
        at = string.end()
    return "".join([*kept, _TRAILING_COMMA.sub(r"\1", text[at:])])


def _unwrapped(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return the arguments of a tool call that was written out as text, else the value itself."""
    if isinstance(value, list) and len(value) == 1 and _is_call(value[0]):
        return _unwrapped(value[0])
    if not _is_call(value):
        return value
    if isinstance(value.get("function"), Mapping):
        return _unwrapped(value["function"])
    given = next(value[name] for name in _ARGUMENTS if name in value)
    return _loads(given) if isinstance(given, str) else given


def _is_call(value: Any) -> bool:  # noqa: ANN401 - any JSON
    if not isinstance(value, Mapping) or not set(value) <= _CALL_KEYS:
        return False
    if isinstance(value.get("function"), Mapping):
        return True
    return isinstance(value.get("name"), str) and any(name in value for name in _ARGUMENTS)


def fit(schema: type[S], value: Any, *, salvage: bool) -> tuple[S | None, list[str]]:  # noqa: ANN401 - any JSON
    """Validate a JSON value, with its outer shape forgiven; see `read_reply`."""
    wrong: list[str] = []
    for form in _forms(schema, value):
        try:
            return schema.model_validate(form), []
        except ValidationError as error:
            problems = [_told(each) for each in error.errors()]
            if salvage and (kept := _without(form, error)) is not None:
                try:
                    return schema.model_validate(kept), problems
                except ValidationError:
                    pass
            wrong = wrong or problems
    return None, wrong or [f"A JSON object is needed, not {type(value).__name__}."]


def _forms(schema: type[BaseModel], value: Any) -> Iterator[Any]:  # noqa: ANN401 - any JSON
    """Yield the value as it is, then what it may have been meant as."""
    lists = {name: element for name, element in _list_fields(schema) if element is not None}
    if isinstance(value, Mapping):
        yield {
            name: [_element(lists[name], one) for one in each]
            if name in lists and isinstance(each, list)
            else each
            for name, each in value.items()
        }
        if len(value) == 1:
            (inner,) = value.values()
            if isinstance(inner, Mapping):
                yield from _forms(schema, inner)
    if len(lists) == 1:
        ((name, element),) = lists.items()
        if isinstance(value, list):
            yield {name: [_element(element, one) for one in value]}
        elif isinstance(value, Mapping) and name not in value and _fits(element, value):
            yield {name: [value]}


def _list_fields(schema: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel] | None]]:
    for name, field in schema.model_fields.items():
        yield name, _element_model(field)


def _element_model(field: FieldInfo) -> type[BaseModel] | None:
    annotation = field.annotation
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(each for each in get_args(annotation) if each is not type(None))
    if get_origin(annotation) is not list:
        return None
    (element,) = get_args(annotation)
    return element if isinstance(element, type) and issubclass(element, BaseModel) else None


def _element(model: type[BaseModel], one: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a list's element; a bare text becomes the one field the model requires."""
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    if isinstance(one, str) and len(required) == 1:
        return {required[0]: one}
    return one


def _fits(model: type[BaseModel], value: Mapping[str, Any]) -> bool:
    try:
        model.model_validate(value)
    except ValidationError:
        return False
    return True


def _without(value: Any, error: ValidationError) -> Any:  # noqa: ANN401 - any JSON
    """Return the value without the list elements an error is about; None if it is elsewhere."""
    bad: dict[str, set[int]] = {}
    for each in error.errors():
        match each["loc"]:
            case (str(name), int(position), *_):
                bad.setdefault(name, set()).add(position)
            case _:
                return None
    return {
        name: [one for position, one in enumerate(each) if position not in bad[name]]
        if name in bad
        else each
        for name, each in value.items()
    }


def _told(error: Any) -> str:  # noqa: ANN401 - pydantic's own error record
    return f"{'.'.join(map(str, error['loc'])) or 'reply'}: {error['msg']}."


@lru_cache(maxsize=256)
def json_schema(schema: type[BaseModel]) -> Mapping[str, Any]:
    """Return a model's JSON schema; always the same object, not to be changed."""
    return MappingProxyType(schema.model_json_schema())


@lru_cache(maxsize=256)
def shape_of(schema: type[BaseModel]) -> str:
    """Return a schema as a short JSON-like sketch that even a small model can follow."""
    full = json_schema(schema)
    return _sketch(full, full.get("$defs", {}))


def _sketch(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "$ref" in node:
        target = definitions[str(node["$ref"]).rsplit("/", 1)[-1]]
        return _sketch({**target, **{k: v for k, v in node.items() if k != "$ref"}}, definitions)
    if "properties" in node:
        inner = (
            f"{json.dumps(name)}: {_sketch(each, definitions)}"
            for name, each in node["properties"].items()
        )
        return "{" + ", ".join(inner) + "}"
    note = f" ({node['description']})" if node.get("description") else ""
    return _sketch_plain(node, definitions) + note


def _sketch_plain(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "enum" in node:
        return " | ".join(json.dumps(each) for each in node["enum"])
    if "anyOf" in node:
        return " | ".join(_sketch(each, definitions) for each in node["anyOf"])
    if node.get("type") == "array":
        return f"[{_sketch(node.get('items', {}), definitions)}, ...]"
    return str(node.get("const", node.get("type", "value")))


def handles_of(values: Sequence[Any]) -> list[str]:
    """Return handles as a model may write them (`3`, `"[3]"`, `"#3"`) in their plain form."""
    return [re.sub(r"[^\w-]", "", str(each)).lower() for each in values]
