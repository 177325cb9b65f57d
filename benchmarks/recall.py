"""Measure model-free recall on LoCoMo, MemDaily and MuSiQue, and what each ingredient adds.

Run by hand: `python benchmarks/recall.py DATA_FOLDER [--dataset NAME] [--ablate] [--held-out]`. The
data sets are not part of the repository; `DATA_FOLDER` holds `locomo/`, `memdaily/` and `musique/`.
The ranking functions are measured without a store; `agentmem bench` measures memories as a user
has them, with the same loaders and the same measure.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from langchain_agentmem.embeddings import word_vectors
from langchain_agentmem.evaluation.data import Dataset, Question, Scope
from langchain_agentmem.evaluation.datasets import load
from langchain_agentmem.evaluation.measures import evidence_recall
from langchain_agentmem.retrieval.context import Candidate, Session
from langchain_agentmem.retrieval.fusion import normalize_dense, normalize_max
from langchain_agentmem.retrieval.lexical import LexicalIndex
from langchain_agentmem.retrieval.rank import POOL_DEPTH, Weights, rank
from langchain_agentmem.retrieval.rules import without_names
from langchain_agentmem.retrieval.text import index_text, query_terms, terms

Embed = Callable[[list[str]], NDArray[np.float32]]
_CONTEXT = ("previous", "following", "session_best", "session_lexical")
_RULES = ("speaker", "date", "when")
_FACTORS = (0.5, 1.0, 1.5)
NAMES = ("locomo", "memdaily", "musique")


class Pipeline:
    """What a store and a memory do together, in memory: index, pool, rank."""

    def __init__(self, scope: Scope, embed: Embed | None) -> None:
        self.turns = scope.turns
        self.speakers = sorted({turn.speaker for turn in scope.turns if turn.speaker})
        texts = [index_text(t.content, t.speaker, t.observed_at) for t in scope.turns]
        documents = [terms(text) for text in texts]
        self.index = LexicalIndex()
        self.index.add_many(documents)
        self.vectors = embed(texts) if embed else None
        keys: dict[str, list[str]] = {}
        lengths: dict[str, int] = {}
        for turn, document in zip(scope.turns, documents, strict=True):
            keys.setdefault(turn.session, []).append(turn.key)
            lengths[turn.session] = lengths.get(turn.session, 0) + len(document)
        said = {turn.key: turn for turn in scope.turns}
        self.sessions = {
            name: Session(
                name,
                tuple(turns),
                lengths[name],
                said[turns[0]].observed_at,
                tuple(said[key].speaker for key in turns),
            )
            for name, turns in keys.items()
        }

    def pool(
        self, query: str, vector: NDArray[np.float32] | None, weight: float, depth: int
    ) -> list[Candidate]:
        """Return the best hybrid candidates."""
        content = query_terms(without_names(query, self.speakers))
        lexical = normalize_max(self.index.scores(content))
        dense = np.zeros_like(lexical)
        if self.vectors is not None and vector is not None and weight:
            dense = normalize_dense(self.vectors @ vector)
        best = np.argsort(-(lexical + weight * dense), kind="stable")[:depth]
        return [
            Candidate(
                key=turn.key,
                content=turn.content,
                session=turn.session,
                speaker=turn.speaker,
                observed_at=turn.observed_at,
                lexical=float(lexical[i]),
                dense=float(dense[i]),
                title=turn.title,
            )
            for i in best
            for turn in (self.turns[i],)
        ]

    def recall(
        self, query: str, vector: NDArray[np.float32] | None, weights: Weights, depth: int
    ) -> list[str]:
        """Return the ranked keys."""
        pool = self.pool(query, vector, weights.dense_for(query), depth)
        words = None if self.vectors is None else word_vectors()
        return [ranked.key for ranked in rank(query, pool, self.sessions, weights, words)]


@dataclass(slots=True)
class Tally:
    """Recall per question, by category."""

    cutoffs: Sequence[int]
    rows: list[tuple[Question, list[float]]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, question: Question, keys: Sequence[str]) -> None:
        """Count one question: the share of its evidence in the first k, for each k."""
        results = [[key] for key in keys]
        shares = [evidence_recall(results, question.evidence, k) for k in self.cutoffs]
        self.rows.append((question, shares))

    def line(self, *, category: str | None = None, sound: bool = False) -> str:
        """Return one line of a table; `sound` leaves out what is known to be wrong."""
        chosen = [
            shares
            for question, shares in self.rows
            if category in (None, question.category) and not (sound and question.doubtful)
        ]
        means = np.mean(chosen, axis=0)
        return "  ".join(f"{100 * mean:5.1f}" for mean in means) + f"  n={len(chosen)}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A scope with its index and the vectors of its questions."""

    questions: list[Question]
    pipeline: Pipeline
    vectors: NDArray[np.float32] | None


