"""What the optimizer works on: prompts, trajectories, candidates and tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Required, TypeAlias

from typing_extensions import TypedDict

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.messages import text_of, to_messages
from langchain_agentmem.parameters import must_be
from langchain_agentmem.steps.extraction import as_lines

if TYPE_CHECKING:
    from collections.abc import Callable

TemplateFormat: TypeAlias = Literal["f-string", "mustache", "jinja2", "none"]
_SHOWN_CHARACTERS: Final = 2000
_PAIR: Final = 2


class Prompt(TypedDict, total=False):
    """A prompt to optimize, in LangMem's form.

    Attributes:
        name: Its name among the prompts of the scope.
        prompt: Its text.
        update_instructions: How it may be changed.
        when_to_update: When feedback concerns it.
    """

    name: Required[str]
    prompt: Required[str]
    update_instructions: str | None
    when_to_update: str | None


class Trajectory(TypedDict):
    """One conversation and what was thought of it.

    Attributes:
        id: Its name; made from its content where it has none.
        messages: The conversation: objects with `role` and `content`.
        feedback: What somebody said about it, a text or an object.
        score: How good it was, higher is better.
        prompt_versions: Which version of each prompt was used.
        metadata: The caller's own JSON fields.
    """

    id: str
    messages: list[dict[str, Any]]
    feedback: str | dict[str, Any] | None
    score: float | None
    prompt_versions: dict[str, int]
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A proposed text.

    Attributes:
        text: The whole new prompt.
        hypotheses: Why it should be better.
        operator: What made it: a strategy's name, `"mutation"`, `"crossover"` or `"repair"`.
        parents: The texts it was made from.
    """

    text: str
    hypotheses: str = ""
    operator: str = ""
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a strategy is given for one prompt.

    Attributes:
        prompt: The prompt with its active text.
        trajectories: The conversations it may learn from.
        seed: Seed of whatever it draws.
        refusals: Says why a text could not be accepted; empty if it could.
    """

    prompt: Prompt
    trajectories: Sequence[Trajectory]
    seed: int = 0
    refusals: Callable[[object], Sequence[str]] = lambda _: ()

    @property
    def text(self) -> str:
        """The active text."""
        return self.prompt["prompt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Examples to learn from and examples to decide with; no example is in both.

    Attributes:
        shown: For proposing.
        held_out: For deciding.
    """

    shown: list[Any] = field(default_factory=list)
    held_out: list[Any] = field(default_factory=list)


def as_prompt(given: str | Mapping[str, Any]) -> Prompt:
    """Return a prompt; a bare text is a prompt named "prompt".

    Raises:
        ConfigurationError: It has no name or no text.
    """
    if isinstance(given, str):
        given = {"name": "prompt", "prompt": given}
    must_be("A prompt", given, Mapping, "a text or {'name': ..., 'prompt': ...}")
    name, text = given.get("name"), given.get("prompt")
    if not isinstance(name, str) or not name or not isinstance(text, str) or not text.strip():
        msg = f"A prompt needs a name and a non-empty text under 'prompt': got name {name!r}."
        raise ConfigurationError(msg)
    return Prompt(
        name=name,
        prompt=text,
        update_instructions=given.get("update_instructions"),
        when_to_update=given.get("when_to_update"),
    )


def as_prompts(given: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]) -> list[Prompt]:
    """Return prompts whose names differ.

    Raises:
        ConfigurationError: There is none, or two have one name.
    """
    must_be("prompts", given, (str, Mapping, Sequence), "a text, {'name', 'prompt'}, or a list")
    many = [given] if isinstance(given, str | Mapping) else list(given)
    prompts = [as_prompt(each) for each in many]
    names = [each["name"] for each in prompts]
    if not names or len(set(names)) < len(names):
        msg = f"Give at least one prompt, each with a name of its own: got {names}."
        raise ConfigurationError(msg)
    return prompts


def as_trajectories(given: object) -> list[Trajectory]:
    """Return trajectories from any form: ours, LangMem's pairs, conversations or one text.

    Raises:
        ConfigurationError: One of them has another form.
    """
    if isinstance(given, str | Mapping):
        return [as_trajectory(given)]
    if isinstance(given, Sequence):
        return [as_trajectory(each) for each in given]
    msg = f"Trajectories are a list or a text, not a {type(given).__name__}."
    raise ConfigurationError(msg)


