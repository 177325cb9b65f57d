"""Text analysis: what becomes a term, in any script."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_agentmem.retrieval.text import (
    fold,
    heading,
    index_text,
    latin_share,
    query_terms,
    stem,
    terms,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She went running", ["she", "go", "run"]),
        ("Café ﬁne STRASSE Straße", ["cafe", "fine", "strass", "strass"]),
        ("snake_case don't", ["snake", "case", "don", "t"]),
        ("苹果的iPhone13。", ["苹", "果", "的", "苹果", "果的", "iphone13"]),
        ("\uff76\uff9eス", ["ガ", "ス", "ガス"]),
        ("서울", ["서", "울", "서울"]),
        ("אֵין سَلام", ["אין", "سلام"]),
        ("Ещё ещё", ["еще", "еще"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("party 🎉👍🏽 🇩🇪!", ["parti", "🎉", "👍", "🇩🇪"]),
        ("?!… —", []),
        ("", []),
    ],
)
def test_terms_of_any_script(text: str, expected: list[str]) -> None:
    """Every script keeps its words; case, width and optional accents do not matter."""
    assert terms(text) == expected


def test_thai_is_searchable_within_a_run() -> None:
    """A word inside a Thai sentence, which has no spaces, shares a bigram with it."""
    assert set(terms("กาแฟ")) <= set(terms("ฉันชอบกาแฟมาก"))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("When did she go to the museum?", ["go", "museum"]),
        ("What is it?", ["what", "is", "it"]),
        ("你喜欢什么茶呢?", ["你", "喜", "欢", "你喜", "喜欢", "茶"]),
        ("什么?", ["什", "么", "什么"]),
        ("...", []),
    ],
)
def test_query_terms_drop_question_words(query: str, expected: list[str]) -> None:
    """Stop words leave a query unless nothing else would be left."""
    assert query_terms(query) == expected


def test_dakuten_is_a_letter_not_an_accent() -> None:
    """Folding must not turn the Japanese が into か."""
    assert fold("が") == "が"


def test_stemming_in_threads_gives_the_same_stems() -> None:
    """Stemmer objects are not thread-safe, so each thread has its own."""
    words = [f"{letter}{ending}" for letter in "abcdef" for ending in ("anning", "ations")] * 50
    expected = [stem.__wrapped__(word) for word in words]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(stem.__wrapped__, words)) == expected


def test_index_text_puts_date_and_speaker_before_the_words() -> None:
    """The day is written in words that a question would use; unknown parts are left out."""
    day = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert index_text("Hi", "Caroline", day) == "8 May 2023 Caroline: Hi"
    assert index_text("Hi", None, None, day) == "8 May 2023 Hi"
    assert index_text("Hi") == "Hi"


def test_latin_share_ignores_digits_and_punctuation() -> None:
    """Only letters tell a script."""
    assert latin_share("12:30 ?") == 1.0
    assert latin_share("naïve é") == 1.0
    assert latin_share("苹果ab") == 0.5


@given(st.text())
def test_any_text_gives_terms(text: str) -> None:
    """No text raises, and a query's terms are among the index terms of the same text."""
    found = terms(text)
    assert all(found)
    assert set(query_terms(text)) <= set(found)


@given(st.text())
def test_letter_case_of_ascii_does_not_matter(text: str) -> None:
    """Terms do not depend on the case in which English is written."""
    ascii_text = text.encode("ascii", "ignore").decode()
    assert terms(ascii_text.upper()) == terms(ascii_text)


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("Intrepid Farm\nA farm in Adair County, Iowa.", "Intrepid Farm"),
        ("# Plans\n\nWe leave on Monday.", "Plans"),
        ("Intrepid Farm", ""),
        ("Hi Caroline,\nhow was your week?", ""),
        ("A long first line\nshort", ""),
        (" ".join("abcdefghijkl") + "\n" + "text " * 20, ""),
        ("", ""),
    ],
)
def test_heading_is_a_short_first_line_over_more_text(content: str, title: str) -> None:
    """A greeting, a lone line and a long sentence are no title."""
    assert heading(content) == title
