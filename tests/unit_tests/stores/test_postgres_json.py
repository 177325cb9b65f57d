"""JSON in a column that knows no NUL."""

import json

from hypothesis import given
from hypothesis import strategies as st

from langchain_agentmem.stores._postgres_json import is_plain, read, written
from langchain_agentmem.stores._values import dump

_parts = st.sampled_from(["\x00", "\ue000", "\\", "n", "m", "u0000", '"', "é"])
_texts = st.lists(_parts, max_size=8).map("".join)


@given(st.dictionaries(_texts, st.one_of(_texts, st.lists(_texts))))
def test_every_string_comes_back_and_no_nul_is_written(value: object) -> None:
    """Whatever stands beside a NUL, what is written holds none, and reading gives it back."""
    column = json.loads(written(dump(value)))
    assert "\\u0000" not in dump(column).replace("\\\\", "")
    assert read(dump(column)) == value
    assert read(dump(column).encode()) == value


def test_usual_text_is_written_as_it_is() -> None:
    """Only NUL and the mark itself are changed."""
    text = json.dumps({"text": "Grüße \\u0000 上海"}, ensure_ascii=False)
    assert written(text) == text
    assert is_plain("Grüße")
    assert not is_plain("\x00")
