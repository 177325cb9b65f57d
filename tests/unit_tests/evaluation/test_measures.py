"""Measures against values worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_agentmem.evaluation import measures

RESULTS = [["d1"], ["d4", "d5"], ["d7"], ["d2"]]


@pytest.mark.parametrize(
    ("evidence", "k", "share", "every"),
    [
        ({"d1"}, 1, 1.0, 1.0),
        ({"d1", "d2"}, 1, 0.5, 0.0),
        ({"d1", "d2"}, 3, 0.5, 0.0),
        ({"d1", "d2"}, 4, 1.0, 1.0),
        ({"d5", "d9"}, 2, 0.5, 0.0),
        ({"d9"}, 4, 0.0, 0.0),
    ],
)
def test_evidence_recall_and_all_evidence(
    evidence: set[str], k: int, share: float, every: float
) -> None:
    """The share of the evidence among the first k results, and whether all of it is there."""
    assert measures.evidence_recall(RESULTS, evidence, k) == share
    assert measures.all_evidence(RESULTS, evidence, k) == every


@pytest.mark.parametrize(
    ("evidence", "expected"), [({"d1"}, 1.0), ({"d5", "d2"}, 0.5), ({"d2"}, 0.25), ({"d9"}, 0.0)]
)
def test_reciprocal_rank_is_that_of_the_first_hit(evidence: set[str], expected: float) -> None:
    """A result counts with every turn it was made from."""
    assert measures.reciprocal_rank(RESULTS, evidence) == expected


def test_violations_count_each_forbidden_turn_once() -> None:
    """Two of the three forbidden turns were recalled."""
    assert measures.violations([*RESULTS, ["d4"]], {"d4", "d7", "d8"}) == 2


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("the cat sat", "The cat.", 0.8),
        ("", "x", 0.0),
        ("x", "", 0.0),
        ("cat cat cat", "cat", 1.0),
        ("May 7, 2023", "7 May 2023", 1.0),
        ("a dog", "the cat", 0.0),
        ("高中学历", "高中", 2 * 1 * 0.5 / 1.5),
    ],
)
def test_token_f1_is_the_published_definition(answer: str, gold: str, expected: float) -> None:
    """Lower-case, `. , ! ?` as spaces, sets of tokens, harmonic mean."""
    assert measures.token_f1(answer, gold) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("the the cat", "the cat sat", 2 / 3),  # the second "the" is clipped
        ("the cat", "the cat sat", math.exp(1 - 3 / 2)),  # too short
        ("the cat sat down", "the cat sat", 3 / 4),
        ("a dog", "the cat", 0.0),
        ("", "the cat", 0.0),
    ],
)
def test_bleu_1_is_clipped_precision_with_brevity_penalty(
    answer: str, gold: str, expected: float
) -> None:
    """Unigrams, each counted at most as often as in the gold answer."""
    assert measures.bleu_1(answer, gold) == pytest.approx(expected)


def test_exact_match_ignores_case_and_punctuation_alone() -> None:
    """The same tokens in the same order match; other orders and empty golds do not."""
    assert measures.exact_match("The cat!", "the cat") == 1
    assert measures.exact_match("cat the", "the cat") == 0
    assert measures.exact_match("", "") == 0


def test_percentile_is_linear_between_neighbors() -> None:
    """The median of two values is their mean; without values there is none."""
    assert measures.percentile([1.0, 3.0], 50) == 2
    assert measures.percentile([float(n) for n in range(1, 101)], 95) == pytest.approx(95.05)
    assert measures.percentile([], 50) is None


@given(st.text(), st.text())
def test_answer_measures_stay_between_0_and_1(answer: str, gold: str) -> None:
    """Whatever is answered, no measure leaves its range, and equal answers get the most."""
    for measure in (measures.token_f1, measures.bleu_1, measures.exact_match):
        assert 0 <= measure(answer, gold) <= 1
        assert measure(gold, gold) in ({1.0} if measures.answer_tokens(gold) else {0.0})
