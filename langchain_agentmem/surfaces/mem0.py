"""mem0's `Memory` and `AsyncMemory` under their own names: change the import, keep the code.

Methods, arguments and results are mem0's; behind them works `Mem0` on a LangGraph store. What
differs: whose memory it is must always be said, for `get`, `update`, `delete` and `history` too;
`delete` and `delete_all` erase for good, journal included; there is no `reset` of everybody;
`agent_id` and `run_id` need a namespace that has them, and are refused where it has not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_agentmem.errors import ConfigurationError, MemoryNotFoundError
from langchain_agentmem.items import Cause, MemoryOperation, StoredMemory, to_timestamp
from langchain_agentmem.memories.forgetting import OWN
from langchain_agentmem.memories.mem0 import Mem0
from langchain_agentmem.messages import to_messages
from langchain_agentmem.retrieval.filters import matches
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Get, List, Now, Steps

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_agentmem.messages import Conversation
    from langchain_agentmem.steps.environment import Environment

T = TypeVar("T")
_CAUSE: Final = Cause(surface="mem0")
_NAMES: Final = ("user_id", "agent_id", "run_id")
_APART: Final = {"run_id": ("run_id", "thread_id")}
"""Variables of a namespace that an id fills, where they are more than its own."""


class _Api:
    """mem0's methods, once; `_call` carries their steps out, at once or as a coroutine.

    Args:
        memory: The memory behind it; made of `**given` if there is none.
        **given: As for `Mem0`: `model`, `store`, `preset`, ...

    Raises:
        ConfigurationError: Both a memory and its arguments are given, or one of them is wrong.
    """

    def __init__(self, memory: Mem0 | None = None, **given: Any) -> None:  # noqa: ANN401 - Mem0's own
        if memory is not None and given:
            msg = f"Give a memory, or the arguments to make one ({sorted(given)}), not both."
            raise ConfigurationError(msg)
        self.memory = memory if memory is not None else Mem0(**given)

    def _call(self, steps: Steps[T], env: Environment) -> Any:  # noqa: ANN401 - T, or a coroutine of it
        raise NotImplementedError

    def add(
        self,
        messages: Conversation,
        *,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        **ids: str | None,
    ) -> Any:  # noqa: ANN401 - a result, or a coroutine of it
        """Remember a conversation.

        Args:
            messages: What was said.
            metadata: Fields of your own for the new memories.
            infer: False stores each message word for word, without a model.
            **ids: `user_id`, `agent_id`, `run_id`.

        Returns:
            `{"results": [{"id", "memory", "event"}]}`, the event `ADD`, `UPDATE` or `DELETE`.
        """
        settings = {"infer": infer, **({"metadata": metadata} if metadata else {})}
        return self._call(self._add(messages), self._environment(ids, settings))

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        **ids: str | None,
    ) -> Any:  # noqa: ANN401 - as in `add`
        """Find what is relevant to a query.

        Args:
            query: The question.
            limit: Most memories to return.
            top_k: The same, by its newer name.
            filters: See `langchain_agentmem.retrieval.filters`; ids in it name the owner, too.
            threshold: Least cosine of a hit by meaning.
            **ids: `user_id`, `agent_id`, `run_id`.

        Returns:
            `{"results": [{"id", "memory", "score", "metadata", "created_at", "updated_at"}]}`.
        """
        ids, condition = _apart(ids, filters)
        settings = {"filters": condition, "threshold": threshold}
        given = {name: value for name, value in settings.items() if value is not None}
        most = top_k if limit is None else limit
        return self._call(self._search(query, most), self._environment(ids, given))

    def get_all(
        self,
        *,
        limit: int = 100,
        filters: Mapping[str, Any] | None = None,
        **ids: str | None,
    ) -> Any:  # noqa: ANN401 - as in `add`
        """Return all memories, newest first; the arguments as for `search`."""
        ids, condition = _apart(ids, filters)
        return self._call(self._get_all(limit, condition), self._environment(ids))

    def get(self, memory_id: str, **ids: str | None) -> Any:  # noqa: ANN401 - as in `add`
        """Return one memory; None if there is none."""
        return self._call(self._get(memory_id), self._environment(ids))

    def update(self, memory_id: str, data: str, **ids: str | None) -> Any:  # noqa: ANN401 - as in `add`
        """Give a memory another text; the earlier one stays in its history.

        Raises:
            MemoryNotFoundError: There is no such memory.
        """
        return self._call(self._update(memory_id, data), self._environment(ids))

    def delete(self, memory_id: str, **ids: str | None) -> Any:  # noqa: ANN401 - as in `add`
        """Erase a memory for good, with its history."""
        return self._call(self._delete(memory_id), self._environment(ids))

    def delete_all(self, **ids: str | None) -> Any:  # noqa: ANN401 - as in `add`
        """Erase everything of one owner for good."""
        return self._call(self._delete(None), self._environment(ids))

    def history(self, memory_id: str, **ids: str | None) -> Any:  # noqa: ANN401 - as in `add`
        """Return every change of a memory: `id, memory_id, old_memory, new_memory, event`, time.

        Raises:
            MemoryNotFoundError: There is no such memory.
        """
        return self._call(self._history(memory_id), self._environment(ids))

    def _environment(
        self, ids: Mapping[str, str | None], settings: Mapping[str, Any] | None = None
    ) -> Environment:
        """Return what a call runs with.

        Raises:
            ConfigurationError: An id is unknown, or the namespace does not tell it apart.
        """
        given = {name: value for name, value in ids.items() if value is not None}
        known = set(self.memory.namespace.variables)
        for name in given:
            if name not in _NAMES:
                msg = f"Unknown argument {name!r}; whose memory it is, {_NAMES} say."
                raise ConfigurationError(msg)
            if not known.intersection(_APART.get(name, (name,))):
                kind = name.removesuffix("_id")
                msg = (
                    f"{name} is given, but the namespace does not tell {kind}s apart; leave it "
                    f"out, or pass namespace=('memories', '{{user_id}}', '{{{name}}}')."
                )
                raise ConfigurationError(msg)
        config: Any = {"configurable": {"thread_id": given.get("run_id"), **given}}
        return self.memory.environment(config, settings=settings)

    def _add(self, messages: Conversation) -> Steps[dict[str, Any]]:
        state = {"messages": to_messages(messages)}
        final = yield from self.memory.remembering(state)
        done = [MemoryOperation.from_dict(each) for each in final.get("memory_operations", [])]
        return {"results": [_changed(op) for op in done if op.status == "applied"]}

    def _search(self, query: str, limit: int | None) -> Steps[dict[str, Any]]:
        state: dict[str, Any] = {"messages": [], "query": query, "limit": limit}
        final = yield from self.memory.recall_flow().drive(state)
        return {"results": [_shown(StoredMemory.from_dict(each)) for each in final["memories"]]}

    def _get_all(self, limit: int, condition: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        now = yield from Now()
        found: list[StoredMemory] = []
        for home in (yield from self._homes()):
            found += [one for one in (yield from List(home)) if one.item.is_current(now)]
        passed = [each for each in found if matches(each.item, condition)]
        return {"results": [_shown(each) for each in passed[:limit]]}

    def _homes(self) -> Steps[list[tuple[str, ...]]]:
        return self.memory.homes((yield from self.memory.scope()), "facts")

    def _found(self, memory_id: str, *, hidden: bool = False) -> Steps[StoredMemory | None]:
        refs = [(home, memory_id) for home in (yield from self._homes())]
        found = yield from (journal.read(refs) if hidden else Get(refs))
        return next((each for each in found if each is not None), None)

    def _get(self, memory_id: str) -> Steps[dict[str, Any] | None]:
        found = yield from self._found(memory_id)
        now = yield from Now()
        return _shown(found) if found is not None and found.item.is_current(now) else None

    def _update(self, memory_id: str, data: str) -> Steps[dict[str, str]]:
        found = _there((yield from self._found(memory_id)), memory_id)
        text = self.memory.clean(data)
        after = replace(found.item, content=text, search_text=None)
        op = journal.successor((found.namespace, found.key), found.item, after, _CAUSE)
        yield from journal.apply([op])
        return {"message": "Memory updated."}

    def _delete(self, memory_id: str | None) -> Steps[dict[str, str]]:
        chosen = OWN if memory_id is None else memory_id
        homes = yield from self._homes()
        erased = yield from self.memory._erase(chosen)  # noqa: SLF001 - the steps of `forget`
        count = sum(each.namespace in homes for each in erased)
        return {"message": f"{count} memories erased."}

    def _history(self, memory_id: str) -> Steps[list[dict[str, Any]]]:
        found = _there((yield from self._found(memory_id, hidden=True)), memory_id)
        entries = yield from journal.history(found.namespace, found.key)
        return [
            {
                "id": f"{memory_id}@{each.version}",
                "memory_id": memory_id,
                "old_memory": each.before.text if each.before else None,
                "new_memory": each.after.text if each.after.status == "active" else None,
                "event": each.event,
                "created_at": to_timestamp(each.at),
            }
            for each in entries
        ]


class Memory(_Api):
    """mem0's memory: `add`, `search`, `get_all`, `get`, `update`, `delete`, `history`.

    Example:
        ```python
        memory = Memory(model="openai:gpt-4o-mini", store=FaissSqliteStore("memory.sqlite"))
        memory.add("I moved to Rome.", user_id="ann")
        memory.search("Where does Ann live?", user_id="ann")["results"][0]["memory"]
        ```
    """

    def _call(self, steps: Steps[T], env: Environment) -> T:
        return run(steps, env)


class AsyncMemory(_Api):
    """The same, each method to be awaited."""

    async def _call(self, steps: Steps[T], env: Environment) -> T:
        return await arun(steps, env)


def _apart(
    ids: Mapping[str, str | None], filters: Mapping[str, Any] | None
) -> tuple[dict[str, str | None], dict[str, Any]]:
    """Return the ids, those of mem0's newer `filters` included, and what is left of the filters."""
    named = {name: value for name, value in (filters or {}).items() if name in _NAMES}
    rest = {name: value for name, value in (filters or {}).items() if name not in _NAMES}
    return {**named, **ids}, rest


def _there(found: StoredMemory | None, memory_id: str) -> StoredMemory:
    if found is None:
        msg = f"There is no memory {memory_id!r} of this owner; get_all() lists them."
        raise MemoryNotFoundError(msg)
    return found


def _changed(op: MemoryOperation) -> dict[str, Any]:
    item = op.after or op.before
    shown: dict[str, Any] = {"id": op.key, "memory": item.text if item else "", "event": op.event}
    if op.event == "UPDATE" and op.before is not None:
        shown["previous_memory"] = op.before.text
    return shown


def _shown(memory: StoredMemory) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": memory.key,
        "memory": memory.text,
        "metadata": dict(memory.metadata),
        "created_at": _time(memory.created_at),
        "updated_at": _time(memory.updated_at),
    }
    return shown if memory.score is None else {**shown, "score": memory.score}


def _time(moment: datetime | None) -> str | None:
    return to_timestamp(moment) if moment else None
