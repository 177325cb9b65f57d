"""The user's own conversations as a data set, with their own questions, drafted ones, or none.

Conversations are files in any form that `agentmem import` reads. Questions are JSON lines:

```json
{"user": "ann", "question": "What is my dog called?", "answer": "Rex", "evidence": ["m7"],
 "must_not": ["m2"], "category": "pets", "asked_at": "2026-03-01T10:00:00Z"}
```

Only `question` must be there. `evidence` and `must_not` are the ids of turns, or a single one;
`answer` may be a list of right answers. Without `user`, the question is about the only user there
is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from langchain_agentmem.conversations import ConversationFile, ImportedTurn
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.evaluation.data import Dataset, Question, Scope, Turn
from langchain_agentmem.items import parse_timestamp
from langchain_agentmem.messages import session_of, text_of, time_of

_NOBODY: Final = "me"
_FIELDS: Final = frozenset(
    {"user", "question", "answer", "evidence", "must_not", "category", "asked_at", "drafted"}
)


def conversations(
    paths: Iterable[Path], questions: Path | None = None, *, name: str = "own"
) -> Dataset:
    """Read conversations and, if there are any, the questions about them.

    Args:
        paths: Files of conversations: JSONL, OpenAI lists, a ChatGPT export or MemoryBank.
        questions: A file of questions, one JSON object a line.
        name: What to call the data set.

    Raises:
        ConversationFormatError: A conversation cannot be read.
        ConfigurationError: A question cannot be read, or names a user or turn that is not there.
    """
    said: dict[str, list[Turn]] = {}
    for path in paths:
        for turn in ConversationFile(path):
            said.setdefault(turn.user or _NOBODY, []).append(_turn(turn))
    asked = _questions(questions, said) if questions else {}
    drafted = sum(each.drafted for found in asked.values() for each in found)
    return Dataset(
        name=name,
        title="Your own conversations",
        scopes=[
            Scope(name=user, turns=turns, questions=asked.get(user, ()))
            for user, turns in said.items()
        ],
        notes=(f"{drafted} of the questions were drafted by a model.",) if drafted else (),
    )


def _turn(turn: ImportedTurn) -> Turn:
    message = turn.message
    when = time_of(message)
    sitting = session_of(message) or (f"{when:%Y-%m-%d}" if when else "")
    return Turn(
        key=str(message.id),
        content=text_of(message),
        session=f"{turn.thread}/{sitting}",
        speaker=message.name or None,
        role="assistant" if message.type == "ai" else "user",
        observed_at=when,
    )


def _questions(path: Path, said: Mapping[str, Sequence[Turn]]) -> dict[str, list[Question]]:
    asked: dict[str, list[Question]] = {}
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{path} is not UTF-8 ({error.reason}); save the file as UTF-8."
        raise ConfigurationError(msg) from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            user, question = _question(json.loads(line), said)
        except (ValueError, TypeError, AttributeError) as error:
            msg = f"{path}, line {number}: {error}"
            raise ConfigurationError(msg) from error
        asked.setdefault(user, []).append(question)
    if not asked:
        msg = f"{path} holds no question; leave it out to measure costs alone."
        raise ConfigurationError(msg)
    return asked


def _question(
    fields: Mapping[str, Any], said: Mapping[str, Sequence[Turn]]
) -> tuple[str, Question]:
    """Check one line.

    Raises:
        ValueError: Something in it cannot be used.
    """
    unknown = sorted(set(fields) - _FIELDS)
    if unknown or not str(fields.get("question", "")).strip():
        wrong = f"unknown field {unknown[0]!r}" if unknown else "'question' is missing"
        msg = f"{wrong}; a question has the fields {', '.join(sorted(_FIELDS))}."
        raise ValueError(msg)
    user = str(fields.get("user") or (next(iter(said)) if len(said) == 1 else ""))
    if user not in said:
        msg = f"'user' is {user!r}, but the conversations are of {', '.join(list(said)[:8])}."
        raise ValueError(msg)
    evidence, forbidden = (frozenset(_several(fields.get(n))) for n in ("evidence", "must_not"))
    known = {turn.key for turn in said[user]}
    if missing := sorted((evidence | forbidden) - known):
        msg = f"there is no turn with the id {missing[0]!r} in the conversations of {user!r}."
        raise ValueError(msg)
    when = fields.get("asked_at")
    return user, Question(
        text=str(fields["question"]),
        evidence=evidence,
        forbidden=forbidden,
        category=str(fields.get("category", "")),
        answers=_several(fields.get("answer")),
        asked_at=parse_timestamp(when) if when else None,
        drafted=bool(fields.get("drafted")),
    )


def _several(given: object) -> tuple[str, ...]:
    """Return the texts of a list, or a single one.

    Raises:
        TypeError: If it is neither.
    """
    if given is None:
        return ()
    if isinstance(given, str | int | float):
        return (str(given),)
    if not isinstance(given, list):
        msg = f"expected a text or a list of texts, not {given!r}."
        raise TypeError(msg)
    return tuple(map(str, given))


def with_questions(dataset: Dataset, drafted: Mapping[str, Sequence[Question]]) -> Dataset:
    """Return a data set with drafted questions added to its conversations."""
    scopes = [
        replace(scope, questions=[*scope.questions, *drafted.get(scope.name, ())])
        for scope in dataset.scopes
    ]
    count = sum(map(len, drafted.values()))
    note = f"{count} of the questions were drafted by a model."
    return replace(dataset, scopes=scopes, notes=(*dataset.notes, note))


def question_line(user: str, question: Question) -> str:
    """Return a question as a line that `conversations` reads."""
    fields = {
        "user": user,
        "question": question.text,
        "answer": list(question.answers),
        "evidence": sorted(question.evidence),
        "category": question.category,
        "drafted": question.drafted,
    }
    return json.dumps(fields, ensure_ascii=False)
