"""Draw the graphs of `langgraph.json`, and of examples, into the pages of `docs/`, from the code.

Run from the repository: `python scripts/drawings.py`; with `--check` it changes nothing and fails
where a drawing is out of date. A drawing is the `mermaid` block after `<!-- drawing: NAME -->`,
with a name of `langgraph.json` or `examples/FILE.py:VARIABLE`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_BLOCK: Final = re.compile(
    r"(<!-- drawing: ([\w./:]+) -->\n```mermaid\n)(.*?)(?=```$)", re.DOTALL | re.MULTILINE
)

_NOTES: Final = re.compile(r"<hr/><small>.*?</small>")


def draw(name: str) -> str:
    """Return a graph as mermaid text, with the insides of its subgraphs.

    Notes on nodes are left out: versions of LangGraph write them differently.

    Raises:
        KeyError: There is no such graph.
    """
    listed = json.loads((ROOT / "langgraph.json").read_text("utf-8"))["graphs"]
    path, _, variable = (name if ":" in name else listed[name]["path"]).partition(":")
    module = importlib.import_module(path.removeprefix("./").removesuffix(".py").replace("/", "."))
    drawn: str = getattr(module, variable).get_graph(xray=True).draw_mermaid()
    return _NOTES.sub("", drawn).strip() + "\n"


def refreshed(page: str) -> str:
    """Return a page with its drawings made anew."""
    return _BLOCK.sub(lambda found: found[1] + draw(found[2]), page)


def main() -> int:
    """Refresh or check the pages, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs")
    parser.add_argument("--check", action="store_true", help="change nothing, fail if out of date")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    stale = []
    for page in sorted(given.folder.glob("*.md")):
        text = page.read_text("utf-8")
        if (new := refreshed(text)) != text:
            stale.append(page.name)
            if not given.check:
                page.write_text(new, "utf-8")
    if stale and given.check:
        sys.stderr.write(f"Out of date: {', '.join(stale)}; run python scripts/drawings.py.\n")
    return int(bool(stale) and given.check)


if __name__ == "__main__":
    sys.exit(main())
