"""What is indexed of a value, and how it becomes vectors and words."""

import asyncio
import hashlib
import json
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar, cast, get_args

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, PutOp, get_text_at_path, tokenize_path
from langgraph.store.base.embed import EmbeddingsLambda

from langchain_agentmem.embeddings import (
    WordLlamaEmbeddings,
    dense_weight,
    embedding_name,
    resolve_embeddings,
)
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.stores._namespaces import encode
from langchain_agentmem.stores._ops import MODES, DistanceType, StoreIndexConfig
from langchain_agentmem.stores._schema import UNIT_BITS
from langchain_agentmem.stores._values import dump

DISTANCES: Final = get_args(DistanceType)
INDEXED_CHARACTERS: Final = 100_000
"""How much of one text is embedded and found by words; the value itself is kept whole."""
MAX_UNITS: Final = 1 << UNIT_BITS
_WHOLE_VALUE: Final = ("$",)

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class IndexSettings:
    """A checked index configuration.

    Attributes:
        dims: Length of the vectors; None without an embedder.
        embeddings: The embedder; None for an index of words only.
        fields: The paths indexed unless a put names its own.
        distance: `"cosine"`, `"inner_product"` or `"l2"`.
        mode: How queries are answered unless a search says otherwise.
        dense_weight: Weight of the dense score in hybrid search.
        name: The embedder's name; None if it has none that is stable.
    """

    dims: int | None
    embeddings: Embeddings | None
    fields: tuple[str, ...]
    distance: str
    mode: str
    dense_weight: float
    name: str | None

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What a file's vectors and words depend on."""
        return {
            "dims": self.dims,
            "fields": list(self.fields),
            "distance": self.distance,
            "embedding": self.name,
        }


