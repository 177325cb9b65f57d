"""MemDaily: short lists of everyday Chinese messages, one question each.

"MemSim: A Bayesian Simulator for Evaluating Memory of LLM-based Personal Assistants",
arXiv 2409.20163. Some questions only read `[ERRORQ]`; they are marked as known to be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from langchain_agentmem.evaluation.data import Dataset, Question, Scope, Turn
from langchain_agentmem.evaluation.datasets._files import first_file, read_json

BROKEN: Final = "[ERRORQ]"


def memdaily(folder: Path) -> Dataset:
    """Read every file of `memdaily/`; a category is the number its file name begins with.

    Raises:
        ConfigurationError: There is none.
    """
    first_file(folder, "memdaily/*.json")
    paths = sorted((folder / "memdaily").glob("*.json"))
    scopes = [_scope(path.stem, entry) for path in paths for entry in read_json(path)]
    broken = sum(each.doubtful for scope in scopes for each in scope.questions)
    return Dataset(
        name="memdaily",
        title="MemDaily (Chinese)",
        scopes=scopes,
        cutoffs=(1, 3, 5),
        categories={path.stem[:2]: path.stem[3:] for path in paths},
        source="final_dataset of github.com/nuster1128/MemSim",
        license="none stated",
        notes=(f"{broken} questions only read {BROKEN} and count as known to be wrong.",),
    )


def _scope(stem: str, entry: Mapping[str, Any]) -> Scope:
    turns = [
        Turn(
            key=str(message["mid"]),
            content=message["message"],
            session=str((moment := _time(message["time"])).date()),
            speaker="user",
            observed_at=moment,
        )
        for message in entry["message_list"]
    ]
    questions = [
        Question(
            text=each["question"],
            evidence=frozenset(map(str, each["target_step_id"])),
            category=stem[:2],
            answers=(str(each["answer"]),),
            doubtful=each["question"] == BROKEN,
        )
        for each in entry["question_list"]
    ]
    return Scope(name=f"{stem}-{entry['tid']}", turns=turns, questions=questions)


def _time(text: str) -> datetime:
    stamp = " ".join(re.findall(r"\d+", text))
    return datetime.strptime(stamp, "%Y %m %d %H %M").replace(tzinfo=UTC)
