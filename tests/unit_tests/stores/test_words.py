"""Scopes too large for postings in memory: the file's own words give the same results."""

import itertools
import random

import pytest

from langchain_agentmem.stores import FaissSqliteStore
from tests.unit_tests.floor import Clock
from tests.unit_tests.stores.conftest import Client, Letters, Open

Found = list[tuple[str, float, dict[str, float]]]
WORDS = [f"word{n}" for n in range(80)] + [*"猫狗鱼鸟花"] + ["été", "naïve", "🥰", "🫠", "дом"]


LIMIT = "langchain_agentmem.stores._index._LARGE_SCOPE"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every scope too large for postings in memory."""
    monkeypatch.setattr(LIMIT, -1)


def _fill(store: FaissSqliteStore, rng: random.Random) -> None:
    for n in range(120):
        namespace = rng.choice([("a", "x"), ("a", "y"), ("ab",), ("_agentmem", "a")])
        texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 14))) for _ in range(n % 3 + 1)]
        ttl = 1 if n % 7 == 0 else None
        store.put(namespace, str(n), {"text": texts, "even": n % 2 == 0}, ttl=ttl)
    for n in range(0, 120, 11):
        for namespace in store.list_namespaces():
            store.delete(namespace, str(n))


def _found(store: FaissSqliteStore, mode: str, query: str, **options: object) -> Found:
    hits = store.search(("a",), query=query, mode=mode, refresh_ttl=False, **options)  # type: ignore[arg-type]
    return [(hit.key, hit.score or 0.0, hit.parts) for hit in hits]  # type: ignore[attr-defined]


def _open_pair(open_store: Open, embedder: Letters) -> tuple[FaissSqliteStore, FaissSqliteStore]:
    index = {"dims": 36, "embed": embedder, "fields": ["text[*]"]}
    return open_store(index=index), open_store(index=index)


@pytest.mark.parametrize("seed", range(3))
def test_file_and_memory_find_the_same(
    open_store: Open,
    embedder: Letters,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    """Keys, scores and parts agree: filters, expiry, namespaces, repeated words, every script."""
    rng = random.Random(seed)  # noqa: S311 - test data
    memory, file = _open_pair(open_store, embedder)
    _fill(memory, rng)
    for moved, mode in itertools.product((0.0, 61.0), ("lexical", "hybrid")):
        clock.move(moved)
        for options in ({}, {"filter": {"even": True}}, {"offset": 5, "limit": 7}):
            query = " ".join(rng.choices(WORDS, k=4))
            monkeypatch.setattr(LIMIT, 1_000_000)
            wanted = _found(memory, mode, query, **{"limit": 50, **options})
            monkeypatch.setattr(LIMIT, -1)
            found = _found(file, mode, query, **{"limit": 50, **options})
            assert [key for key, _, _ in found] == [key for key, _, _ in wanted]
            for (_, score, parts), (_, other, others) in zip(found, wanted, strict=True):
                assert score == pytest.approx(other, abs=1e-6)
                assert parts == pytest.approx(others, abs=1e-6)
    assert wanted


@pytest.mark.usefixtures("large")
def test_loaded_scope_follows_changes(open_store: Open, embedder: Letters) -> None:
    """Puts, updates and deletes of another store are found in the file at the next search."""
    writer, reader = _open_pair(open_store, embedder)
    writer.put(("a",), "1", {"text": ["red kite", "blue kite"]})
    for n in range(6):
        writer.put(("a",), f"other {n}", {"text": ["else"]})
    assert [key for key, _, _ in _found(reader, "lexical", "blue kite")] == ["1"]
    writer.put(("a",), "2", {"text": ["green boat"]})
    writer.put(("a",), "1", {"text": ["green kite"]})
    assert [key for key, _, _ in _found(reader, "lexical", "green boat")] == ["2", "1"]
    assert _found(reader, "lexical", "blue") == []
    writer.delete(("a",), "2")
    assert [key for key, _, _ in _found(reader, "hybrid", "green boat", limit=1)] == ["1"]


@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
@pytest.mark.usefixtures("large")
def test_other_scopes_never_change_a_score(client: Client, mode: str) -> None:
    """What another scope says about a word moves no score here, and is never returned."""
    for n, text in enumerate(["red kite", "red boat over the red sea", "a green boat"]):
        client.put(("a",), str(n), {"text": text})

    def found() -> list[tuple[str, float | None]]:
        return [(hit.key, hit.score) for hit in client.search(("a",), query="red boat", mode=mode)]

    before = found()
    for n in range(30):
        client.put(("b",), str(n), {"text": "red red boat " * (n + 1)})
        client.put(("aa",), str(n), {"text": "boat"})
    assert found() == before
    assert len(before) == 3


@pytest.mark.parametrize(("query", "key"), [("北京", "1"), ("喜欢", "2"), ("猫", "2"), ("🫠", "3")])
@pytest.mark.usefixtures("large")
def test_scripts_without_spaces_are_found(client: Client, query: str, key: str) -> None:
    """Chinese words, single characters and emoji that SQLite does not know are found."""
    texts = {"1": "我住在北京", "2": "我喜欢小猫", "3": "so tired 🫠", "4": "something else"}
    for name, text in texts.items():
        client.put(("a",), name, {"text": text})
    assert client.keys(("a",), query=query, mode="lexical") == [key]


@pytest.mark.usefixtures("large")
def test_words_of_half_a_scope_count_only_alone(open_store: Open) -> None:
    """A word in most texts does not decide beside a rarer one, but is found on its own."""
    store = open_store()
    for n in range(6):
        store.put(("a",), str(n), {"text": f"common common {'rare' if n == 3 else 'more'}"})
    assert [hit.key for hit in store.lexical_search(("a",), "common rare")] == ["3"]
    assert len(store.lexical_search(("a",), "common")) == 6


@pytest.mark.usefixtures("large")
def test_a_common_word_is_found_beside_one_that_nobody_said(open_store: Open) -> None:
    """A word that stands in no text does not push the words of most texts out of a query."""
    store = open_store()
    for n in range(6):
        store.put(("a",), str(n), {"text": f"common {n}"})
    assert len(store.lexical_search(("a",), "common unheard")) == 6


@pytest.mark.usefixtures("large")
def test_words_of_very_many_texts_count_only_alone(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not more postings of a word are read than help, unless there is no rarer word."""
    monkeypatch.setattr("langchain_agentmem.stores._words._MOST_POSTINGS", 3)
    store = open_store()
    for n in range(20):
        store.put(("a",), str(n), {"text": f"{'often' if n < 5 else 'seldom'} {'rare' * (n == 9)}"})
    assert [hit.key for hit in store.lexical_search(("a",), "often rare")] == ["9"]
    assert {hit.key for hit in store.lexical_search(("a",), "often")} == set("01234")


