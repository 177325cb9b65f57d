"""The demo, with its own data and with a conversation it has never seen."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo.py"
UNSEEN = [
    {"user": "Tove", "content": "Our boat is moored at Sandvika, the red one with two masts."},
    {"user": "Tove", "content": "I finally finished reading The Master and Margarita yesterday."},
    {"user": "Tove", "content": "My brother Aksel started as a pastry cook in a small bakery."},
    {"user": "Tove", "content": "The doctor told me to take the blue pills before breakfast."},
    {"user": "小龙", "content": "我上个月在大理租了一间带院子的老房子。"},
    {"user": "小龙", "content": "我弟弟在学拉大提琴。每天晚上都练两个小时。"},
    {"user": "小龙", "content": "昨天我们在洱海边上骑自行车。特别开心。"},
]
ASKED = [
    {"Tove": ["What does my sibling Aksel do in the bakery?"]},
    {"小龙": ["弟弟学的是哪一种乐器"]},
]
EVIDENCE = [UNSEEN[2]["content"], UNSEEN[5]["content"]]
TOLD = {
    "user": "Bo",
    "tell": ["The alarm code of the summer house is the year grandmother was born, 1931."],
    "ask": ["What do I type to switch off the alarm in the summer house?"],
}


def run(*arguments: object) -> list[str]:
    """Run the demo and return what it printed."""
    line = [sys.executable, str(DEMO), *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def lines(path: Path, objects: list[dict[str, object]]) -> Path:
    """Write JSON lines."""
    path.write_text("\n".join(json.dumps(each, ensure_ascii=False) for each in objects), "utf-8")
    return path


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_demo_recalls_in_both_languages_under_a_minute() -> None:
    """People of both files are asked about, a chat is killed, and what it was told is recalled."""
    began = time.monotonic()
    out = run()
    assert time.monotonic() - began < 60
    asked = [line for line in out if " asks: " in line]
    assert sum(line.isascii() for line in asked) >= 3
    assert sum(not line.isascii() for line in asked) >= 3
    assert any("killed (status -9)" in line for line in out)
    recalled = out[out.index(next(line for line in out if line.startswith("4."))) :]
    told = json.loads((DEMO.parent / "told.json").read_text("utf-8"))["tell"]
    assert all(any(fact in line for line in recalled) for fact in told)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_demo_recalls_what_it_has_never_seen(tmp_path: Path) -> None:
    """Another conversation and paraphrased questions give the right turn first."""
    told = tmp_path / "told.json"
    told.write_text(json.dumps(TOLD), "utf-8")
    talk = [{**each, "thread": "t", "time": "2026-02-03"} for each in UNSEEN]
    out = run(
        *("--conversations", lines(tmp_path / "talk.jsonl", [dict(each) for each in talk])),
        *("--questions", lines(tmp_path / "asked.jsonl", [dict(each) for each in ASKED])),
        *("--told", told),
    )
    first = [line.strip() for line in out if line.strip().startswith("1. 20")]
    assert [evidence in line for evidence, line in zip(EVIDENCE, first, strict=False)] == [True] * 2
    assert first[0].startswith("1. 2026-02-03 user: ")
    assert TOLD["tell"][0] in first[2]


def test_the_demo_holds_no_question_and_no_answer() -> None:
    """Nothing of the data stands in the demo's code."""
    code = DEMO.read_text("utf-8")
    told = json.loads((DEMO.parent / "told.json").read_text("utf-8"))
    bank = DEMO.parent / "memorybank"
    words = [*told["tell"], *told["ask"], told["user"]]
    for path in sorted(bank.glob("probing_questions_*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            for person, questions in json.loads(line).items():
                words += [person.strip(), *questions]
    assert [word for word in words if word in code] == []
