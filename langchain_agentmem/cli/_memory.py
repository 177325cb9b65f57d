"""The memory that a command works on, and whose it is."""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_agentmem.errors import AgentMemoryError, ConfigurationError, StorageError
from langchain_agentmem.items import RECORD_KINDS
from langchain_agentmem.scopes import closed, unescape_label
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.drivers import run
from langchain_agentmem.steps.effects import List, Namespaces, Steps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from langchain_agentmem.items import StoredMemory
    from langchain_agentmem.memories.rag import RAGMemory
    from langchain_agentmem.memories.state import Recall
    from langchain_agentmem.stores.faiss_sqlite import FaissSqliteStore

DEFAULT_DB: Final = "~/.agentmem/memory.sqlite"
DEFAULT_USER: Final = "me"


def real_text(text: str) -> str:
    """Check an argument of the command line.

    Raises:
        ArgumentTypeError: It is empty, or no text.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        msg = "not UTF-8 text"
        raise argparse.ArgumentTypeError(msg) from error
    if not text.strip():
        msg = "it is empty"
        raise argparse.ArgumentTypeError(msg)
    return text


def owner(args: argparse.Namespace) -> str:
    """Return whose memory a command is about."""
    return str(args.user or DEFAULT_USER)


def of_user(user: str, **further: Any) -> RunnableConfig:  # noqa: ANN401 - any setting
    """Return the config that names a user."""
    return {"configurable": {"user_id": user, **further}}


@contextmanager
def opened(args: argparse.Namespace, *, create: bool = False) -> Iterator[RAGMemory]:
    """Open the file and lend its memory.

    Args:
        args: The parsed command line.
        create: Whether a file that is not there is made.

    Raises:
        StorageError: The file is not there or cannot be used.
        IndexMismatchError: It was indexed with another embedding model.
    """
    from langchain_agentmem.memories.rag import RAGMemory

    with store_of(args, create=create) as store:
        yield RAGMemory(store=store)


def store_of(args: argparse.Namespace, *, create: bool = False) -> FaissSqliteStore:
    """Return the store of the file, not yet opened.

    Raises:
        StorageError: The file is not there.
        ConfigurationError: The embedding model cannot be used.
    """
    from langchain_agentmem.stores.faiss_sqlite import FaissSqliteStore

    return FaissSqliteStore(path_of(args, create=create), index=index_of(args.embed))


def path_of(args: argparse.Namespace, *, create: bool) -> Path:
    """Return the path of the file.

    Raises:
        StorageError: It is not there and is not to be made.
    """
    path: Path = args.db.expanduser()
    if create and str(args.db) == DEFAULT_DB:
        path.parent.mkdir(parents=True, exist_ok=True)
    if not create and not path.exists():
        msg = (
            f"There is no memory in {path} yet; fill it with 'agentmem import' or 'agentmem chat'."
        )
        raise StorageError(msg)
    return path


def index_of(model: str) -> Any:  # noqa: ANN401 - what `FaissSqliteStore` takes as `index`
    """Return the index of an embedding model by name.

    Raises:
        ConfigurationError: There is no such model, or it cannot be reached.
    """
    if model == "default":
        return "default"
    from langchain_agentmem.embeddings import resolve_embeddings

    embeddings = resolve_embeddings(model)
    try:
        dims = getattr(embeddings, "dims", None) or len(embeddings.embed_query("length"))
    except AgentMemoryError:
        raise
    except Exception as error:  # every provider has its own errors for a wrong key or no network
        msg = f"The embedding model {model!r} cannot be used: {error}"
        raise ConfigurationError(msg) from error
    mode: Literal["hybrid"] = "hybrid"
    return {"embed": embeddings, "dims": dims, "mode": mode}


def users(memory: RAGMemory) -> list[str]:
    """Return everybody the file holds memories of."""
    return run(_users(memory.namespace.template[0]), memory.environment({}))


def _users(root: str) -> Steps[list[str]]:
    found = yield from Namespaces((root,))
    return list(dict.fromkeys(unescape_label(name[1]) for name in found if len(name) > 1))


def contents(
    memory: RAGMemory, user: str, *, hidden: bool = False, as_of: datetime | None = None
) -> list[StoredMemory]:
    """Return all memories of a user, newest first.

    Args:
        memory: The memory.
        user: Whose.
        hidden: Whether to add those that are superseded or archived.
        as_of: Only what was known and held at that time, as it was then.
    """
    steps = _contents(memory, hidden=hidden, as_of=as_of)
    return run(steps, memory.environment(of_user(user)))


def _contents(
    memory: RAGMemory, *, hidden: bool, as_of: datetime | None
) -> Steps[list[StoredMemory]]:
    from langchain_agentmem.steps.recall import Moment, earlier, when_said

    scope = yield from memory.scope()
    found = []
    for home in (yield from journal.homes(scope)):
        here = yield from List(home)
        if as_of is not None:
            moment = Moment(as_of, past=True)
            here = [*here, *(yield from earlier(home, moment))]
            here = [each for each in here if moment.shows(each)]
        elif hidden:
            here = [*here, *(yield from List(closed(home)))]
        found += here
    spoken = [each for each in found if each.item.kind not in RECORD_KINDS]
    return sorted(spoken, key=when_said, reverse=True)


def at_home(found: StoredMemory) -> StoredMemory:
    """Return a closed memory under the namespace that it was live in."""
    root = closed(())
    is_closed = found.namespace[: len(root)] == root
    return replace(found, namespace=found.namespace[len(root) :]) if is_closed else found


def the_one(memories: list[StoredMemory], key: str, *, user: str) -> StoredMemory:
    """Return the memory with a key, or with the only key that begins like that.

    Args:
        memories: All memories of a user.
        key: The key, or its beginning.
        user: Whose memories they are, for the message.

    Raises:
        ConfigurationError: There is none, or more than one.
    """
    found = [each for each in memories if each.key == key]
    found = found or [each for each in memories if each.key.startswith(key)]
    if len(found) == 1:
        return found[0]
    if found:
        msg = (
            f"{len(found)} memories of {user!r} have a key that begins with {key!r}; "
            "give more of it."
        )
    else:
        msg = (
            f"{user!r} has no memory with the key {key!r}; 'agentmem inspect --user NAME' lists "
            "the keys of a user, and --user chooses another one."
        )
    raise ConfigurationError(msg)


def recalled(memory: RAGMemory, query: str, args: argparse.Namespace) -> Recall:
    """Recall for a person who reads it: with the defaults, but not cut to a prompt's budget."""
    config = of_user(owner(args), max_tokens=sys.maxsize)
    return memory.recall(query, config=config, limit=args.limit, as_of=args.as_of)


def hint_for_nothing(memory: RAGMemory, user: str) -> str:
    """Return what to say when nothing of a user is found."""
    others = users(memory)
    if user in others:
        return f"Nothing of {user!r} is found for this."
    shown = ", ".join(others[:8]) + (", ..." if len(others) > 8 else "")  # noqa: PLR2004 - a line's worth
    known = f" There are memories of: {shown}. Choose with --user." if others else ""
    return f"Nothing is remembered of {user!r}.{known}"
