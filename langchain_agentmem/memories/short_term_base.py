"""`ShortTermMemory`: what memories of one conversation have in common.

Each decides what of the conversation goes into the prompt. Whatever leaves the prompt was archived
first and stays searchable, word for word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from langchain_core.messages import AnyMessage, RemoveMessage
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.items import MemoryOperation, StoredMemory
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.memories.state import RecallInput, RecallOutput, RememberOutput
from langchain_agentmem.messages import last_human_text, text_of, to_messages
from langchain_agentmem.parameters import Parameters, described
from langchain_agentmem.rendering import render_memories
from langchain_agentmem.retrieval import budget
from langchain_agentmem.retrieval.rank import POOL_DEPTH
from langchain_agentmem.scopes import NamespaceTemplate
from langchain_agentmem.steps import archive, recall
from langchain_agentmem.steps.archive import Archive, Archived
from langchain_agentmem.steps.effects import Emit, Now, Resolve, Setting, Steps
from langchain_agentmem.steps.flow import Flow, Step
from langchain_agentmem.steps.recall import Moment, moment_of
from langchain_agentmem.windows import (
    Measure,
    Split,
    TokenCounter,
    Unit,
    context_of,
    count_tokens,
    flat,
    leading_system,
    units_of,
)

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_THREAD: NamespaceTemplate = NamespaceTemplate(("thread-{thread_id}",))
_OWN_THREAD = frozenset({"thread_id", "session_id"})


@dataclass(frozen=True, kw_only=True)
class ShortTermParameters(Parameters):
    """Parameters that all short-term memories have.

    Attributes:
        search_archive: So many messages that left the prompt are searched for with the question.
        archive_ttl: Minutes after which messages that left the prompt expire; None keeps them.
        mode: `view` leaves the graph's messages alone; `rewrite` removes those that left the
            prompt from the graph's state, once they are archived.
        window: Tokens of the model's context, for limits given as a fraction of it.
    """

    search_archive: int = described(0, "Archived messages to search for with the question.")
    archive_ttl: float | None = described(None, "Minutes after which archived messages expire.")
    mode: Literal["view", "rewrite"] = described("view", "view, or rewrite the graph's messages.")
    window: int | None = described(None, "Tokens of the model's context.")

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        self.require(least={"search_archive": 0}, choices={"mode": ("view", "rewrite")})
        if self.archive_ttl is not None and self.archive_ttl <= 0:
            msg = f"archive_ttl must be more than 0 minutes, not {self.archive_ttl}."
            raise ConfigurationError(msg)


class ShortTermRecallState(TypedDict, total=False):
    """State of the recall graph; the view is never checkpointed."""

    messages: Annotated[list[AnyMessage], add_messages]
    query: Annotated[str, UntrackedValue]
    limit: Annotated[int | None, UntrackedValue]
    as_of: Annotated[str | None, UntrackedValue]
    conversation: Annotated[list[AnyMessage], UntrackedValue]
    view: Annotated[list[AnyMessage], UntrackedValue]
    memories: Annotated[list[dict[str, Any]], UntrackedValue]
    memory_context: Annotated[str, UntrackedValue]
    tokens: Annotated[int, UntrackedValue]


class ShortTermRecallOutput(RecallOutput, total=False):
    """What the recall graph returns."""

    view: Annotated[
        list[AnyMessage], Field(description="The messages to show to the model."), UntrackedValue
    ]


class ShortTermRememberState(RememberOutput, total=False):
    """State of the remember graph."""

    messages: Annotated[list[AnyMessage], add_messages]


class RewriteInput(TypedDict, total=False):
    """What the remember graph is given in rewrite mode."""

    messages: list[AnyMessage]


class RewriteState(RewriteInput, RememberOutput, total=False):
    """State, and output, of the remember graph in rewrite mode.

    `messages` is replaced by removals, which only the parent's reducer shall carry out.
    """


@dataclass(frozen=True, slots=True)
class Told:
    """A conversation by units, oldest first.

    Attributes:
        units: What was said and may leave the view.
        fixed: What stands before it in the view: system messages and the summary.
    """

    units: Sequence[Unit]
    fixed: Sequence[AnyMessage] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The conversation as one recall sees it.

    Attributes:
        system: Leading system messages.
        stored: Archived messages before those that the call gave.
        given: The messages of the call, without leading system messages.
        summary: The summary shown before the messages, as a message.
        summary_item: The stored item that it was made of.
    """

    system: list[AnyMessage]
    stored: list[Archived]
    given: list[AnyMessage]
    summary: AnyMessage | None = None
    summary_item: StoredMemory | None = None

    @property
    def messages(self) -> list[AnyMessage]:
        """Everything that is said, in order."""
        return [*(each.message for each in self.stored), *self.given]

    @property
    def fixed(self) -> list[AnyMessage]:
        """What stands before it."""
        return [*self.system, *([self.summary] if self.summary else [])]

    @property
    def told(self) -> Told:
        """The conversation by units."""
        return Told(units_of(self.messages), self.fixed)


