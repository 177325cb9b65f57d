"""`HierarchicalSummaryMemory`: a tree of summaries over a conversation, and its newest turns.

The tree is that of RAPTOR (arXiv 2401.18059) with groups of neighbors instead of clusters: leaves
are the conversation word for word, each node above summarizes a group of the level below. Adding
a leaf makes only the last node of each level anew. With `grouping=by_calendar()` the groups are
sessions, days and one profile of all days; any other grouping can be given, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from langchain_core.messages import HumanMessage

from langchain_agentmem.items import MemoryOperation, StoredMemory
from langchain_agentmem.memories.short_term_base import ShortTermParameters, Told
from langchain_agentmem.memories.summarizing import Running, SummarizingMemory
from langchain_agentmem.messages import last_human_text
from langchain_agentmem.parameters import described
from langchain_agentmem.rendering import render_memories
from langchain_agentmem.retrieval import budget
from langchain_agentmem.retrieval.rank import POOL_DEPTH
from langchain_agentmem.steps import archive, recall, tree
from langchain_agentmem.steps.archive import Archive, Archived
from langchain_agentmem.steps.effects import Emit, Get, HasModel, Ref, Steps
from langchain_agentmem.steps.flow import Flow, Step
from langchain_agentmem.steps.folding import (
    Folding,
    SummaryFailedError,
    check_budget,
    summary_message,
)
from langchain_agentmem.steps.grouping import Grouping
from langchain_agentmem.steps.recall import Moment, moment_of
from langchain_agentmem.steps.tree import Leaf, Node, Tree
from langchain_agentmem.transcripts import spans_within, transcript
from langchain_agentmem.windows import Unit, flat, leading_system, newest_within

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage


@dataclass(frozen=True, kw_only=True)
class HierarchicalParameters(ShortTermParameters):
    """Parameters of `HierarchicalSummaryMemory`.

    Attributes:
        fan_in: Children of a full node.
        max_leaf_tokens: Most tokens of a leaf, which holds whole turns where they fit.
        max_node_tokens: Most tokens of a summary.
        max_levels: Most levels of summaries above the leaves.
        budget: Most tokens of the view: system messages, what is recalled of the tree, and the
            newest turns. Turns become leaves when they fill three quarters of it, until they fill
            one half.
        search: `collapsed` searches all levels at once, `beam` from the top downwards.
        beam_width: So many nodes of each level a beam follows.
        summarizer_budget: Most tokens of one input of the summarizer.
    """

    fan_in: int = described(8, "Children of a full node.")
    max_leaf_tokens: int = described(400, "Most tokens of a leaf.")
    max_node_tokens: int = described(150, "Most tokens of a summary.")
    max_levels: int = described(4, "Most levels of summaries above the leaves.")
    budget: int = described(2000, "Most tokens of the view.")
    search: Literal["collapsed", "beam"] = described("collapsed", "collapsed or beam.")
    beam_width: int = described(3, "Nodes of each level that a beam follows.")
    summarizer_budget: int = described(4000, "Most tokens of one input of the summarizer.")

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        super().__post_init__()
        ones = dict.fromkeys(("max_node_tokens", "max_levels", "beam_width", "budget"), 1)
        self.require(
            least={"fan_in": 2, "max_leaf_tokens": 16, **ones},
            choices={"search": ("collapsed", "beam")},
        )
        check_budget(
            Folding(max_summary_tokens=self.max_node_tokens, budget=self.summarizer_budget)
        )


class HierarchicalSummaryMemory(SummarizingMemory):
    """Summaries of summaries, recalled by the question, and the newest turns word for word.

    `Recall.messages` is the view: system messages, one message with what of the tree says most
    about the question, and the turns that are in no leaf yet. No node is shown together with one
    of its own ancestors. Forgetting a leaf erases its messages and every summary above it, which
    are then made anew from what is left.

    Args:
        grouping: Which turns are summarized together, e.g. `by_calendar()`: turns to sessions,
            sessions to days, days to one profile. Without it, `fan_in` neighbors of each level.
            It is the same for as long as a conversation lasts. A group's summary is made anew
            from all of its children, in as many calls as `summarizer_budget` needs for them.
        **kwargs: See `ShortTermMemory`.

    Example:
        ```python
        memory = HierarchicalSummaryMemory(model="openai:gpt-5-mini", store=store, fan_in=5)
        chat = {"configurable": {"user_id": "ann", "thread_id": "monday"}}
        memory.recall("What did we decide about the roof?", config=chat).messages
        ```
    """

    graph_name: ClassVar[str | None] = "hierarchical_summary"
    Parameters: ClassVar[type[Any]] = HierarchicalParameters

    def __init__(
        self,
        *,
        grouping: Grouping | None = None,
        **kwargs: Any,  # noqa: ANN401 - those of `ShortTermMemory`
    ) -> None:
        super().__init__(**kwargs)
        self.grouping = grouping

    # --- what it decides -------------------------------------------------------------------------

    def cap(self, params: HierarchicalParameters) -> int:
        """Return the budget."""
        return params.budget

    def overflow(self, told: Told, params: HierarchicalParameters) -> list[Unit]:
        """Return the units that become leaves, oldest first."""
        count = self.token_counter
        if count([*told.fixed, *flat(told.units)]) <= params.budget * 3 // 4:
            return []
        return newest_within(told.units, params.budget // 2 - count(told.fixed), count).evicted

    def running(self, where: Archive) -> Steps[Running]:
        """Return how far the leaves reach; what they say is recalled by the question."""
        head = yield from tree.head_of(Tree(where.root))
        return Running(bound=head.bound, watermark=head.watermark)

    # --- recall ----------------------------------------------------------------------------------

    def recall_flow(self) -> Flow:
        """Return the steps `view`, `recall_tree` and `search_archive`."""
        return super().recall_flow().with_step_after("view", Step("recall_tree", self._recall_tree))

    def _recall_tree(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Add what of the tree says most about the question, as far as the budget allows."""
        params: HierarchicalParameters = yield from self.settings()
        moment = yield from moment_of(state)
        if moment.past:
            return {}
        grown = self._tree((yield from self.archive()), params)
        query = str(state.get("query") or last_human_text(state.get("messages", [])))
        view: list[AnyMessage] = list(state["view"])
        shown = [StoredMemory.from_dict(each) for each in state["memories"]]

        def fits(nodes: list[StoredMemory]) -> bool:
            text = budget.count_tokens(render_memories([*nodes, *shown]))
            whole = self.token_counter([_shown(nodes), *view])
            return max(text, whole) <= params.budget

        head = yield from tree.head_of(grown)
        grown = grown.grown(head)
        found = yield from self._candidates(grown, head.leaves, query, params, moment)
        nodes = tree.take(found, grown, fits)
        if not nodes:
            return {}
        system, said = leading_system(view)
        return {
            "view": [*system, _shown(nodes), *said],
            "memories": [each.to_dict() for each in [*nodes, *shown]],
        }

    def _candidates(
        self,
        grown: Tree,
        leaves: int,
        query: str,
        params: HierarchicalParameters,
        moment: Moment,
    ) -> Steps[list[StoredMemory]]:
        """Return the nodes that may be shown, best first, and then the top of the tree."""
        found: list[StoredMemory] = []
        if query:
            pool = yield from recall.search(grown.home, query, POOL_DEPTH, moment)
            order = yield from recall.ranked(query, [pool], {})
            found = yield from recall.first(order, [pool], len(order), moment)
        if params.search == "beam":
            found = yield from _beam(grown, leaves, found, params.beam_width)
        top = yield from Get([grown.ref(each) for each in grown.top(leaves)])
        return [*found, *(each for each in top if each is not None)]

    # --- remember --------------------------------------------------------------------------------

    def _tree(self, where: Archive, params: HierarchicalParameters) -> Tree:
        return Tree(where.root, params.fan_in, params.max_levels)

    def _catch_up(
        self, where: Archive, system: Sequence[AnyMessage], params: HierarchicalParameters
    ) -> Steps[list[MemoryOperation]]:
        """Make leaves of what overflows, and summarize what lies above new ones.

        Raises:
            ConflictError: Another writer was quicker; what was committed before stands.
        """
        grown = self._tree(where, params)
        reached = yield from self.running(where)
        pending, archived = yield from self._overflowing(where, reached, system, params)
        operations: list[MemoryOperation] = []
        if pending:
            head = yield from tree.head_of(grown)
            leaves = list(self._leaves(archived, params))
            operations += yield from tree.append(grown, head, leaves, self.grouping)
        return operations + (yield from self._rebuilt(grown, params))

    def _rebuilt(self, grown: Tree, params: HierarchicalParameters) -> Steps[list[MemoryOperation]]:
        """Make every node anew that is to be; a failure leaves the rest for the next turn."""
        folding = Folding(
            max_summary_tokens=params.max_node_tokens,
            budget=params.summarizer_budget,
            tokens=self.token_counter,
        )
        operations: list[MemoryOperation] = []
        while (yield from tree.head_of(grown)).dirty:
            if not (yield from HasModel()):
                yield from Emit("no_model_configured", {"purpose": "summarize"})
                break
            try:
                operations += yield from tree.rebuild(grown, folding)
            except SummaryFailedError as failure:
                yield from Emit("summary_failed", {"reason": str(failure)})
                break
        return operations

    def _leaves(
        self, units: Sequence[Sequence[Archived]], params: HierarchicalParameters
    ) -> Iterator[Leaf]:
        """Join units to leaves; a unit that is too long for one is cut at the ends of sentences.

        With a grouping each unit is a leaf: which of them belong together is told by it.
        """
        joined: list[Archived] = []
        for unit in units:
            alone = self.grouping is not None
            if joined and (alone or self._size(_words([*joined, *unit])) > params.max_leaf_tokens):
                yield from self._cut(joined, params)
                joined = []
            joined += unit
        if joined:
            yield from self._cut(joined, params)

    def _cut(self, said: Sequence[Archived], params: HierarchicalParameters) -> Iterator[Leaf]:
        text = _words(said)
        for span in spans_within(text, params.max_leaf_tokens, self._size):
            yield Leaf(
                text=text[span.start : span.end],
                first=said[0].number,
                last=said[-1].number,
                message_ids=tuple(str(each.message.id) for each in said),
                observed_at=said[-1].stored.observed_at,
            )

    def _size(self, text: str) -> int:
        """Return the larger of two estimates: LangChain's counts a Chinese word as nothing."""
        return max(self.token_counter([HumanMessage(text)]), budget.count_tokens(text))

    # --- forget ----------------------------------------------------------------------------------

    def erased_with(self, refs: Sequence[Ref]) -> Steps[list[Ref]]:
        """Return the messages of erased nodes, the leaves that show them, and all above these."""
        params: HierarchicalParameters = yield from self.settings()
        where = yield from self.archive()
        grown = self._tree(where, params)
        stored = [each for each in (yield from Get(refs)) if each is not None]
        numbers = {archive.number_in(each) for each in stored if archive.is_message(each)}
        for node in (each for each in stored if each.namespace == grown.home):
            first, last = tree.span_of(node)
            numbers.update(range(first, last + 1))
        head = yield from tree.head_of(grown)
        spans = yield from tree.leaf_spans(grown)
        hit = [at for at, span in enumerate(spans) if _meets(span, numbers)]
        up = [each for at in hit for each in grown.grown(head).path(at, head.leaves)]
        nodes = {*(Node(0, at) for at in hit), *up}
        whole = [each for each in stored if each.namespace == grown.home]
        gone = yield from self._messages_of(where, whole)
        return [*gone, *(grown.ref(each) for each in sorted(nodes))]

    def _messages_of(self, where: Archive, nodes: Sequence[StoredMemory]) -> Steps[list[Ref]]:
        refs: list[Ref] = []
        for node in nodes:
            first, last = tree.span_of(node)
            said = yield from archive.load(where, before=last + 1, down_to=first)
            refs += [(where.home, each.stored.key) for each in said]
        return refs

    def on_erased(self, erased: Sequence[MemoryOperation]) -> Steps[None]:
        """Put back what is left of the leaves; the summaries above are made in the next turn."""
        params: HierarchicalParameters = yield from self.settings()
        where = yield from self.archive()
        grown = self._tree(where, params)
        yield from archive.drop(where, [op.key for op in erased if op.namespace == where.home])
        places = [Node.of(op.key) for op in erased if op.namespace == grown.home]
        spans = yield from tree.leaf_spans(grown)
        by_span: dict[tuple[int, int], list[int]] = {}
        for at in sorted(each.index for each in places if each.level == 0):
            by_span.setdefault(spans[at], []).append(at)
        left: list[tuple[int, Leaf | None]] = []
        for (first, last), leaves in by_span.items():
            said = yield from archive.load(where, before=last + 1, down_to=first)
            parts: list[Leaf | None] = list(self._cut(said, params)) if said else []
            left += zip(leaves, [*parts, *([None] * len(leaves))], strict=False)
        if left:
            yield from tree.restore(grown, left)


def _beam(
    grown: Tree, leaves: int, ranked: Sequence[StoredMemory], width: int
) -> Steps[list[StoredMemory]]:
    """Return the best nodes met on the way down, the lowest first."""
    scores = {each.key: each.score or 0.0 for each in ranked}
    met: list[StoredMemory] = []
    row = grown.top(leaves)
    while row:
        found = [each for each in (yield from Get([grown.ref(node) for node in row])) if each]
        best = sorted(found, key=lambda each: -scores.get(each.key, 0.0))[:width]
        met = [*best, *met]
        nodes = [Node.of(each.key) for each in best]
        row = [each for node in nodes if node.level for each in grown.children(node, leaves)]
    return met


def _shown(nodes: Sequence[StoredMemory]) -> HumanMessage:
    return summary_message("\n".join(each.text for each in nodes))


def _words(said: Sequence[Archived]) -> str:
    return transcript(each.message for each in said)


def _meets(span: tuple[int, int], numbers: set[int]) -> bool:
    return any(span[0] <= number <= span[1] for number in numbers)
