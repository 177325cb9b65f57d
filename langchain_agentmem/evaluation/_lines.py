"""Files of JSON lines that only grow, and survive being cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class JsonLines:
    """One JSON object a line.

    Args:
        path: The file; its folder is made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def read(self) -> list[dict[str, Any]]:
        """Return the whole lines; one that was cut off is left out and closed."""
        if not self.path.exists():
            return []
        text = self.path.read_text("utf-8", errors="replace")
        if text and not text.endswith("\n"):
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n")
        records = []
        for line in text.split("\n"):
            try:
                records.append(json.loads(line))
            except ValueError:
                continue
        return records

    def append(self, record: dict[str, Any]) -> None:
        """Add a line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
