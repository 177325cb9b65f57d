"""Bootstrap intervals over conversations and the questions within them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

ROUNDS: Final = 1000
_LOW, _HIGH = 2.5, 97.5


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % interval.

    Attributes:
        mean: The mean of the values.
        low: Lower end of the interval.
        high: Upper end.
    """

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether a difference is shown: 0 is not in the interval."""
        return self.low > 0 or self.high < 0


def bootstrap(
    values: NDArray[np.float64],
    groups: Sequence[str],
    *,
    seed: int,
    pairs: Sequence[tuple[int, int]] = (),
    rounds: int = ROUNDS,
) -> tuple[list[Interval], list[Interval]]:
    """Return the mean of each column, and of the paired difference of some columns.

    Conversations are drawn with replacement, then questions within each of them, because
    questions about one conversation are not independent. All columns see the same draws.

    Args:
        values: One row a question, one column a measure of a system.
        groups: The conversation of each row.
        seed: Of the draws.
        pairs: Columns `(i, j)` to subtract: column i minus column j.
        rounds: How many draws.

    Returns:
        The intervals of the columns, and those of the pairs.
    """
    names = np.array(groups)
    order = np.argsort(names, kind="stable")
    sizes = np.unique(names, return_counts=True)[1]
    drawn = np.array([values[order[rows]].mean(axis=0) for rows in _draws(sizes, seed, rounds)])
    means = values.mean(axis=0)
    alone = [_interval(means[i], drawn[:, i]) for i in range(values.shape[1])]
    return alone, [_interval(means[i] - means[j], drawn[:, i] - drawn[:, j]) for i, j in pairs]


def _draws(sizes: NDArray[np.int64], seed: int, rounds: int) -> Iterator[NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    starts = np.cumsum(sizes) - sizes
    for _ in range(rounds):
        chosen = rng.integers(len(sizes), size=len(sizes))
        size = np.repeat(sizes[chosen], sizes[chosen])
        start = np.repeat(starts[chosen], sizes[chosen])
        yield start + (rng.random(len(size)) * size).astype(np.int64)


def _interval(mean: np.float64, drawn: NDArray[np.float64]) -> Interval:
    low, high = np.percentile(drawn, [_LOW, _HIGH])
    return Interval(float(mean), float(low), float(high))
