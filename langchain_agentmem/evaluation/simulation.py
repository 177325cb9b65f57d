"""A scripted model and generated conversations: costs can be measured without a real model.

What the model writes says nothing about quality. It fills the form it is asked for with words of
the prompt, so that every step of a memory runs and every call and token is counted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, Final

from langchain_agentmem.evaluation.data import Turn
from langchain_agentmem.testing.scripted import Reply, Request, ScriptedChatModel

_CHOICES: Final = ("anyOf", "oneOf", "allOf")
_FORMS: Final = frozenset({"type", "enum", "const", "$ref", *_CHOICES})
_PLAIN: Final = {"integer": 0, "number": 0, "boolean": False, "null": None}
_BEGIN: Final = datetime(2024, 1, 1, 9, tzinfo=UTC)
_SYLLABLES: Final = tuple(a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "ar"))
_WORDS: Final = 3000
_SENTENCE: Final = 12
_SESSION: Final = 20
_REPLY_WORDS: Final = 20


class SimulatedChatModel(ScriptedChatModel):
    """A chat model that answers every request at once, in the form it asks for.

    Texts are the last words of the prompt, numbers 0, flags False, lists hold one element. What
    may be left out is left out, unless anything may stand there. Requests are not recorded.
    """

    model_name: str = "simulated"

    def _next(self, request: Request) -> Reply:
        self._requests.clear()
        words = " ".join(request.text.split()[-_REPLY_WORDS:])
        if not request.tools:
            return words
        schema = request.tools[0]["function"]["parameters"]
        filled: dict[str, Any] = _filled(schema, words, schema.get("$defs", {}))
        return filled


def _filled(schema: Mapping[str, Any], words: str, known: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    """Return the least that fits a JSON schema, with `words` as its texts."""
    if "$ref" in schema:
        return _filled(known[schema["$ref"].split("/")[-1]], words, known)
    choices = next((schema[each] for each in _CHOICES if each in schema), None)
    if choices:
        return _filled(choices[0], words, known)
    if "enum" in schema or "const" in schema:
        return schema.get("const", next(iter(schema.get("enum", ())), None))
    kind = schema.get("type")
    if kind == "object":
        required = schema.get("required", ())
        fields = schema.get("properties", {}).items()
        return {
            name: _filled(field, words, known)
            for name, field in fields
            if name in required or not _FORMS & field.keys()
        }
    if kind == "array":
        return [_filled(schema.get("items", {}), words, known)]
    return _PLAIN.get(str(kind), words)


def generated_turns(seed: int) -> Iterator[Turn]:
    """Yield turns without end: invented words, the common ones often, in sessions of a day."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(2, 3))) for _ in range(_WORDS)]
    weights = list(accumulate(1 / rank for rank in range(1, _WORDS + 1)))
    number = 0
    while True:
        session, at = divmod(number, _SESSION)
        yield Turn(
            key=str(number),
            content=" ".join(rng.choices(words, cum_weights=weights, k=_SENTENCE)) + ".",
            session=str(session),
            role="assistant" if number % 2 else "user",
            observed_at=_BEGIN + timedelta(days=session, minutes=at),
        )
        number += 1


def generated_question(turn: Turn, rng: random.Random) -> str:
    """Return a question about a turn: some of its words."""
    return " ".join(rng.sample(turn.content.rstrip(".").split(), 4)) + "?"
