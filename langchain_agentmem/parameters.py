"""Parameters of an architecture: frozen values with named presets and described fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, ClassVar, Self, get_type_hints

from langchain_agentmem.errors import ConfigurationError

_SCALARS = (str, int, float, bool, type(None))


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
            ConfigurationError: There is no such preset or no such parameter.
        """
        if preset not in cls.presets:
            msg = f"There is no preset {preset!r}; choose one of {sorted(cls.presets)}."
            raise ConfigurationError(msg)
        names = {each.name for each in fields(cls)}
        unknown = sorted(set(given) - names)
        if unknown:
            msg = f"Unknown parameter {unknown[0]!r}; {cls.__name__} has {sorted(names)}."
            raise ConfigurationError(msg)
        return cls(**{**cls.presets[preset], **given})

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
            if getattr(self, name) < bound:
                msg = f"{name} must be {bound} or more, not {getattr(self, name)}."
                raise ConfigurationError(msg)
        for name, allowed in (choices or {}).items():
            if getattr(self, name) not in allowed:
                msg = f"{name} must be one of {allowed}, not {getattr(self, name)!r}."
                raise ConfigurationError(msg)


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
        (each, str | None, described(None, f"Whose memory: fills {{{each}}} of the namespace."))
        for each in variables
    ]
    chosen = ("preset", str, described(preset, f"One of {sorted(type(parameters).presets)}."))
    types = get_type_hints(type(parameters))
    scalars = [
        (each.name, types[each.name], described(value, each.metadata.get("description", "")))
        for each in fields(parameters)
        if isinstance(value := getattr(parameters, each.name), _SCALARS)
    ]
    return make_dataclass(f"{name}Context", [*identity, chosen, *scalars], kw_only=True)
