"""The recipe: context, rules, order."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_agentmem.retrieval.context import Candidate, Session, session_scores
from langchain_agentmem.retrieval.rank import STATIC_DENSE_WEIGHT, Ranked, Weights, rank

NONE = Weights(
    **{**asdict(Weights()), **dict.fromkeys(set(asdict(Weights())) - {"latin_only"}, 0.0)}
)
DAY = datetime(2023, 5, 8, tzinfo=UTC)


def _scores(ranked: Sequence[Ranked]) -> dict[str, float]:
    """Return the scores by key."""
    return {one.key: one.score for one in ranked}


def test_neighbors_count_inside_one_session_only() -> None:
    """The turns before and after gain; the first turn of the next session does not."""
    pool = [Candidate("b", "", "1", lexical=1.0), Candidate("x", "", "2")]
    sessions = {"1": Session("1", ("a", "b", "c"), 9), "2": Session("2", ("x",), 3)}
    scores = _scores(rank("q", pool, sessions, replace(NONE, previous=0.2, following=0.1)))
    assert scores == pytest.approx({"b": 1.0, "c": 0.2, "a": 0.1, "x": 0.0})


def test_session_best_reaches_every_turn_and_scores_are_divided_by_the_maximum() -> None:
    """S is 1 + .4 for the best turn and .5 + .4 for the other, then divided by 1.4."""
    pool = [Candidate("a", "", "1", lexical=1.0), Candidate("b", "", "1", lexical=0.5)]
    scores = _scores(
        rank("q", pool, {"1": Session("1", ("a", "b"), 9)}, replace(NONE, session_best=0.4))
    )
    assert scores == pytest.approx({"a": 1.0, "b": 0.9 / 1.4})


def test_session_scores_by_hand() -> None:
    """The session with the rarer word more often wins and becomes 1."""
    pool = [
        Candidate("a", "cat cat", "1", lexical=1.0),
        Candidate("b", "cat", "2", lexical=0.5),
        Candidate("c", "dog", "2"),
    ]
    sessions = {"1": Session("1", ("a", "z"), 4), "2": Session("2", ("b", "c"), 4)}
    first, second = 2 * 2.2 / (2 + 1.2), 1.0
    expected = {"1": 1.0, "2": second / first}
    assert session_scores(["cat"], pool, sessions) == pytest.approx(expected)


def test_session_scores_of_passages_are_their_own() -> None:
    """Where each session is one passage, nothing is counted again."""
    pool = [Candidate("a", "", "1", lexical=0.4)]
    assert session_scores(["cat"], pool, {"1": Session("1", ("a",), 4)}) == {"1": 0.4}


def test_parts_add_up_to_the_score() -> None:
    """Every turn can say which part of its score came from where."""
    pool = [
        Candidate("a", "I painted yesterday", "1", "Ann", DAY, 1.0, 0.5),
        Candidate("b", "Nice", "1", "Bob", DAY, 0.2, 1.0),
    ]
    sessions = {"1": Session("1", ("a", "b"), 5, DAY, ("Ann", "Bob"))}
    ranked = rank("When did Ann paint in May 2023?", pool, sessions)
    assert set(ranked[0].parts) == {
        "lexical",
        "dense",
        "following",
        "session_best",
        "session_lexical",
        "speaker",
        "date",
        "when",
    }
    assert all(one.score == pytest.approx(sum(one.parts.values())) for one in ranked)


def test_rules_add_their_weights() -> None:
    """Speaker .3, date .25 and half of when .07 on top of a content score of 1."""
    pool = [Candidate("a", "yesterday", "1", "Ann", DAY, 1.0)]
    ranked = rank("When did Ann go, on 8 May 2023?", pool, {})
    assert ranked[0].score == pytest.approx(1 + 0.3 + 0.25 + 0.035)


def test_first_person_means_the_user() -> None:
    """A question about me prefers what the user said to what the assistant said."""
    pool = [Candidate("a", "", "1", "assistant", lexical=1.0), Candidate("u", "", "1", "user")]
    parts = {one.key: one.parts for one in rank("What do I like?", pool, {})}
    assert parts["u"]["speaker"] == 0.3
    assert "speaker" not in parts["a"]


def test_turn_outside_the_pool_is_known_by_key_and_speaker() -> None:
    """A session's record brings in its other turns, without their texts."""
    sessions = {"1": Session("1", ("a", "b"), 5, DAY, ("Ann", "Bob"))}
    pool = [Candidate("a", "Where?", "1", "Ann", DAY, 1.0)]
    outside = next(one for one in rank("Bob?", pool, sessions) if one.key == "b")
    assert outside.candidate is None
    assert outside.parts["speaker"] == 0.3


