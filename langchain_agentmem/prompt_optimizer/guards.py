"""Guards: pure functions that every candidate passes, whatever strategy made it.

A guard returns why a text cannot be accepted; nothing means that it can. No guard calls a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.prompt_optimizer.values import TemplateFormat, Trajectory

LEAST_LENGTH: Final = 400
"""Texts shorter than this may grow as if they were this long."""
LEAK_RUN: Final = 80
"""So many characters in a row of what a user said are a quotation."""

_SENTENCE: Final = re.compile(r"[.!?。\uff01\uff1f؟।\n]+")
_LEAST_SENTENCE: Final = 20
_LEAST_IDENTIFIER: Final = 2
_PRIVATE: Final = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.-]+"  # addresses
    r"|\+?\d[\d ()/.-]{5,}\d"  # telephone, account and card numbers, dates
    r"|\b\w*\d\w*\d\w*\d\w*\d\w*\b"  # anything with four digits
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What candidates must keep to.

    Attributes:
        template_format: How the prompt's variables are written; `"none"` for none.
        max_growth: How many times as long as the original a candidate may be.
        must_keep: Texts that every candidate must hold.
        must_not_contain: Texts that no candidate may hold.
    """

    template_format: TemplateFormat = "f-string"
    max_growth: float = 2.0
    must_keep: Sequence[str] = ()
    must_not_contain: Sequence[str] = ()


def variables(text: str, template_format: TemplateFormat) -> set[str]:
    """Return the names of a template's variables.

    Raises:
        ConfigurationError: The format is unknown, or needs a package that is not installed.
        ValueError: The text cannot be parsed as such a template.
    """
    if template_format == "none":
        return set()
    if template_format not in {"f-string", "mustache", "jinja2"}:
        msg = f"template_format is f-string, mustache, jinja2 or none, not {template_format!r}."
        raise ConfigurationError(msg)
    from langchain_core.prompts import ChatPromptTemplate

    try:
        template = ChatPromptTemplate.from_template(text, template_format=template_format)
    except ImportError as error:
        msg = "template_format='jinja2' needs the package jinja2: pip install jinja2."
        raise ConfigurationError(msg) from error
    except Exception as error:
        msg = f"It cannot be parsed as a template ({template_format}): {error}"
        raise ValueError(msg) from error
    if "" in template.input_variables:
        msg = "It holds an empty variable {}; write literal braces as {{ and }}."
        raise ValueError(msg)
    return set(template.input_variables)


def is_unchanged(candidate: str, original: str) -> bool:
    """Tell whether two texts differ in nothing but white space."""
    return candidate.split() == original.split()


def text_problems(candidate: object) -> list[str]:
    """Return what is wrong with a candidate as a text."""
    if not isinstance(candidate, str):
        return [f"The candidate is a {type(candidate).__name__}, not a text."]
    return [] if candidate.strip() else ["The candidate is empty."]


def variable_problems(
    candidate: str, original: str, template_format: TemplateFormat = "f-string"
) -> list[str]:
    """Return which variables a candidate drops or invents, or that it cannot be parsed."""
    expected = variables(original, template_format)
    try:
        found = variables(candidate, template_format)
    except ConfigurationError:
        raise
    except ValueError as error:
        return [str(error)]
    dropped = [f"The variable {name} is missing." for name in sorted(expected - found)]
    return dropped + [f"There is no variable {name}." for name in sorted(found - expected)]


def length_problems(candidate: str, original: str, max_growth: float = 2.0) -> list[str]:
    """Return whether a candidate is too long."""
    allowed = int(max_growth * max(len(original), LEAST_LENGTH))
    if len(candidate) <= allowed:
        return []
    return [f"The candidate has {len(candidate)} characters; {allowed} are allowed."]


def wording_problems(
    candidate: str, must_keep: Iterable[str] = (), must_not_contain: Iterable[str] = ()
) -> list[str]:
    """Return which required texts are missing and which forbidden ones are there."""
    missing = [f"The text {each!r} must be kept." for each in must_keep if each not in candidate]
    return missing + [
        f"The text {each!r} must not appear." for each in must_not_contain if each in candidate
    ]


def leak_problems(
    candidate: str,
    original: str,
    trajectories: Iterable[Trajectory],
    identifiers: Iterable[str] = (),
) -> list[str]:
    """Return which words of users, or of their scope, a candidate would make policy.

    Refused is what the original does not hold itself: a run of 80 characters of a user's message,
    a whole sentence of it, an address or a number out of it, or an identifier of the scope.
    Letter case and white space make no difference.
    """
    text, known = _plain(candidate), _plain(original)
    said = [
        one["content"] for each in trajectories for one in each["messages"] if one["role"] == "user"
    ]
    problems = []
    if any(_quotes(text, known, each) for each in said):
        problems.append("The candidate quotes a user word for word.")
    if any(_new_in(text, known, each) for each in said):
        problems.append("The candidate holds a user's address or number.")
    if any(_names(text, known, _plain(each)) for each in identifiers):
        problems.append("The candidate names an identifier of the scope.")
    return problems


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _quotes(text: str, known: str, said: str) -> bool:
    sentences = map(_plain, _SENTENCE.split(said))
    if any(
        len(each) >= _LEAST_SENTENCE and each in text and each not in known for each in sentences
    ):
        return True
    said = _plain(said)
    runs = (said[at : at + LEAK_RUN] for at in range(len(said) - LEAK_RUN + 1))
    return any(run in text and run not in known for run in runs)


def _new_in(text: str, known: str, said: str) -> bool:
    found = (_plain(each) for each in _PRIVATE.findall(said))
    return any(each in text and each not in known for each in found)


def _names(text: str, known: str, identifier: str) -> bool:
    if len(identifier) < _LEAST_IDENTIFIER:
        return False
    word = re.compile(rf"(?<!\w){re.escape(identifier)}(?!\w)")
    return bool(word.search(text)) and not word.search(known)


def refusals(
    candidate: object,
    original: str,
    *,
    limits: Limits,
    trajectories: Sequence[Trajectory] = (),
    identifiers: Sequence[str] = (),
) -> list[str]:
    """Return every reason why a candidate cannot be accepted; none for a valid one.

    Args:
        candidate: The proposed text.
        original: The active text.
        limits: What candidates must keep to.
        trajectories: Conversations whose users must not be quoted.
        identifiers: Values of the scope, such as a user's id.
    """
    problems = text_problems(candidate)
    if problems or not isinstance(candidate, str):
        return problems
    return [
        *variable_problems(candidate, original, limits.template_format),
        *length_problems(candidate, original, limits.max_growth),
        *wording_problems(candidate, limits.must_keep, limits.must_not_contain),
        *leak_problems(candidate, original, trajectories, identifiers),
    ]
