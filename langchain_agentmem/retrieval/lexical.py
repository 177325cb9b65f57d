"""BM25 over an in-memory postings table that scores any subset of its documents.

SQLite's own `bm25()` fixes k1 and b and counts its statistics over the whole table; here the
number of documents, the document frequencies and the mean length are those of the documents asked
about, so that one scope's content never moves another scope's scores.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

K1: Final = 0.9
B: Final = 0.4
_TF_BITS: Final = 16
_TF_MASK: Final = (1 << _TF_BITS) - 1
_PURGE_SHARE: Final = 0.25
_BULK: Final = 500  # documents from which sorting all words at once is quicker than one by one
_DOCUMENT_BITS: Final = 32
_POSTING_BYTES: Final = 8
_TERM_BYTES: Final = 200


def idf(
    document_count: float, document_frequency: float | NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the weight of a term, `ln(1 + (N - n + .5) / (n + .5))`; never negative."""
    odds = (document_count - document_frequency + 0.5) / (document_frequency + 0.5)
    weight: NDArray[np.float64] = np.log1p(np.maximum(odds, 0.0))
    return weight


def bm25(
    tf: NDArray[np.floating],
    length: NDArray[np.floating],
    *,
    average_length: float,
    k1: float = K1,
    b: float = B,
) -> NDArray[np.floating]:
    """Return the saturated term frequency of Okapi BM25, to be multiplied by `idf`.

    Args:
        tf: How often the term stands in each document.
        length: Each document's number of terms.
        average_length: The mean of `length` over all documents that count.
        k1: How fast repetitions saturate.
        b: How much long documents are held back, 0 to 1.

    Returns:
        `tf (k1 + 1) / (tf + k1 (1 - b + b length / average_length))`, in the shape of `tf`.
    """
    norm = k1 * (1.0 - b + b * length / max(average_length, 1e-9))
    return tf * (k1 + 1.0) / (tf + norm)


