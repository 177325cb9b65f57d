"""Beginning anew when another writer was quicker."""

import pytest

from langchain_agentmem.errors import ConflictError
from langchain_agentmem.steps.contention import insist
from langchain_agentmem.steps.effects import Now, Steps
from langchain_agentmem.steps.environment import Environment
from tests.unit_tests.floor import Drive


class Contended:
    """A write that others get in the way of so many times."""

    def __init__(self, conflicts: int) -> None:
        self.conflicts = conflicts
        self.attempts = 0

    def write(self) -> Steps[str]:
        """Read the time as a stand-in for a store, then meet another writer or not."""
        yield from Now()
        self.attempts += 1
        if self.attempts <= self.conflicts:
            raise ConflictError({(("home",), "key"): (1, 2)})
        return "written"


def test_an_attempt_is_made_anew_until_nobody_is_quicker(drive: Drive, env: Environment) -> None:
    """The result is that of the first attempt without a conflict."""
    contended = Contended(conflicts=2)
    assert drive(insist(contended.write, attempts=3), env) == "written"
    assert contended.attempts == 3


def test_the_last_conflict_is_raised(drive: Drive, env: Environment) -> None:
    """After the last attempt the caller is told, and nothing is tried again."""
    contended = Contended(conflicts=9)
    with pytest.raises(ConflictError, match="key"):
        drive(insist(contended.write, attempts=3), env)
    assert contended.attempts == 3
