"""Whom a memory belongs to: namespace templates and how their variables are resolved.

Identity comes from the runtime context or the config of the call, never from model output,
message text or stored metadata.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.parameters import must_be

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

ROOT: Final = "_agentmem"
"""First label of the namespaces in which this package keeps its own records."""

_CONFIG: Final = "a config, such as {'configurable': {'user_id': 'ann'}}"
_CONFIGURABLE: Final = "a mapping, such as {'user_id': 'ann'}"
_REFUSED_ROOTS = frozenset({ROOT, "langgraph"})
_ESCAPE = "~"
SEPARATOR: Final = "\x1f"
"""Joins labels where a namespace is written as one string; no resolved namespace holds it."""

_UNUSABLE = frozenset({".", "\x00", "*", SEPARATOR})
_ALWAYS_ESCAPED = _UNUSABLE | {_ESCAPE}
_MISSING: Any = object()


def reserved(record: str, namespace: Iterable[str]) -> tuple[str, ...]:
    """Return where this package keeps its own records of one kind for `namespace`.

    Args:
        record: Kind of record: `"journal"`, `"closed"`, `"counters"`, `"queue"`, ...
        namespace: The namespace of the memories that the records are about.
    """
    return (ROOT, record, *namespace)


def closed(namespace: Iterable[str]) -> tuple[str, ...]:
    """Return where superseded and archived items of `namespace` lie, under their own keys."""
    return reserved("closed", namespace)


def journal(namespace: Iterable[str]) -> tuple[str, ...]:
    """Return where the history of `namespace` lies."""
    return reserved("journal", namespace)


@dataclass(frozen=True, slots=True)
class Scope:
    """The context and config of one call, as the only source of identity and overrides.

    Attributes:
        context: The runtime context: None, a mapping or any object with attributes.
        configurable: `config["configurable"]` of the call.
        settings: Parameters given to the call itself; they win over both.
    """

    context: Any = None
    configurable: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Mapping[str, Any] | None = None, context: Any = None) -> Self:  # noqa: ANN401 - any context type is allowed by LangGraph
        """Read a scope from a `RunnableConfig` and a runtime context, either of them optional.

        Raises:
            ConfigurationError: The config or its `configurable` is no mapping.
        """
        must_be("config", config or {}, Mapping, _CONFIG)
        configurable = (config or {}).get("configurable") or {}
        must_be("config['configurable']", configurable, Mapping, _CONFIGURABLE)
        return cls(context, dict(configurable))

    def resolve(self, name: str, default: Any = _MISSING) -> Any:  # noqa: ANN401 - values are the user's
        """Look `name` up in settings, context and `configurable`, then take the default.

        A value of None counts as not given, in the context as in the config.

        Raises:
            ConfigurationError: It is nowhere and there is no default.
        """
        for place in (self.settings, self.context, self.configurable):
            found = value_of(place, name)
            if found is not None:
                return found
        if default is _MISSING:
            msg = (
                f"{name!r} is neither in the runtime context nor in config['configurable']. Pass "
                f"context={{{name!r}: ...}} or config={{'configurable': {{{name!r}: ...}}}}."
            )
            raise ConfigurationError(msg)
        return default

    def chosen(self, name: str, usual: object) -> Any:  # noqa: ANN401 - values are the user's
        """Look a parameter up as `resolve` does; None if nobody has chosen a value.

        A form, such as Studio's, and LangGraph itself fill a context class with its defaults. So a
        field of a class that holds the usual value is not chosen: a preset or the config decides.
        """
        form = self.context if is_dataclass(self.context) else None
        for place in (self.settings, self.context, self.configurable):
            found = value_of(place, name)
            if found is not None and not (place is form and found == usual):
                return found
        return None


def value_of(holder: object, name: str) -> Any:  # noqa: ANN401 - values are the user's
    """Return a value of a mapping, a dataclass or any object, such as a graph's state; or None."""
    if isinstance(holder, (dict, Mapping)):  # the quick answer first
        return holder.get(name)
    return None if holder is None else getattr(holder, name, None)


