"""A flow: named steps in order, as one LangGraph graph or driven directly.

Both come from the same steps, so what a person sees as nodes in Studio is exactly what
`Memory.recall(...)` runs without a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

from langgraph.channels import UntrackedValue
from typing_extensions import TypedDict

from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Steps

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable, RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

    from langchain_agentmem.steps.environment import Environment

State = Mapping[str, Any]
Update = dict[str, Any]
StepFunction = Callable[[State], Steps[Update]]
EnvironmentOf = Callable[["RunnableConfig"], "Environment"]
GuardOf = Callable[[int | None], Steps[int]]

END: Final = "__end__"
_BEGUN: Final = "begun"
_GIVEN: Final = "given"
_ERASURES: Final = "erasures"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a flow.

    Attributes:
        name: Node name, in snake case, from the paper.
        run: From the state so far to an update of it, yielding effects.
        route: Names the next step, given the state after the update; None means the next in order.
        to: All names `route` can give, so that drawings are complete.
    """

    name: str
    run: StepFunction
    route: Callable[[State], str] | None = None
    to: tuple[str, ...] = ()


class Flow:
    """Steps in order, beginning with the first.

    Args:
        steps: The steps; one without a route is followed by the next, the last by the end.
        state: The graph's state schema.
    """

    def __init__(self, *steps: Step, state: type) -> None:
        self.steps = steps
        self.state = state
        self._by_name = {step.name: step for step in steps}

    def with_step_after(self, name: str, step: Step) -> Flow:
        """Return the flow with one more step behind another one."""
        at = [each.name for each in self.steps].index(name) + 1
        return Flow(*self.steps[:at], step, *self.steps[at:], state=self.state)

    def drive(self, state: State) -> Steps[Update]:
        """Run the steps one after another and return the final state."""
        return {**state, **(yield from self._until(END, state))}

    def _until(self, last: str, state: State, *, saved: bool = False) -> Steps[Update]:
        """Run the steps before one of them and return what they left, all of them for `END`.

        Args:
            last: The step to stop before.
            state: The state they begin with.
            saved: Whether that state was read from a checkpoint: then its values win.
        """
        update: Update = {}
        name = self.steps[0].name
        while name not in (END, last):
            step = self._by_name[name]
            left = yield from step.run({**state, **update})
            update.update({key: left[key] for key in left if not (saved and key in state)})
            name = self._after(step, {**state, **update})
        return update

    def _after(self, step: Step, state: State) -> str:
        if step.route is not None:
            return step.route(state)
        position = self.steps.index(step) + 1
        return self.steps[position].name if position < len(self.steps) else END

    def graph(
        self,
        *,
        name: str,
        input_schema: type,
        output_schema: type,
        context_schema: type,
        environment: EnvironmentOf,
        guard: GuardOf | None = None,
    ) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Compile the steps to a graph, one node a step, without store and checkpointer.

        A parent graph's checkpointer is not inherited either, see `FlowGraph`. Where a run of the
        graph by itself was interrupted between two steps, the untracked state that the first ones
        left is gone; it is worked out again before the next step goes on.

        Args:
            name: Name of the graph.
            input_schema: What it is given.
            output_schema: What it returns.
            context_schema: What a call may set.
            environment: Gives what a call runs with.
            guard: Run before each step with what it returned before the first: refuses what is
                written once the scope was erased.
        """
        from langgraph.graph import StateGraph

        from langchain_agentmem.steps._graph import FlowGraph

        hints = get_type_hints(self.state, include_extras=True)
        builder: StateGraph[Any, Any, Any, Any] = StateGraph(
            _with_marks(hints),
            context_schema=context_schema,
            input_schema=input_schema,
            output_schema=output_schema,
        )
        counts = "usage" in hints
        untracked = [key for key, hint in hints.items() if _is_untracked(hint)]
        for step in self.steps:
            builder.add_node(
                step.name, as_node(self._marked(step, untracked, guard), environment, counts=counts)
            )
            if step.route is None:
                builder.add_edge(step.name, self._after(step, {}))
            else:
                builder.add_conditional_edges(
                    step.name, step.route, {target: target for target in step.to}
                )
        builder.set_entry_point(self.steps[0].name)
        return FlowGraph.of(builder.compile(name=name))

    def _marked(self, step: Step, untracked: Sequence[str], guard: GuardOf | None) -> StepFunction:
        """Return a step that first makes up for what an interrupt has lost.

        Args:
            step: The step.
            untracked: Keys of the state that no checkpoint holds.
            guard: As for `graph`.
        """

        def marked(state: State) -> Steps[Update]:
            update: Update = {}
            begins = step is self.steps[0] and _BEGUN not in state
            if guard is not None:
                known = None if begins else state.get(_ERASURES)
                update[_ERASURES] = yield from guard(known)
            if step is self.steps[0]:
                given = {key: state[key] for key in untracked if key in state}
                update |= {_BEGUN: True, _GIVEN: given}
            elif _BEGUN not in state:
                update |= yield from self._made_up_for(step, state)
            return {**update, **(yield from step.run({**state, **update}))}

        marked.__name__ = step.name
        return marked

    def _made_up_for(self, step: Step, state: State) -> Steps[Update]:
        """Work out again what the steps before one left, from the input and what is saved."""
        given = {key: value for key, value in state[_GIVEN].items() if key not in state}
        lost = yield from self._until(step.name, {**given, **state}, saved=True)
        return {**given, **lost, _BEGUN: True}


def _is_untracked(hint: Any) -> bool:  # noqa: ANN401 - any annotation
    return getattr(hint, "__metadata__", (None,))[-1] is UntrackedValue


def _with_marks(hints: Mapping[str, Any]) -> type:
    """Return a state schema with three more keys.

    `begun` is untracked as all that steps pass on: a state without it was read from a checkpoint.
    `given` is what the run was given, for then; `erasures` is what its guard returned.
    """
    marks = {_BEGUN: Annotated[bool, UntrackedValue], _GIVEN: dict[str, Any], _ERASURES: int}
    keys = {**hints, **marks}
    made: type = TypedDict("State", keys, total=False)  # type: ignore[misc]  # made at runtime
    return made


def as_node(
    step: StepFunction, environment: EnvironmentOf, *, counts: bool = False
) -> Runnable[Any, Any]:
    """Turn a step into a graph node with a sync and an async path.

    Args:
        step: The step.
        environment: Gives what a call runs with.
        counts: Whether the state has a key `usage` that adds up model calls and tokens.
    """
    from langchain_core.runnables import RunnableLambda

    def call(state: State, config: RunnableConfig) -> Update:
        env = environment(config)
        return _counted(run(step(state), env), state, env, counts=counts)

    async def acall(state: State, config: RunnableConfig) -> Update:
        env = environment(config)
        return _counted(await arun(step(state), env), state, env, counts=counts)

    return RunnableLambda(call, afunc=acall, name=getattr(step, "__name__", "step"))


def _counted(update: Update, state: State, env: Environment, *, counts: bool) -> Update:
    if not counts or not env.ledger.calls:
        return update
    return {**update, "usage": env.ledger.added_to(state.get("usage"))}
