"""Loaders of data sets, on files made here in their forms; no text is from the data sets."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.evaluation.data import Question, Scope, Turn, batches, by_time
from langchain_agentmem.evaluation.datasets import conversations, found_in, load
from langchain_agentmem.evaluation.datasets.locomo import evidence_keys

DAY = "1:56 pm on 8 May, 2023"


def _write(path: Path, content: Any) -> None:  # noqa: ANN401 - any JSON
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")


def _qa(question: str, evidence: list[str], category: int) -> dict[str, Any]:
    return {"question": question, "answer": "x", "evidence": evidence, "category": category}


@pytest.fixture
def locomo_folder(tmp_path: Path) -> Path:
    """A conversation in LoCoMo's form, with categories in no order, and an audit of it."""
    said = [{"speaker": "Ann", "dia_id": f"D1:{at}", "text": f"line {at}"} for at in range(1, 4)]
    qa = [
        _qa("q4", ["D1:1"], 4),
        _qa("q1", ["D1:1; D1:3"], 1),
        _qa("q5", ["D1:2"], 5),
        _qa("q2", ["D1:02", "D"], 2),
        _qa("q3", ["D9:9"], 3),
    ]
    talk = {"session_1": said, "session_1_date_time": DAY}
    _write(
        tmp_path / "locomo/locomo_part.json",
        [{"sample_id": "c", "conversation": talk, "qa": qa}],
    )
    wrong = [{"question": "q2", "category": 2, "question_id": "locomo_0_qa3"}]
    _write(tmp_path / "locomo/gold_errors.json", wrong)
    return tmp_path


def test_locomo_keeps_category_numbers_in_any_order(locomo_folder: Path) -> None:
    """Each question keeps its own number, names come from the numbers alone, and 5 is apart."""
    dataset = load("locomo", locomo_folder)
    (scope,) = dataset.scopes
    assert {each.text: each.category for each in scope.questions} == {
        f"q{number}": str(number) for number in range(1, 6)
    }
    assert dataset.categories["1"] == "multi-hop"
    assert dataset.categories["4"] == "single-hop"
    assert dataset.apart == {"5"}


def test_locomo_reads_what_it_can_of_evidence_and_reports_the_rest(locomo_folder: Path) -> None:
    """Joined and padded ids are read; those that name no turn are in the notes."""
    dataset = load("locomo", locomo_folder)
    evidence = {each.text: each.evidence for each in dataset.scopes[0].questions}
    assert evidence == {
        "q1": {"D1:1", "D1:3"},
        "q2": {"D1:2"},
        "q3": frozenset(),
        "q4": {"D1:1"},
        "q5": {"D1:2"},
    }
    assert dataset.notes[0] == "Evidence that names no turn: 'D', 'D9:9'."
    assert dataset.notes[1].startswith("1 questions without usable evidence")


def test_locomo_marks_what_the_audit_found_wrong(locomo_folder: Path) -> None:
    """Only the audited question is doubtful, and the audit is not taken for the data."""
    (scope,) = load("locomo", locomo_folder).scopes
    assert [each.text for each in scope.questions if each.doubtful] == ["q2"]


def test_locomo_turns_have_speaker_session_and_time(locomo_folder: Path) -> None:
    """Everything a memory may use is in the turn."""
    turn = load("locomo", locomo_folder).scopes[0].turns[0]
    assert (turn.key, turn.speaker, turn.session) == ("D1:1", "Ann", "1")
    assert turn.observed_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("D8:6; D9:17", ["D8:6", "D9:17"]),
        ("D30:05", ["D30:5"]),
        ("D:11:26", ["D11:26"]),
        ("D", []),
        ("D10:19 D2:3", ["D10:19", "D2:3"]),
    ],
)
def test_evidence_strings_are_split(text: str, keys: list[str]) -> None:
    """The malformed strings of the published file give the turns they mean."""
    assert list(evidence_keys(text)) == keys


def test_locomo_has_the_published_numbers_of_questions() -> None:
    """The map of categories is the published one."""
    folder = Path(os.environ.get("AGENTMEM_DATA", "no folder"))
    if not (folder / "locomo/locomo10.json").exists():
        pytest.skip("AGENTMEM_DATA names no folder with the whole LoCoMo, which is not shipped.")
    asked = [each for scope in load("locomo", folder).scopes for each in scope.questions]
    counts = {number: sum(each.category == number for each in asked) for number in "12345"}
    assert counts == {"1": 282, "2": 321, "3": 96, "4": 841, "5": 446}


