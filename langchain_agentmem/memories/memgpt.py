"""`MemGPT`: the model pages its own memory between its prompt and storage.

Source: "MemGPT: Towards LLMs as Operating Systems", arXiv 2310.08560, and its code up to Letta
0.16.8. The prompt is main memory: instructions, editable core blocks, and a queue of messages
headed by a recursive summary. Storage is disk: every message (recall) and notes (archival). The
model moves data by tool calls, is warned when the prompt fills up, and goes on by heartbeats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict

from langchain_agentmem.items import Cause, MemoryOperation, StoredMemory
from langchain_agentmem.memories import memgpt_tools
from langchain_agentmem.memories.base import Memory
from langchain_agentmem.memories.memgpt_agent import Agent
from langchain_agentmem.memories.memgpt_queue import Queue
from langchain_agentmem.memories.memgpt_sleep import sleep
from langchain_agentmem.memories.memgpt_tools import Desk
from langchain_agentmem.memories.state import RecallState, RememberOutput
from langchain_agentmem.memories.written import assembled, query_of
from langchain_agentmem.messages import to_messages
from langchain_agentmem.parameters import Parameters, described
from langchain_agentmem.retrieval.rank import POOL_DEPTH
from langchain_agentmem.steps.archive import Archive
from langchain_agentmem.steps.core_memory import CoreBlock, check_blocks
from langchain_agentmem.steps.effects import Emit, Setting, Steps
from langchain_agentmem.steps.flow import END, Flow, Step
from langchain_agentmem.steps.recall import moment_of
from langchain_agentmem.transcripts import said
from langchain_agentmem.windows import TokenCounter, context_of

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from langgraph.graph.state import CompiledStateGraph

PERSONA: Final = CoreBlock(label="persona", description="Who you are and how you talk.")
HUMAN: Final = CoreBlock(label="human", description="What you know about the user.")
_WINDOW: Final = 32_000
_BYTES_PER_TOKEN: Final = 4
_SAFETY: Final = 1.3
_PERSONAL: Final = ("human", "persona")


def estimate_tokens(messages: Sequence[BaseMessage]) -> int:
    """Return a cautious estimate of how many tokens a model reads: a third over bytes / 4."""
    size = sum(len(said(each).encode("utf-8", "replace")) for each in messages)
    return int(size / _BYTES_PER_TOKEN * _SAFETY)


@dataclass(frozen=True, kw_only=True)
class MemGPTParameters(Parameters):
    """Parameters of `MemGPT`; presets `paper` and `reference` (Letta 0.16.8).

    Attributes:
        window: Tokens of the model's context; by default its profile's, else 32,000.
        warn_at: The model is warned when the prompt fills this share of it; None for never.
        flush_at: The oldest messages leave the prompt when it fills more than this share.
        evict_fraction: About this share of the messages' tokens leaves; more if it must.
        keep_last: So many of the last messages never leave.
        core_limit: Most characters of a core block.
        other_core_limit: The same for blocks other than `human` and `persona`; None for no other.
        page_size: Results of `conversation_search` on a page.
        archival_top_k: Results of `archival_memory_search` on a page.
        tool_result_limit: Most characters of a tool's result in the prompt.
        max_steps: Most model calls of one turn.
        sleep_every: After so many turns of the user the sleep agent runs, and it alone edits core
            memory; None for never.
        replace_policy: `unique` refuses to replace a text that occurs several times, `all`
            replaces each.
        send_message: The paper's form: the model speaks by a tool, and its plain text is thought.
        max_summary_tokens: Most tokens of the recursive summary.
        summarizer_budget: Most tokens of one input of the summarizer.
        max_tokens: Most tokens of what `recall` returns.
    """

    window: int | None = described(None, "Tokens of the model's context.")
    warn_at: float | None = described(0.7, "Share of the window at which the model is warned.")
    flush_at: float = described(1.0, "Share of the window over which messages leave the prompt.")
    evict_fraction: float = described(0.5, "Share of the messages' tokens that leaves.")
    keep_last: int = described(1, "Last messages that never leave.")
    core_limit: int = described(2000, "Most characters of a core block.")
    other_core_limit: int | None = described(None, "Most characters of further blocks.")
    page_size: int = described(5, "Results of conversation_search on a page.")
    archival_top_k: int = described(10, "Results of archival_memory_search on a page.")
    tool_result_limit: int = described(3000, "Most characters of a tool's result.")
    max_steps: int = described(50, "Most model calls of one turn.")
    sleep_every: int | None = described(None, "Turns after which the sleep agent runs.")
    replace_policy: Literal["unique", "all"] = described("unique", "unique or all.")
    send_message: bool = described(default=False, description="Let the model speak by a tool.")
    max_summary_tokens: int = described(500, "Most tokens of the recursive summary.")
    summarizer_budget: int = described(4000, "Most tokens of one input of the summarizer.")
    max_tokens: int = described(2000, "Most tokens of what recall returns.")

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "default": {},
        "paper": {},
        "reference": {
            "warn_at": None,
            "flush_at": 0.9,
            "evict_fraction": 0.3,
            "core_limit": 20_000,
            "other_core_limit": 100_000,
            "tool_result_limit": 5000,
            "sleep_every": 5,
        },
    }

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        positive = ("core_limit", "page_size", "archival_top_k", "tool_result_limit", "max_steps")
        self.require(
            least={**dict.fromkeys(positive, 1), "keep_last": 1, "max_tokens": 1, "flush_at": 0.01},
            choices={"replace_policy": ("unique", "all")},
        )
        for name in ("window", "sleep_every", "other_core_limit"):
            if getattr(self, name) is not None:
                self.require(least={name: 1})


class MemGPTState(TypedDict, total=False):
    """State of the agent and of the remember graph; the queue itself lies in the store.

    Attributes:
        messages: The conversation; what a turn adds is appended.
        steps: Model calls of this turn.
        stop_reason: Why the turn ended: `end_turn`, `max_steps` or `no_model`.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    steps: int
    stop_reason: str
    tokens: Annotated[int, UntrackedValue]
    next: Annotated[str, UntrackedValue]
    sleep_due: Annotated[bool, UntrackedValue]
    retried: Annotated[bool, UntrackedValue]
    cut: Annotated[dict[str, int], UntrackedValue]
    usage: Annotated[dict[str, Any], UntrackedValue]
    memory_operations: Annotated[list[dict[str, Any]], UntrackedValue]


