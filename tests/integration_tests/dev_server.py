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
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
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


def start(folder: Path) -> Server:
    """Start a server in a folder, without any key, and wait until it answers."""
    port, log = free_port(), folder / "server.log"
    command = [str(Path(sys.executable).parent / "langgraph"), "dev", "--no-browser", "--no-reload"]
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
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
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder,
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
    process.kill()
    pytest.fail(log.read_text("utf-8", "replace"))


def stop(server: Server, number: signal.Signals = signal.SIGTERM) -> None:
    """End a server by its own process id."""
    server.process.send_signal(number)
    server.process.wait(timeout=30)
