"""The steps behind `PromptMemory`: reading through the levels, appending, pinning, monitoring."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_agentmem.errors import ConfigurationError, MemoryNotFoundError
from langchain_agentmem.items import Cause, MemoryItem
from langchain_agentmem.prompt_optimizer import versions
from langchain_agentmem.prompt_optimizer.values import (
    Prompt,
    Trajectory,
    as_prompts,
    as_trajectory,
)
from langchain_agentmem.prompt_optimizer.versions import Active, PromptVersion
from langchain_agentmem.scopes import NamespaceTemplate
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.effects import Emit, Get, List, Namespace, Resolve, Steps
from langchain_agentmem.steps.environment import Clock, utc_now

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from langchain_agentmem.memories.base import Template


class PromptSteps:
    """Everything a `PromptMemory` does, as steps; its arguments are described there."""

    def __init__(
        self,
        *,
        prompts: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] = (),
        namespace: Template = ("memories", "{user_id}"),
        read_namespaces: Sequence[Template] = (),
        store: BaseStore | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.prompts: dict[str, Prompt] = (
            {each["name"]: each for each in as_prompts(prompts)} if prompts else {}
        )
        self.namespace = NamespaceTemplate(namespace)
        self.read_namespaces = tuple(NamespaceTemplate(each) for each in read_namespaces)
        self.store = store
        self.clock = clock or utc_now

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables of all namespaces, each once."""
        templates = (self.namespace, *self.read_namespaces)
        return tuple(dict.fromkeys(name for each in templates for name in each.variables))

    def active(self, name: str) -> Steps[Active]:
        """Return the active version and where it was found.

        Raises:
            MemoryNotFoundError: No level has such a prompt.
        """
        levels: list[Namespace] = []
        for template in (self.namespace, *self.read_namespaces):
            levels += [(yield from Resolve(template))]
        found = yield from versions.find(levels, name)
        if found is not None:
            return found
        if name in self.prompts:
            return Active(version=PromptVersion(name=name, text=self.prompts[name]["prompt"]))
        msg = f"There is no prompt {name!r} in {levels}; known are {sorted(self.prompts)}."
        raise MemoryNotFoundError(msg)

    def entries(self, name: str) -> Steps[list[PromptVersion]]:
        """Return every entry of the level that the prompt is read from, oldest first."""
        found = yield from self.active(name)
        if found.home is None:
            return [found.version]
        return (yield from versions.entries(found.home))

    def append(
        self,
        new: PromptVersion,
        *,
        parent: int | None = None,
        activate: bool = True,
    ) -> Steps[PromptVersion]:
        """Append an entry to the history in `namespace`, which may begin with it.

        Raises:
            SupersededError: Another version than `parent` is active.
        """
        scope = yield from Resolve(self.namespace)
        base = yield from self._base(scope, new.name)
        return (
            yield from versions.append(
                scope, new, base=base, activate="new" if activate else None, parent=parent
            )
        )

    def own_version(self, found: Active) -> Steps[int]:
        """Return the number that an active version has, or would have, in `namespace`."""
        scope = yield from Resolve(self.namespace)
        here = found.home == versions.home_of(scope, found.version.name)
        return found.version.version if here else 1

    def trajectories(self) -> Steps[list[Trajectory]]:
        """Return the stored conversations of the scope, oldest first."""
        scope = yield from Resolve(self.namespace)
        found = yield from List(self._talks(scope), filter={"kind": "trajectory"})
        found.sort(key=lambda each: (each.created_at is not None, each.created_at, each.key))
        return [as_trajectory(each.item.content) for each in found]

    def roll_back(
        self, name: str, version: int | None = None, *, reason: str = ""
    ) -> Steps[PromptVersion]:
        """Make an earlier version active again and return it.

        Raises:
            MemoryNotFoundError: There is no such version.
        """
        scope, found = yield from self._own(name)
        target = version if version is not None else found.version.parent
        if target is None:
            msg = f"Version {found.version.version} of {name!r} is the first: none is before it."
            raise MemoryNotFoundError(msg)
        return (yield from self._move(scope, found, target, "rolled_back", reason))

    def _base(self, scope: Namespace, name: str) -> Steps[PromptVersion | None]:
        """Return what a history that begins in this scope begins with."""
        try:
            found = yield from self.active(name)
        except MemoryNotFoundError:
            return None
        if found.home is None:
            return replace(found.version, reason="as given")
        if found.home == versions.home_of(scope, name):
            return None
        return PromptVersion(name=name, text=found.version.text, reason="from a more general level")

    def _own(self, name: str) -> Steps[tuple[Namespace, Active]]:
        scope = yield from Resolve(self.namespace)
        found = yield from versions.find([scope], name)
        if found is None:
            msg = (
                f"Prompt {name!r} has no versions of its own in {scope}; set or optimize it first."
            )
            raise MemoryNotFoundError(msg)
        return scope, found

    def _move(
        self,
        scope: Namespace,
        found: Active,
        target: int,
        decision: versions.Verdict,
        reason: str,
        *,
        pinned: bool = False,
    ) -> Steps[PromptVersion]:
        home = versions.home_of(scope, found.version.name)
        earlier = yield from versions.entry(home, found.version.name, target)
        if earlier.decision == "rejected":
            msg = f"Version {target} of {earlier.name!r} was rejected; use set() to take its text."
            raise ConfigurationError(msg)
        note = PromptVersion(
            name=earlier.name,
            text=earlier.text,
            decision=decision,
            reason=reason or f"back to version {target}",
        )
        yield from versions.append(
            scope,
            note,
            base=None,
            activate=target,
            parent=found.version.version,
            pinned=pinned,
        )
        return earlier

    def change(self, name: str, text: str) -> Steps[PromptVersion]:
        """Make a text of the user's own the active version.

        Raises:
            ConfigurationError: The text is empty.
        """
        if not text.strip():
            msg = f"The text of prompt {name!r} is empty; an agent cannot work with it."
            raise ConfigurationError(msg)
        scope = yield from Resolve(self.namespace)
        base = yield from self._base(scope, name)
        new = PromptVersion(name=name, text=text, reason="set by hand")
        return (yield from versions.append(scope, new, base=base, activate="new", pinned=False))

    def pin_to(self, name: str, version: int | None) -> Steps[PromptVersion]:
        """Pin a version, or unpin with None."""
        scope, found = yield from self._own(name)
        target = found.version.version if version is None else version
        reason = "unpinned" if version is None else f"pinned version {target}"
        pinned = version is not None
        return (yield from self._move(scope, found, target, "manual", reason, pinned=pinned))

    def difference(self, name: str, a: int, b: int) -> Steps[str]:
        """Return the difference of two versions.

        Raises:
            MemoryNotFoundError: There is no such version.
        """
        known = {each.version: each for each in (yield from self.entries(name))}
        for each in (a, b):
            if each not in known:
                msg = f"Prompt {name!r} has no version {each}; it has {sorted(known)}."
                raise MemoryNotFoundError(msg)
        return unified(known[a].text, known[b].text, f"version {a}", f"version {b}")

    def store_trajectory(self, trajectory: Trajectory) -> Steps[str]:
        """Store a trajectory, or its newer form, and return its id."""
        scope = yield from Resolve(self.namespace)
        ref = (self._talks(scope), trajectory["id"])
        (before,) = yield from Get([ref])
        item = MemoryItem(
            content=dict(trajectory),
            kind="trajectory",
            memory_type="episodic",
            search_text=" ".join(str(one["content"]) for one in trajectory["messages"]),
        )
        cause = Cause(surface="prompt_optimizer", note="recorded a trajectory")
        operation = journal.successor(ref, before.item if before else None, item, cause)
        yield from journal.apply([operation])
        return trajectory["id"]

    def erase(self, name: str | None) -> Steps[int]:
        """Erase a prompt, or all prompts and conversations, and return how many items that was."""
        scope = yield from Resolve(self.namespace)
        roots = (
            [versions.home_of(scope, name)] if name else [(*scope, "prompts"), self._talks(scope)]
        )
        cause = Cause(surface="prompt_optimizer", note="forgotten")
        erased = 0
        for root in roots:
            erased += len((yield from journal.erase_below(root, cause=cause)))
        return erased

    @staticmethod
    def _talks(scope: Namespace) -> Namespace:
        return (*scope, "trajectories")

    def compare_scores(self, name: str, margin: float, least: int) -> Steps[dict[str, Any]]:
        """Compare a version with its parent and roll back if it is worse."""
        _, found = yield from self._own(name)
        version, parent = found.version.version, found.version.parent
        scored = [each for each in (yield from self.trajectories()) if each["score"] is not None]
        current, earlier = (_scores(scored, name, each) for each in (version, parent))
        report: dict[str, Any] = {
            "name": name,
            "version": version,
            "parent": parent,
            "active": version,
            "baseline": _mean(earlier),
            "current": _mean(current),
            "n": len(current),
            "rolled_back": False,
        }
        enough = min(len(current), len(earlier)) >= least and not found.pinned
        if enough and sum(earlier) / len(earlier) - sum(current) / len(current) >= margin:
            reason = f"scores fell from {_mean(earlier)} to {_mean(current)} (n={len(current)})"
            yield from self.roll_back(name, parent, reason=reason)
            report |= {"rolled_back": True, "active": parent}
            yield from Emit("prompt_rolled_back", report)
        return report


def unified(a: str, b: str, a_name: str = "active", b_name: str = "candidate") -> str:
    """Return the difference of two texts as a unified diff."""
    rows = difflib.unified_diff(a.splitlines(), b.splitlines(), a_name, b_name, lineterm="")
    return "\n".join(rows)


def _scores(scored: Sequence[Trajectory], name: str, version: int | None) -> list[float]:
    return [
        each["score"]
        for each in scored
        if each["score"] is not None and each["prompt_versions"].get(name) == version
    ]


def _mean(scores: Sequence[float]) -> float | None:
    return round(sum(scores) / len(scores), 4) if scores else None
