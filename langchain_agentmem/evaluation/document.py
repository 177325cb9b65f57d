"""A report as a document: sections of text, tables and plots, as Markdown or as one HTML page."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --dim: #777; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; } th { vertical-align: bottom; }
td { font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1rem 0; } figcaption, .note { color: var(--dim); font-size: .9rem; }
svg { max-width: 100%; height: auto; } code { overflow-wrap: anywhere; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table.

    Attributes:
        columns: The heads.
        rows: The cells.
        title: What it shows.
        note: What to know when reading it.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    note: str = ""

    def markdown(self) -> str:
        """Return it as Markdown."""
        lines = [f"**{self.title}**\n"] if self.title else []
        lines += [_line(self.columns), _line(["---"] + ["---:"] * (len(self.columns) - 1))]
        lines += [_line(row) for row in self.rows]
        return "\n".join([*lines, *([f"\n{self.note}"] if self.note else [])])

    def html(self) -> str:
        """Return it as HTML."""
        heads = "".join(f"<th>{html.escape(each)}</th>" for each in self.columns)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        title = f"<h3>{html.escape(self.title)}</h3>" if self.title else ""
        note = f'<p class="note">{html.escape(self.note)}</p>' if self.note else ""
        body = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return f'{title}<div class="scroll">{body}</div>{note}'


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot.

    Attributes:
        title: What it shows.
        svg: The drawing.
        note: How to read it.
    """

    title: str
    svg: str
    note: str = ""

    def html(self) -> str:
        """Return it as HTML."""
        caption = html.escape(f"{self.title}. {self.note}".strip())
        return f"<figure>{self.svg}<figcaption>{caption}</figcaption></figure>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the report.

    Attributes:
        title: Its head.
        text: Its paragraphs.
        tables: Its tables.
        plots: Its plots; only the HTML page shows them.
    """

    title: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = field(default_factory=tuple)
    plots: Sequence[Plot] = field(default_factory=tuple)

    def markdown(self) -> str:
        """Return it as Markdown."""
        parts = [f"## {self.title}", *self.text, *(table.markdown() for table in self.tables)]
        return "\n\n".join(parts)

    def html(self) -> str:
        """Return it as HTML."""
        parts = [f"<h2>{html.escape(self.title)}</h2>"]
        parts += [f"<p>{html.escape(each)}</p>" for each in self.text]
        parts += [plot.html() for plot in self.plots]
        parts += [table.html() for table in self.tables]
        return "\n".join(parts)


def markdown(title: str, sections: Sequence[Section]) -> str:
    """Return a whole report as Markdown."""
    return "\n\n".join([f"# {title}", *(each.markdown() for each in sections)]) + "\n"


def page(title: str, sections: Sequence[Section]) -> str:
    """Return a whole report as one HTML page that loads nothing from anywhere."""
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    view = '<meta name="viewport" content="width=device-width">'
    body = "\n".join([f"<h1>{html.escape(title)}</h1>", *(each.html() for each in sections)])
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}{view}</head>\n<body>{body}</body></html>\n'
    )
