"""What a person or a machine gets to read."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from langchain_agentmem.items import to_timestamp

if TYPE_CHECKING:
    from rich.console import RenderableType

    from langchain_agentmem.items import StoredMemory

_SCREENFUL: Final = 2000
_DECODE: Final = re.compile(r"(Could not decode to UTF-8 column '[^']*') with text .*", re.DOTALL)
_REORDERING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_PICTURES: Final = 0x2400
"""Where Unicode has pictures of the control characters."""


class Output:
    """Writes results to stdout, everything else to stderr.

    Args:
        as_json: Whether results are JSON objects, one a line.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.console = Console(highlight=False)
        self.progress = Console(stderr=True, highlight=False)

    def json(self, **fields: Any) -> None:  # noqa: ANN401 - any JSON
        """Write one JSON object as one line, at once."""
        plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        sys.stdout.write(json.dumps(fields, ensure_ascii=plain) + "\n")
        sys.stdout.flush()

    def say(self, line: RenderableType, style: str | None = None) -> None:
        """Write a line for a person; stored text goes through `visible` first."""
        shown = Text(line) if isinstance(line, str) else line
        self.console.print(shown, style=style, soft_wrap=not self.console.is_terminal)

    def note(self, line: str) -> None:
        """Write a remark that is no result."""
        self.progress.print(Text(visible(line), "dim"), soft_wrap=True)

    def error(self, message: str, *, kind: str = "Interrupted") -> None:
        """Explain what went wrong, on stderr."""
        message = discreet(message)
        if self.as_json:
            sys.stderr.write(json.dumps({"error": kind, "message": message}) + "\n")
        else:
            self.progress.print(Text(f"agentmem: {visible(message)}", "red"), soft_wrap=True)

    def memory(self, memory: StoredMemory, head: Text, *, style: str = "") -> None:
        """Show one memory: a line about it, then its words, indented."""
        self.say(head)
        words = Text(visible(shortened(memory.text)), style)
        if self.console.is_terminal:
            self.say(Padding(words, (0, 0, 0, 4)))
        else:
            self.say("    " + words.plain.replace("\n", "\n    "))


def shortened(text: str) -> str:
    """Return the beginning of a text that would fill the screen, and how long it is."""
    if len(text) <= _SCREENFUL:
        return text
    return f"{text[:_SCREENFUL]}... ({len(text):,} characters; --json shows all)"


def discreet(message: str) -> str:
    """Return a message without the stored text that SQLite quotes when it is not UTF-8."""
    return _DECODE.sub(r"\1", message)


def visible(text: str) -> str:
    """Return a text whose control characters are shown instead of sent to the terminal.

    So are those that reorder the characters around them.
    """
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character in _REORDERING:
        return "\N{REPLACEMENT CHARACTER}"
    if character in "\n\t" or unicodedata.category(character) != "Cc":
        return character
    return chr(_PICTURES + ord(character)) if character < " " else "\N{REPLACEMENT CHARACTER}"


def heading(memory: StoredMemory, source: str, *, number: int | None = None) -> Text:
    """Return the line above a memory: its number, source, key and score."""
    head = Text()
    if number is not None:
        head.append(f"{number:>2}. ", "bold")
    head.append(visible(source), "cyan")
    head.append(f"  {visible(memory.key[:8])}", "dim")
    if memory.score is not None:
        head.append(f"  {memory.score:.3f}", "dim")
    return head


def as_row(memory: StoredMemory) -> dict[str, Any]:
    """Return a memory as JSON with its main fields on top."""
    when = memory.observed_at or memory.created_at
    return {
        "content": memory.content,
        "time": to_timestamp(when) if when else None,
        "speaker": memory.item.attributed_to,
        **memory.to_dict(),
    }