@pytest.mark.parametrize("query", ['"', "a AND", "NEAR(", "*", "_1", "terms:x", "-", "( OR )"])
@pytest.mark.usefixtures("large")
def test_query_syntax_is_literal(open_store: Open, query: str) -> None:
    """Nothing in a query is syntax of the word table, and no scope word can be asked for."""
    store = open_store()
    store.put(("a",), "k", {"text": "hello"})
    assert store.lexical_search(("a",), query) == []
    assert store.lexical_search((), "hello")[0].key == "k"


@pytest.mark.usefixtures("large")
def test_words_are_still_scoped_after_a_vacuum(open_store: Open) -> None:
    """A namespace without items of its own keeps its place above those that have some."""
    store = open_store()
    store.put(("a", "x"), "old", {"text": "kite"})
    store.put(("b",), "other", {"text": "kite"})
    store.delete(("b",), "other")
    store.vacuum()
    store.put(("a", "y"), "new", {"text": "kite"})
    assert {hit.key for hit in store.lexical_search(("a",), "kite")} == {"old", "new"}
    paths = store.conn.execute("SELECT path FROM namespaces ORDER BY path").fetchall()
    assert paths == [("a\x1f",), ("a\x1fx\x1f",), ("a\x1fy\x1f",)]


@pytest.mark.usefixtures("large")
def test_large_scope_builds_no_postings(open_store: Open) -> None:
    """A search by words of a large scope holds neither postings nor vectors in memory."""
    store = open_store()
    store.put(("a",), "k", {"text": "hello"})
    store.lexical_search(("a",), "hello")
    assert store._engine is not None
    assert store._engine.index is not None
    (segment,) = store._engine.index.segments.all()
    assert segment.lexical is None
    assert segment.vectors is None
    assert [hit.key for hit in store.search(("a",), query="hello", mode="hybrid")] == ["k"]
