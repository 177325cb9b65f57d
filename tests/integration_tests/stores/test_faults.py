"""What disks and clocks do to a store: nothing acknowledged is lost, and no answer is wrong."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from langchain_agentmem.cli import main
from langchain_agentmem.errors import AgentMemoryError, StorageError
from tests.survival.files import open_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_agentmem.stores import FaissSqliteStore

COUNT = 60
FILLER = """
import sys
from tests.survival.files import open_file
from langchain_agentmem.errors import StorageError

with open_file(sys.argv[1]) as store:
    try:
        for n in range(100_000):
            store.put(("a",), str(n), {"text": f"item {n} " + "x" * 2_000, "n": n})
            print(n, flush=True)
    except StorageError as error:
        print(error, file=sys.stderr)
        print(len(store.search(("a",), limit=100_000)), file=sys.stderr)
"""


def _value(number: int) -> dict[str, object]:
    return {"text": f"item {number} is word{number}", "n": number}


def _filled(path: Path) -> None:
    with open_file(str(path)) as store:
        for number in range(COUNT):
            store.put(("a", str(number % 3)), str(number), _value(number))
        store.checkpoint()


def _wrong(store: FaissSqliteStore) -> list[str]:
    """Return the items that are there with another value, or are found by another's words."""
    found = store.search((), limit=1000)
    wrong = [item.key for item in found if item.value != _value(item.value.get("n", -1))]
    for number in range(0, COUNT, 7):
        hits = store.lexical_search((), f"word{number}")
        wrong += [hit.key for hit in hits if hit.value != _value(hit.value.get("n", -1))]
    return wrong


def _limit_files(megabytes: float) -> Callable[[], None]:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = int(megabytes * 1_000_000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("megabytes", [0.3, 0.75, 2])
def test_full_disk_loses_nothing_acknowledged(tmp_path: Path, megabytes: float) -> None:
    """When no file can grow, the put fails, what was acknowledged stays, and reads go on."""
    path = tmp_path / "full.sqlite"
    command = [sys.executable, "-c", FILLER, str(path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_limit_files(megabytes),
    )
    acknowledged = done.stdout.split()
    message, _, readable = done.stderr.strip().rpartition("\n")
    assert "What was being written is not" in message or "SQLite reports" in message, done.stderr
    assert int(readable) == len(acknowledged) > 0
    with open_file(str(path)) as store:
        assert {item.key for item in store.search(("a",), limit=100_000)} == set(acknowledged)
        assert store.check() == []
        store.put(("a",), "more", {"text": "there is space again"})


def test_full_disk_leaves_no_half_backup(tmp_path: Path) -> None:
    """A backup that does not fit raises StorageError, and nothing of it remains."""
    path = tmp_path / "store.sqlite"
    _filled(path)
    code = (
        "import sys; from tests.survival.files import open_file\n"
        "with open_file(sys.argv[1]) as store: store.backup(sys.argv[1] + '.copy')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_limit_files(0.06),
    )
    assert "StorageError" in done.stderr
    assert "cannot be written" in done.stderr
    assert not list(tmp_path.glob("*.copy*"))


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", ["flipped bit", "cut short", "page of zeros"])
def test_damaged_file_never_answers_wrong(tmp_path: Path, how: str) -> None:
    """A flipped bit, a lost end or page is an error or a missing item, never another value."""
    sound = tmp_path / "sound.sqlite"
    _filled(sound)
    data, rng = sound.read_bytes(), random.Random(20261129)  # noqa: S311 - places to damage
    for round_ in range(60):
        path = tmp_path / f"{round_}.sqlite"
        place = rng.randrange(len(data))
        if how == "flipped bit":
            spoiled = data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)])
            path.write_bytes(spoiled + data[place + 1 :])
        elif how == "cut short":
            path.write_bytes(data[:place])
        else:
            start = place // 4096 * 4096
            path.write_bytes(data[:start] + bytes(4096) + data[start + 4096 :])
        with suppress(AgentMemoryError), open_file(str(path)) as store:
            assert _wrong(store) == []


@pytest.mark.parametrize("table", ["units", "words"])
def test_doctor_mends_lost_indexes(
    tmp_path: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Vectors or words that are gone or stale are found by the doctor, who says so and mends."""
    path = tmp_path / "store.sqlite"
    from langchain_agentmem.stores import FaissSqliteStore

    with FaissSqliteStore(path) as store:
        for number in range(5):
            store.put(("a",), str(number), _value(number))
        lost = {
            "units": "DELETE FROM units",
            "words": "INSERT INTO words(words) VALUES ('delete-all')",
        }
        store.conn.execute(lost[table])
    assert main(["doctor", "--db", str(path)]) == 1
    assert "--repair" in capsys.readouterr().out
    assert main(["doctor", "--repair", "--db", str(path)]) == 0
    assert "Rebuilt vectors and words of 5 items" in capsys.readouterr().out
    with FaissSqliteStore(path) as store:
        assert store.search(("a",), query="word3")[0].key == "3"


def test_lost_shared_memory_file_is_made_anew(tmp_path: Path) -> None:
    """The `-shm` file of a killed process may be gone; the log is read without it."""
    path = tmp_path / "store.sqlite"
    store = open_file(str(path))
    store.put(("a",), "k", _value(1))
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    store.close()
    with open_file(str(copy)) as again:
        assert again.get(("a",), "k") is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_read_only_mount_is_read_and_says_so(tmp_path: Path) -> None:
    """On a read-only mount everything is found, and a write says why it cannot be."""
    where = tmp_path / "disk"
    where.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(where)], check=False)
    if mounted.returncode:
        pytest.skip("mounting is not permitted")
    try:
        _filled(where / "store.sqlite")
        subprocess.run(["mount", "-o", "remount,ro", str(where)], check=True)
        with open_file(str(where / "store.sqlite")) as store:
            assert len(store.search((), limit=1000)) == COUNT
            assert _wrong(store) == []
            with pytest.raises(StorageError, match="read-only"):
                store.put(("a",), "k", {})
    finally:
        subprocess.run(["umount", str(where)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_full_file_system_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """On a file system without space the put fails, and everything acknowledged is there."""
    where = tmp_path / "disk"
    where.mkdir()
    size = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(where)]
    if subprocess.run(size, check=False).returncode:
        pytest.skip("mounting is not permitted")
    try:
        command = [sys.executable, "-c", FILLER, str(where / "full.sqlite")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        acknowledged = done.stdout.split()
        assert "the disk is full" in done.stderr
        for name in ("full.sqlite", "full.sqlite-wal"):
            if (where / name).exists():
                shutil.copy(where / name, tmp_path / name)
        with open_file(str(tmp_path / "full.sqlite")) as store:
            assert {i.key for i in store.search(("a",), limit=100_000)} == set(acknowledged)
            assert store.check() == []
    finally:
        subprocess.run(["umount", str(where)], check=True)