class MemGPTInput(TypedDict, total=False):
    """What the agent is given."""

    messages: Annotated[
        list[AnyMessage], Field(description="New messages; the last one is answered."), add_messages
    ]


class MemGPTOutput(RememberOutput, total=False):
    """What the agent returns."""

    messages: Annotated[
        list[AnyMessage], Field(description="The conversation, the reply at its end."), add_messages
    ]
    stop_reason: Annotated[
        str, Field(description="Why the turn ended: end_turn, max_steps or no_model.")
    ]


class MemGPT(Memory):
    """Tiered memory that the model manages itself: core blocks, recall and archival storage.

    `agent_graph()` is the whole agent: `ingest`, `pressure`, `flush`, `model`, `tools`, `sleep`.
    `remember` takes messages in without ever replying, `recall` gives blocks, summary and what of
    both storages fits a question, and `consolidate` runs the sleep agent. One scope is one agent
    with one conversation: put `{thread_id}` into the namespace for an agent a thread.

    Args:
        blocks: The core blocks with their first values, limits and descriptions; by default empty
            blocks `persona` and `human`. What was written to a block since is never replaced.
        instructions: What the agent is told besides how its memory works.
        token_counter: Counts the tokens of messages; by default a cautious estimate.
        **kwargs: See `Memory`.

    Example:
        ```python
        memory = MemGPT(model="openai:gpt-4.1-mini", store=FaissSqliteStore("memory.sqlite"))
        agent = memory.agent_graph()
        ann = {"configurable": {"user_id": "ann"}}
        agent.invoke({"messages": [("user", "Hi, I am Ann.")]}, ann)["messages"][-1]
        ```
    """

    architecture: ClassVar[str] = "memgpt"
    Parameters: ClassVar[type[Parameters]] = MemGPTParameters

    def __init__(
        self,
        *,
        blocks: Sequence[CoreBlock] = (PERSONA, HUMAN),
        instructions: str = "",
        token_counter: TokenCounter | None = None,
        **kwargs: Any,  # noqa: ANN401 - those of `Memory`
    ) -> None:
        super().__init__(**kwargs)
        self.token_counter = token_counter or estimate_tokens
        self.instructions = instructions
        self.blocks = tuple(blocks)
        check_blocks(self._limited(self.parameters))  # type: ignore[arg-type]  # its own class

    # --- where things lie ------------------------------------------------------------------------

    def _limited(self, params: MemGPTParameters) -> list[CoreBlock]:
        """Return the defined blocks, those without a limit with the parameters' one."""
        others = params.other_core_limit or params.core_limit
        return [
            replace(each, limit=params.core_limit if each.label in _PERSONAL else others)
            if each.limit is None
            else each
            for each in self.blocks
        ]

    def desk(self, message_ids: tuple[str, ...] = ()) -> Steps[Desk]:
        """Return what the tools of this call work on."""
        params: MemGPTParameters = yield from self.settings()
        root = (*(yield from self.scope()), self.architecture)
        homes: list[tuple[str, ...]] = []
        for level in (yield from self.levels()):
            homes += [(*level, self.architecture, "archival"), level]
        thread = yield from Setting("thread_id", None)
        return Desk(
            recall=Archive(root, "recall"),
            archival=homes,
            core_home=(*root, "core"),
            blocks=self._limited(params),
            page_size=params.page_size,
            top_k=params.archival_top_k,
            policy=params.replace_policy,
            cause=Cause(
                surface="tool",
                message_ids=message_ids,
                thread_id=None if thread is None else str(thread),
            ),
        )

    def queue(self) -> Steps[Queue]:
        """Return the queue of messages of this call's scope."""
        params: MemGPTParameters = yield from self.settings()
        desk = yield from self.desk()
        return Queue(
            recall=desk.recall,
            tokens=self.token_counter,
            window=params.window or context_of(self.model) or _WINDOW,
            params=params,
        )

    # --- the agent -------------------------------------------------------------------------------

    def agent_graph(self, tools: Sequence[BaseTool] = ()) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Return the agent as a graph: `messages` in, `messages` with the reply out.

        Args:
            tools: Tools of your own to give the model besides those of its memory.
        """
        agent = Agent(self, tools)
        flow = Flow(
            Step("ingest", self._ingest),
            Step("pressure", agent.pressure, lambda state: state["next"], ("flush", "model")),
            Step("flush", agent.flush, lambda _: "pressure", ("pressure",)),
            Step("model", agent.model, lambda state: state["next"], ("tools", "flush", "sleep")),
            Step("tools", agent.tools, lambda state: state["next"], ("pressure", "sleep")),
            Step("sleep", self._sleep_if_due),
            state=MemGPTState,
        )
        return self._graph("agent", flow, MemGPTInput, MemGPTOutput)

    def _ingest(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Write new messages to recall storage, on their arrival."""
        params: MemGPTParameters = yield from self.settings()
        queue = yield from self.queue()
        given = to_messages(state.get("messages", []))
        operations, turns = yield from queue.take_in(given)
        every = params.sleep_every
        due = every is not None and any(turn % every == 0 for turn in turns)
        return {
            "steps": 0,
            "stop_reason": "",
            "sleep_due": due,
            "retried": False,
            "cut": {},
            "memory_operations": [op.to_dict() for op in operations],
        }

    def _sleep_if_due(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Let the sleep agent edit core memory after every few turns of the user."""
        if not state["sleep_due"]:
            return {}
        return (yield from self._sleep(state))

    def _sleep(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Let the sleep agent read what is new and edit core memory."""
        operations = yield from sleep((yield from self.desk()))
        done = list(state.get("memory_operations", []))
        return {"memory_operations": [*done, *(op.to_dict() for op in operations)]}

    # --- remember, consolidate, recall -----------------------------------------------------------

    def remember_flow(self) -> Flow:
        """Return the steps `ingest`, `pressure` and `flush`; nothing replies."""
        agent = Agent(self, ())
        return Flow(
            Step("ingest", self._ingest),
            Step(
                "pressure",
                agent.pressure,
                lambda state: "flush" if state["next"] == "flush" else END,
                ("flush", END),
            ),
            Step("flush", agent.flush_quietly),
            state=MemGPTState,
        )

    def consolidate_flow(self) -> Flow:
        """Return the step `sleep`."""
        return Flow(Step("sleep", self._sleep), state=MemGPTState)

    def recall_flow(self) -> Flow:
        """Return the steps `load_core`, `search` and `assemble`; no model call."""
        return Flow(
            Step("load_core", self._load_core),
            Step("search", self._search),
            Step("assemble", self._assemble),
            state=RecallState,
        )

    def _load_core(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Take the blocks and the summary; they have no past, so an earlier time shows neither."""
        if (yield from moment_of(state)).past:
            return {"memories": []}
        core = yield from (yield from self.desk()).core()
        summary = yield from (yield from self.queue()).summary()
        found = [*core.memories(), *([summary] if summary else [])]
        return {"memories": [each.to_dict() for each in found]}

    def _search(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Add the notes and messages that fit the question."""
        params: MemGPTParameters = yield from self.settings()
        desk, moment = (yield from self.desk()), (yield from moment_of(state))
        query, limit = query_of(state), state.get("limit")
        found: list[StoredMemory] = []
        if query:
            notes = yield from memgpt_tools.matching_notes(desk.archival, query, moment, POOL_DEPTH)
            messages = yield from memgpt_tools.matching_messages(desk.recall, query, POOL_DEPTH)
            heard = [each for each in messages if moment.shows(each) and each.text != query]
            found = [*notes[: params.archival_top_k], *heard[: params.page_size]]
        hits = found if limit is None else found[:limit]
        return {"memories": [*state["memories"], *(each.to_dict() for each in hits)]}

    def _assemble(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Cut to the budget and render."""
        params: MemGPTParameters = yield from self.settings()
        return assembled(
            [StoredMemory.from_dict(each) for each in state["memories"]], params.max_tokens
        )

    def on_erased(self, erased: Sequence[MemoryOperation]) -> Steps[None]:
        """Take erased messages out of the queue, and erase a summary that covers one of them."""
        queue = yield from self.queue()
        gone = [op.key for op in erased if op.namespace == queue.recall.home]
        if (yield from queue.drop(gone)):
            yield from Emit("summary_erased", {"reason": "it covered an erased message"})
