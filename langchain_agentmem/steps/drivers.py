"""The two drivers: they perform a step's effects with blocking calls, or with `await`."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.runnables import RunnableConfig

from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.steps.conditional import abatch, batch
from langchain_agentmem.steps.effects import (
    Ask,
    AskEach,
    Call,
    Composite,
    Effect,
    Embed,
    Now,
    Resolve,
    Setting,
    Steps,
    StoreCall,
)
from langchain_agentmem.steps.environment import Environment

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Finished(Generic[R]):
    """A step's result."""

    result: R


def _advance(
    steps: Steps[R],
    reply: Any,  # noqa: ANN401 - effects have different results
    error: Exception | None,
) -> Effect[Any] | _Finished[R]:
    """Give a step what it waited for and return what it asks for next."""
    try:
        return steps.throw(error) if error is not None else steps.send(reply)
    except StopIteration as finished:
        return _Finished(finished.value)


def run(steps: Steps[R], env: Environment) -> R:
    """Carry out a step with blocking calls and return its result.

    An exception of an effect is raised inside the step, which may handle it.
    """
    asked = _advance(steps, None, None)
    while not isinstance(asked, _Finished):
        try:
            reply = _perform(asked, env)
        except Exception as error:  # noqa: BLE001 - the step decides
            asked = _advance(steps, None, error)
        else:
            asked = _advance(steps, reply, None)
    return asked.result


async def arun(steps: Steps[R], env: Environment) -> R:
    """Carry out a step with `await` and return its result.

    An exception of an effect is raised inside the step, which may handle it.
    """
    asked = _advance(steps, None, None)
    while not isinstance(asked, _Finished):
        try:
            reply = await _aperform(asked, env)
        except Exception as error:  # noqa: BLE001 - the step decides
            asked = _advance(steps, None, error)
        else:
            asked = _advance(steps, reply, None)
    return asked.result


def _perform(effect: Effect[Any], env: Environment) -> Any:  # noqa: ANN401, PLR0911 - one line an effect
    match effect:
        case Composite():
            return run(effect.steps(env), env)
        case StoreCall(ops) if env.keeps_back(ops):
            return [None] * len(ops)
        case StoreCall(ops, expect):
            return batch(env.the_store(), ops, expect)
        case Now() | Resolve() | Setting():  # the most frequent ones need not try all others
            return env.perform_plain(effect)
        case Ask():
            return env.received(effect, env.runnable(effect).invoke(list(effect.messages)))
        case AskEach(prompts, purpose, at_once):
            ask, limit = Ask((), purpose), RunnableConfig(max_concurrency=at_once)
            inputs = [list(each) for each in prompts]
            replies = env.runnable(ask).batch(inputs, limit, return_exceptions=True)
            return [env.received_or_raised(ask, each) for each in replies]
        case Call():
            return _call(effect)
        case Embed(texts, query=True):
            return [env.the_embeddings().embed_query(text) for text in texts]
        case Embed(texts):
            return env.the_embeddings().embed_documents(list(texts))
    return env.perform_plain(effect)


async def _aperform(effect: Effect[Any], env: Environment) -> Any:  # noqa: ANN401, PLR0911 - as above
    match effect:
        case Composite():
            return await arun(effect.steps(env), env)
        case StoreCall(ops) if env.keeps_back(ops):
            return [None] * len(ops)
        case StoreCall(ops, expect):
            return await abatch(env.the_store(), ops, expect)
        case Now() | Resolve() | Setting():
            return env.perform_plain(effect)
        case Ask():
            reply = await env.runnable(effect).ainvoke(list(effect.messages))
            return env.received(effect, reply)
        case AskEach(prompts, purpose, at_once):
            ask, limit = Ask((), purpose), RunnableConfig(max_concurrency=at_once)
            inputs = [list(each) for each in prompts]
            replies = await env.runnable(ask).abatch(inputs, limit, return_exceptions=True)
            return [env.received_or_raised(ask, each) for each in replies]
        case Call():
            return await _acall(effect)
        case Embed(texts, query=True):
            return [await env.the_embeddings().aembed_query(text) for text in texts]
        case Embed(texts):
            return await env.the_embeddings().aembed_documents(list(texts))
    return env.perform_plain(effect)


def _call(call: Call) -> Any:  # noqa: ANN401 - the function is the user's
    result = call.function(*call.arguments, **call.named)
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        name = getattr(call.function, "__name__", type(call.function).__name__)
        msg = f"{name} is async: call the async twin (ainvoke, ...), or give a plain function."
        raise ConfigurationError(msg)
    return result


async def _acall(call: Call) -> Any:  # noqa: ANN401 - the function is the user's
    function = call.afunction or call.function
    if inspect.iscoroutinefunction(function):
        return await function(*call.arguments, **call.named)
    result = await asyncio.to_thread(function, *call.arguments, **call.named)
    return await result if inspect.isawaitable(result) else result
