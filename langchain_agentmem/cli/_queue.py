"""`agentmem inspect --queue`: what waits to be consolidated, what failed, and what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from langchain_agentmem.cli._output import visible
from langchain_agentmem.items import to_timestamp
from langchain_agentmem.rendering import counted
from langchain_agentmem.scopes import unescape_label
from langchain_agentmem.steps.environment import utc_now

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_agentmem.cli._output import Output
    from langchain_agentmem.consolidation.records import Record
    from langchain_agentmem.memories.rag import RAGMemory

_DONE = ("added", "updated", "superseded", "archived")


def show(memory: RAGMemory, user: str | None, out: Output, *, limit: int) -> None:
    """Show the records of the queue, those that failed first, then in the order they are due."""
    from langchain_agentmem.consolidation import MemoryQueue

    queue = MemoryQueue(memory.namespace, store=memory.store)
    found = [each for each in queue.records() if user in (None, *labels(each))]
    found.sort(key=lambda each: each.state != "failed")
    if out.as_json:
        for each in found[:limit]:
            out.json(**row(each))
        return
    if not found:
        out.note("The queue is empty; what was done is shown for a day.")
        return
    for each in found[:limit]:
        say(each, out)
    stats = queue.stats()
    counts = ", ".join(f"{stats[name]:.0f} {name}" for name in ("pending", "running", "failed"))
    out.note(f"{counts}; the oldest waits for {stats['oldest_age']:.0f} s.")


def say(record: Record, out: Output) -> None:
    """Show one record: whose it is and when it is due, and what became of it."""
    out.say(_heading(record))
    out.say(f"    {visible(_result(record))}")


def _heading(record: Record) -> Text:
    where = [*labels(record), *([record.thread_id] if record.thread_id else [])]
    head = Text(f"{record.state:9}", "bold")
    head.append(visible(" / ".join(where)), "cyan")
    head.append(f"  due {record.due_at:%Y-%m-%d %H:%M:%S} UTC  {record.id}", "dim")
    return head


def labels(record: Record) -> list[str]:
    """Return the labels of a record's namespace, as they were given."""
    return [unescape_label(label) for label in record.scope]


def _result(record: Record) -> str:
    if record.state == "running" and record.lease_until is not None:
        return _work(record, record.lease_until)
    if record.report is None:
        tries = f", tried {counted(record.attempts, 'time')}" if record.attempts else ""
        return f"{counted(len(record.messages), 'message')}{tries}: {record.error or 'waiting'}"
    told = [f"{record.report[name]} {name}" for name in _DONE if record.report.get(name)]
    if rejected := [str(each["reason"]) for each in record.report.get("rejected", [])]:
        told.append(f"{len(rejected)} rejected ({rejected[0]})")
    return ", ".join(told) or "nothing new"


def _work(record: Record, until: datetime) -> str:
    """Tell of a record that is worked on, and whether its worker is alive as far as is known."""
    said = counted(len(record.messages), "message")
    begun = f"{said}, tried {counted(record.attempts, 'time')}"
    at = f"{until:%Y-%m-%d %H:%M:%S} UTC"
    if until > utc_now():
        return f"{begun}: being worked on; begun again if there is no sign of life until {at}"
    return f"{begun}: no sign of life of its worker, its lease ended at {at}; the next begins again"


def row(record: Record) -> dict[str, object]:
    """Return a record as JSON, with how many messages it has instead of their text."""
    return {
        "id": record.id,
        "state": record.state,
        "scope": list(record.scope),
        "thread_id": record.thread_id,
        "messages": len(record.messages),
        "attempts": record.attempts,
        "due_at": to_timestamp(record.due_at),
        "first_submitted_at": to_timestamp(record.first_submitted_at),
        "error": record.error,
        "report": record.report,
    }
