"""Rules that read a question's form: who is asked about, and whether it asks for a time.

Each rule is a table per language; a language without a table simply never fires.
"""

import re
from collections.abc import Iterable
from typing import Final

from langchain_agentmem.retrieval._words import ENGLISH_TIME_WORDS
from langchain_agentmem.retrieval.text import analyze, fold, words

USER_SPEAKERS: Final = frozenset({"user", "human", "me", "用户", "ユーザー"})
"""Speaker labels that mean the person who asks."""

_FIRST_PERSON: Final = {
    "en": re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours)\b"),
    "zh": re.compile("我|咱"),
    "ja": re.compile("私|僕|俺"),
}
_ASKS_WHEN: Final = {
    "en": re.compile(
        r"\bwhen\b|\b(?:what|which) (?:date|day|month|year|time|week)\b|\bhow long ago\b"
    ),
    "zh": re.compile("什么时候|什么时间|何时|几点|几号|几月|哪天|哪年|哪一天|哪一年|多久以前"),
    "ja": re.compile("いつ|何時|何日|何月|何年"),
}
_UNSPACED_TIME: Final = {
    "zh": "昨天|今天|明天|前天|后天|[上下本]周|周末|星期.|周[一二三四五六日]|去年|今年|明年"
    "|[上下]个月|最近|刚才|\\d+[月日号点]",
    "ja": "昨日|今日|明日|先週|来週|週末|先月|来月|昨年|来年|\\d+時",
}
_ANY_UNSPACED_TIME: Final = re.compile("|".join(_UNSPACED_TIME.values()))
_QUESTION_MARKS: Final = ("?", "\uff1f")
_SENTENCE: Final = re.compile("[^.!?\u3002\uff01\uff1f\u2026\n]+[.!?\u3002\uff01\uff1f\u2026]*")
_MAX_TIME_WORDS: Final = 2


def named_speakers(query: str, speakers: Iterable[str]) -> frozenset[str]:
    """Return those of the speakers that a question names.

    Args:
        query: The question.
        speakers: Speaker labels as stored, such as `Caroline` or `José García`.

    Returns:
        The labels of which at least one word stands in the question (scripts without spaces: the
        whole label).
    """
    folded = fold(query)
    asked = set(words(query))
    return frozenset(
        speaker
        for speaker in speakers
        if asked.intersection(words(speaker)) or (not speaker.isascii() and fold(speaker) in folded)
    )


def without_names(query: str, speakers: Iterable[str]) -> str:
    """Return a question without the names of the participants.

    In a conversation of two, a name says who is meant and nothing about what; the speaker rule
    and the session score use it.

    Args:
        query: The question.
        speakers: Speaker labels as stored.

    Returns:
        The folded question, the names replaced by spaces; the question itself when it consists
        of names only.
    """
    names = {name for speaker in speakers for name in (*words(speaker), fold(speaker)) if name}
    if not names:
        return query
    bounded = [rf"\b{re.escape(name)}\b" if name.isascii() else re.escape(name) for name in names]
    pattern = "|".join(sorted(bounded, key=lambda name: (-len(name), name)))
    rest = re.sub(pattern, " ", fold(query))
    return rest if words(rest) else query


def asked_at_last(query: str) -> str | None:
    """Return the last question of a text that also says other things, or None.

    People talk before they ask; the last question says best what they want to know.

    Args:
        query: What was said, such as `I had a long day. Anyway, where does Ann live?`

    Returns:
        The last sentence that ends in a question mark; None for a text without one and for one
        that is a single sentence.
    """
    sentences = [found.strip() for found in _SENTENCE.findall(query) if words(found)]
    asked = list(filter(is_question, sentences))
    return asked[-1] if asked and len(sentences) > 1 else None


def is_question(text: str) -> bool:
    """Tell whether a text ends in a question mark."""
    return text.rstrip().endswith(_QUESTION_MARKS)


def is_first_person(query: str) -> bool:
    """Tell whether a question speaks of the asking person (I, my, we)."""
    return _any(_FIRST_PERSON, query)


def asks_when(query: str) -> bool:
    """Tell whether a question asks for a time."""
    return _any(_ASKS_WHEN, query)


def time_share(content: str) -> float:
    """Return how much a turn speaks of time, `min(time words, 2) / 2`."""
    found = sum(map(ENGLISH_TIME_WORDS.__contains__, analyze(content).words))
    if not content.isascii():
        found += len(_ANY_UNSPACED_TIME.findall(fold(content)))
    return min(found, _MAX_TIME_WORDS) / _MAX_TIME_WORDS


def is_user(speaker: str | None) -> bool:
    """Tell whether a speaker label means the person who asks."""
    return speaker is not None and fold(speaker) in USER_SPEAKERS


def _any(table: dict[str, re.Pattern[str]], text: str) -> bool:
    """Tell whether any language's pattern stands in the folded text."""
    folded = fold(text)
    return any(pattern.search(folded) for pattern in table.values())