def test_memdaily_keeps_broken_questions_apart(tmp_path: Path) -> None:
    """A question that only reads `[ERRORQ]` is asked, and known to be wrong."""
    message = {"mid": 0, "message": "我喝茶。", "time": "2024年04月01日 周一 08:39", "place": "家"}
    asked = [
        {"question": "我喝什么", "answer": "茶", "target_step_id": [0]},
        {"question": "[ERRORQ]", "answer": "茶", "target_step_id": [0]},
    ]
    entry = {"tid": 3, "message_list": [message], "question_list": asked}
    _write(tmp_path / "memdaily/01_simple.json", [entry])
    dataset = load("memdaily", tmp_path)
    (scope,) = dataset.scopes
    assert [(each.text, each.doubtful) for each in scope.questions] == [
        ("我喝什么", False),
        ("[ERRORQ]", True),
    ]
    assert scope.turns[0].observed_at == datetime(2024, 4, 1, 8, 39, tzinfo=UTC)
    assert dataset.primary == 3


def test_musique_gives_passages_their_ready_triples(tmp_path: Path) -> None:
    """A graph memory finds entities and triples in the message, and needs no model."""
    corpus = [{"title": "Oslo", "text": "A city."}, {"title": "Rome", "text": "Another."}]
    part = {"title": "Rome", "paragraph_text": "Another.", "is_supporting": True}
    entry = {"id": "2hop__1", "question": "?", "answer": "a", "paragraphs": [part]}
    ready = {
        "passage": "Oslo\nA city.",
        "entities": ["Oslo"],
        "triples": [["Oslo", "is", "a city"]],
    }
    _write(tmp_path / "musique/musique_corpus.json", corpus)
    _write(tmp_path / "musique/musique_dev.json", [entry])
    _write(tmp_path / "musique/musique_openie_x.json", [ready])
    (scope,) = load("musique", tmp_path).scopes
    assert scope.questions[0].evidence == {"1"}
    message = scope.turns[0].message("m")
    assert message.additional_kwargs["triples"] == [["Oslo", "is", "a city"]]
    assert "triples" not in scope.turns[1].message("m").additional_kwargs


def test_precision_cases_name_what_must_and_must_not_be_recalled(tmp_path: Path) -> None:
    """What a case does not list is forbidden, except what is always there; users stay apart."""

    def belief(name: str, user: str = "test-user", **given: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
        fixed = {"type": "preference", "created_at": "2026-01-01T00:00:00Z", "pinned": False}
        return {"_id": name, "user_id": user, "content": name, "scope": ["code"], **fixed, **given}

    beliefs = [
        belief("new", created_at="2026-02-01T00:00:00Z"),
        belief("old"),
        belief("pinned", pinned=True),
        belief("theirs", user="other"),
        belief("prose", scope=["writing"]),
    ]
    case = {
        "category": "chain",
        "scope": ["code"],
        "query": "which?",
        "expect": {"relevantBeliefs": {"shouldOnlyInclude": ["new"], "mustExclude": ["theirs"]}},
    }
    _write(tmp_path / "precisionmembench/beliefs.seed.json", beliefs)
    _write(tmp_path / "precisionmembench/retrieval.cases.json", [case])
    (scope,) = load("precision", tmp_path).scopes
    assert [turn.key for turn in scope.turns] == ["old", "pinned", "new"]
    assert scope.questions[0].evidence == {"new"}
    assert scope.questions[0].forbidden == {"old"}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A conversation of the user's own."""
    lines = [
        {"user": "ann", "id": "m1", "content": "My dog is Rex.", "time": "2026-01-01T10:00:00Z"},
        {"user": "ann", "id": "m2", "content": "I moved.", "time": "2026-02-01T10:00:00Z"},
    ]
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return path


def test_own_conversations_need_no_questions(own: Path) -> None:
    """Costs can be measured without any."""
    dataset = conversations([own])
    assert [(each.name, len(each.turns), len(each.questions)) for each in dataset.scopes] == [
        ("ann", 2, 0)
    ]


def test_own_questions_are_read(own: Path, tmp_path: Path) -> None:
    """Every field of a question arrives."""
    path = tmp_path / "questions.jsonl"
    line = {
        "question": "Dog?",
        "answer": ["Rex", "rex"],
        "evidence": ["m1"],
        "must_not": ["m2"],
        "asked_at": "2026-01-15",
        "drafted": True,
    }
    path.write_text(json.dumps(line), "utf-8")
    dataset = conversations([own], path)
    assert dataset.scopes[0].questions == [
        Question(
            text="Dog?",
            answers=("Rex", "rex"),
            evidence=frozenset({"m1"}),
            forbidden=frozenset({"m2"}),
            asked_at=datetime(2026, 1, 15, tzinfo=UTC),
            drafted=True,
        )
    ]
    assert dataset.notes == ("1 of the questions were drafted by a model.",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "?", "evidence": ["m9"]}', "no turn with the id 'm9'"),
        ('{"question": "?", "user": "bob"}', "the conversations are of ann"),
        ('{"question": ""}', "'question' is missing"),
        ('{"question": "?", "gold": 1}', "unknown field 'gold'"),
        ('{"question": "?", "evidence": "m9"}', "no turn with the id 'm9'"),
        ('{"question": "?", "evidence": {"m1": 1}}', "expected a text or a list of texts"),
        ("", "holds no question"),
        ("{", "line 1"),
    ],
)
def test_a_wrong_question_is_named_with_its_line(
    own: Path, tmp_path: Path, line: str, message: str
) -> None:
    """The message says what to change."""
    path = tmp_path / "questions.jsonl"
    path.write_text(line, "utf-8")
    with pytest.raises(ConfigurationError, match=message):
        conversations([own], path)


