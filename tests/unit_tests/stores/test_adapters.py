"""The adapters beyond LangChain's standard suites."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.stores import (
    FaissSqliteStore,
    LangGraphByteStore,
    LangGraphVectorStore,
    StoreRetriever,
    VectorStoreBaseStore,
)
from langchain_agentmem.testing import CharacterEmbeddings


def indexed() -> FaissSqliteStore:
    """Return our store in memory, indexed by a bag of characters."""
    embedder = CharacterEmbeddings()
    return FaissSqliteStore(":memory:", index={"dims": embedder.dims, "embed": embedder})


def community_faiss(embedder: CharacterEmbeddings) -> Any:  # noqa: ANN401 - an optional package
    """Return an empty FAISS vector store of langchain-community."""
    pytest.importorskip("langchain_community")
    import faiss
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

    return FAISS(embedder, faiss.IndexFlatL2(embedder.dims), InMemoryDocstore(), {})


@pytest.mark.parametrize("adapter", [LangGraphByteStore, LangGraphVectorStore])
def test_vector_store_in_place_of_a_store_names_the_adapter(adapter: Any) -> None:  # noqa: ANN401
    """The usual mix-up says what to wrap with what."""
    with pytest.raises(ConfigurationError, match="VectorStoreBaseStore"):
        adapter(InMemoryVectorStore(CharacterEmbeddings()), ("x",))


@pytest.mark.parametrize("adapter", [LangGraphByteStore, LangGraphVectorStore])
@pytest.mark.parametrize("namespace", ["docs", (), None])
def test_a_namespace_is_no_string_of_letters(adapter: Any, namespace: Any) -> None:  # noqa: ANN401
    """`"docs"` would be the namespace `("d", "o", "c", "s")`."""
    with pytest.raises(ConfigurationError, match="at least one label"):
        adapter(InMemoryStore(), namespace)


def test_byte_store_says_which_item_holds_no_bytes() -> None:
    """A namespace may be shared by mistake."""
    store = InMemoryStore()
    store.put(("cache",), "foreign", {"text": "x"})
    cache = LangGraphByteStore(store, ("cache",))
    with pytest.raises(ValueError, match=r"'foreign'.*namespace of its own"):
        cache.mget(["foreign"])


@pytest.mark.parametrize("pair", [(1, b"x"), ("a", "x"), ("a", None)])
def test_byte_store_refuses_what_it_could_not_give_back(pair: Any) -> None:  # noqa: ANN401
    """A key that is no string broke every later `yield_keys`."""
    cache = LangGraphByteStore(InMemoryStore(), ("cache",))
    with pytest.raises(TypeError, match="keeps bytes under strings"):
        cache.mset([("good", b"1"), pair])
    assert list(cache.yield_keys()) == []


@pytest.mark.parametrize(
    "store", [InMemoryStore(), FaissSqliteStore(":memory:", index=None)], ids=["memory", "ours"]
)
def test_vector_store_over_a_store_without_an_index_says_so(store: Any) -> None:  # noqa: ANN401
    """It would find nothing, whatever is in it."""
    documents = LangGraphVectorStore(store, ("docs",))
    documents.add_texts(["green tea"])
    with pytest.raises(ConfigurationError, match="has no index"):
        documents.similarity_search("tea")
    assert LangGraphVectorStore(indexed(), ("docs",)).similarity_search("tea") == []


def test_byte_store_pages_through_all_keys_of_its_own_namespace() -> None:
    """More keys than a page, and a namespace below that is not its own."""
    store = InMemoryStore()
    cache = LangGraphByteStore(store, ("cache",))
    LangGraphByteStore(store, ("cache", "child")).mset([("a0", b"other")])
    cache.mset([(f"a{n}", bytes([n % 256])) for n in range(2100)] + [("b", b"1")])
    assert sorted(cache.yield_keys(prefix="a")) == sorted(f"a{n}" for n in range(2100))
    assert len(list(cache.yield_keys())) == 2101


def test_vector_store_keeps_to_its_own_namespace() -> None:
    """Documents of a namespace below do not crowd out its own."""
    store = indexed()
    LangGraphVectorStore(store, ("docs", "child")).add_texts(["abc"] * 60)
    documents = LangGraphVectorStore(store, ("docs",))
    documents.add_texts(["abx"], ids=["mine"])
    assert [found.id for found in documents.similarity_search("abc", k=1)] == ["mine"]


def test_vector_store_filters_metadata() -> None:
    """A filter on metadata is the store's filter, operators included."""
    documents = LangGraphVectorStore(indexed(), ("docs",))
    documents.add_documents([Document(page_content=f"t{n}", metadata={"n": n}) for n in range(5)])
    found = documents.similarity_search("t", k=5, filter={"n": {"$gte": 3}})
    assert sorted(document.metadata["n"] for document in found) == [3, 4]


