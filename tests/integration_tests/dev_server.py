"""A LangGraph development server in a process of its own, for the tests that drive it."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
GRAPHS: dict[str, dict[str, str]] = json.loads((ROOT / "langgraph.json").read_text("utf-8"))[
    "graphs"
]
COLORS = re.compile(r"\x1b\[[0-9;]*m")
COMPLAINTS = ("blockingerror", "[error", "unregistered type", "traceback")


@dataclass(frozen=True, slots=True)
class Server:
    """A running development server.

    Attributes:
        url: Where it listens.
        process: Its process.
        log: What it writes.
        seconds: How long it took until it answered.
    """

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    seconds: float

    def complaints(self) -> list[str]:
        """Return the lines of the log that tell of errors, blocking calls or unknown types."""
        lines = COLORS.sub("", self.log.read_text("utf-8", "replace")).splitlines()
        return [line for line in lines if any(each in line.lower() for each in COMPLAINTS)]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with contextlib.closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def project(folder: Path) -> Path:
    """Put the configuration and the graphs into a folder, as a user's project has them."""
    shutil.copy(ROOT / "langgraph.json", folder)
    shutil.copytree(ROOT / "graphs", folder / "graphs")
    return folder


def plain(options: str) -> list[str]:
    """Return the command that starts a server."""
    return [str(BIN / "langgraph"), "dev", *options.split()]


def start(folder: Path, command: Callable[[str], list[str]] = plain) -> Server:
    """Start a server in a folder, without any key, and wait until it answers.

    Args:
        folder: The project.
        command: Gives the command for the server's options.
    """
    port, log = free_port(), folder / "server.log"
    options = f"--no-browser --no-reload --host 127.0.0.1 --port {port}"
    environment = {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "AGENTMEM_DB": str(folder / "data" / "memory.sqlite"),
    }
    for name in ("PYTHONPATH", "LD_LIBRARY_PATH"):
        if name in os.environ:
            environment[name] = os.environ[name]
    begun = time.monotonic()
    with log.open("ab") as file:
        process = subprocess.Popen(
            command(options),
            cwd=folder,
            start_new_session=True,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    while time.monotonic() < begun + 90 and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/ok").status_code == httpx.codes.OK:
                return Server(url, process, log, time.monotonic() - begun)
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    pytest.fail(log.read_text("utf-8", "replace"))


def stop(server: Server, number: signal.Signals = signal.SIGTERM) -> None:
    """End a server with what it has started, by its own process group."""
    os.killpg(server.process.pid, number)
    server.process.wait(timeout=30)
