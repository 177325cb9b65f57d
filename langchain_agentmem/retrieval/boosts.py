"""Mem0's fusion: a semantic score with keyword and entity boosts on one absolute scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

_SIGMOIDS: Final = ((3, 5.0, 0.7), (6, 7.0, 0.6), (9, 9.0, 0.5), (15, 10.0, 0.5))
_LONG_QUERY: Final = (12.0, 0.5)
_KEYWORD_SHARE: Final = 1.0
_ENTITY_SHARE: Final = 0.5
_CROWDING: Final = 0.001


def keyword_boost(raw: float, term_count: int) -> float:
    """Return a raw Okapi score on a scale of 0 to 1, by how many terms the query has."""
    middle, steepness = next(
        ((middle, slope) for most, middle, slope in _SIGMOIDS if term_count <= most), _LONG_QUERY
    )
    return 1 / (1 + math.exp(-steepness * (raw - middle)))


def entity_boost(cosine: float, linked: int) -> float:
    """Return what a matched entity gives each of its `linked` facts; crowded entities give less."""
    return cosine * _ENTITY_SHARE / (1 + _CROWDING * (linked - 1) ** 2)


def boosted(
    semantic: Mapping[str, float], keyword: Mapping[str, float], entity: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Fuse three arms over the union of their members.

    Args:
        semantic: Cosine of each member of the semantic arm.
        keyword: `keyword_boost` of each member of the keyword arm.
        entity: `entity_boost` of each fact of a matched entity.

    Returns:
        For each key its parts and their `score`, 0 to 1.
    """
    most = 1.0 + _KEYWORD_SHARE * bool(keyword) + _ENTITY_SHARE * bool(entity)
    fused = {}
    for key in dict.fromkeys([*semantic, *keyword, *entity]):
        parts = {
            name: arm[key]
            for name, arm in (("semantic", semantic), ("keyword", keyword), ("entity", entity))
            if key in arm
        }
        fused[key] = {**parts, "score": min(sum(parts.values()) / most, 1.0)}
    return fused
