"""The data sets a benchmark can read; none of them is part of this package.

A loader takes the user's folder of data and returns a `Dataset`. A loader of your own is named on
the command line as `file.py:function`, and may take nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.evaluation._naming import named_object, taken
from langchain_agentmem.evaluation.data import Dataset
from langchain_agentmem.evaluation.datasets._files import MissingDataError
from langchain_agentmem.evaluation.datasets.locomo import locomo
from langchain_agentmem.evaluation.datasets.memdaily import memdaily
from langchain_agentmem.evaluation.datasets.musique import musique
from langchain_agentmem.evaluation.datasets.own import conversations
from langchain_agentmem.evaluation.datasets.precision import precision

__all__ = ["DATASETS", "Loader", "conversations", "found_in", "load"]

Loader: TypeAlias = Callable[[Path], Dataset]

DATASETS: Final[Mapping[str, Loader]] = {
    "locomo": locomo,
    "musique": musique,
    "memdaily": memdaily,
    "precision": precision,
}


def load(name: str, folder: Path) -> Dataset:
    """Read a data set by its name, or with the function that `file.py:function` names.

    Raises:
        ConfigurationError: There is no such data set, or its files are not in the folder.
    """
    loader = DATASETS.get(name)
    if loader is None:
        loader = named_object(name, what=f"data set; there are {', '.join(DATASETS)}")
    try:
        arguments = taken(loader, folder)
    except TypeError as error:
        msg = f"{name} takes more than the folder of data, or nothing: {error}."
        raise ConfigurationError(msg) from error
    found: Dataset = loader(*arguments)
    if not isinstance(found, Dataset):
        msg = f"{name} returned a {type(found).__name__}; a loader returns a Dataset."
        raise ConfigurationError(msg)
    return found


def found_in(folder: Path) -> list[Dataset]:
    """Return every known data set whose files are in a folder.

    Raises:
        ConfigurationError: A file is there but cannot be read.
    """
    found = []
    for loader in DATASETS.values():
        with suppress(MissingDataError):
            found.append(loader(folder))
    return found
