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

PUTS = 20


def strace() -> str | None:
    """Return the path of `strace` if it is installed."""
    return shutil.which("strace")


def syncs_per_put(path: Path, mutant: str = "") -> float:
    """Return how many fsync and fdatasync calls a put makes on average, after the first one."""
    log = path.with_suffix(".strace")
    command = [str(strace()), "-f", "-e", "trace=fsync,fdatasync,write", "-o", str(log)]
    writer = [sys.executable, "-m", "tests.survival.writer", str(path), "0", mutant]
    with subprocess.Popen([*command, *writer], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(PUTS):
            process.stdout.readline()
        process.kill()
    return _count(log.read_text(errors="replace"))


def _count(log: str) -> float:
    """Count the syncs between the first and the last acknowledgement."""
    calls = re.findall(r'(fsync|fdatasync)\(\d+|write\(1, "(\d+)\\n"', log)
    marks = [n for n, (_, number) in enumerate(calls) if number]
    between = calls[marks[0] : marks[-1]]
    return sum(bool(sync) for sync, _ in between) / (len(marks) - 1)
