"""Erasing chosen memories of any architecture, with what its architecture derived from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_agentmem.items import Cause
from langchain_agentmem.scopes import reserved
from langchain_agentmem.steps import archive, journal, tree
from langchain_agentmem.steps.archive import Archive
from langchain_agentmem.steps.effects import Steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langgraph.store.base import BaseStore

    from langchain_agentmem.items import MemoryOperation
    from langchain_agentmem.memories.base import Memory
    from langchain_agentmem.steps.effects import Ref

CAUSE: Final = Cause(surface="forget")
_SHORT_TERM: Final = "short_term"


def erase(
    refs: Sequence[Ref], *, scope: tuple[str, ...], store: BaseStore | None, whole: bool
) -> Steps[list[MemoryOperation]]:
    """Erase memories in one write, then clean the records of the architectures that kept them.

    A tree of summaries is erased with any message or node of it; it grows anew from the messages
    that are left, for only the program that uses it knows its shape.

    Args:
        refs: Where the memories lie, or lay before they were closed.
        scope: The namespace of their user.
        store: The store.
        whole: Whether a node of a tree stands for the messages it was made of.
    """
    keepers = _keepers()
    homes: dict[tuple[str, ...], None] = {}
    for name, _ in refs:
        at = max((at for at in range(len(scope), len(name)) if name[at] in keepers), default=-1)
        if at >= 0:
            homes[name[: at + 1]] = None
    derived: list[Ref] = []
    for home in homes:
        if home[-1] == _SHORT_TERM:
            derived += yield from _with_tree(home, refs, whole=whole)
    erased = yield from journal.erase(list(dict.fromkeys([*refs, *derived])), cause=CAUSE)
    for home in homes:
        yield from _memory(keepers[home[-1]], home[:-1], store).on_erased(erased)
    return [op for op in erased if op.namespace[:1] == scope[:1]]


def _with_tree(root: tuple[str, ...], refs: Sequence[Ref], *, whole: bool) -> Steps[list[Ref]]:
    """Return the nodes and records of a tree, and the messages that chosen nodes stand for."""
    grown, where = tree.Tree(root), Archive(root)
    nodes = yield from journal.below(grown.home)
    records = yield from journal.below(reserved("counters", (*root, "leaves")))
    messages: list[Ref] = []
    for ref in refs if whole else ():
        node = nodes.get(ref)
        if node is not None:
            first, last = tree.span_of(node)
            said = yield from archive.load(where, before=last + 1, down_to=first)
            messages += [(where.home, each.stored.key) for each in said]
    keys = {key for (name, key), _ in nodes.items() if name == grown.home}
    return [*messages, *((grown.home, key) for key in keys), *records]


def _memory(kind: type[Memory], scope: tuple[str, ...], store: BaseStore | None) -> Memory:
    literal = tuple(label.replace("{", "{{").replace("}", "}}") for label in scope)
    return kind(namespace=literal, store=store)


def _keepers() -> Mapping[str, type[Memory]]:
    """Return the architectures that keep records of their memories, by their label.

    Of the short-term ones, `SummaryMemory` knows everything that lies beside an archive.
    """
    from langchain_agentmem import memories

    kinds: tuple[type[Memory], ...] = (
        *(memories.RAGMemory, memories.LangMem, memories.AMem, memories.Mem0, memories.MemGPT),
        memories.SummaryMemory,
    )
    return {kind.architecture: kind for kind in kinds}
