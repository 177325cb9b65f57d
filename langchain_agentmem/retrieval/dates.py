"""Dates named in a question, and how well the day of a turn matches them."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from langchain_agentmem.retrieval._words import ENGLISH_MONTHS

_MONTHS: Final = {
    form: number
    for number, name in enumerate(ENGLISH_MONTHS, start=1)
    for form in (name.casefold(), name[:3].casefold())
} | {"sept": 9}
_CJK_NUMERALS: Final = {
    numeral: number
    for number, numeral in enumerate(
        ("一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二"), start=1
    )
}
_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_CJK_MONTH: Final = r"(?P<month>\d{1,2}|十[一二]?|[一二三四五六七八九])\s*[月월]"
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\d){_YEAR}[-/.](?P<month>\d{{1,2}})(?:[-/.](?P<day>\d{{1,2}}))?(?!\d)",
        rf"(?:{_YEAR}\s*[年년]\s*)?{_CJK_MONTH}(?:\s*(?P<day>\d{{1,2}})\s*[日号號일])?",
        rf"(?<!\d){_YEAR}\s*[年년]",
        rf"\b{_DAY}\s+(?:of\s+)?(?P<month>{_MONTH})\b\.?(?:,?\s+{_YEAR}\b)?",
        rf"\b(?P<month>{_MONTH})\b\.?\s+{_DAY}\b(?:,?\s+{_YEAR}\b)?",
        rf"\b(?P<month>{_MONTH})\b\.?,?\s+(?:of\s+)?{_YEAR}\b",
        rf"\b(?P<month>{_MONTH})\b",
        rf"\b{_YEAR}\b",
    )
)
_VERBS_TOO: Final = {"may", "march"}  # alone, a month only when capitalized within a sentence

_A_FEW_DAYS: Final = 3
_A_WEEK: Final = 7
_SAME: Final = 1.0
_DAYS_AFTER: Final = 0.8
_SAME_WEEK: Final = 0.5
_NEXT_MONTH: Final = 0.4
_SAME_YEAR: Final = 0.3


@dataclass(frozen=True, slots=True)
class DateMention:
    """A day, month or year named in a text; a part that was not named is None."""

    year: int | None = None
    month: int | None = None
    day: int | None = None


def date_mentions(text: str) -> list[DateMention]:
    """Return the dates a text names, in English, ISO, Chinese, Japanese or Korean forms.

    Args:
        text: Any text, usually a question.

    Returns:
        The mentions in the order of their place in the text, each once; impossible dates are left
        out.
    """
    taken = unicodedata.normalize("NFKC", text)
    found: dict[DateMention, int] = {}
    for pattern in _PATTERNS:
        rest, parts = 0, []
        for match in pattern.finditer(taken):
            mention = _mention(match)
            if mention is not None:
                found.setdefault(mention, match.start())
                parts += [taken[rest : match.start()], " " * len(match.group())]
                rest = match.end()
        taken = "".join([*parts, taken[rest:]])
    return sorted(found, key=lambda mention: found[mention])


def date_match(mentions: Sequence[DateMention], day: date) -> float:
    """Score how well a turn's day matches the best of the dates a question names.

    People speak of an event on its day or a few days later, therefore the days after count.

    Args:
        mentions: What `date_mentions` returned for the question.
        day: The day on which the turn was said.

    Returns:
        Same day 1; 1 to 3 days after .8; within a week .5; same month (a month was named) 1; next
        month .4; same year (a year alone was named) .3; else 0.
    """
    return max((_match(mention, day) for mention in mentions), default=0.0)


def _mention(match: re.Match[str]) -> DateMention | None:
    """Read one regular-expression match; None for an impossible date."""
    parts = match.groupdict()
    month_name = parts.get("month") or ""
    bare = match.group().strip(".")
    if bare in _VERBS_TOO or (bare.casefold() in _VERBS_TOO and match.start() == 0):
        return None
    year = int(parts["year"]) if parts.get("year") else None
    day = int(parts["day"]) if parts.get("day") else None
    month = _month(month_name) if month_name else None
    if month_name and month is None:
        return None
    try:
        date(year or 2000, month or 1, day or 1)
    except ValueError:
        return None
    return DateMention(year, month, day)


def _month(name: str) -> int | None:
    """Return the number of a month from its name, numeral or digits."""
    number = _MONTHS.get(name.casefold()) or _CJK_NUMERALS.get(name)
    if number is None and name.isdecimal():
        number = int(name)
    return number if number and 1 <= number <= len(_CJK_NUMERALS) else None


def _match(mention: DateMention, day: date) -> float:
    """Score one mention against one day."""
    if mention.day is not None and mention.month is not None:
        return _match_day(mention, day)
    if mention.month is not None:
        return _match_month(mention, day)
    return _SAME_YEAR if mention.year == day.year else 0.0


def _match_day(mention: DateMention, day: date) -> float:
    """Score a named day; without a year, the nearest year counts."""
    after = min(
        ((day - named).days for named in _days(mention, day)),
        key=abs,
        default=None,
    )
    if after is None:
        return 0.0
    if after == 0:
        return _SAME
    if 1 <= after <= _A_FEW_DAYS:
        return _DAYS_AFTER
    return _SAME_WEEK if abs(after) <= _A_WEEK else 0.0


def _days(mention: DateMention, day: date) -> Iterator[date]:
    """Yield the calendar days a mention of a day can mean near a given day."""
    years = (mention.year,) if mention.year else (day.year - 1, day.year, day.year + 1)
    for year in years:
        try:
            yield date(year, mention.month or 1, mention.day or 1)
        except ValueError:
            continue


def _match_month(mention: DateMention, day: date) -> float:
    """Score a named month; without a year, any year's counts."""
    gap = day.month - (mention.month or 0)
    if mention.year is None:
        gap %= 12
    else:
        gap += 12 * (day.year - mention.year)
    return {0: _SAME, 1: _NEXT_MONTH}.get(gap, 0.0)
