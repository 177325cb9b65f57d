"""Running systems over data sets: resumable, cached by content, parallel, within a budget."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import langchain_agentmem
from langchain_agentmem.embeddings import embedding_name, resolve_embeddings
from langchain_agentmem.evaluation import answering
from langchain_agentmem.evaluation._lines import JsonLines
from langchain_agentmem.evaluation.data import Dataset, Scope
from langchain_agentmem.evaluation.meter import ReplyCache
from langchain_agentmem.evaluation.records import Asked, Unit
from langchain_agentmem.evaluation.systems import SystemSpec
from langchain_agentmem.evaluation.trial import Equipment, Trial

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

_UNITS: Final = "units.jsonl"
_REPLIES: Final = "replies.jsonl"
_WITHOUT_WEIGHT: Final = ("cli", "surfaces", "evaluation", "testing", "prompt_optimizer")
_ASKING: Final = (
    "trial.py",
    "data.py",
    "baselines.py",
    "answering.py",
    "records.py",
    "meter.py",
    "systems.py",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One trial to be run, with the key its result is known by.

    Attributes:
        spec: The system.
        dataset: The data set.
        scope: The conversation.
        key: SHA-256 of everything the result depends on.
    """

    spec: SystemSpec
    dataset: Dataset
    scope: Scope
    key: str

    @property
    def steps(self) -> int:
        """How many ticks of progress it takes."""
        return len(self.scope.turns) + len(self.scope.questions)


class Runner:
    """Runs every system on every conversation, and knows what has been run before.

    Args:
        specs: The systems.
        datasets: The data sets.
        equipment: Models, embeddings, budget and seed; its cache is the runner's own.
        folder: Where results and replies are kept; None to keep nothing.
        workers: How many conversations are worked on at once.
    """

    def __init__(
        self,
        specs: Sequence[SystemSpec],
        datasets: Sequence[Dataset],
        equipment: Equipment,
        *,
        folder: Path | None = None,
        workers: int = 1,
    ) -> None:
        replies = ReplyCache(folder / _REPLIES) if folder else None
        self.equipment = replace(equipment, cache=replies)
        self.workers = workers
        self._lines = JsonLines(folder / _UNITS) if folder else None
        known = self._lines.read() if self._lines else []
        self._known = {each["key"]: each["unit"] for each in known}
        self._lock = threading.Lock()
        self.tasks = [
            Task(spec=spec, dataset=dataset, scope=scope, key=self._key(spec, dataset, scope))
            for dataset in datasets
            for spec in specs
            for scope in dataset.scopes
        ]

    @property
    def todo(self) -> list[Task]:
        """The tasks whose results are not known yet."""
        return [task for task in self.tasks if task.key not in self._known]

    def run(self) -> Generator[Unit, None, None]:
        """Yield every result in the order of the tasks, the known ones at once.

        A task that fails as a whole gives a result whose questions all failed. Only whole results
        are kept; the others are tried again by the next run, whose model calls are replayed.
        """
        with ThreadPoolExecutor(self.workers) as pool:
            futures: dict[str, Future[Unit]] = {
                task.key: pool.submit(self._run, task) for task in self.todo
            }
            try:
                for task in self.tasks:
                    future = futures.get(task.key)
                    known = self._known.get(task.key, {})
                    yield future.result() if future else Unit.from_dict(known)
            except BaseException:
                self.equipment.budget.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _run(self, task: Task) -> Unit:
        try:
            self.equipment.budget.check()
            unit = Trial(task.spec, task.dataset, task.scope, self.equipment).run()
        except Exception as error:  # noqa: BLE001 - one failure must not end a long run
            told = f"{type(error).__name__}: {error}"[:300]
            failed = [Asked(error=told) for _ in task.scope.questions]
            unit = Unit(
                system=task.spec.name,
                dataset=task.dataset.name,
                scope=task.scope.name,
                asked=failed,
                write_errors=[told],
            )
        if unit.is_whole and self._lines is not None:
            with self._lock:
                self._lines.append({"key": task.key, "unit": unit.to_dict()})
        return unit

    def _key(self, spec: SystemSpec, dataset: Dataset, scope: Scope) -> str:
        given = self.equipment
        models = [_model_key(each) for each in (given.model, given.answerer, given.judge)]
        if not spec.needs_model:
            models[0] = ""
        prompts = (answering.ANSWER_PROMPT, answering.JUDGE_PROMPT) if given.answerer else ()
        parts: list[Any] = [
            code_digest(),
            spec.name,
            spec.source,
            spec.embed or embedding_name(given.embeddings("")),
            dict(spec.parameters),
            dataset.name,
            dataset.batch,
            scope.digest(),
            given.limit,
            given.seed,
            models,
            prompts,
            [sorted(each.answers) for each in scope.questions] if given.judge else (),
        ]
        return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def _model_key(model: BaseChatModel | None) -> str:
    """Return what tells one model from another: its class and its settings."""
    if model is None:
        return ""
    settings = {**model._identifying_params, "kind": model._llm_type}  # noqa: SLF001 - how LangChain's own cache tells models apart
    return json.dumps(settings, default=str, sort_keys=True)


@cache
def code_digest() -> str:
    """Return the SHA-256 of the code that results depend on: all but surfaces and reports."""
    root = Path(langchain_agentmem.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        part = path.relative_to(root)
        if part.parts[0] not in _WITHOUT_WEIGHT or path.name in _ASKING:
            digest.update(part.as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def embedding_models(default: Embeddings) -> Callable[[str], Embeddings]:
    """Return a function from names of embedding models to models, each loaded once.

    Args:
        default: The model of the empty name.
    """
    lock = threading.Lock()
    loaded: dict[str, Embeddings] = {}

    def named(name: str) -> Embeddings:
        with lock:
            if name not in loaded:
                model = resolve_embeddings(name) if name else default
                model.embed_query("warm")  # so that loading it is in no measured time
                loaded[name] = model
            return loaded[name]

    return named
