"""An agent with a memory: recall, then the model with its memory tools, then remember.

Without a chat model it answers by quoting what it remembers, word for word, and says so. That is
a useful, deterministic offline mode; it never poses as a language model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict

from langchain_agentmem.items import StoredMemory
from langchain_agentmem.memories.state import MemoryState, RecallOutput, RememberOutput
from langchain_agentmem.messages import last_human_text
from langchain_agentmem.parameters import checked_model, with_model
from langchain_agentmem.steps.effects import Ask, Emit, HasModel, Steps
from langchain_agentmem.steps.flow import as_node
from langchain_agentmem.steps.turns import session_key, thread_of
from langchain_agentmem.surfaces._budget import SEARCH_TOKENS

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.tools import BaseTool
    from langgraph.graph import StateGraph

    from langchain_agentmem.memories.base import Memory
    from langchain_agentmem.prompt_optimizer import PromptMemory
    from langchain_agentmem.steps.environment import Environment

PROMPT: Final = (
    "You are a helpful assistant with a long-term memory of earlier conversations with this user. "
    "What you remember is given to you as data with its date and speaker. Use it where it helps, "
    "prefer the newest where memories contradict each other, and say so when you do not remember."
)
OFFLINE: Final = "No language model is configured, so I cannot answer in my own words."
_DEFAULT_OPENAI: Final = "openai:gpt-4.1-mini"


class AgentState(MemoryState, total=False):
    """State of the agent.

    Messages up to `remembered` are not handed to the memory again, so that what was forgotten since
    does not come back.
    """

    remembered: Annotated[str, Field(description="Id of the last message that was remembered.")]
    prompts: Annotated[dict[str, str], Field(description="Active text of a prompt that learns.")]
    prompt_versions: Annotated[dict[str, int], Field(description="Its version.")]


class AgentInput(TypedDict, total=False):
    """What is said to the agent."""

    messages: Annotated[
        list[AnyMessage], Field(description="What the user says now."), add_messages
    ]


class AgentOutput(RecallOutput, RememberOutput, total=False):
    """The conversation with the answer, what was recalled for it and what was remembered."""

    messages: Annotated[
        list[AnyMessage], Field(description="The conversation with the answer."), add_messages
    ]
    prompt_versions: Annotated[
        dict[str, int], Field(description="Which version of a learning prompt was served.")
    ]


def configured_model() -> str | None:
    """Return the model that the environment names, for `init_chat_model`; None without one.

    `AGENTMEM_MODEL` is such a name (`"openai:gpt-4.1-mini"`, `"anthropic:..."`), or `"none"`. If it
    is not set, an `OPENAI_API_KEY` chooses a small model of OpenAI; `OPENAI_BASE_URL` leads to any
    server that speaks its protocol.
    """
    named = os.environ.get("AGENTMEM_MODEL", "").strip()
    if named:
        return None if named == "none" else named
    return _DEFAULT_OPENAI if os.environ.get("OPENAI_API_KEY") else None


def create_memory_agent(
    memory: Memory,
    *,
    model: BaseChatModel | str | None = None,
    tools: bool | Sequence[BaseTool] = True,
    prompt: str | PromptMemory = PROMPT,
) -> StateGraph[Any, Any, Any, Any]:
    """Build an agent that recalls before it answers and remembers what was said.

    The nodes `recall` and `remember` are the memory's own graphs, so that their steps are visible.
    What is recalled goes into the request to the model only, never into state or checkpoints.

    Args:
        memory: The memory; its store, or else the compiled graph's, holds everything.
        model: A chat model or its name for `init_chat_model`. A call's context or config may name
            another one as `model`. Without any, the agent quotes what it remembers.
        tools: True for the two memory tools, False for none, or tools of your own to add to them.
        prompt: What the model is told about its memory. With a `PromptMemory` it is told the active
            version of that memory's first prompt, as it is, and the state says which that was.

    Returns:
        A graph to compile: `create_memory_agent(memory).compile(store=..., checkpointer=...)`. It
        takes and returns `messages`; the scope comes from context or config.

    Example:
        ```python
        agent = create_memory_agent(RAGMemory(store=FaissSqliteStore("memory.sqlite"))).compile()
        ann = {"configurable": {"user_id": "ann"}}
        agent.invoke({"messages": [("user", "My dog is called Rex.")]}, ann)
        ```
    """
    from langgraph.graph import END, START, StateGraph

    checked_model(model)
    offered = _tools(memory, tools)
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        AgentState,
        context_schema=with_model(memory.context_schema(), "AgentContext"),
        input_schema=AgentInput,
        output_schema=AgentOutput,
    )
    builder.add_node("recall", memory.recall_graph())
    builder.add_node(
        "model", as_node(_Model(memory, offered, prompt).step, _environment(memory, model))
    )
    builder.add_node("remember", _remember_node(memory))
    builder.add_edge(START, "recall")
    builder.add_edge("recall", _load_prompt(builder, prompt))
    if offered:
        from langgraph.prebuilt import ToolNode

        builder.add_node("tools", ToolNode(offered))
        builder.add_conditional_edges(
            "model", _after_model, {"tools": "tools", "remember": "remember"}
        )
        builder.add_edge("tools", "model")
    else:
        builder.add_edge("model", "remember")
    builder.add_edge("remember", END)
    return builder


def _load_prompt(builder: StateGraph[Any, Any, Any, Any], prompt: str | PromptMemory) -> str:
    """Return which node follows `recall`: `load_prompt` if the prompt is one that learns."""
    if isinstance(prompt, str):
        return "model"
    from langchain_agentmem.surfaces.prompts import load_prompt_node

    builder.add_node("load_prompt", load_prompt_node(prompt, list(prompt.prompts)[:1]))
    builder.add_edge("load_prompt", "model")
    return "load_prompt"


def _tools(memory: Memory, tools: bool | Sequence[BaseTool]) -> list[BaseTool]:
    if tools is False:
        return []
    from langchain_agentmem.surfaces.tools import (
        create_manage_memory_tool,
        create_search_memory_tool,
    )

    namespace = memory.namespace.template
    own = [
        create_manage_memory_tool(namespace, memory=memory),
        create_search_memory_tool(namespace, memory=memory, max_tokens=SEARCH_TOKENS),
    ]
    return own if tools is True else [*own, *tools]


def _remember_node(memory: Memory) -> Runnable[Any, Any]:
    """Return a node that runs the memory's graph on the messages that are new to it."""
    from langchain_core.runnables import RunnableLambda

    graph = memory.remember_graph()

    def remember(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        return {**graph.invoke(_new(state), config), **_end(state)}

    async def aremember(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        return {**await graph.ainvoke(_new(state), config), **_end(state)}

    return RunnableLambda(remember, afunc=aremember, name="remember")


def _new(state: Mapping[str, Any]) -> dict[str, Any]:
    messages = state["messages"]
    ids = [message.id for message in messages]
    last = state.get("remembered")
    return {"messages": messages[ids.index(last) + 1 :] if last in ids else messages}


def _end(state: Mapping[str, Any]) -> dict[str, Any]:
    return {"remembered": state["messages"][-1].id}


def _environment(memory: Memory, model: BaseChatModel | str | None) -> Any:  # noqa: ANN401 - as `EnvironmentOf`
    """Return what the model node runs with: the memory's environment and the agent's model."""

    def environment(config: RunnableConfig) -> Environment:
        env = memory.node_environment(config)
        return replace(env, model=env.scope.resolve("model", None) or model or memory.model)

    return environment


def _after_model(state: Mapping[str, Any]) -> str:
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else "remember"


class _Model:
    """The step that answers.

    Args:
        memory: What is recalled again if an interrupt before this step has lost it.
        tools: What the model may call.
        prompt: What it is told about its memory, unless the state holds a prompt.
    """

    def __init__(
        self, memory: Memory, tools: Sequence[BaseTool], prompt: str | PromptMemory
    ) -> None:
        self._memory = memory
        self._tools = tools
        self._prompt = prompt

    def step(self, state: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Ask the model; without one, quote what was recalled."""
        messages: list[AnyMessage] = list(state["messages"])
        if "memories" not in state:
            state = yield from self._memory.recall_flow().drive(state)
        if not (yield from HasModel()):
            yield from Emit("no_model_configured", {"node": "model"})
            return {"messages": [_quoting(state.get("memories") or [], last_human_text(messages))]}
        prompt = self._prompt if isinstance(self._prompt, str) else _served(state)
        told = "\n\n".join(filter(None, (prompt, state.get("memory_context"))))
        reply = yield from Ask([SystemMessage(told), *messages], "answer", tools=self._tools)
        return {"messages": [reply]}


def _served(state: Mapping[str, Any]) -> str:
    """Return the text that `load_prompt` has left in the state."""
    (text,) = state["prompts"].values()
    return str(text)


def _quoting(memories: Sequence[Mapping[str, Any]], question: str) -> AIMessage:
    """Return what is remembered as a message that is itself nothing to remember."""
    found = [StoredMemory.from_dict(each) for each in memories]
    quotes = [quote(each) for each in found if each.text != question]
    if quotes:
        head = f"{OFFLINE} What I remember that comes closest, word for word:"
        text = "\n\n".join([head, *quotes])
    else:
        text = f"{OFFLINE} I remember nothing about this yet; what you said is remembered now."
    return AIMessage(text, additional_kwargs={"remember": False})


def quote(memory: StoredMemory) -> str:
    """Return one memory word for word below a line with its date, speaker and source."""
    return f"[{source_of(memory)}]\n{memory.text}"


def source_of(memory: StoredMemory) -> str:
    """Return when a memory was said, by whom and in which conversation, or else its key."""
    when = memory.observed_at or memory.created_at
    thread = thread_of(memory)
    if thread:
        source = f"conversation {thread}"
    elif session_key(memory):
        source = "a conversation without a name"
    else:
        source = f"saved memory {memory.key}"
    day = f"{when:%Y-%m-%d}" if when else ""
    return " · ".join(filter(None, (day, memory.item.attributed_to, source)))
