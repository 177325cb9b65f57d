"""Arguments of a wrong type are refused where they are given, with what to give instead."""

from datetime import date, datetime
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.memories import BufferMemory, RAGMemory, WindowMemory
from langchain_agentmem.memories.base import Memory
from tests.unit_tests.memories.conftest import Make

ANN: Any = {"configurable": {"user_id": "ann"}}


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (RAGMemory, {"limit": "5"}, r"'limit' must be of type int, not '5' \(str\)"),
        (RAGMemory, {"limit": 2.5}, "must be of type int"),
        (RAGMemory, {"limit": True}, "must be of type int"),
        (RAGMemory, {"limit": None}, "must be of type int"),
        (RAGMemory, {"weights": {"lexical": 1}}, "must be of type Weights"),
        (WindowMemory, {"k": [5]}, "must be of type int"),
        (BufferMemory, {"max_messages": "5"}, "must be of type int or None"),
        (BufferMemory, {"archive_ttl": "5"}, "must be of type float or None"),
    ],
)
def test_parameter_of_another_type_is_refused_at_construction(
    kind: type[Memory], given: dict[str, Any], words: str
) -> None:
    """A memory that would fail at its first call is not made."""
    with pytest.raises(ConfigurationError, match=words):
        kind(store=InMemoryStore(), **given)


def test_parameters_take_what_fits_their_type() -> None:
    """An int serves as a float, and None where a field may be empty."""
    memory = BufferMemory(store=InMemoryStore(), archive_ttl=5, max_messages=None)
    assert memory.parameters.archive_ttl == 5.0  # type: ignore[attr-defined]
    assert isinstance(memory.parameters.archive_ttl, float)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"limit": "3"}, r"limit must be an integer, such as 3, not '3' \(str\)"),
        ({"limit": 2.5}, "limit must be an integer"),
        ({"limit": True}, "0 or more"),
        ({"limit": -1}, "0 or more"),
        ({"as_of": "2026-01-01"}, r"aware datetime, such as datetime\(2026, 1, 1, tzinfo=UTC\)"),
        ({"as_of": date(2026, 1, 1)}, "aware datetime"),
        ({"as_of": datetime(2026, 1, 1)}, "aware datetime"),  # noqa: DTZ001 - the fault tested
        ({"as_of": 0}, "aware datetime"),
        ({"neighbors": "1"}, "'neighbors' must be of type int"),
    ],
)
def test_recall_refuses_an_argument_of_another_type(
    make: Make, given: dict[str, Any], words: str
) -> None:
    """The message says what to give."""
    memory = make()
    with pytest.raises((TypeError, ValueError), match=words):
        memory.recall("Where do I live?", config=ANN, **given)
