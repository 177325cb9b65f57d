"""Systems: names, parameters, baselines, code of the user's own."""

from pathlib import Path
from typing import Any

import pytest

from langchain_agentmem import memories
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.evaluation.data import Question
from langchain_agentmem.evaluation.systems import BASELINES, SYSTEMS, system
from langchain_agentmem.evaluation.trial import Trial
from langchain_agentmem.memories import Memory, RAGMemory
from tests.unit_tests.evaluation.small import SAID, dataset, equipment, scope


def test_every_memory_of_the_package_is_a_system() -> None:
    """A new architecture joins the benchmark by being public, unless it wraps another one."""
    public = {name for name in memories.__all__ if _is_memory(getattr(memories, name))}
    assert public - {"Memory", "WorkingMemory"} <= set(SYSTEMS)
    assert set(BASELINES) <= set(SYSTEMS)


def _is_memory(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Memory)


def test_parameters_are_read_from_the_name() -> None:
    """Numbers are numbers, words are words, and the embedding model is set apart."""
    spec = system("ragmemory:limit=3,preset=default,embed=minilm")
    assert spec.make is RAGMemory
    assert spec.parameters == {"limit": 3, "preset": "default"}
    assert spec.embed == "minilm"
    assert spec.name == "ragmemory:limit=3,preset=default,embed=minilm"


def test_code_of_ones_own_is_named_by_its_file(tmp_path: Path) -> None:
    """A class in a file is a system like any other, with parameters too."""
    path = tmp_path / "mine.py"
    path.write_text(
        "class Mine:\n    def __init__(self, setup, size=1):\n        self.size = size\n"
    )
    spec = system(f"{path}:Mine:size=4")
    assert spec.name == "Mine:size=4"
    assert spec.parameters == {"size": 4}
    assert "class Mine" in spec.source


def test_a_class_of_ones_own_may_take_no_setup(tmp_path: Path) -> None:
    """`remember` and `recall` are all that is asked of it."""
    path = tmp_path / "bare.py"
    path.write_text("class Bare:\n    pass\n\nclass Greedy:\n    def __init__(self, a, b): pass\n")
    nothing: Any = None
    assert type(system(f"{path}:Bare").build(nothing)).__name__ == "Bare"
    with pytest.raises(ConfigurationError, match="'Greedy' cannot be built"):
        system(f"{path}:Greedy")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("RAGMemry", "there are nothing, last_turns"),
        ("RAGMemory:limit", "is no parameter"),
        ("no_such_file.py:Mine", "cannot be used"),
        ("RAGMemory:foo=1", "Unknown parameter 'foo'"),
        ("RAGMemory:limit=x", "'limit' must be of type int"),
        ("bm25:foo=1", "'bm25:foo=1' cannot be built"),
    ],
)
def test_a_wrong_name_says_what_to_write(name: str, message: str) -> None:
    """The message names what there is, or the form."""
    if name == "RAGMemory:limit":
        name = "RAGMemory:limit=3,x"
    with pytest.raises(ConfigurationError, match=message):
        system(name)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("nothing", None),
        ("last_turns", "3"),
        ("full_context", "0"),
        ("bm25", "2"),
    ],
)
def test_baselines_recall_what_they_are_for(name: str, first: str | None) -> None:
    """Asked who plays the cello: nothing, the newest, the oldest, the fitting turn."""
    unit = Trial(system(name), dataset(), scope(), equipment()).run()
    results = unit.asked[1].results
    assert (results[0][0] if results else None) == first
    assert unit.write_errors == []


def test_plain_vectors_recall_the_nearest_turn() -> None:
    """Asked with the words of a turn, it is the nearest."""
    asked = (Question(text=SAID[2]),)
    unit = Trial(system("dense"), dataset(), scope("ann", asked), equipment()).run()
    assert unit.asked[0].results[0] == ["2"]


def test_full_context_that_does_not_fit_keeps_the_newest_turns() -> None:
    """The beginning of the conversation is cut, as a prompt cuts it."""
    unit = Trial(system("full_context:max_tokens=40"), dataset(), scope(), equipment()).run()
    assert unit.asked[0].results == [["2"], ["3"]]


def test_the_last_turns_are_as_many_as_asked_for() -> None:
    """The benchmark's number of results holds for baselines too."""
    unit = Trial(system("last_turns"), dataset(), scope(), equipment(limit=2)).run()
    assert unit.asked[0].results == [["3"], ["2"]]