def prepare(dataset: Dataset, embed: Embed | None) -> list[Prepared]:
    """Index every scope and embed every question with evidence once."""
    prepared = []
    for scope in dataset.scopes:
        asked = [
            question
            for question in scope.questions
            if question.evidence and question.category not in dataset.apart
        ]
        queries = [question.text for question in asked]
        vectors = embed(queries) if embed and queries else None
        prepared.append(Prepared(asked, Pipeline(scope, embed), vectors))
    return prepared


def measure(
    prepared: Iterable[Prepared], weights: Weights, cutoffs: Sequence[int], depth: int
) -> Tally:
    """Ask every question."""
    tally = Tally(cutoffs)
    for part in prepared:
        for i, question in enumerate(part.questions):
            vector = None if part.vectors is None else part.vectors[i]
            started = time.perf_counter()
            keys = part.pipeline.recall(question.text, vector, weights, depth)
            tally.seconds += time.perf_counter() - started
            tally.add(question, keys)
    return tally


def ablations(weights: Weights) -> dict[str, Weights]:
    """Return the recipe without each ingredient."""
    return {
        **{
            f"- {name}": _without(weights, name)
            for name in ("dense", "synonyms", "focus", *_CONTEXT, *_RULES, "title")
        },
        "- all context": _without(weights, *_CONTEXT),
        "- all rules": _without(weights, *_RULES),
        "- context and rules": _without(weights, *_CONTEXT, *_RULES),
    }


def _without(weights: Weights, *names: str) -> Weights:
    """Return weights with some of them 0."""
    return Weights(**{**asdict(weights), **dict.fromkeys(names, 0.0)})


def held_out(
    prepared: Sequence[Prepared], weights: Weights, cutoffs: Sequence[int], depth: int
) -> Tally:
    """Ask each conversation with weights that were chosen on the others alone.

    Each weight is halved, kept or raised by half, whichever finds most in the other
    conversations while the rest stay as they are.
    """
    names = ("synonyms", *_CONTEXT, *_RULES)
    options = {
        (name, factor): Weights(**{**asdict(weights), name: factor * getattr(weights, name)})
        for name in names
        for factor in _FACTORS
    }
    found = {
        option: [np.mean(_shares([part], changed, cutoffs, depth)) for part in prepared]
        for option, changed in options.items()
    }
    tally = Tally(cutoffs)
    for left_out, part in enumerate(prepared):
        changed = asdict(weights)
        for name in names:
            others = [sum(np.delete(found[name, factor], left_out)) for factor in _FACTORS]
            changed[name] *= _FACTORS[int(np.argmax(others))]
        asked = measure([part], Weights(**changed), cutoffs, depth)
        tally.rows += asked.rows
    return tally


def _shares(
    prepared: Sequence[Prepared], weights: Weights, cutoffs: Sequence[int], depth: int
) -> list[list[float]]:
    return [shares for _, shares in measure(prepared, weights, cutoffs, depth).rows]


def wordllama() -> Embed:
    """Load the bundled static model without network."""
    import wordllama as package

    folder = Path(package.__file__).parent
    model = package.WordLlama.load(cache_dir=folder, disable_download=True)
    return lambda texts: np.asarray(model.embed(texts, norm=True), dtype=np.float32)


def report(dataset: Dataset, tally: Tally) -> None:
    """Print the table of one data set."""
    for category in sorted({question.category for question, _ in tally.rows}):
        label = f"{category} {dataset.categories.get(category, '')}"
        print(f"  {label:24}{tally.line(category=category)}")
    print(f"  {'all':24}{tally.line()}   {1e3 * tally.seconds / len(tally.rows):.2f} ms a question")
    print(f"  {'without known-wrong':24}{tally.line(sound=True)}")


def main() -> None:
    """Run the measurement that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with locomo/, memdaily/ and musique/")
    parser.add_argument("--dataset", choices=NAMES, action="append")
    parser.add_argument("--ablate", action="store_true", help="leave out each ingredient in turn")
    parser.add_argument("--held-out", action="store_true", help="choose weights on the others")
    parser.add_argument("--lexical", action="store_true", help="no embedding model")
    parser.add_argument("--pool", type=int, default=POOL_DEPTH, help="candidates from the store")
    parser.add_argument("--weight", action="append", default=[], help="such as dense=0.5")
    arguments = parser.parse_args()
    chosen = {name: float(value) for name, value in (w.split("=") for w in arguments.weight)}
    weights = Weights(**{**asdict(Weights()), **chosen})
    embed = None if arguments.lexical else wordllama()
    for name in arguments.dataset or NAMES:
        dataset = load(name, arguments.data)
        prepared = prepare(dataset, embed)
        cutoffs = dataset.cutoffs
        print(f"{name}: R@{cutoffs}, {'lexical' if arguments.lexical else 'wordllama'}, {weights}")
        report(dataset, measure(prepared, weights, cutoffs, arguments.pool))
        if arguments.held_out:
            tally = held_out(prepared, weights, cutoffs, arguments.pool)
            print(f"  {'weights of the others':24}{tally.line()}")
        for label, changed in ablations(weights).items() if arguments.ablate else ():
            print(f"  {label:24}{measure(prepared, changed, cutoffs, arguments.pool).line()}")


if __name__ == "__main__":
    main()
