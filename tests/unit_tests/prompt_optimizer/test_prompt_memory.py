"""`PromptMemory`: versions, levels, rollback, pins, monitoring, and what forgetting erases."""

import json
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import ConfigurationError, MemoryNotFoundError
from langchain_agentmem.prompt_optimizer import PromptMemory, PromptVersion, SupersededError
from langchain_agentmem.steps import journal
from langchain_agentmem.steps.drivers import run
from langchain_agentmem.testing import ScriptedChatModel
from tests.unit_tests.floor import START, Clock
from tests.unit_tests.prompt_optimizer.lab import ANN, PROMPT, TALKS, Ways, optimizer, update

HOME = ("memories", "ann-17", "prompts", "prompt")


@pytest.fixture
def prompts(any_store: BaseStore, clock: Clock) -> PromptMemory:
    """A handle on one prompt."""
    return PromptMemory(prompts=PROMPT, store=any_store, clock=clock)


def _learn(store: BaseStore, ways: Ways, *texts: str) -> None:
    for number, text in enumerate(texts):
        talks = [{**each, "id": f"{each['id']}-{number}"} for each in TALKS]
        graph = optimizer(ScriptedChatModel(replies=[update(text)]), store)
        ways.run(graph, {"trajectories": talks})


def test_given_text_is_version_1(prompts: PromptMemory, ways: Ways) -> None:
    """Before anything is stored the given text is version 1, and the store stays empty."""
    found = ways.call(prompts, "get", "prompt")
    assert (found.text, found.version, found.decision) == (PROMPT, 1, "manual")
    assert [each.version for each in ways.call(prompts, "history", "prompt")] == [1]


def test_unknown_prompt_names_the_known_ones(prompts: PromptMemory, ways: Ways) -> None:
    """A name that no level has is an error that lists what there is."""
    with pytest.raises(MemoryNotFoundError, match="prompt"):
        ways.call(prompts, "get", "other")


def test_rollback_goes_back_one_parent_at_a_time(
    any_store: BaseStore, prompts: PromptMemory, ways: Ways
) -> None:
    """After two acceptances rollback leads to version 2, then 1, and then raises."""
    _learn(any_store, ways, "Answer {q} two.", "Answer {q} three.")
    assert ways.call(prompts, "get", "prompt").version == 3
    assert ways.call(prompts, "rollback", "prompt").version == 2
    assert ways.call(prompts, "get", "prompt").text == "Answer {q} two."
    decisions = [each.decision for each in ways.call(prompts, "history", "prompt")]
    assert decisions == ["manual", "accepted", "accepted", "rolled_back"]
    assert ways.call(prompts, "rollback", "prompt").version == 1
    assert ways.call(prompts, "get", "prompt").text == PROMPT
    with pytest.raises(MemoryNotFoundError, match="is the first"):
        ways.call(prompts, "rollback", "prompt")


def test_rollback_to_a_version_by_number(
    any_store: BaseStore, prompts: PromptMemory, ways: Ways
) -> None:
    """A number takes the history to exactly that version; an unknown one is refused."""
    _learn(any_store, ways, "Answer {q} two.", "Answer {q} three.")
    assert ways.call(prompts, "rollback", "prompt", 1).text == PROMPT
    with pytest.raises(MemoryNotFoundError, match="no version 9"):
        ways.call(prompts, "rollback", "prompt", 9)


def test_rejected_version_cannot_be_rolled_back_to(prompts: PromptMemory, ways: Ways) -> None:
    """What the guards refused does not become active through the back door."""
    ways.call(prompts, "set", "prompt", "Answer {q} two.")
    env = prompts.environment(ANN)
    bad = PromptVersion(name="prompt", text="bad", decision="rejected")
    stored = run(prompts.append(bad, activate=False), env)
    with pytest.raises(ConfigurationError, match="was rejected"):
        ways.call(prompts, "rollback", "prompt", stored.version)


