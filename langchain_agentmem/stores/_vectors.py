"""Vectors on disk and their similarities.

On disk a vector takes two bytes a dimension: as float16 where that loses nothing, else as 16-bit
integers with one float32 scale. The error of a component is at most the largest component / 65534,
about ten times less than float16's; cosines differ from those of float32 by less than 1e-5.
"""

import math
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

import faiss
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
_LEVELS: Final = 32767
_SCALE_BYTES: Final = 4
_SAMPLE: Final = 16
_ONE: Final = np.float32(1)
_LEAST_SQUARE: Final = 1e-20
_PARALLEL_BYTES: Final = 8_000_000  # below this, handing work to a thread costs more than it saves


def as_matrix(vectors: Sequence[Sequence[float]], dims: int) -> Floats:
    """Return an embedder's vectors as a matrix of shape `(len(vectors), dims)`.

    Raises:
        ValueError: If a vector has another length or is not finite.
    """
    return _finite(_packed(vectors, dims))


def _packed(vectors: Sequence[Sequence[float]], dims: int) -> Floats:
    """Return vectors as a matrix; `struct` reads lists in half the time that numpy takes."""
    for vector in vectors:
        if len(vector) != dims:
            msg = (
                f"The embedder returned a vector of length {len(vector)}, but index['dims'] is "
                f"{dims}; set dims to the embedder's length."
            )
            raise ValueError(msg)
    pack = struct.Struct(f"{dims}f").pack
    try:
        data = b"".join([pack(*vector) for vector in vectors])
    except (OverflowError, struct.error):  # beyond float32, or no floats, which numpy tells better
        return np.array(vectors, dtype=np.float32)
    return np.frombuffer(data, dtype=np.float32).reshape(len(vectors), dims)


def _finite(matrix: Floats) -> Floats:
    """Return an embedder's vectors if all their numbers are finite."""
    if not np.isfinite(matrix).all():
        msg = "The embedder returned a vector with NaN or infinity; nothing was written."
        raise ValueError(msg)
    return matrix


def query_vector(query: Sequence[float], dims: int, distance: str) -> Floats:
    """Return a query's vector of shape `(dims,)`; of length 1 for the cosine, unless it is zero.

    Raises:
        ValueError: If it has another length or is not finite.
    """
    vector: Floats
    (vector,) = _packed([query], dims)
    square = float(vector.dot(vector))
    if not _LEAST_SQUARE < square < math.inf:  # zero, wrong, or beyond what squares can tell
        matrix = _finite(vector[None])
        (vector,) = normalize(matrix.copy()) if distance == "cosine" else matrix
    elif distance == "cosine":
        vector = vector / np.float32(math.sqrt(square))
    return vector


def encode(matrix: Floats) -> list[bytes]:
    """Return the rows of a matrix as they are stored."""
    exact = _fit_halves(matrix[:, :_SAMPLE])  # most vectors show in a few numbers that they do not
    if not exact.any():
        return _encode_whole(matrix)
    exact[exact] = _fit_halves(matrix[exact])
    halves = iter(_rows_of(matrix[exact].astype(np.float16)))
    whole = iter(_encode_whole(matrix[~exact]))
    return [next(halves if is_exact else whole) for is_exact in exact.tolist()]


def _fit_halves(matrix: Floats) -> NDArray[np.bool_]:
    """Tell which rows float16 holds without loss."""
    halves = np.clip(matrix, -_LEVELS, _LEVELS).astype(np.float16)
    fits: NDArray[np.bool_] = (halves.astype(np.float32) == matrix).all(axis=1)
    return fits


def _encode_whole(matrix: Floats) -> list[bytes]:
    """Return rows as 16-bit integers, each followed by its scale."""
    scales = (np.abs(matrix).max(axis=1, initial=0) / _LEVELS).astype(np.float32)
    levels = matrix / np.where(scales > 0, scales, np.float32(1))[:, None]
    np.clip(np.rint(levels, out=levels), -_LEVELS, _LEVELS, out=levels)
    parts = [levels.astype(np.int16).view(np.uint8), scales[:, None].view(np.uint8)]
    return _rows_of(np.concatenate(parts, axis=1))


