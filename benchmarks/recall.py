"""Measure model-free recall on LoCoMo, MemDaily and MuSiQue, and what each ingredient adds.

Run by hand: `python benchmarks/recall.py DATA_FOLDER [--dataset NAME] [--ablate]`. The data sets
are not part of the repository; `DATA_FOLDER` holds `locomo/`, `memdaily/` and `musique/`.
"""

import argparse
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from langchain_agentmem.retrieval.context import Candidate, Session
from langchain_agentmem.retrieval.fusion import normalize_dense, normalize_max
from langchain_agentmem.retrieval.lexical import LexicalIndex
from langchain_agentmem.retrieval.rank import POOL_DEPTH, Weights, rank
from langchain_agentmem.retrieval.rules import without_names
from langchain_agentmem.retrieval.text import index_text, query_terms, terms

Embed = Callable[[list[str]], NDArray[np.float32]]
CATEGORIES: Final = {
    "1": "multi-hop",
    "2": "temporal",
    "3": "open-domain",
    "4": "single-hop",
    "5": "adversarial",
}
_BROKEN: Final = "[ERRORQ]"  # what stands in 11 of MemDaily's questions
CUTOFFS: Final = {"locomo": (1, 5, 10), "memdaily": (1, 3, 5), "musique": (1, 5, 10)}


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn or passage."""

    key: str
    content: str
    session: str
    speaker: str | None = None
    observed_at: datetime | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question with the keys of its evidence; the category is only for the report."""

    text: str
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Scope:
    """Everything of one user: the turns in order, and the questions about them."""

    name: str
    turns: list[Turn]
    questions: list[Question]


def locomo(folder: Path) -> Iterator[Scope]:
    """Yield the conversations of categories 1 to 4; report evidence that names no turn."""
    unusable: list[str] = []
    for conversation in json.loads((folder / "locomo" / "locomo_dev.json").read_text("utf-8")):
        turns = list(_locomo_turns(conversation["conversation"]))
        known = {turn.key for turn in turns}
        questions = []
        for qa in conversation["qa"]:
            evidence = {key for text in qa["evidence"] for key in _evidence(text)}
            unusable += sorted(evidence - known)
            if evidence & known and qa["category"] != 5:
                category = str(qa["category"])
                questions.append(Question(qa["question"], frozenset(evidence & known), category))
        yield Scope(conversation["sample_id"], turns, questions)
    print(f"evidence that names no turn: {unusable}")


def _locomo_turns(conversation: Mapping[str, object]) -> Iterator[Turn]:
    """Yield the turns of one LoCoMo conversation."""
    numbers = [
        int(name.split("_")[1]) for name in conversation if re.fullmatch(r"session_\d+", name)
    ]
    for number in sorted(numbers):
        moment = datetime.strptime(
            str(conversation[f"session_{number}_date_time"]), "%I:%M %p on %d %B, %Y"
        ).replace(tzinfo=UTC)
        for turn in cast("list[dict[str, str]]", conversation[f"session_{number}"]):
            yield Turn(turn["dia_id"], turn["text"], str(number), turn["speaker"], moment)


def _evidence(text: str) -> Iterator[str]:
    """Split an evidence string such as `D8:6; D9:17` or `D30:05` into turn ids."""
    for session, turn in re.findall(r"D:?(\d+):(\d+)", text):
        yield f"D{int(session)}:{int(turn)}"


def memdaily(folder: Path) -> Iterator[Scope]:
    """Yield each message list as one scope; the set's broken questions are left out."""
    for path in sorted((folder / "memdaily").glob("*.json")):
        for entry in json.loads(path.read_text("utf-8")):
            turns = []
            for message in entry["message_list"]:
                stamp = " ".join(re.findall(r"\d+", message["time"]))
                moment = datetime.strptime(stamp, "%Y %m %d %H %M").replace(tzinfo=UTC)
                key = str(message["mid"])
                turns.append(Turn(key, message["message"], str(moment.date()), "user", moment))
            questions = [
                Question(q["question"], frozenset(map(str, q["target_step_id"])), path.stem[:2])
                for q in entry["question_list"]
                if q["target_step_id"] and q["question"] != _BROKEN
            ]
            yield Scope(f"{path.stem}-{entry['tid']}", turns, questions)


def musique(folder: Path) -> Iterator[Scope]:
    """Yield the one corpus; each passage is a session of its own."""
    corpus = json.loads((folder / "musique" / "musique_corpus.json").read_text("utf-8"))
    texts = [f"{passage['title']}\n{passage['text']}" for passage in corpus]
    keys = {text: str(number) for number, text in enumerate(texts)}
    questions = []
    for entry in json.loads((folder / "musique" / "musique_dev.json").read_text("utf-8")):
        gold = {
            keys[f"{paragraph['title']}\n{paragraph['paragraph_text']}"]
            for paragraph in entry["paragraphs"]
            if paragraph["is_supporting"]
        }
        questions.append(Question(entry["question"], frozenset(gold), entry["id"][:4]))
    turns = [Turn(key, text, key, title=text.split("\n")[0]) for text, key in keys.items()]
    yield Scope("musique", turns, questions)


