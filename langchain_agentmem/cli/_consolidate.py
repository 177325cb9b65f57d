"""`agentmem consolidate`: work off what was queued to be made into memory."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from rich.text import Text

from langchain_agentmem.cli import _queue
from langchain_agentmem.cli._memory import store_of
from langchain_agentmem.cli._model import chat_model
from langchain_agentmem.cli._output import visible
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.scopes import Scope
from langchain_agentmem.steps.environment import DRY_RUN

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from langgraph.store.base import BaseStore

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.consolidation import MemoryQueue
    from langchain_agentmem.consolidation.records import Record
    from langchain_agentmem.memories.base import Memory
    from langchain_agentmem.scopes import NamespaceTemplate

_HINT: Final = "Name another one with --model or AGENTMEM_MODEL."


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's private type
    """Add the command's arguments."""
    parser = commands.add_parser(
        "consolidate",
        parents=[common],
        help="make queued conversations into memory, e.g. from cron",
        description="Work off what is due in the queue of background consolidation: of everybody, "
        "or with --user of one. What fails is tried again by a later run, and set aside after "
        "three attempts; 'agentmem inspect --queue' shows it.",
    )
    parser.add_argument(
        "--memory",
        default="LangMem",
        metavar="NAME",
        help="the memory that writes, by its class, as NAME:parameter=value,... for other "
        "parameters, or file.py:Class for one of your own (default: LangMem)",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="chat model for init_chat_model (default: AGENTMEM_MODEL, or OpenAI's with "
        "OPENAI_API_KEY)",
    )
    parser.add_argument("--base-url", metavar="URL", help="server of an OpenAI-compatible model")
    parser.add_argument("--now", action="store_true", help="what is not due yet, too")
    parser.add_argument(
        "--dry-run", action="store_true", help="ask the model, show what would change, and stop"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Work the queue off, or show what that would do."""
    from langchain_agentmem.consolidation import MemoryQueue

    with store_of(args) as store:
        memory = _memory(args, store)
        queue = MemoryQueue(memory.namespace, store=store)
        meant = _Meant(memory.namespace, args.user)
        others = [each for each in queue.pending() if not meant.leads_to(each)]
        if others:
            out.note(
                f"Left alone: {len(others)} waiting in other namespaces than "
                f"{memory.namespace.template}; give --memory one that writes there."
            )
        if args.dry_run:
            return _show(_proposed(memory, queue, meant, now=args.now), out)
        return _report(_worked_off(memory, queue, meant, now=args.now), out)


@dataclass(frozen=True, slots=True)
class _Meant:
    """Which batches a command is about: those its memory would write to where they were submitted.

    Attributes:
        template: Namespace of the memory.
        user: The only user, if one is named.
    """

    template: NamespaceTemplate
    user: str | None

    def leads_to(self, record: Record) -> bool:
        """Tell whether the memory's namespace, for the submitter, is that of the batch."""
        try:
            return self.template.resolve(Scope.of({"configurable": _named(record)})) == record.scope
        except ConfigurationError:
            return False

    def __call__(self, record: Record) -> bool:
        """Tell whether a batch is meant."""
        return self.leads_to(record) and self.user in (None, *_queue.labels(record))


def _named(record: Record) -> dict[str, Any]:
    """Return what the submitter's config and context name."""
    return {**record.config.get("configurable", {}), **record.config.get("context", {})}


def _memory(args: argparse.Namespace, store: BaseStore) -> Memory:
    """Return the memory that the arguments name.

    Raises:
        ConfigurationError: It is none, or it needs a chat model and there is none.
    """
    from langchain_agentmem.evaluation.systems import system
    from langchain_agentmem.surfaces.agent import configured_model

    chosen = system(args.memory)
    if not chosen.is_memory:
        msg = f"{args.memory!r} writes no memory; name a memory's class, such as LangMem or Mem0."
        raise ConfigurationError(msg)
    name = args.model or configured_model()
    if name is None and chosen.needs_model:
        msg = f"{args.memory} needs a chat model; name one with --model or AGENTMEM_MODEL."
        raise ConfigurationError(msg)
    model = chat_model(name, args.base_url, hint=_HINT) if name else None
    try:
        return cast("Memory", chosen.make(store=store, model=model, **chosen.parameters))
    except TypeError as error:
        msg = f"{args.memory!r} cannot be built: {error}."
        raise ConfigurationError(msg) from error


def _worked_off(memory: Memory, queue: MemoryQueue, meant: _Meant, *, now: bool) -> list[Record]:
    """Work off what is due, and return the batches that were begun."""
    from langchain_agentmem.consolidation import LocalConsolidator, create_consolidation_graph

    waiting = [each for each in queue.records() if each.state != "done" and meant(each)]
    for scope in {each.scope for each in waiting} if now else ():
        queue.flush(scope)
    before = {each.id: each.attempts for each in waiting}
    with LocalConsolidator(queue, create_consolidation_graph(memory), only=meant) as worker:
        worker.run_due()
    return [each for each in queue.records() if each.attempts > before.get(each.id, sys.maxsize)]


def _report(records: list[Record], out: Output) -> int:
    """Tell what became of each batch; 1 if one of them is not done."""
    left = [each for each in records if each.state != "done"]
    if out.as_json:
        for each in records:
            out.json(**_queue.row(each))
        out.json(done=True, consolidated=len(records) - len(left), not_done=len(left))
        return 1 if left else 0
    for each in records:
        _queue.say(each, out)
    out.note(f"{len(records) - len(left)} consolidated, {len(left)} not done.")
    return 1 if left else 0


def _proposed(
    memory: Memory, queue: MemoryQueue, meant: _Meant, *, now: bool
) -> Iterator[tuple[Record, list[dict[str, Any]]]]:
    """Return what each waiting batch would change; nothing is written or taken."""
    from langchain_agentmem.consolidation import create_consolidation_graph
    from langchain_agentmem.consolidation._calls import calls_of

    graph = create_consolidation_graph(memory)
    at = queue.clock()
    for each in filter(meant, queue.records()):
        if each.claimable(at) or (now and each.state == "pending"):
            operations: list[dict[str, Any]] = []
            for call in calls_of(graph, each, queue.max_messages_per_run):
                context = {**call.named.get("context", {}), DRY_RUN: True}
                report = graph.invoke(*call.arguments, context=context)["report"]
                operations += report["operations"]
            yield each, operations


def _show(proposed: Iterator[tuple[Record, list[dict[str, Any]]]], out: Output) -> int:
    count = 0
    for record, operations in proposed:
        count += 1
        if out.as_json:
            out.json(**{**_queue.row(record), DRY_RUN: True, "operations": operations})
            continue
        _queue.say(record, out)
        for each in operations:
            item = each["after"] or each["before"] or {}
            reason = f"  ({each['reason']})" if each["reason"] else ""
            line = Text(f"    {each['event']:7}", "bold")
            out.say(line.append(visible(f"{item.get('content', '')}{reason}"), ""))
    if out.as_json:
        out.json(done=True, would_consolidate=count)
    else:
        out.note(f"{count} would be consolidated; nothing was changed.")
    return 0
