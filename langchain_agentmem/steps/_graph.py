"""The compiled form of a flow: visible inside of a parent graph, but not in its checkpoints."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

from langgraph.graph.state import CompiledStateGraph


class FlowGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph that does not inherit the checkpointer of its parent.

    A parent's checkpointer would save this graph's input, which is the parent's whole state with
    what was recalled; and a run that was interrupted between two steps would go on without the
    untracked state of the first. LangGraph's own way, `checkpointer=False`, also hides the steps
    from drawings (`xray`), so it is set only while the graph runs.
    """

    @classmethod
    def of(cls, graph: CompiledStateGraph[Any, Any, Any, Any]) -> Self:
        """Return a compiled graph in this form."""
        own = {name: value for name, value in vars(graph).items() if name != "__orig_class__"}
        return cls(**own)

    def stream(self, *args: Any, **kwargs: Any) -> Iterator[Any]:  # noqa: ANN401 - LangGraph's signature
        """Run the graph and yield its progress; `invoke` runs through here too."""
        return super(FlowGraph, self._alone()).stream(*args, **kwargs)

    def astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - LangGraph's signature
        """Run the graph and yield its progress; `ainvoke` runs through here too."""
        return super(FlowGraph, self._alone()).astream(*args, **kwargs)

    def _alone(self) -> Self:
        """Return the graph as it runs: with a checkpointer of its own, or with none."""
        return self if self.checkpointer else self.copy({"checkpointer": False})
