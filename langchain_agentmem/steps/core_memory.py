"""Core memory: a few labeled texts that are always in the prompt, and their guarded edits.

Every edit is checked before anything is written: an edit that is refused leaves the block as it
was, byte for byte.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from langchain_agentmem.errors import ConfigurationError, ConflictError
from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.rendering import as_label
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.effects import List, Steps

ReplacePolicy = Literal["unique", "all"]
_OWN: Final = "_block"
_SHOWN: Final = 60


class EditError(Exception):
    """An edit that cannot be made; its text is for the model that asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreBlock:
    """A labeled text of core memory.

    Attributes:
        label: Its name.
        value: The text.
        limit: Most characters; None for the memory's own limit.
        description: What belongs into it.
        read_only: Whether no tool may change it.
    """

    label: str
    value: str = ""
    limit: int | None = None
    description: str = ""
    read_only: bool = False

    def checked(self, value: str) -> CoreBlock:
        """Return the block with another text.

        Raises:
            EditError: It is read-only, or the text is too long.
        """
        if self.read_only:
            msg = f"Block {self.label!r} is read-only."
            raise EditError(msg)
        if self.limit is not None and len(value) > self.limit:
            msg = (
                f"Block {self.label!r} would have {len(value)} characters; its limit is "
                f"{self.limit}. Shorten it first, or use archival memory."
            )
            raise EditError(msg)
        return replace(self, value=value)

    def appended(self, content: str) -> CoreBlock:
        """Return the block with a further line.

        Raises:
            EditError: It cannot be added.
        """
        return self.checked(f"{self.value}\n{content}" if self.value else content)

    def replaced(self, old: str, new: str, policy: ReplacePolicy) -> CoreBlock:
        """Return the block with a part of its text replaced, or deleted.

        Args:
            old: The exact text; also as the prompt shows it, with escaped markup.
            new: What to put in its place; empty to delete.
            policy: `unique` refuses a text that occurs several times, `all` replaces each.

        Raises:
            EditError: The part is empty, missing or ambiguous, or the result is not allowed.
        """
        if not old:
            msg = "The text to replace is empty; name the exact text, or append instead."
            raise EditError(msg)
        part = next((each for each in (old, html.unescape(old)) if each in self.value), None)
        if part is None:
            msg = f"{old[:_SHOWN]!r} is not in block {self.label!r} (0 matches)."
            raise EditError(msg)
        count = self.value.count(part)
        if count > 1 and policy == "unique":
            msg = f"{old[:_SHOWN]!r} is {count} times in block {self.label!r}; name more of it."
            raise EditError(msg)
        return self.checked(self.value.replace(part, new))

    def inserted(self, line: int, text: str) -> CoreBlock:
        """Return the block with a text as a new line.

        Args:
            line: Number of the line before it; 0 for the beginning, -1 for the end.
            text: The text.

        Raises:
            EditError: There is no such line, or the result is not allowed.
        """
        lines = self.value.splitlines()
        at = len(lines) if line == -1 else line
        if not 0 <= at <= len(lines):
            msg = f"Block {self.label!r} has {len(lines)} lines; there is no line {line}."
            raise EditError(msg)
        return self.checked("\n".join([*lines[:at], text, *lines[at:]]))