def test_vector_store_refuses_a_metadata_field_that_would_replace_the_text() -> None:
    """`page_content` is where the text is kept."""
    documents = LangGraphVectorStore(indexed(), ("docs",))
    with pytest.raises(ValueError, match="page_content"):
        documents.add_texts(["a"], [{"page_content": "b"}])


@pytest.mark.parametrize("is_async", [False, True])
def test_mmr_prefers_documents_that_differ(*, is_async: bool) -> None:
    """Of two equal documents and a different one, MMR returns one of each."""
    documents = LangGraphVectorStore(indexed(), ("docs",))
    documents.add_texts(["aaab", "aaab", "aaxy"], ids=["1", "2", "3"])
    options: Any = {"k": 2, "lambda_mult": 0.1}
    if is_async:
        found = asyncio.run(documents.amax_marginal_relevance_search("aaab", **options))
    else:
        found = documents.max_marginal_relevance_search("aaab", **options)
    assert "3" in [document.id for document in found]


def test_mmr_without_a_model_says_what_to_give() -> None:
    """A store without embedder cannot compare documents."""
    documents = LangGraphVectorStore(InMemoryStore(), ("docs",))
    with pytest.raises(ConfigurationError, match="embedding="):
        documents.max_marginal_relevance_search("a")


def test_retriever_leaves_out_low_scores() -> None:
    """`min_score` is a bound on the store's score."""
    store = indexed()
    store.put(("docs",), "same", {"content": "abc"}, index=["content"])
    store.put(("docs",), "other", {"content": "xyz"}, index=["content"])
    retriever = StoreRetriever(store=store, namespace=("docs",), min_score=0.9)
    assert [found.metadata["key"] for found in retriever.invoke("abc")] == ["same"]


@pytest.mark.filterwarnings("ignore:.*langchain-community.*:DeprecationWarning")
@pytest.mark.parametrize("is_faiss", [False, True], ids=["core", "faiss"])
def test_store_over_a_vector_store_filters_without_losing_hits(*, is_faiss: bool) -> None:
    """Three matching items behind 200 better hits are all found, and deletes take effect."""
    embedder = CharacterEmbeddings()
    inner: Any = community_faiss(embedder) if is_faiss else InMemoryVectorStore(embedder)
    scores: Any = "distance" if is_faiss else "similarity"
    store = VectorStoreBaseStore(inner, fields=["text"], scores=scores)
    for n in range(200):
        store.put(("a",), f"near{n}", {"text": f"abc {n}", "rare": False})
    for n in range(3):
        store.put(("a",), f"far{n}", {"text": f"xyz {n}", "rare": True})
    found = store.search(("a",), query="abc", filter={"rare": True}, limit=3)
    assert sorted(item.key for item in found) == ["far0", "far1", "far2"]
    store.put(("a",), "far0", {"text": "abc", "rare": True})
    assert store.search(("a",), query="abc", limit=1)[0].key == "far0"
    store.delete(("a",), "far0")
    found = store.search(("a",), query="abc", filter={"rare": True}, limit=3)
    assert sorted(item.key for item in found) == ["far1", "far2"]


class _Failing(InMemoryVectorStore):
    """A vector store that cannot add."""

    def add_documents(self, *_: Any, **__: Any) -> list[str]:  # noqa: ANN401 - any arguments
        """Raise."""
        msg = "no space"
        raise OSError(msg)


def test_store_over_a_failing_vector_store_writes_nothing() -> None:
    """What cannot be embedded is not in the catalog either."""
    store = VectorStoreBaseStore(_Failing(CharacterEmbeddings()))
    with pytest.raises(OSError, match="no space"):
        store.put(("a",), "k", {"text": "abc"})
    assert store.get(("a",), "k") is None


async def test_texts_are_added_to_a_store_that_can_only_be_awaited() -> None:
    """`afrom_texts` awaits the store, it does not run the sync call in a thread."""

    class OnlyAsync(InMemoryStore):
        def batch(self, ops: Any) -> Any:  # noqa: ANN401 - as the base
            raise NotImplementedError

        async def abatch(self, ops: Any) -> Any:  # noqa: ANN401 - as the base
            return InMemoryStore.batch(self, ops)

    embedder = CharacterEmbeddings()
    store = OnlyAsync(index={"dims": embedder.dims, "embed": embedder})

    found = await LangGraphVectorStore.afrom_texts(
        ["a tree", "a house"],
        embedder,
        [{"n": 1}, {"n": 2}],
        ids=["t", "h"],
        store=store,
        namespace=("x",),
    )

    documents = await found.aget_by_ids(["t", "h"])
    assert [(each.page_content, each.metadata) for each in documents] == [
        ("a tree", {"n": 1}),
        ("a house", {"n": 2}),
    ]
