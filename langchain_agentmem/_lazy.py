"""Loading public names at first use (PEP 562), so that importing a package stays cheap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str], public: Iterable[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package whose names load at first use.

    Args:
        package: The package's `__name__`.
        homes: For each lazy name, the module below the package that has it.
        public: The package's `__all__`.
    """

    def load(name: str) -> Any:  # noqa: ANN401 - any public name may be asked for
        if name not in homes:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    def listed() -> list[str]:
        return sorted(public)

    return load, listed
