"""Which messages of a conversation are new to a memory."""

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from langchain_agentmem.surfaces._recording import new_messages


def test_a_message_without_an_id_is_new_in_the_first_turn() -> None:
    """deepagents' state gives messages of the user no id: they were taken for the last known one."""
    said: list[AnyMessage] = [HumanMessage("I am Ann."), AIMessage("Hello.", id="a")]
    assert new_messages(said, None, set()) == said


def test_what_comes_after_the_last_known_message_is_new() -> None:
    """Messages up to the last known one are left out, whatever has no id."""
    said: list[AnyMessage] = [
        HumanMessage("I am Ann."),
        AIMessage("Hello.", id="a"),
        HumanMessage("And you?"),
    ]
    assert new_messages(said, "a", set()) == said[2:]
    assert new_messages(said, "gone", set()) == said
