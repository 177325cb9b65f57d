"""Dates in questions, and the rules that read a question's form."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_agentmem.retrieval.dates import DateMention, date_match, date_mentions
from langchain_agentmem.retrieval.rules import (
    asked_at_last,
    asks_when,
    is_first_person,
    is_user,
    named_speakers,
    time_share,
    without_names,
)

MAY_8 = DateMention(2023, 5, 8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 8 May, 2023", [MAY_8]),
        ("the 8th of May 2023", [MAY_8]),
        ("May 8th, 2023", [MAY_8]),
        ("2023-05-08 and 2023/5/8", [MAY_8]),
        ("2023年5月8日", [MAY_8]),
        ("2023년 5월 8일", [MAY_8]),
        ("in early May 2023", [DateMention(2023, 5)]),
        ("in May", [DateMention(month=5)]),
        ("五月と十二月", [DateMention(month=5), DateMention(month=12)]),
        ("in 2022", [DateMention(2022)]),
        ("8 Sept", [DateMention(None, 9, 8)]),
        ("may I march? May I?", [DateMention(month=5)]),
        ("May I ask", []),
        ("31 February 2023", [DateMention(2023, 2)]),
        ("2023-13-45", [DateMention(2023)]),
        ("room 20231", []),
    ],
)
def test_date_mentions(text: str, expected: list[DateMention]) -> None:
    """English, ISO, Chinese, Japanese and Korean forms are read, verbs are not."""
    assert date_mentions(text) == expected


@pytest.mark.parametrize(
    ("mention", "day", "expected"),
    [
        (MAY_8, date(2023, 5, 8), 1.0),
        (MAY_8, date(2023, 5, 9), 0.8),
        (MAY_8, date(2023, 5, 11), 0.8),
        (MAY_8, date(2023, 5, 12), 0.5),
        (MAY_8, date(2023, 5, 1), 0.5),
        (MAY_8, date(2023, 5, 16), 0.0),
        (DateMention(2023, 5), date(2023, 5, 30), 1.0),
        (DateMention(2023, 5), date(2023, 6, 1), 0.4),
        (DateMention(2023, 5), date(2022, 5, 1), 0.0),
        (DateMention(2023, 12), date(2024, 1, 5), 0.4),
        (DateMention(month=12), date(2024, 1, 5), 0.4),
        (DateMention(2023), date(2023, 1, 1), 0.3),
        (DateMention(2023), date(2024, 1, 1), 0.0),
        (DateMention(None, 12, 31), date(2024, 1, 2), 0.8),
        (DateMention(None, 2, 29), date(2024, 2, 29), 1.0),
    ],
)
def test_date_match_values(mention: DateMention, day: date, expected: float) -> None:
    """The values of the rule: day, days after, week, month, next month, year."""
    assert date_match([mention], day) == expected


def test_best_of_several_dates_counts() -> None:
    """A question that names two dates matches turns of both; without any, none match."""
    assert date_match([DateMention(2020), MAY_8], date(2023, 5, 8)) == 1.0
    assert date_match([], date(2023, 5, 8)) == 0.0


@given(st.text(), st.dates())
def test_any_text_has_a_date_match(text: str, day: date) -> None:
    """No text and no day raise, the first and last year of the calendar included."""
    assert 0.0 <= date_match(date_mentions(text), day) <= 1.0


def test_named_speakers() -> None:
    """Any word of a name counts, with accents or not, and a Chinese name inside a sentence."""
    speakers = ["José García", "Anna", "王芳"]
    assert named_speakers("What did jose's boss say?", speakers) == {"José García"}
    assert named_speakers("王芳喜欢什么?", speakers) == {"王芳"}
    assert not named_speakers("What about Annabel?", speakers)


def test_without_names() -> None:
    """Names leave the question, parts of other words stay, and a mere name stays whole."""
    assert without_names("What did Anna tell Annabel?", ["Anna"]).split() == [
        "what",
        "did",
        "tell",
        "annabel?",
    ]
    assert without_names("Anna", ["Anna"]) == "Anna"
    assert without_names("Anna", []) == "Anna"


@pytest.mark.parametrize("query", ["Where do I live?", "we met", "我住哪里", "私の名前は"])
def test_first_person(query: str) -> None:
    """English, Chinese and Japanese first persons are seen."""
    assert is_first_person(query)


def test_no_first_person() -> None:
    """Words that contain an i are not the person I."""
    assert not is_first_person("Did Mimi visit Italy?")


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("I had a long day. Anyway, where does Ann live?", "Anyway, where does Ann live?"),
        ("Is it late? I think so. Who called?", "Who called?"),
        ("我今天很累。我的手机怎么样\uff1f", "我的手机怎么样\uff1f"),
        ("Where does Ann live?", None),
        ("I had a long day. It rained.", None),
        ("?!", None),
    ],
)
def test_asked_at_last(query: str, asked: str | None) -> None:
    """The last question of a longer text is found; a bare question needs no finding."""
    assert asked_at_last(query) == asked


@pytest.mark.parametrize("query", ["When was it?", "Which year?", "什么时候去的", "いつですか"])
def test_asks_when(query: str) -> None:
    """Questions for a time are seen, `whenever` is not one."""
    assert asks_when(query)
    assert not asks_when("whenever")


def test_time_share() -> None:
    """No time word 0, one .5, two and more 1; in Chinese, too."""
    assert [time_share(text) for text in ("hello", "yesterday", "last week, on Monday")] == [
        0.0,
        0.5,
        1.0,
    ]
    assert time_share("昨天 5月8日") == 1.0


def test_user_labels() -> None:
    """The usual labels of the asking person are known, in any case."""
    assert is_user("User")
    assert not is_user("assistant")
    assert not is_user(None)


@given(st.text(), st.lists(st.text(max_size=5), max_size=3))
def test_rules_never_raise(text: str, speakers: list[str]) -> None:
    """Any text and any names are accepted."""
    without_names(text, speakers)
    assert (asked_at_last(text) or "") in text
    assert named_speakers(text, speakers) <= set(speakers)
    assert 0.0 <= time_share(text) <= 1.0
