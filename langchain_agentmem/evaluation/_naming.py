"""Naming code of the user's own: `file.py:name` or `package.module:name`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_agentmem.errors import ConfigurationError


def named_object(reference: str, *, what: str) -> Any:  # noqa: ANN401 - whatever has the name
    """Return what a reference names, running the user's file at most once.

    Args:
        reference: `file.py:name` or `package.module:name`.
        what: What it should be, for the message.

    Raises:
        ConfigurationError: There is no such file, module or name.
    """
    place, _, name = reference.rpartition(":")
    if not place:
        msg = f"{reference!r} is no {what}. One of your own is named as file.py:name."
        raise ConfigurationError(msg)
    try:
        module = (
            _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        )
        return getattr(module, name)
    except (ImportError, AttributeError, OSError) as error:
        msg = f"{reference!r} cannot be used as a {what} ({error})."
        raise ConfigurationError(msg) from error


def taken(own: Callable[..., Any], offered: object, **parameters: object) -> tuple[Any, ...]:
    """Return what code of the user's own takes of what it is offered: that, or nothing.

    Raises:
        TypeError: It can be called in neither way.
    """
    signature = inspect.signature(own)
    try:
        signature.bind(offered, **parameters)
    except TypeError as error:
        try:
            signature.bind(**parameters)
        except TypeError:
            raise error from None
        return ()
    return (offered,)


def _from_file(path: Path) -> Any:  # noqa: ANN401 - a module
    label = f"_agentmem_{path.resolve().as_posix().replace('/', '_').removesuffix('.py')}"
    if label in sys.modules:
        return sys.modules[label]
    spec = importlib.util.spec_from_file_location(label, path)
    if spec is None or spec.loader is None:
        msg = f"{path} is no Python file"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[label] = module
    spec.loader.exec_module(module)
    return module
