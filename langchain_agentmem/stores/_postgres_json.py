"""JSON for a `jsonb` column, which knows no NUL character.

NUL is written as U+E000 and a letter, U+E000 itself as U+E000 and another. Both are almost never
met, so nearly all values look the same in the table and here.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

_MARK: Final = "\ue000"
_NUL: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
_MARKS: Final = {f"{_MARK}n": "\\u0000", f"{_MARK}m": _MARK}
_MARKED: Final = re.compile(f"{_MARK}[nm]")


def written(text: str) -> str:
    """Return JSON text as the column takes it."""
    if _MARK in text:
        text = text.replace(_MARK, f"{_MARK}m")
    return _NUL.sub(rf"\1{_MARK}n", text) if "\\u0000" in text else text


def read(data: str | bytes) -> Any:  # noqa: ANN401 - JSON
    """Parse what the column gives."""
    text = data if isinstance(data, str) else bytes(data).decode()
    if _MARK in text:
        text = _MARKED.sub(lambda found: _MARKS[found[0]], text)
    return json.loads(text)


def is_plain(text: str) -> bool:
    """Tell whether a string is written as it is."""
    return "\x00" not in text and _MARK not in text
