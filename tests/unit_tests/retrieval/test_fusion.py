"""Scales of scores, and fused rankings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from langchain_agentmem.retrieval.fusion import (
    kth_largest,
    normalize_dense,
    normalize_max,
    reciprocal_rank_fusion,
)


def test_dense_by_hand_with_fewer_than_depth() -> None:
    """The best becomes 1, the last 0, the rest lies between."""
    assert normalize_dense(np.array([0.5, 0.9, 0.7])).tolist() == pytest.approx([0.0, 1.0, 0.5])


def test_dense_of_a_part_is_that_of_the_whole_with_its_floor() -> None:
    """What a store returned of a scope is normalized as the scope was."""
    whole = np.linspace(0.9, 0.1, 300)
    expected = normalize_dense(whole)[[0, 100, 250]]
    part = normalize_dense(whole[[0, 100, 250]], floor=float(whole[199]))
    assert part.tolist() == pytest.approx(expected.tolist())


def test_dense_below_depth_is_zero() -> None:
    """The similarity at the depth and all below it count nothing."""
    values = normalize_dense(np.array([0.9, 0.8, 0.7, 0.1]), depth=3)
    assert values.tolist() == pytest.approx([1.0, 0.5, 0.0, 0.0])


@pytest.mark.parametrize(
    ("similarities", "expected"),
    [([], []), ([0.4], [1.0]), ([0.0], [0.0]), ([-0.2, -0.2], [0.0, 0.0]), ([0.3, 0.3], [1, 1])],
)
def test_dense_without_spread(similarities: list[float], expected: list[float]) -> None:
    """One item, equal items and none are defined."""
    assert normalize_dense(np.array(similarities)).tolist() == expected


@given(arrays(np.float32, st.integers(0, 30), elements=st.floats(width=32)))
def test_dense_is_finite_and_never_negative(similarities: NDArray[np.float32]) -> None:
    """Not-a-number counts as no similarity."""
    values = normalize_dense(np.clip(similarities, -1, 1))
    assert np.all((values >= 0) & (values <= 1))


def test_normalize_max_of_nothing_positive_is_zero() -> None:
    """A question without a matching word gives no lexical score, and no division by zero."""
    assert normalize_max(np.zeros(2)).tolist() == [0.0, 0.0]
    assert normalize_max(np.array([1.0, 4.0])).tolist() == [0.25, 1.0]


def test_reciprocal_rank_fusion_by_hand() -> None:
    """Scores add up over the rankings, and ties keep the order of first appearance."""
    fused = reciprocal_rank_fusion([["a", "b"], ["b", "c"]], k=1)
    assert fused == [("b", 1 / 3 + 1 / 2), ("a", 1 / 2), ("c", 1 / 3)]
    assert [key for key, _ in reciprocal_rank_fusion([["a"], ["b"]])] == ["a", "b"]
    assert reciprocal_rank_fusion([["a"], ["b"]], weights=[1, 2])[0][0] == "b"


@pytest.mark.parametrize("size", [1, 5, 39, 40, 41, 1_000])
@pytest.mark.parametrize("wanted", [1, 5, 200])
def test_kth_largest_is_that_of_a_sorted_list(size: int, wanted: int) -> None:
    """Looking at blocks first skips no value that counts, equal ones included."""
    rng = np.random.default_rng(size)
    for values in (rng.random(size), rng.integers(0, 3, size).astype(float), np.zeros(size)):
        count = min(wanted, size)
        assert kth_largest(values, count) == np.sort(values)[::-1][count - 1]