@dataclass(frozen=True, slots=True)
class _Label:
    """One label of a template: literal texts and variable names in turn."""

    parts: tuple[tuple[str, str | None], ...]
    escaped: frozenset[str]

    @classmethod
    def of(cls, parts: Iterable[tuple[str, str | None]]) -> Self:
        """Return the label of some parts.

        Between variables, the first characters of the texts are escaped in values, too: otherwise
        `"{org}-{team}"` would give `("a-b", "c")` and `("a", "b-c")` one label.
        """
        given = tuple(parts)
        variable_parts = [literal for literal, name in given if name is not None]
        borders = frozenset(literal[0] for literal in variable_parts[1:])
        return cls(given, _ALWAYS_ESCAPED | borders)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the label, in order."""
        return tuple(name for _, name in self.parts if name is not None)


class NamespaceTemplate:
    """A store namespace with variables that are filled from context or config at each call.

    A template is a tuple of labels or a string for one label. A label may be literal
    (`"memories"`), a variable (`"{user_id}"`) or a mix (`"user-{user_id}"`, `"{org}-{team}"`);
    `{{` and `}}` are literal braces. LangMem's templates work unchanged.

    A value always fills exactly its own label. Characters that a label cannot hold (`.`, NUL,
    `*`, U+001F, and the escape character `~`) are written as `~` and two or more hexadecimal
    digits and `~`, injectively: two values with different `str()` never share a label.

    Example:
        ```python
        template = NamespaceTemplate(("memories", "{user_id}"))
        template({"configurable": {"user_id": "ann"}})  # ("memories", "ann")
        template(context={"user_id": "a@b.com"})  # ("memories", "a@b~2E~com")
        ```
    """

    __slots__ = ("_labels", "template")

    def __init__(self, template: tuple[str, ...] | list[str] | str | NamespaceTemplate) -> None:
        if isinstance(template, NamespaceTemplate):
            self.template: tuple[str, ...] = template.template
        else:
            self.template = (template,) if isinstance(template, str) else tuple(template)
        if not self.template:
            msg = "A namespace template needs at least one label, e.g. ('memories', '{user_id}')."
            raise ConfigurationError(msg)
        self._labels = tuple(_parse_label(label, self.template) for label in self.template)
        _refuse_root(self.template[0], self.template)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables in order of appearance, each once."""
        return tuple(dict.fromkeys(name for label in self._labels for name in label.variables))

    def __call__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,  # noqa: ANN401 - any context type is allowed by LangGraph
    ) -> tuple[str, ...]:
        """Return the namespace for one call.

        Args:
            config: The call's `RunnableConfig`; without it, and without `context`, the running
                graph's own config and context are read.
            context: The runtime context, which wins over the config.

        Raises:
            ConfigurationError: A variable is missing or its value cannot be part of a namespace.
        """
        if config is None and context is None:
            return self.resolve(current_scope())
        return self.resolve(Scope.of(config, context))

    def resolve(self, scope: Scope) -> tuple[str, ...]:
        """Return the namespace for a scope.

        Raises:
            ConfigurationError: A variable is missing or its value cannot be part of a namespace.
        """
        namespace = tuple(self._fill(label, scope) for label in self._labels)
        _refuse_root(namespace[0], self.template)
        return namespace

    def _fill(self, label: _Label, scope: Scope) -> str:
        filled = []
        for literal, name in label.parts:
            filled.append(literal)
            if name is not None:
                filled.append(escape_label(self._value(name, scope), also=label.escaped))
        return "".join(filled)

    def _value(self, name: str, scope: Scope) -> str:
        value = scope.resolve(name, None)
        if value is None:
            there = sorted(key for key in map(str, scope.configurable) if key[:2] != "__")
            msg = (
                f"Namespace template {self.template} needs {name!r}, which is neither in the "
                f"runtime context nor in config['configurable'] (there: {there}). Pass "
                f"config={{'configurable': {{{name!r}: 'ann'}}}} or context={{{name!r}: 'ann'}}."
            )
            raise ConfigurationError(msg)
        return _scope_text(name, value, self.template)

    def __eq__(self, other: object) -> bool:
        """Two templates are equal when their labels are."""
        return isinstance(other, NamespaceTemplate) and other.template == self.template

    def __hash__(self) -> int:
        """Hash by labels."""
        return hash(self.template)

    def __repr__(self) -> str:
        """Show the template's labels."""
        return f"NamespaceTemplate({self.template!r})"