def test_history_is_append_only(any_store: BaseStore, prompts: PromptMemory, ways: Ways) -> None:
    """No later change touches what an earlier entry says."""
    ways.call(prompts, "set", "prompt", "Answer {q} two.")
    before = {each.key: each.value for each in any_store.search(HOME) if each.key != "active"}
    ways.call(prompts, "set", "prompt", "Answer {q} three.")
    ways.call(prompts, "rollback", "prompt")
    ways.call(prompts, "pin", "prompt", 1)
    after = {each.key: each.value for each in any_store.search(HOME)}
    assert all(after[key] == value for key, value in before.items())
    assert len(after) == len(before) + 4


def test_set_refuses_an_empty_text(prompts: PromptMemory, ways: Ways) -> None:
    """Nobody can leave a prompt empty, by hand neither."""
    with pytest.raises(ConfigurationError, match="empty"):
        ways.call(prompts, "set", "prompt", " \n")


def test_set_makes_a_prompt_nobody_gave(prompts: PromptMemory, ways: Ways) -> None:
    """A new name begins a history of its own."""
    assert ways.call(prompts, "set", "other", "Be kind.").version == 1
    assert ways.call(prompts, "get", "other").text == "Be kind."


def test_diff_shows_the_lines_that_differ(prompts: PromptMemory, ways: Ways) -> None:
    """The difference of two versions is a unified diff; an unknown version is an error."""
    ways.call(prompts, "set", "prompt", "Answer {q} two.")
    diff = ways.call(prompts, "diff", "prompt", 1, 2)
    assert "-Answer {q}.\n+Answer {q} two." in diff
    with pytest.raises(MemoryNotFoundError, match="no version 5"):
        ways.call(prompts, "diff", "prompt", 1, 5)


def test_unpinned_prompt_learns_again(
    any_store: BaseStore, prompts: PromptMemory, ways: Ways
) -> None:
    """A pin holds off the optimizer until it is taken off."""
    ways.call(prompts, "set", "prompt", "Answer {q} two.")
    ways.call(prompts, "pin", "prompt", 2)
    _learn(any_store, ways, "Answer {q} three.")
    assert ways.call(prompts, "get", "prompt").version == 2
    ways.call(prompts, "pin", "prompt", None)
    _learn(any_store, ways, "Answer {q} four.")
    assert ways.call(prompts, "get", "prompt").text == "Answer {q} four."


def test_levels_are_read_most_specific_first(any_store: BaseStore, ways: Ways) -> None:
    """A user's own text wins over the agent's, the agent's over the organization's."""
    org = ("memories", "{org_id}")
    agent, user = (*org, "{agent_id}"), (*org, "{agent_id}", "{user_id}")
    scope: RunnableConfig = {
        "configurable": {"org_id": "acme", "agent_id": "bot", "user_id": "ann"}
    }
    levels = {
        "org": PromptMemory(namespace=org, store=any_store),
        "agent": PromptMemory(namespace=agent, read_namespaces=[org], store=any_store),
        "user": PromptMemory(namespace=user, read_namespaces=[agent, org], store=any_store),
    }
    for name, memory in levels.items():
        ways.call(memory, "set", "prompt", f"Text of {name}.", config=scope)
        assert ways.call(levels["user"], "get", "prompt", config=scope).text == f"Text of {name}."
    bob: RunnableConfig = {"configurable": {"org_id": "acme", "agent_id": "bot", "user_id": "bob"}}
    assert ways.call(levels["user"], "get", "prompt", config=bob).text == "Text of agent."
    assert ways.call(levels["org"], "get", "prompt", config=bob).text == "Text of org."
    other: RunnableConfig = {
        "configurable": {"org_id": "other", "agent_id": "bot", "user_id": "ann"}
    }
    with pytest.raises(MemoryNotFoundError):
        ways.call(levels["user"], "get", "prompt", config=other)


