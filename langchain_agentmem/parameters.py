"""Parameters of an architecture: frozen values with named presets and described fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, get_args, get_type_hints

from langchain_agentmem.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import ValidationError

ModelT = TypeVar("ModelT")

_SCALARS = (str, int, float, bool, type(None))


def must_be(name: str, value: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """Refuse an argument of another type at once, instead of where it is used first.

    Args:
        name: Name of the argument.
        value: What was given.
        kind: Its type, or several.
        wanted: What to give instead, e.g. `"a memory, such as RAGMemory()"`.

    Raises:
        ConfigurationError: It is of another type.
    """
    if not isinstance(value, kind):
        msg = f"{name} must be {wanted}, not {str(value)[:80]!r} ({type(value).__name__})."
        raise ConfigurationError(msg)


def checked_model(model: ModelT, *, is_needed: bool = False) -> ModelT:
    """Return a chat model or its name.

    Args:
        model: What was given.
        is_needed: Whether None is refused, too.

    Raises:
        ConfigurationError: It is something else.
    """
    if not isinstance(model, str) and (is_needed or model is not None):
        from langchain_core.runnables import Runnable

        must_be("model", model, Runnable, "a chat model or its name, such as 'openai:gpt-4.1-mini'")
    return model


def needed(given: object, *names: str) -> list[Any]:
    """Return what an input holds under some names.

    Args:
        given: What `invoke` was given.
        *names: The keys it must have.

    Raises:
        ConfigurationError: It is no mapping, or has not all of them.
    """
    wanted = "{" + ", ".join(f"'{name}': ..." for name in names) + "}"
    must_be("input", given, Mapping, f"a mapping such as {wanted}")
    found: Mapping[str, Any] = given  # type: ignore[assignment]  # checked above
    missing = [name for name in names if name not in found]
    if missing:
        msg = f"The input has no {missing[0]!r}; give {wanted}."
        raise ConfigurationError(msg)
    return [found[name] for name in names]


def at_least(name: str, value: object, bound: float) -> None:
    """Refuse a number that is below its least value, and what is no number.

    Raises:
        ConfigurationError: It is one.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or value < bound:
        msg = f"{name} must be {bound} or more, not {value!r}."
        raise ConfigurationError(msg)


def one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a value that is none of a choice.

    Args:
        name: Name of the argument.
        value: What was given.
        allowed: The choice, such as `get_args` of a `Literal`.

    Raises:
        ConfigurationError: It is none of them.
    """
    if value not in allowed:
        msg = f"{name} must be one of {tuple(allowed)}, not {value!r}."
        raise ConfigurationError(msg)


def faults(error: ValidationError) -> str:
    """Return what is wrong with some arguments, place by place, without repeating their values."""
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}"
        for each in error.errors(include_input=False, include_url=False)
    )


def described(default: Any, description: str) -> Any:  # noqa: ANN401 - stands for a field of any type
    """Declare a dataclass field with a default and the description that Studio shows."""
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Base of every architecture's parameters.

    Attributes:
        presets: Named sets of values that differ from the defaults.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}

    @classmethod
    def of(cls, preset: str = "default", **given: Any) -> Self:  # noqa: ANN401 - values of any field
        """Return a preset's parameters with some of them given.

        Raises:
            ConfigurationError: There is no such preset or parameter, or a value has another type.
        """
        if preset not in cls.presets:
            msg = f"There is no preset {preset!r}; choose one of {sorted(cls.presets)}."
            raise ConfigurationError(msg)
        names = {each.name for each in fields(cls)}
        unknown = sorted(set(given) - names)
        if unknown:
            msg = f"Unknown parameter {unknown[0]!r}; {cls.__name__} has {sorted(names)}."
            raise ConfigurationError(msg)
        fitting = {name: cls.fit(name, value) for name, value in given.items()}
        return cls(**{**cls.presets[preset], **fitting})

    @classmethod
    def fit(cls, name: str, value: object) -> object:
        """Return a value in the type of its field: an int as float, a list as tuple, else itself.

        Raises:
            ConfigurationError: It is of another type.
        """
        kind, optional = _kinds(cls)[name]  # type: ignore[arg-type]  # a class is hashable
        if (value is None and optional) or _is_a(value, kind):
            return value
        if kind is float and _is_a(value, int):
            return float(value)  # type: ignore[arg-type]  # an int
        if kind is tuple and isinstance(value, list):
            return tuple(value)
        words = f"{kind.__name__} or None" if optional else kind.__name__
        msg = f"{name!r} must be of type {words}, not {value!r} ({type(value).__name__})."
        raise ConfigurationError(msg)

    def require(
        self,
        *,
        least: Mapping[str, float] | None = None,
        choices: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Check values: numbers that are not below their least, texts that are one of a choice.

        Raises:
            ConfigurationError: One of them is wrong.
        """
        for name, bound in (least or {}).items():
            at_least(name, getattr(self, name), bound)
        for name, allowed in (choices or {}).items():
            one_of(name, getattr(self, name), allowed)


def _is_a(value: object, kind: type) -> bool:
    return isinstance(value, kind) and (kind in (bool, object) or not isinstance(value, bool))


@lru_cache(maxsize=64)
def _kinds(parameters: type[Parameters]) -> dict[str, tuple[type, bool]]:
    """Return the type of each field's value, and whether None is one: by default and hint."""
    hints = get_type_hints(parameters)
    kinds: dict[str, tuple[type, bool]] = {}
    for each in fields(parameters):
        parts = get_args(hints[each.name])
        default = each.default
        if default is MISSING and each.default_factory is not MISSING:
            default = each.default_factory()
        kind = object if default is MISSING or callable(default) else type(default)
        if default is None:
            scalars = [part for part in parts if part is not type(None)]
            known = len(scalars) == 1 and scalars[0] in _SCALARS
            kind = scalars[0] if known else object
        kinds[each.name] = (kind, default is None or type(None) in parts)
    return kinds


def context_schema(
    name: str, parameters: Parameters, variables: tuple[str, ...], preset: str
) -> type:
    """Make the described dataclass that Studio shows as a graph's context form.

    Args:
        name: Name of the architecture's class.
        parameters: The memory's parameters; their values are the defaults shown.
        variables: Names of the variables of the memory's namespaces.
        preset: The memory's preset.
    """
    identity = [
        (
            each,
            str | None,
            described(None, f"Whose memory; required. Fills {{{each}}} of the namespace."),
        )
        for each in variables
    ]
    presets = Literal[tuple(sorted(type(parameters).presets))]  # type: ignore[valid-type]  # made at runtime
    chosen = ("preset", presets, described(preset, "Named set of parameters to begin with."))
    types = get_type_hints(type(parameters))
    scalars = [
        (each.name, types[each.name], described(value, each.metadata.get("description", "")))
        for each in fields(parameters)
        if isinstance(value := getattr(parameters, each.name), _SCALARS)
    ]
    return make_dataclass(f"{name}Context", [*identity, chosen, *scalars], kw_only=True)


def with_model(schema: type, name: str) -> type:
    """Return a context schema with a field for the chat model of a call.

    Args:
        schema: A dataclass, such as `context_schema` makes.
        name: Name of the new dataclass.
    """
    text = (
        "Chat model, e.g. 'openai:gpt-4.1-mini'; empty for the one that the graph was built with."
    )
    model = ("model", str | None, described(None, text))
    return make_dataclass(name, [model], bases=(schema,), kw_only=True)