class LexicalIndex:
    """Postings over documents numbered 0, 1, 2, ... in the order in which they were added.

    Not thread-safe: the owner guards it with its own lock.

    Example:
        ```python
        index = LexicalIndex()
        index.add(["cat", "sat"])
        index.add(["dog"])
        index.scores(["cat"])  # array([0.69..., 0.], dtype=float32)
        ```
    """

    def __init__(self) -> None:
        self._postings: dict[str, array[int]] = {}
        self._lengths: array[float] = array("f")
        self._alive: bytearray = bytearray()
        self._removed = 0  # documents whose postings are still held
        self._entries = 0

    def __len__(self) -> int:
        """Return how many documents were ever added, the removed ones included."""
        return len(self._lengths)

    @property
    def nbytes(self) -> int:
        """Return the bytes held by the postings, the lengths and the vocabulary, roughly."""
        held = _TERM_BYTES * len(self._postings) + _POSTING_BYTES * self._entries
        return held + 5 * len(self)

    def add(self, terms: Sequence[str]) -> int:
        """Add one document and return its number."""
        document = len(self._lengths)
        self._lengths.append(len(terms))
        self._alive.append(1)
        code = document << _TF_BITS
        postings = self._postings
        counts = Counter(terms)
        self._entries += len(counts)
        for term, count in counts.items():
            entry = code | min(count, _TF_MASK)
            try:
                postings[term].append(entry)
            except KeyError:
                postings[term] = array("Q", (entry,))
        return document

    def add_many(self, documents: Iterable[Sequence[str]]) -> range:
        """Add documents in order and return their numbers."""
        start, added = len(self), list(documents)
        if len(added) < _BULK:
            for terms in added:
                self.add(terms)
        else:
            self._add_sorted(added)
        return range(start, len(self))

    def _add_sorted(self, documents: Sequence[Sequence[str]]) -> None:
        """Add many documents by sorting all their words at once."""
        lengths = np.fromiter(map(len, documents), dtype=np.int64, count=len(documents))
        words = list(chain.from_iterable(documents))
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        terms = np.fromiter(map(numbers.__getitem__, words), dtype=np.int64, count=len(words))
        places = np.repeat(np.arange(len(self), len(self) + len(documents)), lengths)
        keys = np.sort(terms << _DOCUMENT_BITS | places)
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        tf = np.minimum(np.diff(firsts, append=len(keys)), _TF_MASK)
        found = keys[firsts]
        codes = (found & ((1 << _DOCUMENT_BITS) - 1)) << _TF_BITS | tf
        edges = np.searchsorted(found >> _DOCUMENT_BITS, np.arange(len(numbers) + 1))
        data = codes.astype(np.uint64).tobytes()
        for term, (low, high) in zip(numbers, pairwise(edges.tolist()), strict=True):
            part = data[_POSTING_BYTES * low : _POSTING_BYTES * high]
            known = self._postings.get(term)
            if known is None:
                self._postings[term] = array("Q", part)
            else:
                known.frombytes(part)
        self._lengths.frombytes(lengths.astype(np.float32).tobytes())
        self._alive.extend(b"\x01" * len(documents))
        self._entries += len(found)

    def remove(self, document: int) -> None:
        """Take a document out of all scores at once; its number is not used again.

        Args:
            document: The number `add` returned. Removing it again changes nothing.

        Raises:
            IndexError: If no document has this number.
        """
        if not 0 <= document < len(self):
            msg = f"The index has no document {document}; it holds 0 to {len(self) - 1}."
            raise IndexError(msg)
        self._removed += self._alive[document]
        self._alive[document] = 0
        if self._removed > _PURGE_SHARE * len(self):
            self.purge()

    def purge(self) -> None:
        """Erase the removed documents' postings and the words that only they used."""
        alive = np.frombuffer(self._alive, dtype=np.bool_).copy()
        kept: dict[str, array[int]] = {}
        for term, postings in self._postings.items():
            codes = np.frombuffer(postings, dtype=np.uint64)
            left = codes[alive[(codes >> _TF_BITS).astype(np.int64)]]
            if left.size:
                kept[term] = array("Q", left.tobytes())
        self._postings = kept
        self._entries = sum(map(len, kept.values()))
        self._removed = 0

    def scores(
        self,
        query_terms: Iterable[str],
        eligible: slice | NDArray[np.bool_] | None = None,
        *,
        k1: float = K1,
        b: float = B,
    ) -> NDArray[np.float32]:
        """Score every document against a query.

        Args:
            query_terms: The query's terms; a repeated term counts once.
            eligible: The documents that count, as a slice of numbers with step 1 or a mask over
                all numbers; all of them by default. Document count, document frequencies and mean
                length are taken over these alone.
            k1: How fast repetitions saturate.
            b: How much long documents are held back.

        Returns:
            One score per document number; 0 without a common term and where not eligible.
        """
        allowed, start, stop = self._eligible(eligible)
        lengths = np.frombuffer(self._lengths, dtype=np.float32)[start:stop]
        count = int(np.count_nonzero(allowed))
        parts = [self._matches(term, start, stop) for term in dict.fromkeys(query_terms)]
        sizes = [part.size for part in parts]
        found = np.zeros(len(self), dtype=np.float32)
        if not count or not sum(sizes):
            return found
        counted = lengths if count == stop - start else lengths[allowed]
        average = float(counted.sum(dtype=np.float64)) / count
        codes, owners = np.concatenate(parts), np.repeat(np.arange(len(parts)), sizes)
        documents = (codes >> _TF_BITS).view(np.int64) - start
        if count < stop - start:
            kept = allowed[documents]
            codes, owners, documents = codes[kept], owners[kept], documents[kept]
        weights = idf(count, np.bincount(owners, minlength=len(parts)))
        tf = (codes & _TF_MASK).astype(np.float64)
        gain = bm25(tf, lengths[documents], average_length=average, k1=k1, b=b)
        gain *= weights[owners]
        found[start:stop] = np.bincount(documents, gain, minlength=stop - start)
        return found

    def _eligible(
        self, eligible: slice | NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.bool_], int, int]:
        """Return a range of documents, and which of them live and count."""
        if isinstance(eligible, slice) and eligible.indices(len(self))[2] == 1:
            start, stop, _ = eligible.indices(len(self))
            stop = max(start, stop)
            return np.frombuffer(bytes(self._alive[start:stop]), dtype=np.bool_), start, stop
        alive = np.frombuffer(bytes(self._alive), dtype=np.bool_)
        if eligible is None:
            return alive, 0, len(self)
        chosen = np.zeros(len(self), dtype=np.bool_)
        chosen[eligible] = True
        return alive & chosen, 0, len(self)

    def _matches(self, term: str, start: int, stop: int) -> NDArray[np.uint64]:
        """Return a term's postings in a range of documents."""
        postings = self._postings.get(term)
        if postings is None:
            return np.empty(0, dtype=np.uint64)
        codes = np.frombuffer(postings, dtype=np.uint64)
        if start == 0 and stop == len(self):
            return codes
        edges = np.array([start << _TF_BITS, stop << _TF_BITS], dtype=np.uint64)
        low, high = np.searchsorted(codes, edges)
        return codes[low:high]