LOADERS: Final = {"locomo": locomo, "memdaily": memdaily, "musique": musique}


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
        return [ranked.key for ranked in rank(query, pool, self.sessions, weights)]


@dataclass(slots=True)
class Tally:
    """Recall per question, by category and by scope."""

    cutoffs: Sequence[int]
    rows: list[tuple[str, str, list[float]]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, scope: str, question: Question, keys: Sequence[str]) -> None:
        """Count one question: the share of its evidence in the first k, for each k."""
        shares = [
            len(question.evidence.intersection(keys[:k])) / len(question.evidence)
            for k in self.cutoffs
        ]
        self.rows.append((scope, question.category, shares))

    def line(self, *, category: str | None = None, scope: str | None = None) -> str:
        """Return one line of a table."""
        chosen = [
            shares
            for name, kind, shares in self.rows
            if category in (None, kind) and scope in (None, name)
        ]
        means = np.mean(chosen, axis=0)
        return "  ".join(f"{100 * mean:5.1f}" for mean in means) + f"  n={len(chosen)}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A scope with its index and the vectors of its questions."""

    scope: Scope
    pipeline: Pipeline
    vectors: NDArray[np.float32] | None


def prepare(scopes: Iterable[Scope], embed: Embed | None) -> list[Prepared]:
    """Index every scope and embed every question once."""
    prepared = []
    for scope in scopes:
        queries = [question.text for question in scope.questions]
        vectors = embed(queries) if embed and queries else None
        prepared.append(Prepared(scope, Pipeline(scope, embed), vectors))
    return prepared


def measure(
    prepared: Iterable[Prepared], weights: Weights, cutoffs: Sequence[int], depth: int
) -> Tally:
    """Ask every question."""
    tally = Tally(cutoffs)
    for part in prepared:
        for i, question in enumerate(part.scope.questions):
            vector = None if part.vectors is None else part.vectors[i]
            started = time.perf_counter()
            keys = part.pipeline.recall(question.text, vector, weights, depth)
            tally.seconds += time.perf_counter() - started
            tally.add(part.scope.name, question, keys)
    return tally


def ablations(weights: Weights) -> dict[str, Weights]:
    """Return the recipe without each ingredient."""
    names = ("previous", "following", "session_best", "session_lexical", "speaker", "date", "when")
    return {
        **{f"- {name}": _without(weights, name) for name in ("dense", "focus", *names, "title")},
        "- all context": _without(weights, *names[:4]),
        "- all rules": _without(weights, *names[4:]),
        "- context and rules": _without(weights, *names),
    }


def _without(weights: Weights, *names: str) -> Weights:
    """Return weights with some of them 0."""
    return Weights(**{**asdict(weights), **dict.fromkeys(names, 0.0)})


def wordllama() -> Embed:
    """Load the bundled static model without network."""
    import wordllama as package

    folder = Path(package.__file__).parent
    model = package.WordLlama.load(cache_dir=folder, disable_download=True)
    return lambda texts: np.asarray(model.embed(texts, norm=True), dtype=np.float32)


def report(name: str, tally: Tally) -> None:
    """Print the table of one data set."""
    for category in sorted({kind for _, kind, _ in tally.rows}):
        label = f"{category} {CATEGORIES.get(category, '')}" if name == "locomo" else category
        print(f"  {label:22}{tally.line(category=category)}")
    print(f"  {'all':22}{tally.line()}   {1e3 * tally.seconds / len(tally.rows):.2f} ms a question")


def main() -> None:
    """Run the measurement that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with locomo/, memdaily/ and musique/")
    parser.add_argument("--dataset", choices=sorted(LOADERS), action="append")
    parser.add_argument("--ablate", action="store_true", help="leave out each ingredient in turn")
    parser.add_argument("--lexical", action="store_true", help="no embedding model")
    parser.add_argument("--pool", type=int, default=POOL_DEPTH, help="candidates from the store")
    parser.add_argument("--weight", action="append", default=[], help="such as dense=0.5")
    arguments = parser.parse_args()
    chosen = {name: float(value) for name, value in (w.split("=") for w in arguments.weight)}
    weights = Weights(**{**asdict(Weights()), **chosen})
    embed = None if arguments.lexical else wordllama()
    for name in arguments.dataset or LOADERS:
        prepared = prepare(LOADERS[name](arguments.data), embed)
        cutoffs = CUTOFFS[name]
        print(f"{name}: R@{cutoffs}, {'lexical' if arguments.lexical else 'wordllama'}, {weights}")
        report(name, measure(prepared, weights, cutoffs, arguments.pool))
        for label, changed in ablations(weights).items() if arguments.ablate else ():
            print(f"  {label:22}{measure(prepared, changed, cutoffs, arguments.pool).line()}")


if __name__ == "__main__":
    main()