@dataclass(frozen=True, slots=True)
class Core:
    """All blocks of a scope.

    Attributes:
        home: Namespace of the blocks.
        blocks: The blocks by label, in their order.
        stored: Those of them that are in the store.
    """

    home: tuple[str, ...]
    blocks: Mapping[str, CoreBlock]
    stored: Mapping[str, StoredMemory]

    def get(self, label: str) -> CoreBlock:
        """Return a block.

        Raises:
            EditError: There is none of this label.
        """
        if label not in self.blocks:
            msg = f"There is no block {label[:_SHOWN]!r}; there are {sorted(self.blocks)}."
            raise EditError(msg)
        return self.blocks[label]

    def with_block(self, block: CoreBlock) -> Core:
        """Return the same with one block changed."""
        return replace(self, blocks={**self.blocks, block.label: block})

    def changes(self, other: Core, cause: Cause) -> list[MemoryOperation]:
        """Return the operations that lead from here to another state of the same blocks."""
        return [
            self._operation(block, cause)
            for label, block in other.blocks.items()
            if block.value != self.blocks[label].value
        ]

    def _operation(self, block: CoreBlock, cause: Cause) -> MemoryOperation:
        old = self.stored.get(block.label)
        item = MemoryItem(
            kind="core_block",
            content=block.value,
            metadata={
                _OWN: {
                    "limit": block.limit,
                    "description": block.description,
                    "read_only": block.read_only,
                }
            },
            source_message_ids=cause.message_ids,
        )
        ref = (self.home, block.label)
        return journal.successor(ref, old.item if old else None, item, cause)

    def memories(self) -> list[StoredMemory]:
        """Return the blocks that say something, as memories."""
        found = [
            self.stored.get(label)
            or StoredMemory(
                item=MemoryItem(kind="core_block", content=block.value),
                namespace=self.home,
                key=label,
            )
            for label, block in self.blocks.items()
        ]
        return [each for each in found if each.text]

    def render(self) -> str:
        """Return the blocks for a prompt: no text in them can forge the end of a block."""
        return "\n".join(map(_rendered, self.blocks.values()))


def load(home: tuple[str, ...], defined: Sequence[CoreBlock]) -> Steps[Core]:
    """Return the blocks: the defined ones with what was written to them since, then others.

    A defined block's limit, description and write protection are as they are defined; what was
    written to it is never replaced by its first value.
    """
    stored = {each.key: each for each in (yield from List(home))}
    blocks = {
        block.label: replace(block, value=stored[block.label].text)
        if block.label in stored
        else block
        for block in defined
    }
    others = sorted(set(stored) - set(blocks))
    blocks.update({label: _read(stored[label]) for label in others})
    return Core(home, blocks, stored)


def write(core: Core, block: CoreBlock, cause: Cause) -> Steps[MemoryOperation]:
    """Write one changed block.

    Raises:
        EditError: Another writer changed it since it was read, or nothing would change.
    """
    operations = core.changes(core.with_block(block), cause)
    if not operations:
        msg = f"Block {block.label!r} says exactly this already."
        raise EditError(msg)
    try:
        (applied,) = yield from journal.apply(operations)
    except ConflictError as error:
        now = yield from load(core.home, list(core.blocks.values()))
        msg = (
            f"Block {block.label!r} was changed by somebody else meanwhile; nothing was written. "
            f"It now says: {now.blocks[block.label].value}"
        )
        raise EditError(msg) from error
    return applied


def check_blocks(blocks: Sequence[CoreBlock]) -> None:
    """Check the blocks that a memory is defined with.

    Raises:
        ConfigurationError: Two have one label, or a first value is longer than its limit.
    """
    labels = [block.label for block in blocks]
    if len(set(labels)) < len(labels) or not all(labels):
        msg = f"Each block needs a label of its own, not {labels}."
        raise ConfigurationError(msg)
    for block in blocks:
        if block.limit is not None and len(block.value) > block.limit:
            msg = (
                f"Block {block.label!r} begins with {len(block.value)} characters; its limit is "
                f"{block.limit}."
            )
            raise ConfigurationError(msg)


def _read(stored: StoredMemory) -> CoreBlock:
    own: Any = stored.metadata.get(_OWN) or {}
    return CoreBlock(
        label=stored.key,
        value=stored.text,
        limit=own.get("limit"),
        description=own.get("description", ""),
        read_only=bool(own.get("read_only")),
    )


def _rendered(block: CoreBlock) -> str:
    used = f"{len(block.value)}/{block.limit}" if block.limit else str(len(block.value))
    about = f": {as_label(block.description)}" if block.description else ""
    state = ", read-only" if block.read_only else ""
    name = html.escape(block.label)
    head = f"<block label={name!r}> ({used} characters{state}){about}"
    return f"{head}\n{html.escape(block.value, quote=False)}\n</block>"
