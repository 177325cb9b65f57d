"""What is measured, as pure functions: evidence found, answers given, and their spread.

Evidence is measured at the level of turns. A result that was made from several turns counts all of
them, so the number of turns and tokens per result is always reported beside it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

import numpy as np

Results: TypeAlias = Sequence[Collection[str]]
"""The keys of the turns behind each result, best result first."""

_PUNCTUATION: Final = re.compile(r"[.,!?\u3002\uff0c\uff01\uff1f\u3001]")
_UNSPACED: Final = re.compile(r"([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3])")


def found_at(results: Results, k: int) -> set[str]:
    """Return the keys of all turns behind the first `k` results."""
    return {key for result in results[:k] for key in result}


def evidence_recall(results: Results, evidence: Collection[str], k: int) -> float:
    """Return the share of a question's evidence turns among the first `k` results, 0 to 1."""
    return len(found_at(results, k).intersection(evidence)) / len(evidence)


def all_evidence(results: Results, evidence: Collection[str], k: int) -> float:
    """Return 1 if every evidence turn is among the first `k` results, else 0."""
    return float(found_at(results, k).issuperset(evidence))


def reciprocal_rank(results: Results, evidence: Collection[str]) -> float:
    """Return 1 / the rank of the first result with an evidence turn; 0 without one."""
    wanted = set(evidence)
    ranks = (rank for rank, result in enumerate(results, 1) if wanted.intersection(result))
    return 1 / next(ranks, math.inf)


def violations(results: Results, forbidden: Collection[str]) -> int:
    """Return how many turns were recalled that must not be."""
    return len(found_at(results, len(results)).intersection(forbidden))


def answer_tokens(text: str) -> list[str]:
    """Return an answer's tokens: lower-case, `. , ! ?` as spaces, split.

    Characters of scripts without spaces are a token each; English is as in the published scores.
    """
    return _UNSPACED.sub(r" \1 ", _PUNCTUATION.sub(" ", text.lower())).split()


def token_f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall over the *sets* of tokens.

    This is the F1 that published LoCoMo harnesses store; 0 if either side is empty.
    """
    said, wanted = set(answer_tokens(answer)), set(answer_tokens(gold))
    common = len(said & wanted)
    return 2 * common / (len(said) + len(wanted)) if common else 0.0


def bleu_1(answer: str, gold: str) -> float:
    """Return BLEU with unigrams only: clipped precision times the brevity penalty.

    An answer without a common token gets 0, as with the smoothing that published harnesses name.
    """
    said, wanted = answer_tokens(answer), answer_tokens(gold)
    common = sum((Counter(said) & Counter(wanted)).values())
    if not common:
        return 0.0
    brevity = min(1.0, math.exp(1 - len(wanted) / len(said)))
    return brevity * common / len(said)


def exact_match(answer: str, gold: str) -> float:
    """Return 1 if both have the same tokens in the same order, else 0."""
    wanted = answer_tokens(gold)
    return float(bool(wanted) and answer_tokens(answer) == wanted)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return a percentile, linear between neighbors; None without a value."""
    return float(np.percentile(values, percent)) if values else None