def test_english_model_does_not_vote_on_chinese() -> None:
    """Dense similarity counts for a Latin question only, unless the model is multilingual."""
    weights = Weights()
    assert weights.dense_for("我住在哪里") == 0.0
    assert weights.dense_for("Where do I live?") == STATIC_DENSE_WEIGHT
    assert replace(weights, latin_only=False, dense=0.4).dense_for("我住在哪里") == 0.4


def test_last_question_of_a_long_message_outweighs_the_chatter_before_it() -> None:
    """What is asked at last decides, though the words before it match another turn better."""
    pool = [
        Candidate("chatter", "The weather and the garden were lovely.", "1", lexical=1.0),
        Candidate("answer", "Ann lives in Oslo.", "2", lexical=0.6),
    ]
    query = "The weather in the garden was lovely. Where does Ann live?"
    assert [one.key for one in rank(query, pool, {})] == ["answer", "chatter"]
    without = rank(query, pool, {}, replace(Weights(), focus=0.0))
    assert [one.key for one in without] == ["chatter", "answer"]


def test_a_turn_that_asks_the_same_question_does_not_answer_it() -> None:
    """An earlier asking comes last, a statement that is searched for stays first."""
    pool = [
        Candidate("asked", "What is my dog called?", "1", lexical=1.0),
        Candidate("told", "My dog is called Rex.", "2", lexical=0.8),
    ]
    ranked = rank("what is my dog  called ?", pool, {})
    assert [one.key for one in ranked] == ["told", "asked"]
    assert ranked[1].score == pytest.approx(0)
    assert ranked[1].parts["echo"] < 0
    assert rank("My dog is called Rex.", pool, {})[1].parts.get("echo") is None


def test_title_named_in_a_first_document_lifts_its_document() -> None:
    """The second hop gains .4 of the naming passage's score; without titles nothing moves."""
    pool = [
        Candidate("a", "A farm in Adair County, Iowa.", "a", lexical=1.0, title="Intrepid Farm"),
        Candidate("b", "Became a state in 1846.", "b", lexical=0.1, title="Iowa"),
        Candidate("c", "Something else.", "c", lexical=0.3, title="Ohio"),
    ]
    assert [one.key for one in rank("Intrepid Farm?", pool, {})] == ["a", "b", "c"]
    plain = [replace(candidate, title="") for candidate in pool]
    assert [one.key for one in rank("Intrepid Farm?", plain, {})] == ["a", "c", "b"]


def test_ties_are_newest_first_then_by_key() -> None:
    """An empty question returns a defined order."""
    pool = [
        Candidate("b", "", "1", observed_at=DAY),
        Candidate("a", "", "1", observed_at=DAY),
        Candidate("c", "", "1", observed_at=DAY + timedelta(hours=1)),
        Candidate("d", "", "1"),
    ]
    assert [one.key for one in rank("", pool, {})] == ["c", "a", "b", "d"]
    assert list(rank("", [], {})) == []


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        key=st.sampled_from("abcdefgh"),
        content=st.text(max_size=12),
        session=st.sampled_from("12"),
        speaker=st.sampled_from([None, "user", "Ann"]),
        observed_at=st.sampled_from([None, DAY]),
        lexical=st.floats(0, 1),
        dense=st.floats(0, 1),
        title=st.text(max_size=3),
    ),
    max_size=8,
    unique_by=lambda candidate: candidate.key,
)


@given(st.text(max_size=20), CANDIDATES, st.randoms())
def test_order_does_not_depend_on_the_pools_order(
    query: str, pool: list[Candidate], random: Random
) -> None:
    """The same pool in another order gives the same ranking, whatever the texts."""
    sessions = {"1": Session("1", tuple("abcd"), 9, DAY), "2": Session("2", (), 0)}
    shuffled = list(pool)
    random.shuffle(shuffled)
    first = list(rank(query, pool, sessions))
    assert first == list(rank(query, shuffled, sessions))
    assert {candidate.key for candidate in pool} <= {one.key for one in first}