def same_index(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Compare fingerprints; an embedder without a name is compared by its dimensions only."""
    unnamed = left["embedding"] is None or right["embedding"] is None
    return all(left[k] == right[k] for k in left if not (unnamed and k == "embedding"))


def resolve_index(index: IndexConfig | StoreIndexConfig | str | None) -> IndexSettings | None:
    """Check an index configuration.

    Args:
        index: `"default"` for the bundled model and hybrid search, a configuration, or None.

    Raises:
        ConfigurationError: If something in it cannot be used.
    """
    if index is None:
        return None
    if isinstance(index, str) or not isinstance(index, Mapping):
        if index != "default":
            msg = f"index must be 'default', a configuration or None, not {index!r}."
            raise ConfigurationError(msg)
        index = StoreIndexConfig(
            dims=WordLlamaEmbeddings.dims, embed=WordLlamaEmbeddings(), mode="hybrid"
        )
    config = cast("StoreIndexConfig", index)
    embed = config.get("embed")
    embeddings = None if embed is None else resolve_embeddings(embed)
    return IndexSettings(
        dims=_dims(config.get("dims"), embeddings),
        embeddings=embeddings,
        fields=check_fields(config.get("fields") or _WHOLE_VALUE),
        distance=_choice("distance_type", config.get("distance_type", "cosine"), DISTANCES),
        mode=_mode(config.get("mode"), embeddings),
        dense_weight=_weight(config.get("dense_weight"), embeddings),
        name=None if embeddings is None else embedding_name(embeddings),
    )


def _dims(dims: object, embeddings: Embeddings | None) -> int | None:
    if embeddings is None:
        if dims is not None:
            msg = (
                f"index['dims'] {dims!r} needs index['embed'], the model of these vectors; leave "
                "it out for an index of words only, or use index='default'."
            )
            raise ConfigurationError(msg)
        return None
    dims = getattr(embeddings, "dims", None) if dims is None else dims
    if not isinstance(dims, int) or isinstance(dims, bool) or dims < 1:
        msg = f"index['dims'] must be the length of the embedder's vectors, not {dims!r}."
        raise ConfigurationError(msg)
    return dims


def _mode(mode: str | None, embeddings: Embeddings | None) -> str:
    if embeddings is None:
        if mode not in (None, "lexical"):
            msg = f"index['mode'] {mode!r} needs index['embed']; without it only 'lexical' works."
            raise ConfigurationError(msg)
        return "lexical"
    return _choice("mode", mode or "dense", MODES)


def _choice(name: str, chosen: str, choices: Sequence[str]) -> str:
    if chosen not in choices:
        msg = f"index[{name!r}] must be one of {', '.join(choices)}, not {chosen!r}."
        raise ConfigurationError(msg)
    return chosen


def _weight(weight: float | None, embeddings: Embeddings | None) -> float:
    if weight is None:
        return dense_weight(embeddings)
    if not weight >= 0:
        msg = f"index['dense_weight'] must not be negative, but is {weight!r}."
        raise ConfigurationError(msg)
    return float(weight)


def check_fields(fields: object) -> tuple[str, ...]:
    """Return index paths as a tuple.

    Raises:
        ValueError: If one is no path.
    """
    if isinstance(fields, str) or not isinstance(fields, Sequence):
        msg = f"Index fields must be a list of paths, not {fields!r}."
        raise ValueError(msg)  # noqa: TRY004 - an unusable path, as below
    for path in fields:
        if not isinstance(path, str) or not path or not all(map(_is_token, tokenize_path(path))):
            msg = f"{path!r} is not an index path; examples: 'a.b', 'a[0]', 'a[*].b', '$'."
            raise ValueError(msg)
    return tuple(fields)


def _is_token(token: str) -> bool:
    if token.startswith("["):
        inner = token[1:-1]
        return token.endswith("]") and (inner == "*" or inner.lstrip("-").isdecimal())
    return token.endswith("}") if token.startswith("{") else True


@dataclass(slots=True)
class Unit:
    """One indexed text of an item.

    Attributes:
        text: The text.
        digest: Identifies the text; equal digests mean that a stored vector can be kept.
        vector: The vector as it is stored; None without an embedder.
        terms: Its index terms, joined by spaces.
    """

    text: str
    digest: bytes
    vector: bytes | None = None
    terms: str = ""


@dataclass(slots=True)
class Put:
    """A put or delete ready to be written.

    Attributes:
        namespace: Where the item lies.
        path: The encoded namespace.
        key: The item's key.
        value: Its value as JSON text; None to delete it.
        fields: The op's own index fields as JSON text; None for the store's.
        ttl: Minutes to live; None for no end.
        units: Its indexed texts, in order.
    """

    namespace: tuple[str, ...]
    path: str
    key: str
    value: str | None
    fields: str | None = None
    ttl: float | None = None
    units: list[Unit] = field(default_factory=list)


def plan_puts(ops: Iterable[PutOp], settings: IndexSettings | None) -> list[Put]:
    """Turn checked put ops into writes; of several for one key the last one stays."""
    last: dict[tuple[tuple[str, ...], str], PutOp] = {}
    for op in ops:
        place = op.namespace, op.key
        last.pop(place, None)  # so that the order is that of the last ones
        last[place] = op
        if op.value is not None and op.index is not None and op.index is not False:
            check_fields(op.index)
    return [_plan(op, settings) for op in last.values()]


def _plan(op: PutOp, settings: IndexSettings | None) -> Put:
    path = encode(op.namespace)
    if op.value is None:
        return Put(op.namespace, path, op.key, None)
    fields = None if op.index is None else json.dumps(op.index)
    return Put(
        op.namespace,
        path,
        op.key,
        dump(op.value),
        fields,
        op.ttl,
        extract(op.value, op.index, settings),
    )


def extract(
    value: Mapping[str, Any],
    index: Literal[False] | Sequence[str] | None,
    settings: IndexSettings | None,
) -> list[Unit]:
    """Return the texts of a value that are indexed, as far as they are; blank ones left out.

    Raises:
        ValueError: If there are too many.
    """
    if settings is None or index is False:
        return []
    paths = settings.fields if index is None else index
    units: list[Unit] = []
    for path in paths:
        for whole in _texts(value, path):
            text = whole[:INDEXED_CHARACTERS]
            if text and not text.isspace():
                units.append(Unit(text, digest(text)))
    if len(units) >= MAX_UNITS:
        msg = f"An item can have {MAX_UNITS - 1} indexed texts at most, not {len(units)}."
        raise ValueError(msg)
    return units


def _texts(value: Mapping[str, Any], path: str) -> list[str]:
    """Return the texts at a path; a plain key of a string, the usual case, needs no walk."""
    if path.isidentifier() and isinstance(found := value.get(path), str):
        return [found]
    return get_text_at_path(value, path)


def digest(text: str) -> bytes:
    """Return 12 bytes that identify a text."""
    return hashlib.blake2b(text.encode(), digest_size=12).digest()


def embed(
    embeddings: Embeddings, documents: list[str], queries: list[str]
) -> tuple[list[list[float]], list[list[float]]]:
    """Embed documents and queries in the calling thread.

    An embedder that is an async function runs on a loop of its own.
    """
    if isinstance(embeddings, EmbeddingsLambda) and not hasattr(embeddings, "func"):
        return _run_apart(aembed(embeddings, documents, queries))
    vectors = embeddings.embed_documents(documents) if documents else []
    return vectors, [embeddings.embed_query(query) for query in queries]


async def aembed(
    embeddings: Embeddings, documents: list[str], queries: list[str]
) -> tuple[list[list[float]], list[list[float]]]:
    """Embed documents and queries on the running loop."""
    vectors = await embeddings.aembed_documents(documents) if documents else []
    return vectors, [await embeddings.aembed_query(query) for query in queries]


def is_async_native(embeddings: Embeddings) -> bool:
    """Tell whether an embedder has async methods of its own, rather than a thread around sync."""
    if isinstance(embeddings, EmbeddingsLambda):
        return not hasattr(embeddings, "func")
    kind = type(embeddings)
    return (
        kind.aembed_documents is not Embeddings.aembed_documents
        or kind.aembed_query is not Embeddings.aembed_query
    )


def _run_apart(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end from a thread that may have a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, work).result()
