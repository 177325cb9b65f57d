"""`agentmem chat`: talk to an agent that remembers."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from langchain_agentmem.cli._memory import of_user, opened, owner, real_text
from langchain_agentmem.cli._model import chat_model
from langchain_agentmem.cli._output import visible
from langchain_agentmem.errors import AgentMemoryError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from langchain_core.runnables import RunnableConfig

    from langchain_agentmem.cli._output import Output

_HINT: Final = "Name another one with --model, or talk to the memory alone with --model none."

logger = logging.getLogger(__name__)


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's private type
    """Add the command's arguments."""
    parser = commands.add_parser(
        "chat",
        parents=[common],
        help="talk to an agent that remembers",
        description="Talk to an agent that remembers what is said here, and what was imported. "
        "Without a chat model it quotes what it remembers. Lines of stdin are turns.",
    )
    parser.add_argument(
        "--message",
        "-m",
        action="append",
        type=real_text,
        metavar="TEXT",
        help="say this instead of reading stdin; may be repeated",
    )
    parser.add_argument("--thread", type=real_text, metavar="NAME", help="name of the conversation")
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="chat model for init_chat_model, or none (default: AGENTMEM_MODEL, or OpenAI's with "
        "OPENAI_API_KEY)",
    )
    parser.add_argument("--base-url", metavar="URL", help="server of an OpenAI-compatible model")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Take turns until there are no more."""
    from langgraph.checkpoint.memory import InMemorySaver

    from langchain_agentmem.surfaces.agent import create_memory_agent

    name = _model_name(args)
    model = chat_model(name, args.base_url, hint=_HINT) if name else None
    thread = args.thread or f"chat-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    config = of_user(owner(args), thread_id=thread)
    failed = False
    with opened(args, create=True) as memory:
        agent = create_memory_agent(memory, model=model, tools=model is not None).compile(
            checkpointer=InMemorySaver()
        )
        if _is_interactive(args, out):
            out.note(f"Memory of {owner(args)} · model: {name or 'none'} · Ctrl-D ends the chat.")
        for said in _turns(args, out):
            failed = not _take_turn(agent, config, said, out) or failed
            if failed and args.message:
                break
    return 1 if failed else 0


def _model_name(args: argparse.Namespace) -> str | None:
    from langchain_agentmem.surfaces.agent import configured_model

    if args.model:
        return None if args.model == "none" else str(args.model)
    return configured_model()


def _is_interactive(args: argparse.Namespace, out: Output) -> bool:
    return not args.message and not out.as_json and sys.stdin.isatty()


def _turns(args: argparse.Namespace, out: Output) -> Iterator[str]:
    if args.message:
        yield from args.message
    elif _is_interactive(args, out):
        yield from _typed(out)
    else:
        yield from (line.rstrip("\n") for line in sys.stdin if line.strip())


def _typed(out: Output) -> Iterator[str]:
    import readline  # noqa: F401 - gives `input` its line editing

    while True:
        try:
            said = out.console.input(Text("you> ", "bold green"))
        except EOFError:
            out.say("")
            return
        if said.strip() in ("/quit", "/exit"):
            return
        if said.strip():
            yield said


def _take_turn(agent: Any, config: RunnableConfig, said: str, out: Output) -> bool:  # noqa: ANN401 - a compiled graph
    """Say one thing and show the answer; when it is shown, the turn is stored for good.

    Fail-open: a model that cannot be reached or a text that cannot be stored ends this turn, not
    the conversation.
    """
    try:
        said.encode()
    except UnicodeEncodeError:
        out.error("This turn is not UTF-8 text and is not remembered; say it again.")
        return False
    try:
        state = agent.invoke({"messages": [("user", said)]}, config)
    except (AgentMemoryError, KeyboardInterrupt):
        raise
    except Exception as error:
        logger.debug("turn failed", exc_info=True)
        kind = type(error).__name__
        out.error(f"{kind}: {error} This turn is not remembered; say it again.", kind=kind)
        return False
    answer = state["messages"][-1].text
    if out.as_json:
        recalled = [
            {"key": each["key"], "content": each["value"]["content"]}
            for each in state.get("memories") or []
        ]
        out.json(user=said, answer=str(answer), recalled=recalled)
    else:
        out.say(visible(str(answer)))
        out.say("")
        sys.stdout.flush()
    return True
