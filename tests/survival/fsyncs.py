"""Count how often a process makes its writes durable, which a kill alone cannot show.

A killed process loses nothing the kernel has; only power loss does. So the calls that force data
to the disk are counted with `strace`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.survival.files import open_file

PUTS: Final = 20
MUTANTS: Final = ("off", "normal")


def strace() -> str | None:
    """Return the path of `strace` if it is installed."""
    return shutil.which("strace")


def syncs_per_put(path: Path, mutant: str = "") -> float:
    """Return how many fsync and fdatasync calls a put makes on average, after the first one.

    Args:
        path: A file to be made.
        mutant: `"off"` runs with `synchronous=OFF`, `"normal"` with the store's `"normal"`.
    """
    log = path.with_suffix(".strace")
    trace = [str(strace()), "-f", "-e", "trace=fsync,fdatasync,write", "-o", str(log)]
    writer = [sys.executable, "-m", "tests.survival.fsyncs", str(path), mutant]
    subprocess.run([*trace, *writer], stdout=subprocess.DEVNULL, check=True)
    calls = re.findall(r'(fsync|fdatasync)\(\d+|write\(1, "(\d+)\\n"', log.read_text("latin-1"))
    marks = [n for n, (_, number) in enumerate(calls) if number]
    between = calls[marks[0] : marks[-1]]
    return sum(bool(sync) for sync, _ in between) / (len(marks) - 1)


def write(path: str, mutant: str) -> None:
    """Put items and write each one's number to stdout once it is stored."""
    synchronous: Any = "normal" if mutant == "normal" else "full"
    with open_file(path, synchronous=synchronous) as store:
        if mutant == "off":
            store.conn.execute("PRAGMA synchronous = OFF")
        for number in range(PUTS):
            store.put(("fsyncs",), str(number), {"text": f"item {number}"})
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2])
