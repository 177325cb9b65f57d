"""Fixtures of the optimizer's tests."""

import pytest

from tests.unit_tests.prompt_optimizer.lab import Ways


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def ways(request: pytest.FixtureRequest) -> Ways:
    """The sync and the async path."""
    return Ways(is_async=request.param)
