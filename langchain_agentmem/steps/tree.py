"""A tree of summaries over a growing row of leaves.

Level 0 holds the leaves, word for word; each full group of `fan_in` nodes has a parent, and so has
the last, partial group of a level with more than one node. With a `Grouping` the groups are those
that it makes, in as many levels as it has. A node's key is its level and its place in it.

The *head* counts the leaves, knows where the groups of a `Grouping` begin, and names the nodes that
are to be made anew; it is written together with whatever changes them, so that a crash leaves no
node forgotten.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

from langchain_core.messages import HumanMessage

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.items import Cause, MemoryItem, MemoryOperation, StoredMemory
from langchain_agentmem.scopes import reserved
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.effects import Get, Put, Ref, Steps
from langchain_agentmem.steps.folding import Folding, Part, fold

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_agentmem.steps.grouping import Grouping

_HEAD: Final = "head"
_OWN: Final = "_node"
_PAGE: Final = 1000


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A place in the tree.

    Attributes:
        level: 0 for a leaf.
        index: Place in the level, from 0.
    """

    level: int
    index: int

    @property
    def key(self) -> str:
        """Its key in the store."""
        return f"{self.level}-{self.index}"

    @classmethod
    def of(cls, key: str) -> Self:
        """Return the place that a key names."""
        level, _, index = key.partition("-")
        return cls(int(level), int(index))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A piece of the conversation, word for word.

    Attributes:
        text: The words.
        first: Number of the first message it shows.
        last: Number of the last one.
        message_ids: Ids of these messages.
        observed_at: When the last of them was said.
    """

    text: str
    first: int
    last: int
    message_ids: tuple[str, ...] = ()
    observed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a tree without reading its nodes.

    Attributes:
        leaves: How many leaves were ever added.
        bound: Number of the first message that no leaf shows.
        watermark: Id of the last message that a leaf shows.
        dirty: Nodes that are to be made anew, lowest first.
        rows: For each level above the leaves, the place in the level below where each group
            begins; empty without a `Grouping`.
        version: Version of the stored record; 0 before the first one.
    """

    leaves: int = 0
    bound: int = 0
    watermark: str | None = None
    dirty: tuple[Node, ...] = ()
    rows: tuple[tuple[int, ...], ...] = ()
    version: int = 0


