"""The steps of the optimizer graph, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from langgraph.types import Send, interrupt

from langchain_agentmem.errors import AgentMemoryError
from langchain_agentmem.prompt_optimizer import credit, guards, improving
from langchain_agentmem.prompt_optimizer.budget import Budget, share
from langchain_agentmem.prompt_optimizer.choosing import Choices
from langchain_agentmem.prompt_optimizer.guards import Limits
from langchain_agentmem.prompt_optimizer.levels import unified
from langchain_agentmem.prompt_optimizer.prompt_memory import PromptMemory
from langchain_agentmem.prompt_optimizer.records import (
    TOLD,
    as_version,
    comparison_of,
    fresh,
    new_record,
    proposed_text,
    report_row,
    resolved,
    waiting,
)
from langchain_agentmem.prompt_optimizer.scoring import Comparison, grade
from langchain_agentmem.prompt_optimizer.settings import OptimizerParameters, Record
from langchain_agentmem.prompt_optimizer.values import (
    Candidate,
    Prompt,
    Task,
    Trajectory,
    as_trajectories,
    split,
)
from langchain_agentmem.prompt_optimizer.versions import SupersededError
from langchain_agentmem.steps.effects import Call, Draw, Emit, HasModel, Setting, Settings, Steps

State: TypeAlias = Mapping[str, Any]
Update: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The steps, with all they were built with.

    Attributes:
        memory: The prompts and their versions.
        parameters: Defaults of the parameters.
        choices: Strategy, evaluators and examples.
        limits: What candidates must keep to.
    """

    memory: PromptMemory
    parameters: OptimizerParameters
    choices: Choices
    limits: Limits

    def collect(self, state: State) -> Steps[Update]:
        """Take the conversations that were not yet used for each active version."""
        params = yield from self._settings()
        given = state.get("trajectories")
        known = (yield from self.memory.trajectories()) if given is None else as_trajectories(given)
        names = state.get("names") or list(self.memory.prompts)
        seed = int((yield from Draw())[0] * 2**32)
        able = self.choices.brings_model(params) or (yield from HasModel())
        if not able:
            yield from Emit("no_model_configured", {"node": "collect"})
        work = {}
        for name, prompt in self.memory.prompts.items():
            record = yield from self._record(prompt, known, params, seed)
            if name not in names:
                record |= {"asked": False, **resolved("no_change", "it was not asked for")}
            elif not able:
                record.update(resolved("no_change", "no model is configured"))
            work[name] = record
        spent = Budget(max_calls=params.max_calls, max_tokens=params.max_tokens or None)
        return {"work": work, "spent": spent.to_dict()}

    def _record(
        self, prompt: Prompt, known: Sequence[Trajectory], params: OptimizerParameters, seed: int
    ) -> Steps[Record]:
        """Return what a run begins with for one prompt."""
        name = prompt["name"]
        active = yield from self.memory.active(name)
        history = yield from self.memory.entries(name)
        number = active.version.version
        new = fresh(known, name, history, number, params.since_version)
        measured = self.choices.evaluator(name) is not None
        share_out = params.holdout if measured and self.choices.given(name) is None else 0.0
        text: Prompt = {**prompt, "prompt": active.version.text}
        parent = yield from self.memory.own_version(active)
        ids = [each["id"] for each in new]
        record = new_record(text, parent, split(new, share_out), ids, seed)
        if active.pinned:
            record.update(resolved("no_change", f"version {number} is pinned"))
        elif len(new) < params.min_trajectories:
            few = f"{len(new)} of {params.min_trajectories} needed conversations are new"
            record.update(resolved("no_change", few))
        elif not record["trajectories"]:
            record.update(
                resolved("no_change", "every conversation is held out for the evaluation")
            )
        return record

    def assign_credit(self, state: State) -> Steps[Update]:
        """Find out which prompts the feedback concerns, and share the budget among these."""
        params = yield from self._settings()
        spent = Budget.from_dict(state["spent"])
        records = waiting(state["work"])
        if records and len(self.memory.prompts) > 1:
            yield from self._credit(records, spent)
        chosen = [each for each in records if not each["decision"]]
        least = max(
            (self.choices.strategy(params, each["name"]).least_calls for each in chosen), default=1
        )
        budgets = share(spent, len(chosen), least)
        for at, record in enumerate(chosen):
            if at < len(budgets):
                record["budget"] = budgets[at].to_dict()
            else:
                record.update(resolved("not_reached", improving.EXHAUSTED))
        return {"work": {each["name"]: each for each in records}, "spent": spent.to_dict()}

    def _credit(self, records: Sequence[Record], spent: Budget) -> Steps[None]:
        """Mark the prompts that the feedback does not concern, with one call."""
        shown = {each["id"]: each for record in records for each in record["trajectories"]}
        prompts = [each["prompt"] for each in records]
        try:
            concerned = yield from credit.assign(prompts, list(shown.values()), spent)
        except AgentMemoryError as error:
            for record in records:
                record.update(resolved("no_change", f"credit was not assigned: {error}"[:500]))
            return
        for record in records:
            ids = concerned.get(record["name"])
            if ids is None:
                record.update(resolved("no_change", "the feedback does not concern it"))
                continue
            kept = [each for each in record["trajectories"] if each["id"] in ids]
            record["trajectories"] = kept or record["trajectories"]

    def route(self, state: State) -> list[Send] | str:
        """Send each prompt that is to change to a `propose` of its own."""
        return [Send("propose", {"record": each}) for each in waiting(state["work"])] or "report"

    def propose(self, state: State) -> Steps[Update]:
        """Let the strategy propose candidates for one prompt."""
        params = yield from self._settings()
        record = dict(state["record"])
        budget = Budget.from_dict(record["budget"])
        task = yield from self._task(record, params)
        strategy = self.choices.strategy(params, record["name"])
        found, reason = yield from improving.propose(strategy, task, budget)
        record |= {
            "candidates": [asdict(each) for each in found],
            "strategy": strategy.name,
            "budget": budget.to_dict(),
        }
        if not found:
            record.update(resolved("no_change", reason))
        return {"work": {record["name"]: record}}

    def guard(self, state: State) -> Steps[Update]:
        """Refuse what no prompt may become; variables may be repaired with one call."""
        params = yield from self._settings()
        records = waiting(state["work"])
        for record in records:
            budget = Budget.from_dict(record["budget"])
            task = yield from self._task(record, params)
            given = [Candidate(**each) for each in record["candidates"]]
            found = yield from improving.guarded(given, task, self.limits, budget)
            record["candidates"] = [asdict(each) for each in found.valid]
            record["refused"] = found.refused
            record["budget"] = budget.to_dict()
            if not found.valid:
                record.update(resolved("rejected" if found.refused else "no_change", found.reason))
        return {"work": {each["name"]: each for each in records}}

    def evaluate(self, state: State) -> Steps[Update]:
        """Score the active text and the candidates on the same examples; take the best."""
        params = yield from self._settings()
        records = waiting(state["work"])
        for record in records:
            record["chosen"] = record["candidates"][0]
            evaluator = self.choices.evaluator(record["name"])
            if evaluator is None:
                continue
            given = self.choices.deciding(record["name"], params)
            examples = record["held_out"] if given is None else given
            baseline = yield from grade(evaluator, record["prompt"]["prompt"], examples)
            compared = []
            for candidate in record["candidates"]:
                graded = yield from grade(evaluator, candidate["text"], examples)
                compared.append((Comparison.of(baseline, graded), candidate))
            best, chosen = max(compared, key=lambda pair: (pair[0].n > 0, pair[0].difference))
            metric = getattr(evaluator, "__name__", type(evaluator).__name__)
            record |= {"chosen": chosen, "evaluation": {**best.to_dict(), "metric": metric}}
        return {"work": {each["name"]: each for each in records}}

    def decide(self, state: State) -> Steps[Update]:
        """Accept what is measurably better, or ask a person."""
        params = yield from self._settings()
        records = waiting(state["work"])
        for record in records:
            measured = comparison_of(record)
            objection = None
            if measured is not None:
                objection = measured.objection(
                    margin=params.accept_margin, least=params.min_evaluations
                )
            hopeful = measured is None or measured.difference > params.accept_margin
            if params.approval == "interrupt" and hopeful:
                record.update((yield from self._asked(record, params, objection)))
            elif objection is not None:
                record.update(resolved("rejected", objection))
            else:
                reason = "unevaluated" if measured is None else "better in the evaluation"
                record.update(resolved("accepted", reason))
        return {"work": {each["name"]: each for each in records}}

    def _asked(
        self, record: Record, params: OptimizerParameters, objection: str | None
    ) -> Steps[Record]:
        """Show a person the difference and take the answer: accept, reject or an edited text."""
        before, text = record["prompt"]["prompt"], record["chosen"]["text"]
        question = {
            "kind": "prompt_approval",
            "name": record["name"],
            "diff": unified(before, text),
            "candidate": text,
            "evaluation": record["evaluation"],
            "objection": objection,
            "answers": ["accept", "reject", {"decision": "edit", "text": "..."}],
        }
        answer = yield from Call(interrupt, (question,))
        said = answer if isinstance(answer, Mapping) else {"decision": answer}
        if said.get("decision") == "accept":
            return resolved("accepted", "accepted by a person")
        if said.get("decision") != "edit":
            return resolved("rejected", "rejected by a person")
        edited = said.get("text")
        task = yield from self._task(record, params)
        problems = list(task.refusals(edited))
        if problems:
            refused = {"text": edited, "reasons": problems}
            update = resolved("rejected", f"the edit was refused: {' '.join(problems)}")
            return update | {"refused": [refused, *record["refused"]]}
        chosen = {**record["chosen"], "text": edited, "operator": "edit"}
        return resolved("accepted", "edited by a person") | {"chosen": chosen, "evaluation": None}

    def commit(self, state: State) -> Steps[Update]:
        """Append what was decided to the history; an accepted text becomes the active one."""
        params = yield from self._settings()
        work = {}
        for each in state["work"].values():
            record = dict(each)
            text = proposed_text(record)
            if record["decision"] not in {"accepted", "rejected"} or text is None:
                continue
            if params.approval == "never":
                record["decision"] = f"would_be_{record['decision']}"
            else:
                record.update((yield from self._committed(record, text)))
            work[record["name"]] = record
        return {"work": work}

    def _committed(self, record: Record, text: str) -> Steps[Record]:
        accepted = record["decision"] == "accepted"
        new = as_version(record, text)
        try:
            stored = yield from self.memory.append(
                new, parent=record["parent"] if accepted else None, activate=accepted
            )
        except SupersededError:
            update = resolved("rejected", "superseded")
            late = as_version({**record, **update}, text)
            stored = yield from self.memory.append(late, activate=False)
            return {**update, "version": stored.version}
        return {"version": stored.version}

    def report(self, state: State) -> Steps[Update]:
        """Say for each prompt what was decided, why, and what it cost."""
        rows = [report_row(each) for each in state["work"].values() if each["asked"]]
        spent = Budget.from_dict(state["spent"])
        for row in rows:
            yield from Emit("prompt_decided", {name: row[name] for name in TOLD})
        return {
            "report": rows,
            "prompts": {each["name"]: each["text"] for each in rows},
            "calls": spent.calls + sum(row["calls"] for row in rows),
            "tokens": spent.tokens + sum(row["tokens"] for row in rows),
        }

    def _settings(self) -> Settings[OptimizerParameters]:
        return Settings(self.parameters)

    def _task(self, record: Record, params: OptimizerParameters) -> Steps[Task]:
        """Return what a strategy is given, with the guards of this prompt and scope."""
        identifiers = []
        for name in self.memory.variables:
            value = yield from Setting(name)
            identifiers += [str(value)] if value is not None else []
        limits = replace(self.limits, max_growth=params.max_growth)
        seen = [*record["trajectories"], *record["held_out"]]

        def refusals(text: object) -> list[str]:
            original = record["prompt"]["prompt"]
            return guards.refusals(
                text, original, limits=limits, trajectories=seen, identifiers=identifiers
            )

        return Task(
            prompt=record["prompt"],
            trajectories=record["trajectories"],
            seed=record["seed"],
            refusals=refusals,
        )