def as_trajectory(given: object) -> Trajectory:
    """Return one trajectory from a mapping, a pair of messages and feedback, or a conversation.

    Raises:
        ConfigurationError: It has another form.
    """
    if isinstance(given, Mapping) and "messages" in given:
        return _from_mapping(given)
    if isinstance(given, str):
        return _from_mapping({"messages": given})
    if isinstance(given, Sequence) and len(given) == _PAIR and not _is_message(given[0]):
        messages, feedback = given
        return _from_mapping({"messages": messages, "feedback": feedback})
    if isinstance(given, Sequence):
        return _from_mapping({"messages": given})
    msg = f"A trajectory is {{'messages', 'feedback', ...}} or a pair, not {str(given)[:80]!r}."
    raise ConfigurationError(msg)


def _is_message(value: object) -> bool:
    """Tell whether a value is one message: an object with a type, a mapping, or a role's pair."""
    if isinstance(value, Mapping) or hasattr(value, "content"):
        return True
    return isinstance(value, tuple) and len(value) == _PAIR and isinstance(value[0], str)


def _from_mapping(given: Mapping[str, Any]) -> Trajectory:
    feedback, score = given.get("feedback"), given.get("score")
    if score is None and isinstance(feedback, Mapping):
        score = feedback.get("score")
    known = isinstance(score, int | float) and not isinstance(score, bool)
    messages = [_message(each) for each in to_messages(given["messages"])]
    read = Trajectory(
        id=str(given.get("id") or ""),
        messages=messages,
        feedback=dict(feedback) if isinstance(feedback, Mapping) else feedback,
        score=float(score) if known and score is not None else None,
        prompt_versions=dict(given.get("prompt_versions") or {}),
        metadata=dict(given.get("metadata") or {}),
    )
    return read if read["id"] else Trajectory(**{**read, "id": digest(read)})


def _message(message: Any) -> dict[str, Any]:  # noqa: ANN401 - any LangChain message
    roles = {"human": "user", "ai": "assistant"}
    return {"role": roles.get(message.type, message.type), "content": text_of(message)}


def digest(value: object) -> str:
    """Return a short name made from a JSON value."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def split(examples: Sequence[Any], share: float) -> Split:
    """Hold a share of the examples out, chosen by a hash of each example and nothing else.

    Args:
        examples: Trajectories, or any JSON values.
        share: Which part to hold out, from 0 to 1.
    """
    order = sorted(range(len(examples)), key=lambda at: (_rank(examples[at]), at))
    held = set(order[: round(len(examples) * share)])
    return Split(
        shown=[each for at, each in enumerate(examples) if at not in held],
        held_out=[each for at, each in enumerate(examples) if at in held],
    )


def _rank(example: object) -> str:
    name = example.get("id") if isinstance(example, Mapping) else None
    return digest(["split", name if name is not None else example])


def render(prompt: Prompt, trajectories: Sequence[Trajectory]) -> str:
    """Return a prompt and trajectories as data for a model: one JSON object a line.

    No text in them can forge a line or a field, whatever braces or tags it holds.
    """
    head = {
        "prompt_name": prompt["name"],
        "current_prompt": prompt["prompt"],
        "update_instructions": prompt.get("update_instructions"),
    }
    rows = [{name: value for name, value in head.items() if value}]
    return as_lines([*rows, *trajectory_rows(trajectories)])


def trajectory_rows(trajectories: Sequence[Trajectory]) -> list[dict[str, Any]]:
    """Return trajectories as rows to show to a model; long messages are cut and say so."""
    rows: list[dict[str, Any]] = []
    for number, each in enumerate(trajectories):
        rows += [
            {"conversation": number, "role": one["role"], "content": shown(one["content"])}
            for one in each["messages"]
        ]
        if each.get("feedback"):
            rows.append({"conversation": number, "feedback": each["feedback"]})
        if each.get("score") is not None:
            rows.append({"conversation": number, "score": each["score"]})
    return rows


def shown(text: str) -> str:
    """Return a text as a model is shown it: whole, or its beginning and how much is missing."""
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]} [{len(text) - _SHOWN_CHARACTERS} more characters]"
