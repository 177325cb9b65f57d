"""`open_store`: a store from a URL, so that moving from a file to a server is one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import unquote

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.stores.faiss_sqlite import FaissSqliteStore

if TYPE_CHECKING:
    from langgraph.store.base import IndexConfig, TTLConfig

    from langchain_agentmem.stores.postgres import PooledPostgresStore

_SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql://", "postgres://")


def open_store(
    url: str,
    *,
    index: IndexConfig | Literal["default"] | None = "default",
    ttl: TTLConfig | None = None,
    **options: Any,  # noqa: ANN401 - options of the store's own class
) -> FaissSqliteStore | PooledPostgresStore:
    """Return the store a URL names, to be used as it is, in `with`, or in `async with`.

    Args:
        url: `sqlite:///relative.sqlite`, `sqlite:////absolute.sqlite`, `sqlite:///:memory:`, or
            `postgresql://user:password@host/database` (needs the extra `postgres`, and pgvector
            on the server).
        index: `"default"` for the bundled model and hybrid search, a LangGraph `IndexConfig`, or
            None. Searches are exact; PostgreSQL builds no approximate index unless
            `ann_index_config` asks for one.
        ttl: LangGraph's `TTLConfig`.
        **options: Further arguments of `FaissSqliteStore` or `PooledPostgresStore`.

    Returns:
        A store that connects at first use.

    Raises:
        ConfigurationError: If the URL or an argument cannot be used or a package is missing.

    Example:
        ```python
        with open_store("sqlite:///:memory:") as store:
            store.put(("users", "ada"), "1", {"text": "plays the cello"})
        ```
    """
    if not isinstance(url, str):
        msg = f"A store's URL is a string such as 'sqlite:///file.sqlite', not {url!r}."
        raise ConfigurationError(msg)
    path = file_of(url)
    if path is not None and "?" in path:
        msg = f"{url!r} has options after '?'; give them to open_store as arguments instead."
        raise ConfigurationError(msg)
    if path is not None:
        return FaissSqliteStore(path, index=index, ttl=ttl, **options)
    if url.startswith(_POSTGRES):
        return _open_postgres(url, index, ttl, options)
    msg = (
        f"{url.partition('://')[0][:40]!r} is no URL of a store; "
        "use sqlite:///file.sqlite or postgresql://user:password@host/database."
    )
    raise ConfigurationError(msg)


def file_of(url: str) -> str | None:
    """Return the path, or `:memory:`, a `sqlite:///` URL names; None for any other URL."""
    if not url.startswith(_SQLITE) or len(url) == len(_SQLITE):
        return None
    return unquote(url.removeprefix(_SQLITE))


def _open_postgres(
    url: str,
    index: IndexConfig | Literal["default"] | None,
    ttl: TTLConfig | None,
    options: Mapping[str, Any],
) -> PooledPostgresStore:
    try:
        from langchain_agentmem.stores.postgres import PooledPostgresStore
    except ImportError as err:
        msg = f"PostgreSQL needs more packages: pip install 'langchain-agentmem[postgres]' ({err})"
        raise ConfigurationError(msg) from err
    config = None if index is None else cast("Any", _postgres_index(index))
    return PooledPostgresStore(url, index=config, ttl=ttl, **options)


def _postgres_index(index: IndexConfig | Literal["default"]) -> dict[str, Any]:
    """Return an index configuration without an approximate index, hybrid for the bundled model."""
    exact = {"ann_index_config": {"kind": "flat"}}
    if index != "default":
        return {**exact, **cast("Mapping[str, Any]", index)}
    from langchain_agentmem.embeddings import default_embeddings

    model = default_embeddings()
    return {**exact, "dims": model.dims, "embed": model, "mode": "hybrid"}
