"""Moving from a file to PostgreSQL and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from langchain_agentmem.stores import FaissSqliteStore, open_store
from langchain_agentmem.stores.copying import copy_urls
from langchain_agentmem.testing import CharacterEmbeddings
from tests.integration_tests.postgres import schema_uri
from tests.unit_tests.stores.test_copying import filled

if TYPE_CHECKING:
    from pathlib import Path


def test_file_to_postgres_and_back_is_the_same(tmp_path: Path) -> None:
    """Items, times, index fields and the order of a listing survive both ways."""
    pytest.importorskip("langgraph.store.postgres")
    embedder = CharacterEmbeddings()
    uri = schema_uri(tmp_path)
    old, new = tmp_path / "old.sqlite", tmp_path / "new.sqlite"
    with filled(old, embedder) as store:
        embedder.document_calls.clear()
        there = copy_urls(f"sqlite:///{old}", uri, embeddings=embedder, fields=["text"])
        assert (there.items, there.embedded, there.kept_times) == (6, 0, True)
        back = copy_urls(uri, f"sqlite:///{new}", embeddings=embedder, fields=["text"])
        assert back.sha256 == there.sha256
        with FaissSqliteStore(new, index=None) as copied:
            assert copied.search(("users",)) == store.search(("users",))


def test_default_index_finds_in_a_namespace_of_a_server(tmp_path: Path) -> None:
    """The bundled model over PostgreSQL: a text of an unknown script does not lead the ranking."""
    pytest.importorskip("langgraph.store.postgres")
    with open_store(schema_uri(tmp_path)) as store:
        store.put(("users", "a"), "1", {"text": "plays the cello"}, index=["text"])
        store.put(("users", "a"), "2", {"text": "我住在上海"}, index=["text"])
        store.put(("users", "b"), "3", {"text": "cello cello"}, index=["text"])
        found = store.search(("users", "a"), query="Who plays the cello?")
        assert [item.key for item in found] == ["1", "2"]