class ShortTermMemory(Memory):
    """Base of the memories of one conversation.

    The scope includes the thread: unless the namespace names `{thread_id}` or `{session_id}`
    itself, the call's `thread_id` is added to it. A call without a thread belongs to the one
    unnamed conversation of its scope.

    `recall(messages)` takes the conversation of a graph's state, or only its new messages: what
    is archived before them is put in front. `Recall.messages` is the view for the model;
    `Recall.items` and `.text` are what of the view the given messages do not show themselves.

    Args:
        token_counter: Counts the tokens of messages; by default LangChain's estimate.
        **kwargs: See `Memory`.
    """

    architecture: ClassVar[str] = "short_term"
    remember_asks: ClassVar[bool] = False
    Parameters: ClassVar[type[Parameters]] = ShortTermParameters

    def __init__(
        self,
        *,
        token_counter: TokenCounter | None = None,
        **kwargs: Any,  # noqa: ANN401 - those of `Memory`
    ) -> None:
        super().__init__(**kwargs)
        self.token_counter = token_counter or count_tokens

    # --- what a memory decides ---------------------------------------------------------------

    def select(self, told: Told, params: Any) -> Split:  # noqa: ANN401 - the class's own parameters
        """Return which units stay in the view.

        Args:
            told: The conversation.
            params: The parameters of the call.
        """
        raise NotImplementedError

    def is_enough(
        self,
        messages: Sequence[AnyMessage],
        params: Any,  # noqa: ANN401 - the class's own parameters
    ) -> bool:
        """Tell whether older messages than these cannot be in the view."""
        asked = any(each.type == "human" for each in messages)
        return asked and bool(self.select(Told(units_of(messages)[1:]), params).evicted)

    # --- scope ---------------------------------------------------------------------------------

    def scope(self) -> Steps[tuple[str, ...]]:
        """Return the namespace of the call's conversation."""
        namespace = yield from Resolve(self.namespace)
        if not _OWN_THREAD.isdisjoint(self.namespace.variables):
            return namespace
        thread = yield from Setting("thread_id", None)
        if thread is None:
            return namespace
        return (*namespace, *(yield from Resolve(_THREAD)))

    def archive(self) -> Steps[Archive]:
        """Return where the call's conversation is archived."""
        return Archive((*(yield from self.scope()), self.architecture))

    def measure(self, params: ShortTermParameters) -> Measure:
        """Return how this memory measures messages."""
        return Measure(self.token_counter, params.window or context_of(self.model))

    # --- recall --------------------------------------------------------------------------------

    def recall_flow(self) -> Flow:
        """Return the steps `view` and `search_archive`."""
        return Flow(
            Step("view", self._view),
            Step("search_archive", self._search_archive),
            state=ShortTermRecallState,
        )

    def recall_graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Return recall as a graph: `messages` in, `view` for the model out."""
        return self._graph("recall", self.recall_flow(), RecallInput, ShortTermRecallOutput)

    def _view(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Put together the system messages, the summary and the units that stay."""
        params = yield from self.settings()
        where = yield from self.archive()
        moment = yield from moment_of(state)
        talk = yield from self._conversation(where, _given(state), params, moment)
        split = self.select(talk.told, params)
        kept = flat(split.kept)
        if split.over:
            yield from Emit("over_budget", {"tokens": self.token_counter([*talk.fixed, *kept])})
        shown = {each.id for each in kept}
        stored = [each.stored for each in talk.stored if each.message.id in shown]
        unseen = [talk.summary_item, *stored] if talk.summary_item else stored
        return {
            "view": [*talk.fixed, *kept],
            "conversation": kept,
            "memories": [each.to_dict() for each in unseen],
        }

    def _conversation(
        self,
        where: Archive,
        messages: Sequence[AnyMessage],
        params: Any,  # noqa: ANN401 - the class's own parameters
        moment: Moment,
    ) -> Steps[Conversation]:
        """Return the conversation: the messages of the call, behind what is archived before."""
        system, given = leading_system(messages)
        given = yield from archive.with_ids(where, given)
        before = yield from self._before(where, given)
        stored: list[Archived] = []
        for part in archive.backwards(where, before=before, down_to=0):
            found = _not_in(given, (yield from part))
            stored = [*(each for each in found if moment.shows(each.stored)), *stored]
            if self.is_enough([*(each.message for each in stored), *given], params):
                break
        return Conversation(system=system, stored=stored, given=given)

    def _before(self, where: Archive, given: Sequence[AnyMessage]) -> Steps[int]:
        """Return the number before which archived messages precede the given ones."""
        known = yield from archive.number_of(where, given[0].id if given else None)
        return (yield from archive.size(where)) if known is None else known

    def _search_archive(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Search what left the prompt, if asked to, and render what the messages do not show."""
        params: ShortTermParameters = yield from self.settings()
        memories = list(state["memories"])
        query = state.get("query") or last_human_text(state.get("messages", []))
        if params.search_archive and query:
            where = yield from self.archive()
            shown = {where.key(str(each.id)) for each in state["conversation"]}
            moment = yield from moment_of(state)
            pool = yield from recall.search(where.home, query, POOL_DEPTH, moment)
            order = yield from recall.ranked(query, [pool], {})
            limit = params.search_archive + len(shown)
            found = yield from recall.first(order, [pool], limit, moment)
            hits = [each for each in found if each.key not in shown]
            memories += [each.to_dict() for each in hits[: params.search_archive]]
        limit_given = state.get("limit")
        if limit_given is not None:
            memories = memories[len(memories) - min(limit_given, len(memories)) :]
        text = render_memories([StoredMemory.from_dict(each) for each in memories])
        return {
            "memories": memories,
            "memory_context": text,
            "tokens": budget.count_tokens(text),
        }

    # --- remember --------------------------------------------------------------------------------

    def remember_flow(self) -> Flow:
        """Return the steps `archive` and `release`."""
        steps = (Step("archive", self._archive), Step("release", self._release))
        return Flow(*steps, state=self.remember_state)

    @property
    def rewrites(self) -> bool:
        """Whether the graph's own messages are bounded too."""
        parameters: ShortTermParameters = self.parameters  # type: ignore[assignment]  # the class's own
        return parameters.mode == "rewrite"

    @property
    def remember_state(self) -> type:
        """The state of the remember graph."""
        return RewriteState if self.rewrites else ShortTermRememberState

    def remember_graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Return remember as a graph: `messages` in, operations (and removals) out."""
        if not self.rewrites:
            return super().remember_graph()
        return self._graph("remember", self.remember_flow(), RewriteInput, RewriteState)

    def _archive(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Archive the new messages, before anything else."""
        where = yield from self.archive()
        _, said = leading_system(to_messages(state.get("messages", [])))
        operations = yield from archive.append(where, said)
        return {"memory_operations": [op.to_dict() for op in operations]}

    def _release(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Let go of what left the prompt: expire it, or remove it from the graph's messages."""
        params: ShortTermParameters = yield from self.settings()
        if params.archive_ttl is None and not self.rewrites:
            return {}
        where = yield from self.archive()
        system, given = leading_system(to_messages(state.get("messages", [])))
        now = yield from moment_of({})
        talk = yield from self._conversation(where, system, params, now)
        kept = flat(self.select(talk.told, params).kept)
        stays = {each.id for each in kept}
        if params.archive_ttl is not None:
            yield from self._expire_older(where, stays, params.archive_ttl)
        if not self.rewrites:
            return {}
        gone = [each.id for each in given if each.id and each.id not in stays]
        return {"messages": [RemoveMessage(id=each) for each in gone]}

    def on_erased(self, erased: Sequence[MemoryOperation]) -> Steps[None]:
        """Take erased messages out of the order."""
        where = yield from self.archive()
        yield from archive.drop(where, [op.key for op in erased if op.namespace == where.home])

    def _expire_older(self, where: Archive, stays: set[str | None], minutes: float) -> Steps[None]:
        """Set the end of messages that left the prompt; those before a set end have theirs."""
        ends = (yield from Now()) + timedelta(minutes=minutes)
        count = yield from archive.size(where)
        for part in archive.backwards(where, before=count, down_to=0):
            found = yield from part
            gone = [each for each in found if each.message.id not in stays]
            yield from archive.expire(where, gone, ends)
            if not found or any(each.stored.item.expires_at for each in gone):
                return


def _not_in(given: Sequence[AnyMessage], found: Sequence[Archived]) -> list[Archived]:
    own = {each.id for each in given}
    return [each for each in found if each.message.id not in own]


def _given(state: Mapping[str, Any]) -> list[AnyMessage]:
    """Return the messages of a call; a bare question is not part of the conversation yet."""
    messages = list(state.get("messages", []))
    query = state.get("query")
    if len(messages) == 1 and not messages[0].id and text_of(messages[0]) == query:
        return []
    return messages
