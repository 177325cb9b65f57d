r"""Text analysis for matching: index terms of any script, content terms of a query.

What is stored stays byte-identical; these functions only derive terms. Words are `[^\W_]+`
in folded form; scripts written without spaces (Han, kana, Thai, Lao, Myanmar, Khmer, and Hangul,
whose words carry their particles) become single characters and bigrams, which on Chinese
questions is slightly better than dictionary segmentation and needs no dictionary.
"""

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

import Stemmer

from langchain_agentmem.retrieval._words import (
    CJK_STOP_WORDS,
    ENGLISH_MONTHS,
    ENGLISH_STOP_WORDS,
    IRREGULAR_VERBS,
)

_UNSPACED: Final = (
    "\u3005\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0eff\u1000-\u1049\u1780-\u17d3\uac00-\ud7a3"
)
_INDIC: Final = "\u0900-\u0963\u0966-\u0dff"  # vowel signs are marks, which `\w` leaves out
_EMOJI: Final = (  # a pair of regional letters is one flag; skin tones are not words
    "[\U0001f1e6-\U0001f1ff]{2}"
    "|[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
)
_TOKEN: Final = re.compile(
    f"(?P<unspaced>[{_UNSPACED}]+)|(?P<indic>[{_INDIC}]+)|(?P<emoji>{_EMOJI})"
    f"|(?P<word>(?:(?![{_UNSPACED}{_INDIC}])[^\\W_])+)"
)
_UNSPACED_START: Final = re.compile(f"[{_UNSPACED}]")
_ASCII_WORD: Final = re.compile("[a-z0-9]+")
_WORDS_APART: Final = {  # with `split` twice as fast as the expression, on folded ASCII
    code: chr(code) if _ASCII_WORD.match(chr(code)) else " " for code in range(128)
}
_UNSPACED_STOP: Final = re.compile("|".join(CJK_STOP_WORDS))
# Diacritics that are optional in writing: Latin, Greek and Cyrillic accents, Hebrew points, Arabic
# vowels and lengthening. Marks of other scripts (the Japanese dakuten, Indic and Thai vowels) are
# letters of their own and stay.
_ACCENTS: Final = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]+")

_UNSTEMMED: Final = 2  # Porter would leave nothing of `s` and make `is` an `i`

_AFTER_LATIN: Final = "\u0250"

_KEPT_TEXTS: Final = 8_192
_KEPT_LENGTH: Final = 2_000

_HEADING_LOOKS_AT: Final = 1_000
_WORDS_OF_HEADING: Final = 10
_CLOSING: Final = frozenset(".,:;!?\u2026\u3002\uff0c\uff1a\uff1b\uff01\uff1f")

_local = threading.local()


