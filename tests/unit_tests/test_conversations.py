"""Reading files of conversations: every format, and every way a file can be wrong."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langchain_agentmem._formats import NAMES
from langchain_agentmem.conversations import ConversationFile, ImportedTurn, batches
from langchain_agentmem.errors import ConversationFormatError


def read(path: Path, **options: Any) -> list[ImportedTurn]:  # noqa: ANN401 - any option
    """Return all turns of a file."""
    return list(ConversationFile(path, **options))


def lines(path: Path, *objects: object) -> Path:
    """Write JSON lines."""
    path.write_text("\n".join(json.dumps(each, ensure_ascii=False) for each in objects), "utf-8")
    return path


def whole(path: Path, data: object) -> Path:
    """Write one JSON value."""
    path.write_text(json.dumps(data, ensure_ascii=False), "utf-8")
    return path


def said(*words: str) -> list[dict[str, str]]:
    """Return OpenAI messages of user and assistant in turn."""
    return [
        {"role": ("user", "assistant")[number % 2], "content": text}
        for number, text in enumerate(words)
    ]


def texts(turns: list[ImportedTurn]) -> list[str]:
    """Return what was said."""
    return [str(turn.message.content) for turn in turns]


FULL = {
    "user": "ann",
    "thread": "t1",
    "session": "s1",
    "role": "user",
    "speaker": "Ann",
    "content": "我搬到了奥斯陆。\nIndeed.",
    "time": "2026-03-01T09:30:00Z",
    "id": "m1",
}


def test_our_jsonl_is_read_completely(tmp_path: Path) -> None:
    """Every documented field arrives in the message, and the words are unchanged."""
    (turn,) = read(lines(tmp_path / "a.jsonl", FULL))
    assert (turn.user, turn.thread) == ("ann", "t1")
    assert isinstance(turn.message, HumanMessage)
    assert (turn.message.content, turn.message.name) == (FULL["content"], "Ann")
    assert turn.message.id == "m1"
    assert turn.message.additional_kwargs == {
        "observed_at": "2026-03-01T09:30:00.000000+00:00",
        "session": "s1",
    }


def test_content_is_enough(tmp_path: Path) -> None:
    """A line with nothing but words is a turn of the user without a conversation."""
    (turn,) = read(lines(tmp_path / "a.jsonl", {"content": "Hello"}))
    assert (turn.user, turn.thread, turn.message.name) == (None, "", None)
    assert turn.message.additional_kwargs == {}


@pytest.mark.parametrize(
    ("field", "name"), [(field, name) for field, names in NAMES.items() for name in names]
)
def test_other_names_of_a_field_are_not_lost(tmp_path: Path, field: str, name: str) -> None:
    """A field under any of its names says what it says under its first."""
    other = {name if each == field else each: value for each, value in FULL.items()}
    file = ConversationFile(lines(tmp_path / "a.jsonl", other))
    assert list(file) == read(lines(tmp_path / "b.jsonl", FULL))
    assert not file.ignored_fields


def test_names_in_a_list_of_messages_win_over_the_conversation(tmp_path: Path) -> None:
    """A message that names its thread and owner is not given those of the whole."""
    message = {"role": "user", "content": "Hi", "user_id": "bob", "thread_id": "t2"}
    data = {"user": "ann", "thread": "t1", "messages": [*said("Ho"), message]}
    turns = read(whole(tmp_path / "a.json", data))
    assert [(turn.user, turn.thread) for turn in turns] == [("ann", "t1"), ("bob", "t2")]


@pytest.mark.parametrize(
    ("fields", "kind", "name"),
    [
        ({"role": "assistant"}, AIMessage, None),
        ({"role": "AI", "speaker": "Hal"}, AIMessage, "Hal"),
        ({"speaker": "assistant"}, AIMessage, None),
        ({"speaker": "User"}, HumanMessage, None),
        ({"speaker": "Caroline"}, HumanMessage, "Caroline"),
    ],
)
def test_role_and_speaker(
    tmp_path: Path, fields: dict[str, str], kind: type, name: str | None
) -> None:
    """The role says which side speaks, the speaker who; a role as speaker is a role."""
    (turn,) = read(lines(tmp_path / "a.jsonl", {"content": "Hi", **fields}))
    assert (type(turn.message), turn.message.name) == (kind, name)


def test_ids_do_not_depend_on_the_file(tmp_path: Path) -> None:
    """The same conversation has the same ids in another file and when it has grown."""
    talk = [{"thread": "t", "content": text} for text in ("one", "two", "two", "three")]
    short = read(lines(tmp_path / "a.jsonl", *talk[:3]))
    grown = read(lines(tmp_path / "b.jsonl", *talk))
    ids = [turn.message.id for turn in grown]
    assert [turn.message.id for turn in short] == ids[:3]
    assert len(set(ids)) == 4


def test_openai_lists_keep_their_thread_when_they_grow(tmp_path: Path) -> None:
    """A list without a name is recognized again by its opening, wherever it lies."""
    talk = [{"role": "system", "content": "Be kind."}, *said("Hi", "Hello!", "Bye")]
    short = read(whole(tmp_path / "a.json", talk[:3]))
    grown = read(whole(tmp_path / "b.json", {"messages": talk}))
    other = read(whole(tmp_path / "c.json", [talk[0], *said("Hi", "Good day!")]))
    assert texts(grown) == ["Hi", "Hello!", "Bye"]
    assert {turn.thread for turn in short} == {turn.thread for turn in grown}
    assert other[0].thread != grown[0].thread


def test_openai_lines_of_conversations(tmp_path: Path) -> None:
    """One conversation a line, as for fine-tuning; system turns and tool calls say nothing."""
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    result = {"role": "tool", "content": "42"}
    first = {"messages": [*said("What is it?"), call, result, *said("x", "It is 42.")[1:]]}
    file = ConversationFile(lines(tmp_path / "a.jsonl", first, {"messages": said("你好")}))
    turns = list(file)
    assert texts(turns) == ["What is it?", "It is 42.", "你好"]
    assert turns[0].thread != turns[2].thread
    assert file.silent == 2


def test_content_blocks_are_kept(tmp_path: Path) -> None:
    """Messages made of blocks are read as they are."""
    blocks = [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "x"}}]
    (turn,) = read(whole(tmp_path / "a.json", [{"role": "user", "content": blocks}]))
    assert turn.message.content == blocks


def export() -> list[dict[str, Any]]:
    """Return a ChatGPT export with an edited message, so that one branch is dead."""

    def node(key: str, parent: str | None, role: str, *parts: object) -> dict[str, Any]:
        message = {
            "id": f"m-{key}",
            "author": {"role": role},
            "create_time": 1_700_000_000.5,
            "content": {"content_type": "text", "parts": list(parts)},
        }
        return {"id": key, "parent": parent, "message": message if role else None}

    nodes = [
        node("root", None, ""),
        node("sys", "root", "system", ""),
        node("old", "sys", "user", "I live in Rome."),
        node("new", "sys", "user", "I live in Oslo."),
        node("reply", "new", "assistant", "Nice!", {"content_type": "image_asset_pointer"}),
    ]
    mapping = {each["id"]: each for each in nodes}
    return [{"conversation_id": "c1", "title": "T", "mapping": mapping, "current_node": "reply"}]


@pytest.mark.parametrize("zipped", [False, True])
def test_chatgpt_export(tmp_path: Path, zipped: bool) -> None:
    """The branch that the user sees is read, with its own ids and times, zipped or not."""
    path = whole(tmp_path / "conversations.json", export())
    if zipped:
        path = tmp_path / "export.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(tmp_path / "conversations.json", "conversations.json")
    turns = read(path)
    assert texts(turns) == ["I live in Oslo.", "Nice!\n[image_asset_pointer]"]
    assert [(turn.thread, turn.message.id) for turn in turns] == [
        ("c1", "m-new"),
        ("c1", "m-reply"),
    ]
    when = turns[0].message.additional_kwargs["observed_at"]
    assert when == "2023-11-14T22:13:20.500000+00:00"


def test_a_circle_of_chatgpt_messages_loses_no_turns(tmp_path: Path) -> None:
    """A message that is its own ancestor is an error, or costs its conversation when skipped."""
    (circle,), good = export(), {**export()[0], "conversation_id": "c2"}
    circle["mapping"]["sys"]["parent"] = "reply"
    path = whole(tmp_path / "conversations.json", [circle, good])
    with pytest.raises(ConversationFormatError, match="conversation 1: its messages form a circle"):
        read(path)
    file = ConversationFile(path, skip_invalid=True)
    assert [turn.thread for turn in file] == ["c2", "c2"]
    assert len(file.invalid) == 1


def test_the_title_names_a_chatgpt_thread_without_id(tmp_path: Path) -> None:
    """The title is used only where there is no id, which two conversations never share."""
    (named,), (titled,) = export(), export()
    del titled["conversation_id"]
    turns = read(whole(tmp_path / "conversations.json", [named, titled]))
    assert list(dict.fromkeys(turn.thread for turn in turns)) == ["c1", "T"]


def test_memorybank(tmp_path: Path) -> None:
    """Each person's exchanges are turns of the day's session."""
    talk = {" 李雪 ": {"history": {"2023-04-27": [{"query": "你好", "response": "Hi"}]}}}
    turns = read(whole(tmp_path / "bank.json", talk))
    assert [(turn.user, turn.message.type) for turn in turns] == [("李雪", "human"), ("李雪", "ai")]
    assert turns[0].message.additional_kwargs["session"] == "2023-04-27"


def test_byte_order_mark_and_blank_lines(tmp_path: Path) -> None:
    """Files of Windows editors are read."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"content": "one"}\r\n\r\n{"content": "two"}\r\n')
    assert texts(read(path)) == ["one", "two"]