@dataclass(frozen=True, slots=True)
class Tree:
    """Where a tree lies, and its shape.

    Attributes:
        root: Namespace of the architecture in the conversation's scope.
        fan_in: Children of a full node.
        max_levels: Most levels of summaries above the leaves.
        rows: Where groups begin, see `Head`; they take the place of both.
    """

    root: tuple[str, ...]
    fan_in: int = 8
    max_levels: int = 4
    rows: tuple[tuple[int, ...], ...] = ()

    @property
    def home(self) -> tuple[str, ...]:
        """Namespace of the nodes."""
        return (*self.root, "tree")

    @property
    def records(self) -> tuple[str, ...]:
        """Namespace of the head and of each leaf's span."""
        return reserved("counters", (*self.root, "leaves"))

    def ref(self, node: Node) -> Ref:
        """Return where a node lies."""
        return self.home, node.key

    def sizes(self, leaves: int) -> list[int]:
        """Return how many nodes each level has, beginning with the leaves."""
        if self.rows:
            return [leaves, *map(len, self.rows)]
        sizes = [leaves]
        while sizes[-1] > 1 and len(sizes) <= self.max_levels:
            sizes.append(math.ceil(sizes[-1] / self.fan_in))
        return sizes

    def path(self, leaf: int, leaves: int) -> list[Node]:
        """Return the ancestors of a leaf, lowest first."""
        levels = range(1, len(self.sizes(leaves)))
        return [self.above(Node(0, leaf), level) for level in levels]

    def above(self, node: Node, level: int) -> Node:
        """Return the ancestor of a node, or the node itself, on a level that is not below."""
        if not self.rows:
            return Node(level, node.index // self.fan_in ** (level - node.level))
        for row in self.rows[node.level : level]:
            node = Node(node.level + 1, bisect_right(row, node.index) - 1)
        return node

    def are_related(self, one: Node, other: Node) -> bool:
        """Tell whether one of both is the other's ancestor, or they are the same."""
        low, high = sorted((one, other))
        return self.above(low, high.level) == high

    def top(self, leaves: int) -> list[Node]:
        """Return the nodes without a parent, newest first."""
        sizes = self.sizes(leaves)
        return [Node(len(sizes) - 1, index) for index in range(sizes[-1] - 1, -1, -1)]

    def children(self, node: Node, leaves: int) -> list[Node]:
        """Return the children of a node, oldest first."""
        below = node.level - 1
        size = self.sizes(leaves)[below]
        if self.rows:
            first, end = (*self.rows[below], size)[node.index : node.index + 2]
        else:
            first = node.index * self.fan_in
            end = min(first + self.fan_in, size)
        return [Node(below, at) for at in range(first, end)]

    def grown(self, head: Head) -> Tree:
        """Return the tree with the groups that its head knows."""
        return replace(self, rows=head.rows)


def head_of(tree: Tree) -> Steps[Head]:
    """Return the head of a tree."""
    (found,) = yield from Get([(tree.records, _HEAD)])
    if found is None or not isinstance(found.item.content, dict):
        return Head()
    content = found.item.content
    return Head(
        leaves=content["leaves"],
        bound=content["bound"],
        watermark=content["watermark"],
        dirty=tuple(map(Node.of, content["dirty"])),
        rows=tuple(map(tuple, content.get("rows", []))),
        version=found.item.version,
    )


def append(
    tree: Tree, head: Head, leaves: Sequence[Leaf], grouping: Grouping | None = None
) -> Steps[list[MemoryOperation]]:
    """Add leaves at the end; the nodes above them are made anew by `rebuild`.

    Raises:
        ConfigurationError: The tree was grown with other groups.
        ConflictError: Another writer changed the tree; nothing was written.
    """
    if head.leaves and len(head.rows) != (grouping.levels if grouping else 0):
        msg = (
            f"This conversation's summaries have {len(head.rows) or 'no'} levels of a grouping=, "
            "the memory's has others. Give the grouping= that it began with, or forget it."
        )
        raise ConfigurationError(msg)
    count = head.leaves + len(leaves)
    numbered = list(enumerate(leaves, start=head.leaves))
    if grouping is not None:
        head = replace(head, rows=(yield from _regrouped(tree, head, numbered, grouping)))
    tree = tree.grown(head)
    grown = replace(
        head,
        leaves=count,
        bound=leaves[-1].last + 1,
        watermark=leaves[-1].message_ids[-1],
        dirty=_sorted([*head.dirty, *(up for at, _ in numbered for up in tree.path(at, count))]),
    )
    spans = [
        Put(tree.records, str(at), _record({"first": leaf.first, "last": leaf.last}))
        for at, leaf in numbered
    ]
    return (yield from _commit(tree, grown, [_added(tree, *each) for each in numbered], spans))


def _regrouped(
    tree: Tree, head: Head, leaves: Sequence[tuple[int, Leaf]], grouping: Grouping
) -> Steps[tuple[tuple[int, ...], ...]]:
    """Return where groups begin when leaves are added, given with their places."""
    rows = [list(row) for row in head.rows] or [[] for _ in range(grouping.levels)]
    (last,) = yield from Get([tree.ref(Node(0, head.leaves - 1))])
    before = None if last is None else _leaf(last)
    for at, leaf in leaves:
        begun = grouping.begun(before, leaf) if at else grouping.levels
        child = at
        for row in rows[:begun]:
            row.append(child)
            child = len(row) - 1
        before = leaf
    return tuple(map(tuple, rows))


def _leaf(stored: StoredMemory) -> Leaf:
    first, last = span_of(stored)
    return Leaf(stored.text, first, last, stored.item.source_message_ids, stored.observed_at)


def rebuild(tree: Tree, folding: Folding) -> Steps[list[MemoryOperation]]:
    """Make the lowest node that is to be made anew; nothing where there is none.

    A node whose children together are short enough is their words; any other is a summary.

    Raises:
        SummaryFailedError: There is no summary; the node waits.
        ConflictError: Another writer changed the tree; nothing was written.
    """
    head = yield from head_of(tree)
    if not head.dirty:
        return []
    node, tree = head.dirty[0], tree.grown(head)
    below = yield from Get([tree.ref(each) for each in tree.children(node, head.leaves)])
    children = [each for each in below if each is not None]
    (old,) = yield from journal.read([tree.ref(node)])
    left = replace(head, dirty=head.dirty[1:])
    if not children:
        return (yield from _commit(tree, left, []))
    text = yield from _summary([each.text for each in children], folding)
    item = MemoryItem(
        kind="summary",
        content=text,
        metadata=_own(node, span_of(children[0])[0], span_of(children[-1])[1], children),
        observed_at=children[-1].observed_at,
    )
    cause = Cause(surface="consolidate")
    op = journal.successor(tree.ref(node), old.item if old else None, item, cause)
    return (yield from _commit(tree, left, [op], expect=[*children]))


def _summary(texts: Sequence[str], folding: Folding) -> Steps[str]:
    joined = "\n".join(texts)
    if folding.tokens([HumanMessage(joined)]) <= folding.max_summary_tokens:
        return joined
    parts, text = [Part(each, completes=1) for each in texts], ""
    while parts:
        text, parts = yield from fold(text, parts, folding)
    return text


def restore(tree: Tree, spans: Sequence[tuple[int, Leaf | None]]) -> Steps[list[MemoryOperation]]:
    """Put leaves back of which a part was erased, and mark all that lies above them.

    Args:
        tree: The tree.
        spans: Places of leaves, each with what is left of it, if anything.
    """
    head = yield from head_of(tree)
    up = [each for at, _ in spans for each in tree.grown(head).path(at, head.leaves)]
    marked = replace(head, dirty=_sorted([*head.dirty, *up]))
    operations = [_added(tree, at, leaf) for at, leaf in spans if leaf is not None]
    return (yield from _commit(tree, marked, operations))


def leaf_spans(tree: Tree) -> Steps[list[tuple[int, int]]]:
    """Return the first and last message number of every leaf, oldest first."""
    head = yield from head_of(tree)
    spans: list[tuple[int, int]] = []
    for start in range(0, head.leaves, _PAGE):
        numbers = range(start, min(start + _PAGE, head.leaves))
        for found in (yield from Get([(tree.records, str(number)) for number in numbers])):
            content: Any = found.item.content if found else {"first": -1, "last": -1}
            spans.append((content["first"], content["last"]))
    return spans


def take(
    candidates: Iterable[StoredMemory], grown: Tree, fits: Callable[[list[StoredMemory]], bool]
) -> list[StoredMemory]:
    """Return the best nodes that fit together, none with an ancestor of its own, oldest first.

    Args:
        candidates: Nodes, best first.
        grown: The tree with its groups.
        fits: Tells whether nodes are within the budget.
    """
    chosen: list[StoredMemory] = []
    for each in candidates:
        place = Node.of(each.key)
        related = any(grown.are_related(place, Node.of(other.key)) for other in chosen)
        if not related and fits([*chosen, each]):
            chosen.append(each)
    return sorted(chosen, key=span_of)


def span_of(node: StoredMemory) -> tuple[int, int]:
    """Return the first and the last message number of a stored node."""
    first, last = node.metadata[_OWN]["span"]
    return first, last


def _own(node: Node, first: int, last: int, children: Sequence[StoredMemory]) -> dict[str, Any]:
    names = [each.key for each in children]
    return {_OWN: {"level": node.level, "span": [first, last], "children": names}}


def _added(tree: Tree, at: int, leaf: Leaf) -> MemoryOperation:
    node = Node(0, at)
    item = MemoryItem(
        kind="leaf",
        memory_type="episodic",
        content=leaf.text,
        metadata=_own(node, leaf.first, leaf.last, ()),
        observed_at=leaf.observed_at,
        source_message_ids=leaf.message_ids,
    )
    cause = Cause(message_ids=leaf.message_ids)
    return MemoryOperation(event="ADD", namespace=tree.home, key=node.key, after=item, cause=cause)


def _commit(
    tree: Tree,
    head: Head,
    operations: Sequence[MemoryOperation],
    also: Sequence[Put] = (),
    expect: Sequence[StoredMemory] = (),
) -> Steps[list[MemoryOperation]]:
    """Write operations together with the head, if nobody changed it."""
    content = {
        "leaves": head.leaves,
        "bound": head.bound,
        "watermark": head.watermark,
        "dirty": [each.key for each in head.dirty],
        "rows": [list(row) for row in head.rows],
    }
    put = Put(tree.records, _HEAD, _record(content, head.version + 1))
    versions: dict[Ref, int | None] = {(tree.home, each.key): each.item.version for each in expect}
    versions[tree.records, _HEAD] = head.version or None
    return (yield from journal.apply(operations, also=[put, *also], expect=versions))


def _record(content: dict[str, Any], version: int = 1) -> dict[str, Any]:
    return MemoryItem(content=content, kind="record", version=version).to_value()


def _sorted(nodes: Iterable[Node]) -> tuple[Node, ...]:
    return tuple(sorted(set(nodes)))
