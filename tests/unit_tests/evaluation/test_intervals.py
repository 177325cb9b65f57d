"""Bootstrap intervals over conversations and questions."""

import numpy as np
import pytest

from langchain_agentmem.evaluation.intervals import bootstrap


def test_constant_values_have_an_interval_of_no_width() -> None:
    """Where all questions agree, every draw does."""
    (interval,), _ = bootstrap(np.full((8, 1), 0.25), list("aabbccdd"), seed=0)
    assert (interval.mean, interval.low, interval.high) == (0.25, 0.25, 0.25)


def test_a_paired_difference_is_seen_where_the_intervals_overlap() -> None:
    """A system that is better on every question is better, however the questions differ."""
    rng = np.random.default_rng(0)
    hard = rng.random(200)
    values = np.stack([hard, hard + 0.05], axis=1)
    (low, high), (difference,) = bootstrap(values, ["a", "b"] * 100, seed=0, pairs=[(1, 0)])
    assert low.high > high.low
    assert difference.mean == pytest.approx(0.05)
    assert difference.excludes_zero


def test_a_difference_of_chance_is_not_shown() -> None:
    """Two systems that take turns in being right do not differ."""
    values = np.array([[1.0, 0.0], [0.0, 1.0]] * 20)
    _, (difference,) = bootstrap(values, ["a"] * 40, seed=0, pairs=[(1, 0)])
    assert difference.mean == 0
    assert not difference.excludes_zero


def test_conversations_are_drawn_before_questions() -> None:
    """Questions about one conversation count as one when they always agree."""
    values = np.array([[1.0]] * 50 + [[0.0]] * 50)
    (few,), _ = bootstrap(values, ["a"] * 50 + ["b"] * 50, seed=0)
    (many,), _ = bootstrap(values, [str(at) for at in range(100)], seed=0)
    assert (few.low, few.high) == (0, 1)
    assert 0.35 < many.low < many.high < 0.65


def test_the_same_seed_gives_the_same_interval() -> None:
    """The draws come from the seed alone."""
    values = np.random.default_rng(1).random((30, 2))
    assert bootstrap(values, list("abc") * 10, seed=7) == bootstrap(
        values, list("abc") * 10, seed=7
    )
    assert bootstrap(values, list("abc") * 10, seed=7) != bootstrap(
        values, list("abc") * 10, seed=8
    )
