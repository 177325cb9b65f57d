"""deepagents keeps its files in our store: durable, one user's apart from another's."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from langchain_agentmem import AgentMemoryMiddleware, FaissSqliteStore, RAGMemory
from langchain_agentmem.testing import ScriptedChatModel

backends = pytest.importorskip("deepagents.backends")
create_deep_agent = pytest.importorskip("deepagents").create_deep_agent

NOTE = "/memories/notes.md"
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:deepagents")


@pytest.fixture(params=["sync", "async"])
def later(request: pytest.FixtureRequest) -> bool:
    """Run every agent sync, then async."""
    return bool(request.param == "async")


def files_of(user: str, store: FaissSqliteStore | None = None) -> Any:  # noqa: ANN401 - a backend
    """Return a user's files: those below /memories/ are in the store."""
    kept = backends.StoreBackend(namespace=lambda _: ("files", user), store=store)
    return backends.CompositeBackend(default=backends.StateBackend(), routes={"/memories/": kept})


def calls(tool: str, number: int, **args: object) -> AIMessage:
    """Return a message that calls a tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": args, "id": f"call-{number}"}])


def run(
    path: Path,
    user: str,
    replies: Sequence[str | AIMessage],
    later: bool,
    *middleware: AgentMemoryMiddleware,
) -> list[BaseMessage]:
    """Run a deep agent in a process of its own: store opened, one turn, store closed."""
    config: RunnableConfig = {"configurable": {"user_id": user}}
    with FaissSqliteStore(path, index=None) as store:
        agent = create_deep_agent(
            ScriptedChatModel(replies=list(replies)),
            backend=files_of(user),
            middleware=middleware,
            store=store,
        )
        given = {"messages": [("user", "Work on your notes.")]}
        done = asyncio.run(agent.ainvoke(given, config)) if later else agent.invoke(given, config)
        messages: list[BaseMessage] = done["messages"]
        return messages


def results(messages: Sequence[BaseMessage]) -> list[str]:
    """Return what tools answered."""
    return [each.text for each in messages if each.type == "tool"]


def test_files_are_written_edited_and_read_again_after_a_restart(
    tmp_path: Path, later: bool
) -> None:
    """A file below /memories/ is in the next process what it was, edits included."""
    path = tmp_path / "memory.sqlite"
    write = calls("write_file", 1, file_path=NOTE, content="Rex is a dog.\nAnn lives in Oslo.\n")
    edit = calls("edit_file", 2, file_path=NOTE, old_string="a dog", new_string="a poodle")
    run(path, "ann", [write, edit, "Done."], later)
    read = calls("read_file", 1, file_path=NOTE)
    ls, grep = calls("ls", 2, path="/memories/"), calls("grep", 3, pattern="Oslo", path="/memories")
    seen, listed, found = results(run(path, "ann", [read, ls, grep, "Done."], later))
    assert "Rex is a poodle." in seen
    assert NOTE in listed
    assert NOTE in found


def test_users_do_not_see_each_others_files(tmp_path: Path, later: bool) -> None:
    """Another user's agent finds no file where one was written."""
    path = tmp_path / "memory.sqlite"
    run(path, "ann", [calls("write_file", 1, file_path=NOTE, content="secret"), "Done."], later)
    read, ls = calls("read_file", 1, file_path=NOTE), calls("ls", 2, path="/memories/")
    answers = results(run(path, "bob", [read, ls, "Done."], later))
    assert "secret" not in str(answers)
    assert "not found" in answers[0]
    assert NOTE not in answers[1]


def test_our_middleware_stands_beside_theirs(tmp_path: Path, later: bool) -> None:
    """A deep agent has a memory of conversations as well, in the same store."""
    path = tmp_path / "memory.sqlite"
    memory = AgentMemoryMiddleware(RAGMemory())
    run(path, "ann", [calls("write_file", 1, file_path=NOTE, content="x"), "Rex."], later, memory)
    with FaissSqliteStore(path, index=None) as store:
        said = {each.value["content"] for each in store.search(("memories", "ann", "rag", "turns"))}
        files = store.search(("files", "ann"))
    assert {"Work on your notes.", "Rex."} <= said
    assert [each.key for each in files] == ["/notes.md"]


def test_a_backend_used_by_hand_has_the_store_it_is_given(tmp_path: Path) -> None:
    """Outside of an agent the same files are there; a missing one is an answer, not a crash."""
    with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as store:
        files = files_of("ann", store)
        assert files.write(NOTE, "Rex is a dog.").error is None
        assert files.edit(NOTE, "dog", "poodle").occurrences == 1
        assert files.read(NOTE).file_data["content"] == "Rex is a poodle."
        assert asyncio.run(files.aread(NOTE)).file_data["content"] == "Rex is a poodle."
        assert files.read("/memories/none.md").error


def test_a_label_with_a_dot_is_refused_with_a_reason(tmp_path: Path) -> None:
    """LangGraph's stores hold no label with a dot: an address must be written otherwise."""
    with FaissSqliteStore(tmp_path / "memory.sqlite", index=None) as store:
        files = files_of("ann@example.com", store)
        with pytest.raises(ValueError, match=r"ann@example\.com"):
            files.write(NOTE, "x")