def running() -> Runtime[Any] | None:
    """Return the runtime of the graph run this is called in; None outside of a run."""
    from langgraph.runtime import get_runtime

    try:
        return get_runtime()
    except (RuntimeError, KeyError):
        return None


def current_scope() -> Scope:
    """Return the scope of the graph run this is called in; an empty one outside of a run."""
    return scope_within(running())


def scope_within(runtime: Runtime[Any] | None) -> Scope:
    """Return the scope of what runs now, of which `running` gave the runtime."""
    from langgraph.config import get_config

    try:
        config = get_config()
    except RuntimeError:
        return Scope()
    return Scope.of(config, getattr(runtime, "context", None))


def escape_label(text: str, *, also: Iterable[str] = _ALWAYS_ESCAPED) -> str:
    """Escape a text so that it can stand as (part of) one namespace label.

    Injective; ordinary texts are returned unchanged. Undone by `unescape_label`.
    """
    escaped = _ALWAYS_ESCAPED.union(also)
    if escaped.isdisjoint(text):
        return text
    return "".join(
        f"{_ESCAPE}{ord(character):02X}{_ESCAPE}" if character in escaped else character
        for character in text
    )


def unescape_label(label: str) -> str:
    """Return the text that `escape_label` was given."""
    return re.sub(r"~([0-9A-F]+)~", lambda found: chr(int(found.group(1), 16)), label)


def _scope_text(name: str, value: object, template: tuple[str, ...]) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | UUID):
        msg = (
            f"{name!r} of namespace template {template} is a {type(value).__name__}; "
            "give a string, an integer or a UUID."
        )
        raise ConfigurationError(msg)
    text = str(value)
    if not text:
        msg = f"{name!r} of namespace template {template} is empty; give a non-empty value."
        raise ConfigurationError(msg)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        msg = f"{name!r} of namespace template {template} holds a lone surrogate; give real text."
        raise ConfigurationError(msg) from error
    return text


def _refuse_root(label: str, template: tuple[str, ...]) -> None:
    if label in _REFUSED_ROOTS:
        msg = (
            f"The root {label!r} of namespace template {template} is reserved; "
            "begin with another label, e.g. 'memories'."
        )
        raise ConfigurationError(msg)


def _parse_label(label: object, template: tuple[str, ...]) -> _Label:
    if not isinstance(label, str) or not label:
        msg = f"Label {label!r} of namespace template {template} is not a non-empty string."
        raise ConfigurationError(msg)
    try:
        return _Label.of(_parts(label))
    except ValueError as error:
        msg = f"Label {label!r} of namespace template {template} is malformed: {error}."
        raise ConfigurationError(msg) from error


def _parts(label: str) -> Iterator[tuple[str, str | None]]:
    earlier_variable = False
    for literal, name, spec, conversion in string.Formatter().parse(label):
        if _UNUSABLE.intersection(literal):
            msg = "'.', '*', NUL and U+001F cannot stand in a namespace label"
            raise ValueError(msg)
        if name is None:
            yield literal, None
            continue
        if spec or conversion or not name.isidentifier():
            msg = f"{{{name}}} is not a plain variable name"
            raise ValueError(msg)
        if earlier_variable and not literal:
            msg = f"{{{name}}} touches the variable before it; put a separator such as '-' between"
            raise ValueError(msg)
        earlier_variable = True
        yield literal, name