def fold(text: str) -> str:
    """Fold a text for matching: compatibility forms, case and optional accents disappear.

    Args:
        text: Any Unicode text, lone surrogates included.

    Returns:
        The folded text; never to be stored in place of the original.
    """
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the index form of one folded word.

    Args:
        word: A word as `fold` leaves it.

    Returns:
        The Porter stem (of the base form, for irregular verbs) when the word is written in ASCII
        letters, else the word itself.
    """
    if len(word) <= _UNSTEMMED or not (word.isascii() and word.isalpha()):
        return word
    # A stemmer object keeps a buffer of its own and must not be shared between threads.
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        stemmer = _local.stemmer = Stemmer.Stemmer("porter", 0)
    stemmed: str = stemmer.stemWord(IRREGULAR_VERBS.get(word, word))
    return stemmed


def terms(text: str) -> list[str]:
    """Return the index terms of a text, in order and with repetitions.

    Args:
        text: Any Unicode text.

    Returns:
        Stems of words, characters and bigrams of scripts without spaces, and emoji.
    """
    folded = fold(text)
    if folded.isascii():
        return list(map(stem, folded.translate(_WORDS_APART).split()))
    return terms_of(_words(folded))


def terms_of(found: Iterable[str]) -> list[str]:
    """Return the index terms of folded words, as `terms` does of their text."""
    return [term for word in found for term in _expand(word)]


def query_terms(text: str) -> list[str]:
    """Return the content terms of a query: its index terms without stop and question words.

    Args:
        text: Any Unicode text.

    Returns:
        The terms in order and with repetitions; those of the stop words when there is nothing
        else, and an empty list for a query of punctuation only.
    """
    folded = fold(text)
    content = folded if folded.isascii() else _UNSPACED_STOP.sub(" ", folded)
    found = terms_of(word for word in _words(content) if word not in ENGLISH_STOP_WORDS)
    return found or terms_of(_words(folded))


def words(text: str) -> list[str]:
    """Return the folded words of a text without stemming, runs without spaces unsplit."""
    return _words(fold(text))


@dataclass(frozen=True, slots=True)
class Analyzed:
    """What recall compares of one text.

    Attributes:
        words: Its folded words, as `words` returns them.
        counts: How often each of its index terms stands in it.
        heading: Its heading, as `heading` returns it.
    """

    words: tuple[str, ...]
    counts: Mapping[str, int]
    heading: str


def analyze(text: str) -> Analyzed:
    """Return what recall compares of a text; of texts met lately it is kept."""
    return _kept(text) if len(text) <= _KEPT_LENGTH else _analyze(text)


def _analyze(text: str) -> Analyzed:
    found = words(text)
    return Analyzed(tuple(found), Counter(terms_of(found)), heading(text))


_kept = lru_cache(maxsize=_KEPT_TEXTS)(_analyze)


def is_content_word(word: str) -> bool:
    """Tell whether a folded word says what a text is about.

    Numbers, function and question words do not, and other scripts than the Latin one are unknown.
    """
    return word[0] < _AFTER_LATIN and word.isalpha() and word not in ENGLISH_STOP_WORDS


def _words(folded: str) -> list[str]:
    """Split a folded text into words, runs without spaces and emoji."""
    if folded.isascii():
        return folded.translate(_WORDS_APART).split()
    return [match.group() for match in _TOKEN.finditer(folded)]


def _expand(word: str) -> list[str]:
    """Turn one word into its index terms."""
    if word.isascii() or not _is_unspaced(word[0]):
        return [stem(word)]
    return [*word, *(word[i : i + 2] for i in range(len(word) - 1))]


def _is_unspaced(character: str) -> bool:
    """Tell whether a character belongs to a script written without spaces."""
    return _UNSPACED_START.match(character) is not None


def index_text(
    content: str,
    speaker: str | None = None,
    observed_at: datetime | None = None,
    session_started_at: datetime | None = None,
) -> str:
    """Return the text of a turn that is embedded and searched: date, speaker, words.

    Args:
        content: The raw text of the turn.
        speaker: Who said it.
        observed_at: When it was said.
        session_started_at: When its session began, for a turn without a time of its own.

    Returns:
        `8 May 2023 Caroline: text`; the parts that are not known are left out.
    """
    moment = observed_at or session_started_at
    day = f"{moment.day} {ENGLISH_MONTHS[moment.month - 1]} {moment.year} " if moment else ""
    name = f"{speaker}: " if speaker else ""
    return f"{day}{name}{content}"


def heading(content: str) -> str:
    """Return the first line of a text where it stands over the rest like a title.

    Args:
        content: The raw text.

    Returns:
        The line if it has at most ten words and no closing punctuation and more follows it on
        the next lines; else an empty string.
    """
    first, _, rest = content[:_HEADING_LOOKS_AT].partition("\n")
    title = first.strip().lstrip("#").strip()
    if not title or title[-1] in _CLOSING or len(title) >= len(rest.strip()):
        return ""
    return title if len(words(title)) <= _WORDS_OF_HEADING else ""


def latin_share(text: str) -> float:
    """Return which share of a text's letters is Latin; 1 for a text without letters."""
    letters = [character for character in text if character.isalpha()]
    if not letters or text.isascii():
        return 1.0
    latin = sum(
        character < _AFTER_LATIN or "\u1e00" <= character <= "\u1eff" for character in letters
    )
    return latin / len(letters)
