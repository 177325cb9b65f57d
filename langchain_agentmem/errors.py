"""The errors this package raises; every message says what to do next."""

from collections.abc import Mapping
from typing import Final, Self

_LONGEST_CAUSE: Final = 200


class AgentMemoryError(Exception):
    """Base class of every error this package raises on purpose."""


class ConfigurationError(AgentMemoryError, ValueError):
    """Something was set up wrongly: a missing scope variable, store, model or extra."""


class IndexMismatchError(ConfigurationError):
    """A store file was written with another embedding model, size, distance or field list."""


class StorageError(AgentMemoryError, OSError):
    """A store file cannot be opened, read or written."""


class SchemaVersionError(StorageError):
    """A store file was written by a newer version of this package."""


class CorruptStoreError(StorageError):
    """A store file is damaged: SQLite reports that it is not a sound database."""


class ConflictError(AgentMemoryError, RuntimeError):
    """A conditional write found another version than it expected; nothing was written.

    Attributes:
        conflicts: For each `(namespace, key)` that differed, the pair of the expected and the
            found version (None means that the item does not exist).
    """

    def __init__(
        self,
        conflicts: Mapping[tuple[tuple[str, ...], str], tuple[int | None, int | None]],
    ) -> None:
        self.conflicts = dict(conflicts)
        (namespace, key), (expected, found) = next(iter(self.conflicts.items()))
        more = f" (and {len(self.conflicts) - 1} more)" if len(self.conflicts) > 1 else ""
        msg = (
            f"Item {key!r} in {namespace} was expected at version {expected} but is at {found}"
            f"{more}; nothing was written. Read it again and decide anew."
        )
        super().__init__(msg)


class MemoryNotFoundError(AgentMemoryError, LookupError):
    """No memory with this key exists in this namespace."""


class ModelCallError(AgentMemoryError, RuntimeError):
    """The chat model failed; the memory is unchanged and the call can be retried."""

    @classmethod
    def of(cls, error: BaseException, place: str) -> Self:
        """Return the error of a failed call, with the beginning of what the model's client said.

        Args:
            error: What the client raised.
            place: Where, such as `"at 'extract'"`.
        """
        said = " ".join(str(error).split())
        if len(said) > _LONGEST_CAUSE:
            said = f"{said[:_LONGEST_CAUSE]}..."
        cause = f"{type(error).__name__}: {said}" if said else type(error).__name__
        return cls(
            f"The model failed {place} ({cause}); nothing was changed. Check the model's name, key "
            "and server, or try again later."
        )


class PromptTooLongError(AgentMemoryError, ValueError):
    """A prompt exceeds the model's context, and nothing is left that could be taken out of it."""

    def __init__(self, tokens: int, limit: int | None) -> None:
        bound = f"; the limit is {limit}" if limit is not None else ", too many for the model"
        msg = (
            f"The prompt has {tokens} tokens{bound}, and nothing more can leave it. Shorten the "
            "last message or the core blocks, or take a model with a larger window."
        )
        super().__init__(msg)


class ConversationFormatError(AgentMemoryError, ValueError):
    """A file of conversations cannot be read as one of the supported formats."""