def test_own_history_begins_with_what_was_inherited(any_store: BaseStore, ways: Ways) -> None:
    """The first change of a user's own keeps the organization's text as version 1."""
    org = PromptMemory(namespace=("memories", "{org_id}"), store=any_store)
    scope: RunnableConfig = {"configurable": {"org_id": "acme", "user_id": "ann"}}
    ways.call(org, "set", "prompt", "Text of org.", config=scope)
    own = PromptMemory(
        namespace=("memories", "{org_id}", "{user_id}"),
        read_namespaces=[("memories", "{org_id}")],
        store=any_store,
    )
    ways.call(own, "set", "prompt", "Ann's text.", config=scope)
    ways.call(own, "rollback", "prompt", config=scope)
    assert ways.call(own, "get", "prompt", config=scope).text == "Text of org."
    ways.call(org, "set", "prompt", "New text of org.", config=scope)
    assert ways.call(own, "get", "prompt", config=scope).text == "Text of org."


def test_optimizer_writes_at_its_own_level_only(any_store: BaseStore, ways: Ways) -> None:
    """What one user's feedback leads to does not change the organization's prompt."""
    org, own = ("memories", "{org_id}"), ("memories", "{org_id}", "{user_id}")
    scope: RunnableConfig = {"configurable": {"org_id": "acme", "user_id": "ann-17"}}
    shared = PromptMemory(namespace=org, store=any_store)
    ways.call(shared, "set", "prompt", PROMPT, config=scope)
    graph = optimizer(
        ScriptedChatModel(replies=[update("Answer {q} for her.")]),
        any_store,
        namespace=own,
        read_namespaces=[org],
    )
    assert ways.run(graph, config=scope)["report"][0]["version"] == 2
    assert ways.call(shared, "get", "prompt", config=scope).text == PROMPT


def test_users_do_not_see_each_others_prompts(any_store: BaseStore, ways: Ways) -> None:
    """A version of one user is nobody else's, and neither are recorded conversations."""
    prompts = PromptMemory(prompts=PROMPT, store=any_store)
    ways.call(prompts, "set", "prompt", "Ann's.")
    ways.call(prompts, "record", TALKS[0])
    bob: RunnableConfig = {"configurable": {"user_id": "bob"}}
    assert ways.call(prompts, "get", "prompt", config=bob).text == PROMPT
    assert run(prompts.trajectories(), prompts.environment(bob)) == []


def test_stale_parent_is_superseded(prompts: PromptMemory) -> None:
    """An append that expects an older active version changes nothing."""
    prompts.set("prompt", "Answer {q} two.", config=ANN)
    late = PromptVersion(name="prompt", text="late", decision="accepted")
    with pytest.raises(SupersededError):
        run(prompts.append(late, parent=1), prompts.environment(ANN))
    assert len(prompts.history("prompt", config=ANN)) == 2


@pytest.mark.parametrize(
    ("now", "rolled_back"), [((0.5, 0.6, 0.4), True), ((0.8, 0.8, 0.8), False), ((0.1, 0.1), False)]
)
def test_monitor_rolls_back_what_scores_worse(
    now: tuple[float, ...], rolled_back: bool, prompts: PromptMemory, ways: Ways
) -> None:
    """With enough scores a version that is worse than its parent by the margin is taken back."""
    ways.call(prompts, "set", "prompt", "Answer {q} two.")
    scores = [(1, each) for each in (0.8, 0.9, 0.7)] + [(2, each) for each in now]
    for number, (version, score) in enumerate(scores):
        talk = {"id": f"m{number}", "messages": "Hi", "score": score}
        ways.call(prompts, "record", talk | {"prompt_versions": {"prompt": version}})
    report = ways.call(prompts, "monitor", "prompt")
    assert report["rolled_back"] is rolled_back
    assert report["baseline"] == pytest.approx(0.8)
    found = ways.call(prompts, "get", "prompt")
    assert found.version == report["active"] == (1 if rolled_back else 2)
    if rolled_back:
        assert "scores fell" in ways.call(prompts, "history", "prompt")[-1].reason