def test_a_single_id_is_not_taken_for_its_letters(own: Path, tmp_path: Path) -> None:
    """`"m1"` is the turn m1, not the turns m and 1; a byte order mark is no part of the file."""
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "Dog?", "evidence": "m1", "answer": 7}', "utf-8-sig")
    (question,) = conversations([own], path).scopes[0].questions
    assert (question.evidence, question.answers) == (frozenset({"m1"}), ("7",))


def test_questions_in_another_encoding_are_named(own: Path, tmp_path: Path) -> None:
    """The memory file was said to be damaged."""
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b'{"question": "Caf\xe9?"}')
    with pytest.raises(ConfigurationError, match=r"questions.jsonl is not UTF-8"):
        conversations([own], path)


def test_a_loader_of_ones_own_may_take_the_folder_or_nothing(tmp_path: Path) -> None:
    """It was called with an argument it did not take."""
    path = tmp_path / "mine.py"
    path.write_text(
        "from langchain_agentmem.evaluation import Dataset\n"
        "def plain(): return Dataset(name='plain', title='', scopes=[])\n"
        "def given(folder): return Dataset(name=folder.name, title='', scopes=[])\n"
        "def greedy(folder, more): return None\n"
    )
    assert load(f"{path}:plain", tmp_path).name == "plain"
    assert load(f"{path}:given", tmp_path).name == tmp_path.name
    with pytest.raises(ConfigurationError, match="more than the folder"):
        load(f"{path}:greedy", tmp_path)


def test_only_data_sets_that_are_there_are_found(locomo_folder: Path) -> None:
    """A missing data set is left out; one whose file is broken is not passed over."""
    assert [each.name for each in found_in(locomo_folder)] == ["locomo"]
    (locomo_folder / "memdaily").mkdir()
    (locomo_folder / "memdaily/01_x.json").write_text("{", "utf-8")
    with pytest.raises(ConfigurationError, match="is not JSON"):
        found_in(locomo_folder)


def test_an_unknown_data_set_names_the_known_ones(tmp_path: Path) -> None:
    """A typing error shows what there is."""
    with pytest.raises(ConfigurationError, match="locomo, musique, memdaily, precision"):
        load("lokomo", tmp_path)


def test_batches_stay_within_a_session() -> None:
    """A call of `remember` never joins two sittings; passages are put together."""
    turns = [Turn(key=str(at), content="x", session="ab"[at > 2]) for at in range(5)]
    assert [[turn.key for turn in each] for each in batches(turns, 2)] == [
        ["0", "1"],
        ["2"],
        ["3", "4"],
    ]
    passages = [Turn(key=str(at), content="x", session=str(at), title="t") for at in range(3)]
    assert [len(each) for each in batches(passages, 2)] == [2, 1]


def test_dated_questions_come_first_in_their_order() -> None:
    """Questions are asked in the order of time, those without one in the end."""
    days = [None, datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)]
    asked = [Question(text=str(day), asked_at=day) for day in days]
    assert [position for position, _ in by_time(asked)] == [2, 1, 0]


def test_the_first_questions_need_the_first_conversations_alone(locomo_folder: Path) -> None:
    """A limit leaves out what is not needed, so that a small run is cheap."""
    dataset = load("locomo", locomo_folder)
    twice = [*dataset.scopes, Scope(name="more", turns=(), questions=(Question(text="q"),))]
    cut = type(dataset)(name="x", title="x", scopes=twice).first(2)
    assert [(each.name, len(each.questions)) for each in cut.scopes] == [("c", 2)]