@pytest.mark.parametrize("text", ["a\x00b", "x" * 1_000_000, "line\u2028separator", "👩‍👩‍👧 é"])
def test_unusual_words_arrive_unchanged(tmp_path: Path, text: str) -> None:
    """NUL, a megabyte, line separators and joined emoji are words like others."""
    assert texts(read(lines(tmp_path / "a.jsonl", {"content": text}))) == [text]


def test_turns_without_words_are_counted(tmp_path: Path) -> None:
    """Empty and silent turns are left out, and reported as a number."""
    silent = [{"content": ""}, {"content": " \n"}, {"content": "x", "role": "system"}]
    file = ConversationFile(lines(tmp_path / "a.jsonl", *silent, {"content": "words"}))
    assert texts(list(file)) == ["words"]
    assert file.silent == 3
    assert len(list(file)) == 1
    assert file.silent == 3


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b'{"content": "x"', "line 2: not JSON"),
        (b'{"content": "\xff"}', "line 2: not UTF-8"),
        (b"[1]", "line 2: expected a JSON object"),
        (b'{"words": "x"}', "line 2: 'content' is missing (found: words)"),
        (b'{"content": 5}', "line 2: 'content' must be a text, not int"),
        (b'{"content": "\\ud83d!"}', "line 2: 'content' holds half of a surrogate pair"),
        (b'{"content": "x", "user": ["a"]}', "line 2: 'user' must be a text, not list"),
        (b'{"content": "x", "time": "soon"}', "line 2: 'time' is 'soon'"),
        (b'{"content": "x", "time": 1e300}', "line 2: 'time' is"),
        *(
            (b'{"content": "x", "%s": "soon"}' % name.encode(), f"line 2: '{name}' is 'soon'")
            for name in NAMES["time"]
        ),
        (b'{"content": "x", "time": "2026-03-01", "date": "?"}', "line 2: 'date' is '?'"),
        (b'{"content": "x", "role": "robot"}', "line 2: 'role' is 'robot'"),
        (b'{"messages": "x"}', "line 2: 'content' is missing"),
        (b'{"messages": ["x"]}', "line 2, message 1: expected a JSON object"),
        (b"[" * 100_000, "line 2: not JSON that can be read"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, bad: bytes, why: str) -> None:
    """The error names file, line and what was expected; skipping keeps everything else."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"content": "one"}\n' + bad + b'\n{"content": "three"}\n')
    with pytest.raises(ConversationFormatError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}, {why}")
    file = ConversationFile(path, skip_invalid=True)
    assert texts(list(file)) == ["one", "three"]
    assert [reason.startswith(f"{path}, {why}") for reason in file.invalid] == [True]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"hello", "line 1: not JSON"),
        (b'{\n"a": 1,\n}', "line 3: not JSON"),
        (b'{"a": 1}', "found an object with 'a'"),
        (b'{"results": [{"memory": "x"}]}', "--format mem0"),
        (b'[{"memory": "x"}]', "--format mem0"),
        (b"[]", "found an empty list"),
        (b"[1, 2]", "found a list of a single int"),
        (b'"text"', "found a single str"),
        (b'{"a": "\xff"}', "line 1: not UTF-8"),
        (b"[" * 100_000, "not JSON that can be read"),
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    """The error says what was found and what is expected."""
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ConversationFormatError) as error:
        read(path)
    assert why in str(error.value)


def test_a_named_format_is_kept_to(tmp_path: Path) -> None:
    """A file of another format than the one that was named is refused by name."""
    path = whole(tmp_path / "a.json", said("Hi"))
    with pytest.raises(ConversationFormatError, match=r"not in the format 'chatgpt'.*openai"):
        read(path, format="chatgpt")
    with pytest.raises(ConversationFormatError, match="format must be one of"):
        read(path, format="xml")


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    """A directory, a missing file and a foreign archive are told apart."""
    with pytest.raises(ConversationFormatError, match="is a directory"):
        read(tmp_path)
    with pytest.raises(ConversationFormatError, match="cannot be read: No such file"):
        read(tmp_path / "none.jsonl")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x.txt", "x")
    with pytest.raises(ConversationFormatError, match=r"without conversations\.json"):
        read(tmp_path / "a.zip")


@given(
    owners=st.lists(st.sampled_from(["a", "b"]), max_size=40),
    size=st.integers(min_value=1, max_value=7),
)
def test_batches_keep_order_and_never_mix(owners: list[str], size: int) -> None:
    """Batches hold every turn once, in order, of one user and thread each, up to the size."""
    turns = [
        ImportedTurn(user=owner, thread=owner, message=HumanMessage(str(number)))
        for number, owner in enumerate(owners)
    ]
    made = list(batches(iter(turns), size))
    flat = [(user, message.content) for user, _, messages in made for message in messages]
    assert flat == [(turn.user, turn.message.content) for turn in turns]
    assert all(1 <= len(messages) <= size for _, _, messages in made)
