"""The `Call` effect: functions of the user, plain and async."""

import pytest

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.steps.drivers import arun, run
from langchain_agentmem.steps.effects import Call, Steps
from langchain_agentmem.steps.environment import Environment


def double(number: int, *, plus: int = 0) -> int:
    """Double."""
    return 2 * number + plus


async def adouble(number: int, *, plus: int = 0) -> int:
    """Double, asynchronously, one more."""
    return 2 * number + plus + 1


def _steps(call: Call) -> Steps[int]:
    result: int = yield from call
    return result


async def test_plain_function_runs_in_both_drivers() -> None:
    """A plain function gives the same result in a blocking and in an async call."""
    call = Call(double, (3,), {"plus": 1})
    assert run(_steps(call), Environment()) == 7
    assert await arun(_steps(call), Environment()) == 7


async def test_async_call_prefers_the_async_twin() -> None:
    """The async driver awaits `afunction`; the blocking one uses `function`."""
    call = Call(double, (3,), afunction=adouble)
    assert run(_steps(call), Environment()) == 6
    assert await arun(_steps(call), Environment()) == 7


async def test_blocking_call_of_an_async_function_says_what_to_do() -> None:
    """An async function alone works in async calls and is refused, by name, in blocking ones."""
    call = Call(adouble, (3,))
    assert await arun(_steps(call), Environment()) == 7
    with pytest.raises(ConfigurationError, match="adouble is async"):
        run(_steps(call), Environment())
