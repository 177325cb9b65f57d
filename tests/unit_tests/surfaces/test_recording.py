"""Which messages of a conversation are new to a memory, or covered by a summary."""

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from langchain_agentmem.steps.drivers import run
from langchain_agentmem.steps.environment import Environment
from langchain_agentmem.steps.folding import Folding
from langchain_agentmem.surfaces._recording import new_messages
from langchain_agentmem.surfaces._running_summary import StateSummary
from tests.unit_tests.memories.conversations import facts_in, summarizer


def texts(messages: list[AnyMessage]) -> list[str]:
    """Return what messages say."""
    return [each.text for each in messages]


def test_a_message_without_an_id_is_new_in_the_first_turn() -> None:
    """A user's message without an id, as in deepagents, was taken for the last known one."""
    said: list[AnyMessage] = [HumanMessage("I am Ann."), AIMessage("Hello.", id="a")]
    assert texts(new_messages(said, None, set(), "t")) == ["I am Ann.", "Hello."]


def test_what_comes_after_the_last_known_message_is_new() -> None:
    """Messages up to the last known one are left out, whatever has no id."""
    said: list[AnyMessage] = [
        HumanMessage("I am Ann."),
        AIMessage("Hello.", id="a"),
        HumanMessage("And you?"),
    ]
    assert texts(new_messages(said, "a", set(), "t")) == ["And you?"]
    assert len(new_messages(said, "gone", set(), "t")) == 3


def test_the_same_words_later_are_another_message() -> None:
    """A message without an id is known by its place in the whole conversation: no turn is lost."""
    said: list[AnyMessage] = [HumanMessage("yes"), AIMessage("ok", id="a"), HumanMessage("yes")]
    first = new_messages(said[:2], None, set(), "t")
    second = new_messages(said, "a", set(), "t")
    assert first[0].id != second[0].id
    assert new_messages(said, None, set(), "t")[0].id == first[0].id
    assert new_messages(said, None, set(), "u")[0].id != first[0].id


def test_a_summary_does_not_cover_every_message_without_an_id() -> None:
    """Once one message without an id was summarized, all others vanished from the view."""
    said: list[AnyMessage] = []
    for number in range(8):
        said += [HumanMessage(f"FACT{number:03d} is so"), AIMessage("I see")]
    bounding = StateSummary(
        name="Summary", clauses=[{"messages": 6}], keep=("messages", 4), folding=Folding()
    )
    env = Environment(model=summarizer())
    first = run(bounding.bound(said, {}), env)
    again = run(bounding.bound(said, first.kept or {}), env)
    assert again.kept is None
    assert len(facts_in(again.messages)) == 8
    assert again.messages[-1].text == "I see"
    assert len(again.messages) == 5