def _rows_of(matrix: NDArray[Any]) -> list[bytes]:
    data, width = matrix.tobytes(), matrix.shape[1] * matrix.itemsize
    return [data[start : start + width] for start in range(0, len(data), width)]


def decode(blobs: Sequence[bytes], dims: int) -> Floats:
    """Return stored vectors as a matrix of shape `(len(blobs), dims)`.

    Raises:
        ValueError: If a blob has another size or holds a number that is not finite.
        TypeError: If one is no blob.
    """
    matrix = np.empty((len(blobs), dims), dtype=np.float32)
    lengths = np.fromiter(map(len, blobs), dtype=np.int64, count=len(blobs))
    for length in set(lengths.tolist()):  # `np.unique` would load masked arrays, which takes long
        rows = np.flatnonzero(lengths == length)
        raw = np.frombuffer(b"".join([blobs[row] for row in rows.tolist()]), dtype=np.uint8)
        raw = raw.reshape(len(rows), length)
        if length not in (2 * dims, 2 * dims + _SCALE_BYTES):
            msg = f"A stored vector has {length} bytes, which is no vector of {dims} numbers."
            raise ValueError(msg)
        if length == 2 * dims:
            matrix[rows] = raw.view(np.float16)
        else:
            scale = raw[:, -_SCALE_BYTES:].copy().view(np.float32)
            matrix[rows] = raw[:, :-_SCALE_BYTES].copy().view(np.int16) * scale
    if not np.isfinite(matrix).all():
        msg = "A stored vector has NaN or infinity."
        raise ValueError(msg)
    return matrix


def normalize(matrix: Floats) -> Floats:
    """Scale rows to length 1 in place; a zero row stays zero."""
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    norms[norms == 0] = 1
    matrix /= norms[:, None].astype(np.float32)
    return matrix


def similarities(
    query: Floats, vectors: Floats, rows: "slice | NDArray[np.int64]", distance: str, threads: int
) -> Floats:
    """Score rows of a matrix against a query with FAISS, exactly; higher is better.

    Args:
        query: A vector of shape `(dims,)`; of length 1 for the cosine.
        vectors: The matrix; its rows are of length 1 for the cosine.
        rows: Which rows, in ascending order.
        distance: `"cosine"`, `"inner_product"` or `"l2"` (the negative Euclidean distance).
        threads: How many threads may share a large scan.

    Returns:
        One score per row.
    """
    if isinstance(rows, slice):
        scores = _scan(query, vectors[rows], distance, threads)
    else:
        first, last = (int(rows[0]), int(rows[-1]) + 1) if rows.size else (0, 0)
        # Reading rows one after the other is about three times as fast as picking them.
        if 3 * rows.size >= last - first:
            scores = _scan(query, vectors[first:last], distance, threads)[rows - first]
        else:
            scores = _scan(query, np.ascontiguousarray(vectors[rows]), distance, threads)
    if distance == "cosine":
        np.minimum(scores, _ONE, out=scores)
        np.maximum(scores, -_ONE, out=scores)
    return scores


def _scan(query: Floats, block: Floats, distance: str, threads: int) -> Floats:
    scores = np.empty(len(block), dtype=np.float32)
    if threads > 1 and block.nbytes > _PARALLEL_BYTES:
        edges = np.linspace(0, len(block), threads + 1).astype(int)
        parts = [slice(a, b) for a, b in pairwise(edges)]
        with ThreadPoolExecutor(threads) as executor:
            jobs = [executor.submit(_fill, scores[p], query, block[p], distance) for p in parts]
            for job in jobs:
                job.result()
    else:
        _fill(scores, query, block, distance)
    return scores


def _fill(scores: Floats, query: Floats, block: Floats, distance: str) -> None:
    if not len(block):
        return
    library: Any = faiss  # its wrappers carry no annotations for these two
    pointer = library.swig_ptr
    compare = library.fvec_L2sqr_ny if distance == "l2" else library.fvec_inner_products_ny
    compare(pointer(scores), pointer(query), pointer(block), block.shape[1], len(block))
    if distance == "l2":
        np.sqrt(scores, out=scores)
        np.negative(scores, out=scores)
