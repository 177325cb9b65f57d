"""PrecisionMemBench: what must be recalled for a question, and what must not.

Reads the two files of github.com/tenurehq/precisionMemBench (MIT): beliefs of two users, some of
them superseded, and cases that name the beliefs to find and those that must stay away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from langchain_agentmem.evaluation.data import Dataset, Question, Scope, Turn
from langchain_agentmem.evaluation.datasets._files import first_file, read_json
from langchain_agentmem.items import parse_timestamp

_UNIVERSAL: Final = "user:universal"
_USER: Final = "test-user"
_PARTS: Final = ("relevantBeliefs", "pinnedFacts", "openQuestions")
_WANTED: Final = ("mustInclude", "shouldInclude", "shouldOnlyInclude")


def precision(folder: Path) -> Dataset:
    """Read the beliefs and cases of `precisionmembench/`.

    Beliefs are written in the order of time, superseded ones first and not marked as such: a
    memory has to find out. Each combination of user and domain of the cases is a conversation,
    as it is a namespace in use. Where a case lists all that may be recalled, anything else but
    pinned beliefs and open questions is forbidden. What the persona text says is not measured.

    Raises:
        ConfigurationError: The files are not there.
    """
    beliefs = read_json(_file(folder, "beliefs.seed.json"))
    cases = read_json(_file(folder, "retrieval.cases.json"))
    grouped: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for case in cases:
        home = (str(case.get("userId", _USER)), *sorted(case.get("scope", ())))
        grouped.setdefault(home, []).append(case)
    return Dataset(
        name="precision",
        title="PrecisionMemBench",
        scopes=[_scope(home, found, beliefs) for home, found in grouped.items()],
        batch=1,
        source="fixtures/ of github.com/tenurehq/precisionMemBench",
        license="MIT",
        notes=("Single questions only: sessions and the persona text are not measured.",),
    )


def _file(folder: Path, name: str) -> Path:
    return first_file(folder, f"precisionmembench/fixtures/{name}", f"precisionmembench/{name}")


def _scope(
    home: tuple[str, ...],
    cases: Sequence[Mapping[str, Any]],
    beliefs: Sequence[Mapping[str, Any]],
) -> Scope:
    user, *domains = home
    visible = {_UNIVERSAL, *domains}
    own = [each for each in beliefs if each["user_id"] == user and visible & set(each["scope"])]
    own.sort(key=lambda each: str(each["created_at"]))
    turns = [
        Turn(
            key=each["_id"],
            content=each["content"],
            session=each["_id"],
            observed_at=parse_timestamp(each["created_at"]),
        )
        for each in own
    ]
    free = {each["_id"] for each in own if each.get("pinned") or each["type"] == "open_question"}
    known = frozenset(turn.key for turn in turns)
    questions = [_question(case, known, known & free) for case in cases]
    return Scope(name=" ".join(home), turns=turns, questions=questions)


def _question(case: Mapping[str, Any], known: frozenset[str], free: frozenset[str]) -> Question:
    expected = [case["expect"].get(part, {}) for part in _PARTS]
    wanted = {key for part in expected for name in _WANTED for key in part.get(name, ())}
    forbidden = {key for part in expected for key in part.get("mustExclude", ())} & known
    if "shouldOnlyInclude" in case["expect"].get("relevantBeliefs", {}):
        forbidden |= known - free
    return Question(
        text=case["query"],
        evidence=frozenset(wanted & known),
        category=case["category"],
        forbidden=frozenset(forbidden - wanted),
    )