def test_monitor_leaves_a_pinned_version(prompts: PromptMemory, ways: Ways) -> None:
    """A person's pin is stronger than the scores."""
    ways.call(prompts, "set", "prompt", "Answer {q} two.")
    ways.call(prompts, "pin", "prompt", 2)
    for number in range(6):
        version = 1 + number % 2
        talk = {"id": f"m{number}", "messages": "Hi", "score": 2.0 - version}
        ways.call(prompts, "record", talk | {"prompt_versions": {"prompt": version}})
    assert not ways.call(prompts, "monitor", "prompt")["rolled_back"]


def test_journal_tells_why_a_version_became_active(
    any_store: BaseStore, prompts: PromptMemory, ways: Ways
) -> None:
    """Each move of the pointer has a journal entry with its cause."""
    _learn(any_store, ways, "Answer {q} two.")
    ways.call(prompts, "rollback", "prompt")
    entries = run(journal.history(HOME, "active"), prompts.environment(ANN))
    notes = [each.cause.note or "" for each in entries]
    assert [note.split(":")[0] for note in notes] == ["accepted", "rolled_back"]


def test_forget_erases_texts_conversations_and_journal(any_store: BaseStore, ways: Ways) -> None:
    """After `forget` no text of prompts or conversations is anywhere, and others keep theirs."""
    prompts = PromptMemory(prompts=PROMPT, store=any_store)
    bob: RunnableConfig = {"configurable": {"user_id": "bob"}}
    for text in ("Answer {q} secretly.", "Answer {q} more secretly."):
        ways.call(prompts, "set", "prompt", text)
    ways.call(prompts, "set", "prompt", "Bob's.", config=bob)
    ways.call(prompts, "record", {"id": "one", "messages": "A secret talk."})
    ways.call(prompts, "record", {"id": "one", "messages": "A secret talk.", "feedback": "secret"})
    assert ways.call(prompts, "forget") == 5
    roots = (("memories",), ("_agentmem",))
    left = [each.value for root in roots for each in any_store.search(root, limit=100)]
    assert "secret" not in json.dumps(left)
    assert ways.call(prompts, "get", "prompt").text == PROMPT
    assert ways.call(prompts, "get", "prompt", config=bob).text == "Bob's."


def test_forget_one_prompt_keeps_the_others(any_store: BaseStore, ways: Ways) -> None:
    """A named prompt is erased alone; conversations stay."""
    prompts = PromptMemory(store=any_store)
    ways.call(prompts, "set", "a", "A.")
    ways.call(prompts, "set", "ab", "AB.")
    ways.call(prompts, "record", TALKS[0])
    ways.call(prompts, "forget", "a")
    assert ways.call(prompts, "get", "ab").text == "AB."
    assert len(run(prompts.trajectories(), prompts.environment(ANN))) == 1
    with pytest.raises(MemoryNotFoundError):
        ways.call(prompts, "get", "a")


def test_times_come_from_the_clock(prompts: PromptMemory, clock: Clock, ways: Ways) -> None:
    """Versions carry the injected time."""
    clock.move(hours=1)
    found: Any = ways.call(prompts, "set", "prompt", "Answer {q} two.")
    assert (found.created_at - START).total_seconds() == 3600


def test_names_may_hold_any_character(prompts: PromptMemory, ways: Ways) -> None:
    """Names that no namespace label can hold are escaped, injectively."""
    for name in ("a.b", "a*b", "a~2E~b", "日本"):
        ways.call(prompts, "set", name, f"Text of {name}")
    assert ways.call(prompts, "get", "a.b").text == "Text of a.b"
    assert ways.call(prompts, "get", "a~2E~b").text == "Text of a~2E~b"


def test_without_a_store_the_error_says_what_to_pass() -> None:
    """Neither a store of its own nor one of the run: the error names `store=`."""
    with pytest.raises(ConfigurationError, match="store="):
        PromptMemory(prompts=PROMPT).get("prompt", config=ANN)


def test_missing_scope_is_an_error() -> None:
    """Without the scope's variables nothing is read."""
    with pytest.raises(ConfigurationError, match="user_id"):
        PromptMemory(prompts=PROMPT, store=InMemoryStore()).get("prompt", config={})
