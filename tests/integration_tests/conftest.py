"""Fixtures of the integration tests."""

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.integration_tests.dev_server import Server, project, start, stop

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on the graphs; whatever is done to it, its log must hold no complaint."""
    running = start(project(tmp_path_factory.mktemp("project")))
    yield running
    stop(running)
    assert running.complaints() == []


@pytest.fixture
async def client(studio: Server) -> "AsyncIterator[LangGraphClient]":
    """A client of the server."""
    from langgraph_sdk import get_client

    async with get_client(url=studio.url) as connected:
        yield connected
