"""LoCoMo: ten very long conversations of two friends, with questions and evidence turns.

"Evaluating Very Long-Term Conversational Memory of LLM Agents", arXiv 2402.17753. The file stores
category numbers, which papers have given different names; the names here are those of the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from langchain_agentmem.evaluation.data import Dataset, Question, Scope, Turn
from langchain_agentmem.evaluation.datasets._files import first_file, read_json

CATEGORIES: Final = {
    "1": "multi-hop",
    "2": "temporal",
    "3": "open-domain",
    "4": "single-hop",
    "5": "adversarial",
}
_ADVERSARIAL: Final = "5"


def locomo(folder: Path) -> Dataset:
    """Read `locomo10.json` or a part of it, and the audit of its gold answers if that is there.

    Args:
        folder: Holds `locomo/*.json`; an audit is a file whose name ends in `errors.json`.

    Raises:
        ConfigurationError: There is no such file.
    """
    path = first_file(folder, "locomo/locomo10.json", "locomo/locomo*.json", but="*errors.json")
    wrong = _known_wrong(path.parent)
    unusable: list[str] = []
    scopes = [_scope(each, wrong, unusable) for each in read_json(path)]
    asked = [question for scope in scopes for question in scope.questions]
    without = sum(not question.evidence for question in asked)
    wrong_ones = sum(question.doubtful for question in asked)
    return Dataset(
        name="locomo",
        title="LoCoMo",
        scopes=scopes,
        categories=CATEGORIES,
        apart=frozenset({_ADVERSARIAL}),
        source="locomo10.json of github.com/snap-research/LoCoMo; its audit: locomo-audit",
        license="CC BY-NC 4.0",
        notes=(
            f"Evidence that names no turn: {', '.join(map(repr, unusable)) or 'none'}.",
            f"{without} questions without usable evidence are in no recall figure.",
            f"{wrong_ones} gold answers or citations are known to be wrong.",
        ),
    )


def _known_wrong(folder: Path) -> set[tuple[str, str]]:
    """Return category and text of the questions that an audit found wrong."""
    return {
        (str(each["category"]), each["question"].strip())
        for path in sorted(folder.glob("*errors.json"))
        for each in read_json(path)
    }


def _scope(entry: Mapping[str, Any], wrong: set[tuple[str, str]], unusable: list[str]) -> Scope:
    turns = list(_turns(entry["conversation"]))
    known = {turn.key for turn in turns}
    questions = []
    for qa in entry["qa"]:
        category = str(qa["category"])
        named = {text: set(evidence_keys(text)) for text in qa["evidence"]}
        unusable += [text for text, keys in named.items() if not keys or keys - known]
        answer = qa.get("answer")
        questions.append(
            Question(
                text=qa["question"],
                evidence=frozenset(set().union(*named.values()) & known),
                category=category,
                answers=() if answer is None or category == _ADVERSARIAL else (str(answer),),
                doubtful=(category, qa["question"].strip()) in wrong,
            )
        )
    return Scope(name=entry["sample_id"], turns=turns, questions=questions)


def _turns(conversation: Mapping[str, object]) -> Iterator[Turn]:
    numbers = [
        int(name.split("_")[1]) for name in conversation if re.fullmatch(r"session_\d+", name)
    ]
    for number in sorted(numbers):
        moment = datetime.strptime(
            str(conversation[f"session_{number}_date_time"]), "%I:%M %p on %d %B, %Y"
        ).replace(tzinfo=UTC)
        for turn in cast("list[dict[str, str]]", conversation[f"session_{number}"]):
            yield Turn(
                key=turn["dia_id"],
                content=turn["text"],
                session=str(number),
                speaker=turn["speaker"],
                observed_at=moment,
            )


def evidence_keys(text: str) -> Iterator[str]:
    """Yield the turn ids of an evidence string such as `D8:6; D9:17` or `D30:05`."""
    for session, turn in re.findall(r"D:?(\d+):(\d+)", text):
        yield f"D{int(session)}:{int(turn)}"
