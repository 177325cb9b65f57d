"""MuSiQue: questions over two to four passages of one corpus, with entities and triples ready.

"MuSiQue: Multihop Questions via Single-hop Question Composition", arXiv 2108.00573, in the form
HippoRAG measures it. The triples let memories that build a graph be scored without a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langchain_agentmem.evaluation.data import Dataset, Question, Scope, Turn
from langchain_agentmem.evaluation.datasets._files import first_file, read_json


def musique(folder: Path) -> Dataset:
    """Read the one corpus of `musique/`; each passage is a session of its own.

    Args:
        folder: Holds `musique/musique_dev.json` (questions), `musique_corpus.json` and, for the
            triples, `musique_openie_*.json`.

    Raises:
        ConfigurationError: Questions or corpus are not there.
    """
    corpus = read_json(first_file(folder, "musique/musique_corpus.json"))
    entries = read_json(first_file(folder, "musique/musique_dev.json", "musique/musique.json"))
    texts = [f"{passage['title']}\n{passage['text']}" for passage in corpus]
    keys = {text: str(number) for number, text in enumerate(texts)}
    ready = _ready(folder)
    turns = [_turn(key, text, ready.get(text, {})) for text, key in keys.items()]
    questions = [_question(entry, keys) for entry in entries]
    with_triples = sum(bool(turn.triples) for turn in turns)
    return Dataset(
        name="musique",
        title="MuSiQue",
        scopes=[Scope(name="musique", turns=turns, questions=questions)],
        batch=100,
        categories={"2hop": "two passages", "3hop": "three", "4hop": "four"},
        source="data of github.com/OSU-NLP-Group/HippoRAG, branch legacy",
        license="repository MIT; MuSiQue has its own terms",
        notes=(f"{with_triples} of {len(turns)} passages come with triples.",),
    )


def _ready(folder: Path) -> dict[str, Mapping[str, Any]]:
    """Return what is known about each passage by its text."""
    return {
        entry["passage"]: entry
        for path in sorted((folder / "musique").glob("musique_openie*.json"))
        for entry in read_json(path)
    }


def _turn(key: str, text: str, known: Mapping[str, Any]) -> Turn:
    triples = (tuple(map(str, each)) for each in known.get("triples", ()))
    return Turn(
        key=key,
        content=text,
        session=key,
        title=text.split("\n", maxsplit=1)[0],
        entities=tuple(known.get("entities", ())),
        triples=tuple((each[0], each[1], each[2]) for each in triples if len(each) == 3),  # noqa: PLR2004 - subject, relation, object
    )


def _question(entry: Mapping[str, Any], keys: Mapping[str, str]) -> Question:
    gold = {
        keys[f"{paragraph['title']}\n{paragraph['paragraph_text']}"]
        for paragraph in entry["paragraphs"]
        if paragraph["is_supporting"]
    }
    return Question(
        text=entry["question"],
        evidence=frozenset(gold),
        category=entry["id"][:4],
        answers=(entry["answer"], *entry.get("answer_aliases", ())),
    )
