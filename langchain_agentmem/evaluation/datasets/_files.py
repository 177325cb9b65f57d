"""Finding and reading the files of data sets, which lie in a folder of the user."""

from __future__ import annotations

import json
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from langchain_agentmem.errors import ConfigurationError


class MissingDataError(ConfigurationError):
    """The files of a data set are not in the folder of data."""


def first_file(folder: Path, *patterns: str, but: str = "") -> Path:
    """Return the first file that fits the first fitting pattern.

    Args:
        folder: Where to look.
        *patterns: Paths below it, with wildcards, the best first.
        but: Names that do not count.

    Raises:
        MissingDataError: None fits.
    """
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            if not fnmatch(path.name, but):
                return path
    msg = f"{folder} has no {patterns[-1]}; the README says where to get this data set."
    raise MissingDataError(msg)


def read_json(path: Path) -> Any:  # noqa: ANN401 - any JSON
    """Read a JSON file.

    Raises:
        ConfigurationError: It is not JSON.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        msg = f"{path} is not JSON ({error}); get it again from its source."
        raise ConfigurationError(msg) from error
