"""Check the shape of the code: short functions, short files, documented and annotated.

Lines are counted without blank ones; a function counts with its signature and docstring.

    python scripts/check_shape.py [FILE_OR_FOLDER ...]

Prints the measures of the package and each violation; exits with 1 if there is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Final, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = Function | ast.ClassDef

LONGEST_FUNCTION: Final = 80
LONGEST_FILE: Final = 500
MEDIAN_FUNCTION: Final = 10
NINETIETH_PERCENT: Final = 36
DEFAULT_PATHS: Final = (
    "langchain_agentmem",
    "graphs",
    "examples",
    "benchmarks",
    "scripts",
    "tests",
)
PUBLISHED: Final = "langchain_agentmem"


@dataclass(frozen=True, slots=True)
class Module:
    """One file of Python.

    Attributes:
        path: Where it lies.
        lines: Its lines.
        tree: Its syntax.
    """

    path: Path
    lines: Sequence[str]
    tree: ast.Module

    @classmethod
    def read(cls, path: Path) -> Module:
        """Read a file."""
        text = path.read_text(encoding="utf-8")
        return cls(path, text.splitlines(), ast.parse(text, str(path)))

    @property
    def functions(self) -> Iterator[Function]:
        """Every function and method, nested ones included."""
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield node

    def count(self, first: int = 1, last: int | None = None) -> int:
        """Return how many of the lines from `first` to `last` are not blank."""
        return sum(bool(line.strip()) for line in self.lines[first - 1 : last])

    def length(self, function: Function) -> int:
        """Return how many lines a function has."""
        return self.count(function.lineno, function.end_lineno)


def violations(module: Module, *, published: bool) -> Iterator[str]:
    """Name what is too long in a module and, where it is published, what is not documented."""
    if (total := module.count()) > LONGEST_FILE:
        yield f"{module.path}: {total} lines, more than {LONGEST_FILE}"
    for function in module.functions:
        place = f"{module.path}:{function.lineno}: {function.name}"
        if (length := module.length(function)) > LONGEST_FUNCTION:
            yield f"{place} has {length} lines, more than {LONGEST_FUNCTION}"
        if function.returns is None:
            yield f"{place} does not say what it returns"
    if published and ast.get_docstring(module.tree) is None:
        yield f"{module.path} has no docstring"
    for definition in _public(module.tree) if published else ():
        if ast.get_docstring(definition) is None:
            yield f"{module.path}:{definition.lineno}: {definition.name} has no docstring"


def _public(node: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    """Return the public definitions of a module or class, those of its public classes included."""
    for child in node.body:
        if isinstance(child, Definition) and not child.name.startswith("_"):
            if not _is_overload(child):
                yield child
            if isinstance(child, ast.ClassDef):
                yield from _public(child)


def _is_overload(definition: Definition) -> bool:
    return any(ast.unparse(each).endswith("overload") for each in definition.decorator_list)


def measure(modules: Sequence[Module]) -> Iterator[str]:
    """Name each average that is over its target."""
    lengths = [module.length(function) for module in modules for function in module.functions]
    if len(lengths) < 2:  # noqa: PLR2004 - quantiles need two
        return
    middle, most = median(lengths), quantiles(lengths, n=10)[-1]
    print(
        f"{len(modules)} files, {sum(module.count() for module in modules)} lines, "
        f"{len(lengths)} functions: median {middle:g}, 90% under {most:.0f}, "
        f"longest {max(lengths)} lines"
    )
    if middle > MEDIAN_FUNCTION:
        yield f"the median function has {middle:g} lines, more than {MEDIAN_FUNCTION}"
    if most > NINETIETH_PERCENT:
        yield f"a tenth of the functions has {most:.0f} lines, more than {NINETIETH_PERCENT}"


def _files(root: Path) -> list[Path]:
    return sorted(root.rglob("*.py")) if root.is_dir() else [root]


def main(paths: Sequence[str]) -> int:
    """Check files and folders; return 1 if anything is wrong."""
    roots = [Path(path) for path in paths or DEFAULT_PATHS if Path(path).exists()]
    files = [file for root in roots for file in _files(root)]
    modules = [Module.read(file) for file in files]
    published = [module for module in modules if PUBLISHED in module.path.parts]
    found = [
        text
        for module in modules
        for text in violations(module, published=PUBLISHED in module.path.parts)
    ]
    found += measure(published)
    print("\n".join(found) or "The shape of the code is as it should be.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
