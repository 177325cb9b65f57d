"""The guards, one by one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.prompt_optimizer import guards
from langchain_agentmem.prompt_optimizer.guards import LEAK_RUN, Limits, refusals
from langchain_agentmem.prompt_optimizer.values import Trajectory, as_trajectories, split


def _said(*texts: str) -> list[Trajectory]:
    return as_trajectories([[("user", text), ("ai", "I see.")] for text in texts])


@pytest.mark.parametrize("candidate", [None, 7, "", " \n\t"])
def test_no_text_is_refused(candidate: object) -> None:
    """What is no text, or says nothing, is refused without further ado."""
    assert len(refusals(candidate, "Be kind.", limits=Limits())) == 1


@pytest.mark.parametrize(
    ("candidate", "found"),
    [
        ("Answer {q} kindly.", []),
        ("{q}: answer in JSON, as {{}}.", []),
        ("Answer.", ["The variable q is missing."]),
        ("Answer {q} and {r}.", ["There is no variable r."]),
        ("Answer {question}.", ["The variable q is missing.", "There is no variable question."]),
        ("Answer {{q}}.", ["The variable q is missing."]),
    ],
)
def test_variables_stay_the_same(candidate: str, found: list[str]) -> None:
    """None is dropped and none invented."""
    assert guards.variable_problems(candidate, "Answer {q}.") == found


@pytest.mark.parametrize("candidate", ["{q", "{q} }", "{q} {}", "{q} {0}", "{q.name}", "{q[0]}"])
def test_what_does_not_parse_is_refused(candidate: str) -> None:
    """A text that is no template any more is refused."""
    assert guards.variable_problems(candidate, "Answer {q}.")


def test_mustache_variables_are_known() -> None:
    """Variables are read in the declared format."""
    problems = guards.variable_problems("Answer {q}.", "Answer {{q}}.", "mustache")
    assert problems == ["The variable q is missing."]


def test_jinja2_variables_are_known() -> None:
    """Variables of jinja2 are found in expressions and tags."""
    pytest.importorskip("jinja2")
    original = "Answer {{ q }}{% if tone %} in a {{ tone }} tone{% endif %}."
    problems = guards.variable_problems("Answer {{ q }} {{ extra }}.", original, "jinja2")
    assert problems == ["The variable tone is missing.", "There is no variable extra."]


def test_without_a_format_braces_mean_nothing() -> None:
    """With `none` any braces may come and go."""
    assert guards.variable_problems('{"a": {', "Answer {q}.", "none") == []


def test_unknown_format_is_an_error() -> None:
    """A format nobody knows is a fault of the set-up, not of the candidate."""
    with pytest.raises(ConfigurationError, match="template_format is"):
        guards.variables("Answer.", "perl")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("candidate", "original", "ok"),
    [(800, 10, True), (801, 10, False), (2000, 1000, True), (2001, 1000, False)],
)
def test_growth_is_limited(candidate: int, original: int, ok: bool) -> None:
    """Twice the length is allowed, and 800 characters to every short text."""
    assert (not guards.length_problems("x" * candidate, "x" * original)) is ok


def test_required_and_forbidden_texts() -> None:
    """Texts that must stay are missed, texts that must not come are found."""
    problems = guards.wording_problems("Be rude.", ["kind"], ["rude"])
    assert len(problems) == 2


@pytest.mark.parametrize(
    ("said", "candidate", "leaks"),
    [
        ("My cat is called Mia and sleeps", "Note: my cat is CALLED mia  and sleeps", True),
        ("Hello. The key is under the third stone. Bye", "The key is under the third stone", True),
        ("Hello", "Say hello to people", False),
        ("Please be more concise", "Answer concisely", False),
        ("Write to ann@example.org please", "Copy ann@example.org on everything", True),
        ("It is 0171/555-1234, thanks", "Call 0171/555-1234", True),
        ("my customer number: K4711B9", "Customers such as K4711B9", True),
        ("in 2026 I was there", "Use the year 2026", True),
        ("a 3 and a 4", "Give 3 examples in 4 lines", False),
        (
            "私の猫の名前はミアで、毎日ソファの上で寝ています。元気",
            "私の猫の名前はミアで、毎日ソファの上で寝ています",
            True,
        ),
    ],
)
def test_words_of_a_user_do_not_become_policy(said: str, candidate: str, leaks: bool) -> None:
    """Whole sentences, addresses and numbers of a user are refused; ordinary words are not."""
    assert bool(guards.leak_problems(candidate, "Be kind.", _said(said))) is leaks


def test_assistants_words_may_be_used() -> None:
    """Only what users said is private."""
    talk = as_trajectories([[("user", "Hi"), ("ai", "Always look at the second page first.")]])
    assert not guards.leak_problems("Always look at the second page first.", "Look.", talk)


def test_what_the_original_holds_is_no_leak() -> None:
    """A user who repeats the prompt's own words takes nothing away from it."""
    original = "Refer people to help@example.org and nowhere else, please."
    assert not guards.leak_problems(original + " Now.", original, _said(original))


@pytest.mark.parametrize(
    ("identifier", "leaks"), [("ann-17", True), ("ANN-17", True), ("ann-1", False), ("n", False)]
)
def test_identifiers_of_the_scope_are_refused(identifier: str, leaks: bool) -> None:
    """The user's id as a word of its own is refused, parts of words are not."""
    assert bool(guards.leak_problems("Greet ann-17.", "Greet.", [], [identifier])) is leaks


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=LEAK_RUN, max_size=300), st.text(max_size=50), st.text(max_size=50))
def test_a_quoted_run_is_always_found(said: str, before: str, after: str) -> None:
    """A long enough message that stands in a candidate as it is never passes."""
    if len(" ".join(said.casefold().split())) < LEAK_RUN:
        return
    assert guards.leak_problems(f"{before} {said} {after}", "Be kind.", _said(said))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80))
def test_guards_never_raise_on_a_candidate(candidate: str) -> None:
    """Whatever a model writes, the guards answer."""
    assert isinstance(refusals(candidate, "Answer {q}.", limits=Limits()), list)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(), unique=True, max_size=30), st.floats(0, 1))
def test_split_is_disjoint_and_complete(examples: list[int], share: float) -> None:
    """Every example is on exactly one side, whatever the order it came in."""
    parts = split(examples, share)
    assert sorted([*parts.shown, *parts.held_out]) == sorted(examples)
    assert set(split(examples[::-1], share).held_out) == set(parts.held_out)
