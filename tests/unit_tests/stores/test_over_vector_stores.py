"""`VectorStoreBaseStore` where its vector store is hard to live with."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_agentmem.memories import RAGMemory
from langchain_agentmem.stores import VectorStoreBaseStore
from langchain_agentmem.testing import CharacterEmbeddings


class _KnownWords(CharacterEmbeddings):
    """Embeddings to which other than Latin texts have no direction, as to the bundled model."""

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        return super().embed_query(text) if text.isascii() else [0.0] * self.dims

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts."""
        return [self.embed_query(text) for text in texts]


class _Fragile(InMemoryVectorStore):
    """A vector store that notices when it is used by two at once, as community FAISS suffers it."""

    busy = False
    used_at_once = False

    def _alone(self) -> None:
        self.used_at_once = self.used_at_once or self.busy
        self.busy = True
        time.sleep(0.002)
        self.busy = False

    def add_documents(self, *args: Any, **options: Any) -> list[str]:  # noqa: ANN401 - the base's arguments
        """Add, alone."""
        self._alone()
        return super().add_documents(*args, **options)

    def similarity_search_with_score(  # type: ignore[override]
        self, query: str, k: int = 4
    ) -> list[tuple[Document, float]]:
        """Search, alone."""
        self._alone()
        return super().similarity_search_with_score(query, k)

    async def aadd_documents(self, *args: Any, **options: Any) -> list[str]:  # noqa: ANN401
        """Add in a thread, as a vector store without async methods does."""
        return await asyncio.to_thread(self.add_documents, *args, **options)

    async def asimilarity_search_with_score(  # type: ignore[override]
        self, query: str, k: int = 4
    ) -> list[tuple[Document, float]]:
        """Search in a thread."""
        return await asyncio.to_thread(self.similarity_search_with_score, query, k)


@pytest.mark.parametrize("text", ["绿茶", "green tea"])
def test_a_query_or_texts_without_a_direction_score_zero_instead_of_failing(text: str) -> None:
    """langchain-core's vector store raises for NaN where only zero vectors can be compared."""
    store = VectorStoreBaseStore(InMemoryVectorStore(_KnownWords()), fields=["text"])
    store.put(("a",), "dark", {"text": "不"}, index=False)
    for n in range(3):
        store.put(("a", "b"), str(n), {"text": f"我喝绿茶 {n}", "n": n})
    store.put(("other",), "3", {"text": "我喝绿茶"})
    found = store.search(("a",), query=text)
    assert [(item.key, item.score) for item in found] == [("2", 0.0), ("1", 0.0), ("0", 0.0)]
    options: dict[str, Any] = {"query": text, "filter": {"n": {"$lt": 2}}, "limit": 1, "offset": 1}
    assert [item.key for item in store.search(("a",), **options)] == ["0"]
    assert [item.key for item in asyncio.run(store.asearch(("a",), **options))] == ["0"]
    store.put(("a",), "4", {"text": "green tea"})
    keys = [item.key for item in store.search(("a",), query="green tea", limit=1)]
    assert keys == ["4"]


async def test_a_memory_finds_words_where_vectors_cannot_tell_texts_apart() -> None:
    """Recall over any vector store goes by words in a script that the model does not know."""
    store = VectorStoreBaseStore(InMemoryVectorStore(_KnownWords()))
    memory = RAGMemory(store=store)
    ann: RunnableConfig = {"configurable": {"user_id": "ann"}}
    memory.remember([("user", "我每天早上喝绿茶。"), ("user", "我住在北京。")], config=ann)
    assert memory.recall("北京", config=ann).items[0].content == "我住在北京。"
    assert (await memory.arecall("绿茶", config=ann)).items[0].content == "我每天早上喝绿茶。"


def test_another_error_of_the_vector_store_is_raised() -> None:
    """Only hits that cannot be compared are no hits."""

    class Broken(InMemoryVectorStore):
        def similarity_search_with_score(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - any
            msg = "no such collection"
            raise ValueError(msg)

    store = VectorStoreBaseStore(Broken(CharacterEmbeddings()))
    with pytest.raises(ValueError, match="no such collection"):
        store.search(("a",), query="x")


def test_threads_take_turns_at_a_vector_store_that_two_at_once_would_spoil() -> None:
    """Unless `parallel` says that it bears it."""
    for parallel in (False, True):
        inner = _Fragile(CharacterEmbeddings())
        store = VectorStoreBaseStore(inner, parallel=parallel)

        def work(name: int, store: VectorStoreBaseStore = store) -> None:
            for n in range(5):
                store.put(("a", str(name)), str(n), {"text": f"text {name} {n}"})
                store.search(("a",), query="text")

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store.search(("a",), query="text", limit=100)) == 20
        assert inner.used_at_once is parallel


async def test_tasks_take_turns_at_a_vector_store_that_two_at_once_would_spoil() -> None:
    """A sync call on the thread of the loop does not wait for them for ever."""
    inner = _Fragile(CharacterEmbeddings())
    store = VectorStoreBaseStore(inner)
    await asyncio.gather(*(store.aput(("a",), str(n), {"text": f"text {n}"}) for n in range(8)))
    assert not inner.used_at_once
    waiting = asyncio.create_task(store.aput(("a",), "late", {"text": "text"}))
    await asyncio.sleep(0)
    assert len(store.search(("a",), query="text", limit=100)) >= 8
    await waiting


def test_a_lost_vector_store_is_told_of_and_filled_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A catalog that outlived its vectors finds everything again after `reindex`."""
    path = tmp_path / "catalog.sqlite"
    embedder = CharacterEmbeddings()
    with VectorStoreBaseStore(InMemoryVectorStore(embedder), catalog=path) as store:
        for n in range(3):
            store.put(("a",), str(n), {"text": f"text {n}"})
        store.put(("a",), "own", {"text": "text", "title": "cello"}, index=["title"])
        store.put(("a",), "dark", {"text": "text"}, index=False)
    with VectorStoreBaseStore(InMemoryVectorStore(embedder), catalog=path) as store:
        with caplog.at_level(logging.WARNING):
            assert store.search(("a",), query="text") == []
        assert "reindex" in caplog.text
        assert store.reindex() == 4
        assert {item.key for item in store.search(("a",), query="text")} == {"0", "1", "2", "own"}
        assert store.search(("a",), query="cello", limit=1)[0].score == pytest.approx(1.0)
        assert asyncio.run(store.areindex()) == 0
        store.delete(("a",), "own")
        assert len(store.search(("a",), query="cello")) == 3


def test_an_empty_store_is_not_called_lost(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing was lost where nothing was indexed."""
    store = VectorStoreBaseStore(InMemoryVectorStore(CharacterEmbeddings()))
    with caplog.at_level(logging.WARNING):
        assert store.search(("a",), query="text") == []
    assert not caplog.records


def test_an_enormous_limit_asks_the_vector_store_for_no_more_than_there_is() -> None:
    """A vector store may allocate as many results as it is asked for."""
    asked = []

    class Counting(InMemoryVectorStore):
        def similarity_search_with_score(self, query: str, k: int = 4, **options: Any) -> Any:  # noqa: ANN401
            asked.append(k)
            return super().similarity_search_with_score(query, k=k, **options)

    store = VectorStoreBaseStore(Counting(CharacterEmbeddings()))
    for n in range(3):
        store.put(("a",), str(n), {"text": f"text {n}"})
    assert len(store.search(("a",), query="text", limit=10**30)) == 3
    assert max(asked) <= 1000
