"""Forgetting as a graph: what would be erased is shown to a person, who decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from langgraph.channels import UntrackedValue
from langgraph.types import interrupt
from pydantic import Field
from typing_extensions import TypedDict

from langchain_agentmem.items import MemoryOperation, StoredMemory
from langchain_agentmem.memories.base import EVERYTHING, Memory, Selector
from langchain_agentmem.memories.forgetting import cleaning, select
from langchain_agentmem.scopes import closed
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.effects import Call, Composite, Emit, List, Ref, Steps
from langchain_agentmem.steps.flow import as_node

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from langchain_agentmem.steps.environment import Environment

_LISTED: Final = 100


class ForgetInput(TypedDict, total=False):
    """What to erase: keys, a filter, or everything of the scope."""

    keys: Annotated[list[str], Field(description="Keys of the memories to erase.")]
    filter: Annotated[
        dict[str, Any],
        Field(
            description="Erase the memories whose stored fields match.",
            examples=[{"kind": "turn"}],
        ),
        UntrackedValue,
    ]
    everything: Annotated[
        bool, Field(description="Erase every memory of the scope, with its history.")
    ]


class ForgetOutput(TypedDict, total=False):
    """What was erased; no text of it."""

    count: Annotated[int, Field(description="How many memories were chosen.")]
    selected: Annotated[
        list[dict[str, Any]],
        Field(description="Key, namespace, kind and date of each; of everything, the first 100."),
    ]
    approved: Annotated[bool, Field(description="Whether a person agreed.")]
    forgotten: Annotated[int, Field(description="How many memories are gone.")]


class ForgetState(ForgetInput, ForgetOutput, total=False):
    """State of the graph: names and dates of memories, never their text."""


@dataclass(frozen=True, slots=True)
class _Erase(Composite[list[MemoryOperation]]):
    """Erase memories, and what is left of them in the store's file.

    Attributes:
        memory: Whose.
        selector: Which.
    """

    memory: Memory
    selector: Selector

    def steps(self, env: Environment) -> Steps[list[MemoryOperation]]:
        """Forget as `Memory.forget` does."""
        return self.memory.forget_steps(self.selector, cleaning(env.the_store(), vacuum=False))


def create_forget_graph(memory: Memory) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build a graph that erases memories for good once a person has agreed.

    Its nodes are `select`, `approve` and `erase`. `approve` interrupts with a list of what would
    be erased; resume with `"accept"`, anything else keeps everything. The list names keys, kinds
    and dates only, for what is asked is saved in the checkpoint, and what is forgotten shall be in
    none.

    Args:
        memory: The memory.

    Returns:
        A graph without store and checkpointer. Compile `graph.builder` with a checkpointer, or let
        a server lend it one.

    Example:
        ```python
        graph = create_forget_graph(memory).builder.compile(checkpointer=saver, store=store)
        graph.invoke({"keys": ["1f2e"]}, config)
        graph.invoke(Command(resume="accept"), config)["forgotten"]
        ```
    """
    from langgraph.graph import END, START, StateGraph

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        ForgetState,
        context_schema=memory.context_schema(),
        input_schema=ForgetInput,
        output_schema=ForgetOutput,
    )
    steps = _Forgetting(memory)
    for step in (steps.select, steps.approve, steps.erase):
        builder.add_node(step.__name__, as_node(step, memory.node_environment))
    builder.add_edge(START, "select")
    builder.add_conditional_edges(
        "select", lambda state: "approve" if state["count"] else END, ["approve", END]
    )
    builder.add_conditional_edges(
        "approve", lambda state: "erase" if state["approved"] else END, ["erase", END]
    )
    builder.add_edge("erase", END)
    return builder.compile(name="forget")


@dataclass(frozen=True, slots=True)
class _Forgetting:
    """The steps.

    Attributes:
        memory: The memory.
    """

    memory: Memory

    def select(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Find what would be erased."""
        scope = yield from self.memory.scope()
        found = yield from self._found(state, scope, (*scope, self.memory.architecture))
        listed = found[:_LISTED] if state.get("everything") else found
        return {"count": len(found), "selected": listed, "approved": False, "forgotten": 0}

    def _found(
        self, state: Mapping[str, Any], scope: tuple[str, ...], own: tuple[str, ...]
    ) -> Steps[list[dict[str, Any]]]:
        if state.get("everything"):
            homes = yield from journal.homes(scope)
            lying = [place for home in homes for place in (home, closed(home))]
            named = []
            for place in lying:
                named += [_named(each) for each in (yield from List(place))]
            return named
        refs: list[Ref] = []
        for selector in (state.get("keys"), state.get("filter")):
            refs += (yield from select(selector, scope, own)) if selector else []
        found = yield from journal.read(list(dict.fromkeys(refs)))
        return [_named(each) for each in found if each is not None]

    def approve(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Ask a person."""
        question = {
            "kind": "forget_approval",
            "count": state["count"],
            "everything": bool(state.get("everything")),
            "memories": state["selected"],
            "answers": ["accept", "reject"],
        }
        answer = yield from Call(interrupt, (question,))
        return {"approved": answer == "accept"}

    def erase(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Erase what was agreed to."""
        keys = [each["key"] for each in state["selected"]]
        selector: Selector = EVERYTHING if state.get("everything") else keys
        erased = yield from _Erase(self.memory, selector)
        yield from Emit("forgotten", {"count": len(erased)})
        return {"forgotten": len(erased)}


def _named(memory: StoredMemory) -> dict[str, Any]:
    """Return what identifies a memory without telling what it says."""
    said = memory.observed_at or memory.created_at
    return {
        "key": memory.key,
        "namespace": list(memory.namespace),
        "kind": memory.item.kind,
        "date": f"{said:%Y-%m-%d}" if said else None,
    }
