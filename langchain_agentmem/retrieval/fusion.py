"""Putting scores of different kinds on one scale, and fusing rankings."""

from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

DENSE_DEPTH: Final = 200
RRF_K: Final = 60
_BLOCKS: Final = 4  # for each wanted value: more take longer, fewer let more values through

KeyT = TypeVar("KeyT", bound=Hashable)


def normalize_max(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Divide scores by their maximum; scores without a positive one become 0."""
    values = np.asarray(scores, dtype=np.float64)
    top = values.max(initial=0.0)
    return values / top if top > 0 else np.zeros_like(values)


def normalize_dense(
    similarities: NDArray[np.floating], depth: int = DENSE_DEPTH, floor: float | None = None
) -> NDArray[np.float64]:
    """Normalize a query's similarities over its own best `depth`.

    The weight of the dense arm then does not depend on the size of the store or on the model's
    habit of calling everything .7 similar.

    Args:
        similarities: Cosines of the query with every candidate of the scope; NaN counts as none.
        depth: The rank whose similarity becomes 0; the last one where there are fewer.
        floor: The similarity that becomes 0, where it is known, as of a part of a scope.

    Returns:
        `(cos - cos_depth) / (cos_1 - cos_depth)`, clipped at 0. Where all are equal, 1 for
        positive similarities, else 0.
    """
    values = np.asarray(similarities, dtype=np.float64)
    if not values.size:
        return values
    top = float(values.max())
    if np.isnan(top):
        values = np.where(np.isnan(values), -1.0, values)
        top = float(values.max())
    if floor is None:
        floor = kth_largest(values, min(max(depth, 1), values.size))
    spread = top - floor
    if spread <= 0:
        return np.where((values >= floor) & (values > 0), 1.0, 0.0)
    scaled = values - floor
    scaled /= spread
    return np.maximum(scaled, 0.0, out=scaled)


def kth_largest(values: NDArray[np.floating], k: int) -> float:
    """Return the k-th largest of at least k values without NaN.

    Args:
        values: The values, in any order.
        k: 1 for the largest.
    """
    if len(values) > _BLOCKS * k:
        values = values[values >= bar_of_best(values, k)]
    return float(np.partition(values, len(values) - k)[len(values) - k])


def bar_of_best(values: NDArray[np.floating], k: int) -> float:
    """Return a number that at least k of at least k values reach, and few more; the k-th, or less.

    Args:
        values: The values, in any order, without NaN.
        k: How many must reach it.
    """
    width = len(values) // (_BLOCKS * k)
    if width > 1:  # as many blocks as that have a maximum that reaches it
        values = values[: len(values) // width * width].reshape(-1, width).max(axis=1)
    return float(np.partition(values, len(values) - k)[len(values) - k])


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[KeyT]],
    *,
    k: int = RRF_K,
    weights: Sequence[float] | None = None,
) -> list[tuple[KeyT, float]]:
    """Fuse rankings by the sum of `weight / (k + rank)`, ranks counted from 1.

    Offered for dense arms that are as good as the lexical one; with a weaker one it costs up to
    11 points of R@1 against the weighted sum (measured on LoCoMo), and is never a default here.

    Args:
        rankings: Keys in order, best first, one sequence per arm.
        k: The constant of Cormack, Clarke and Buettcher (2009).
        weights: One weight per ranking, 1 by default.

    Returns:
        Keys with their score, best first; ties in the order of first appearance.
    """
    fused: dict[KeyT, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, key in enumerate(dict.fromkeys(ranking), start=1):
            fused[key] = fused.get(key, 0.0) + weight / (k + rank)
    return sorted(fused.items(), key=lambda pair: -pair[1])
