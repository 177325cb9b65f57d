"""A small world for the optimizer: an agent that obeys its prompt, and a proposer that only reads.

The agent mentions what its prompt tells it to mention. The proposer holds no prompt: it makes rules
out of the feedback and the texts it is shown, so a better prompt can only come from these.
"""

import asyncio
import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from langchain_agentmem.prompt_optimizer import PromptMemory, create_prompt_optimizer_graph
from langchain_agentmem.testing import ScriptedChatModel

Graph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]
Given: TypeAlias = Any
"""What a test hands through to the code that it tests."""

ANN: RunnableConfig = {"configurable": {"user_id": "ann-17"}}
PROMPT = "Answer {q}."
TALKS: list[dict[str, Any]] = [
    {"id": f"t{number}", "messages": [("user", f"Question {number}"), ("ai", "It is so.")]}
    for number in range(4)
]
NEEDS = ("unit", "source")
RULE = re.compile(r"Always mention the \w+\.")

NO_CHANGE = {"update_prompt": False, "new_prompt": ""}


def update(text: str) -> dict[str, Any]:
    """Return a `prompt_memory` answer that proposes a text."""
    return {"logic": "because", "update_prompt": True, "new_prompt": text}


def optimizer(model: ScriptedChatModel | None, store: BaseStore, **given: Given) -> Graph:
    """Build the graph with what most tests want."""
    options: dict[str, Any] = {"prompts": PROMPT, "strategy": "prompt_memory"} | given
    options.setdefault("rng", seeded())
    return create_prompt_optimizer_graph(model, store=store, **options)


def seeded() -> random.Random:
    """Return a source of randomness that gives the same each time."""
    return random.Random(7)  # noqa: S311 - sampling, not secrets


class Ways:
    """Runs a graph or calls a method through its sync or its async path."""

    def __init__(self, *, is_async: bool) -> None:
        self.is_async = is_async

    def run(
        self, graph: Graph, given: Given = None, config: RunnableConfig = ANN
    ) -> dict[str, Any]:
        """Run a graph to its end, with four conversations if nothing else is given."""
        given = {"trajectories": TALKS} if given is None else given
        if self.is_async:
            return dict(asyncio.run(graph.ainvoke(given, config)))
        return dict(graph.invoke(given, config))

    def call(self, owner: PromptMemory, name: str, *arguments: Given, **named: Given) -> Given:
        """Call a method, or its twin, for Ann."""
        named = {"config": ANN} | named
        if self.is_async:
            return asyncio.run(getattr(owner, f"a{name}")(*arguments, **named))
        return getattr(owner, name)(*arguments, **named)


def rows(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return the data that a model was shown, line by line."""
    lines = str(messages[-1].content).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def the_agent(calls: list[str]) -> ScriptedChatModel:
    """Return the agent: it mentions what its prompt tells it to."""

    def answer(messages: list[BaseMessage]) -> str:
        prompt = str(messages[0].content)
        calls.append(prompt)
        if "riddle" in prompt:
            return "What walks on four legs?"
        said = [need for need in NEEDS if f"Always mention the {need}." in prompt]
        return "The answer is 42. " + " ".join(f"({each})" for each in said)

    return ScriptedChatModel(replies=answer)


def examples(count: int) -> list[dict[str, Any]]:
    """Return questions that no proposer is shown, each with what its answer needs."""
    return [
        {"id": f"e{number}", "question": f"How far is {number}?", "needs": NEEDS[number % 2]}
        for number in range(count)
    ]


def judge(agent: ScriptedChatModel) -> Callable[[str, Any], tuple[float, str]]:
    """Return an evaluator that runs the agent with a prompt."""

    def judged(prompt: str, example: Given) -> tuple[float, str]:
        asked = [SystemMessage(prompt.format(q="it")), HumanMessage(example["question"])]
        answer = str(agent.invoke(asked).content)
        if "answer" not in answer:
            return -1.0, "the answer is no answer"
        good = f"({example['needs']})" in answer
        return float(good), "good" if good else f"the answer lacks the {example['needs']}"

    return judged


def complaints() -> list[dict[str, Any]]:
    """Return conversations with feedback about both faults."""
    return [
        {
            "id": f"c{number}",
            "messages": [("user", f"How far is star {number}?"), ("ai", "The answer is 42.")],
            "feedback": f"the answer lacks the {NEEDS[number % 2]}",
        }
        for number in range(4)
    ]


def a_reader(messages: list[BaseMessage]) -> dict[str, Any]:
    """Answer every request of every strategy from nothing but what it shows."""
    shown = rows(messages)
    return _answer(_joined(shown) or _extended(shown), _found_rules(shown))


def a_spoiler(messages: list[BaseMessage]) -> dict[str, Any]:
    """Answer every request with a prompt that makes the agent worse."""
    text = next((row["current_prompt"] for row in rows(messages) if "current_prompt" in row), "{q}")
    return _answer(f"{text} Speak in a riddle {len(str(messages))}.", [])


def _answer(text: str, found: Sequence[str]) -> dict[str, Any]:
    return {
        "thought": "I looked at the feedback.",
        "done": True,
        "warrants_adjustment": True,
        "hypotheses": "something is missing",
        "recommendations": " ".join(found),
        "reflection": "I looked at the feedback.",
        "logic": "something is missing",
        "update_prompt": True,
        "new_prompt": text,
    }


def _found_rules(shown: Sequence[dict[str, Any]]) -> list[str]:
    """Make rules out of complaints; of a failed example, out of the first only."""
    failed = [str(row["said_about_it"]) for row in shown if "said_about_it" in row][:1]
    said = failed or [str(row["feedback"]) for row in shown if "feedback" in row]
    lacking = [each.rsplit(" ", 1)[-1] for each in said if "lacks the" in each]
    return list(dict.fromkeys(f"Always mention the {each}." for each in lacking))


def _extended(shown: Sequence[dict[str, Any]]) -> str:
    """Return the shown prompt, cut to its first sentence, with the rules that are called for."""
    text = next(row["current_prompt"] for row in shown if "current_prompt" in row)
    advised = [rule for row in shown for rule in RULE.findall(str(row.get("recommendations", "")))]
    return " ".join([text.split(".")[0] + ".", *(advised or _found_rules(shown))])


def _joined(shown: Sequence[dict[str, Any]]) -> str:
    """Return two versions in one, without repeating a sentence; empty if none were shown."""
    texts = [row["text"] for row in shown if "version" in row]
    sentences = [each for text in texts for each in re.findall(r"[^.]+\.", text)]
    return " ".join(dict.fromkeys(each.strip() for each in sentences))
