"""What is given in the place of something else is refused at once, with what to give instead."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from langchain_agentmem.consolidation import (
    LocalConsolidator,
    MemoryQueue,
    create_consolidation_graph,
)
from langchain_agentmem.errors import ConfigurationError
from langchain_agentmem.memories import BufferMemory, Mem0, RAGMemory, SlidingWindowReader
from langchain_agentmem.prompt_optimizer import (
    PromptMemory,
    create_multi_prompt_optimizer,
    create_prompt_optimizer,
    create_prompt_optimizer_graph,
)
from langchain_agentmem.surfaces import (
    AgentMemoryMiddleware,
    ShortTermMiddleware,
    SummarizationNode,
    SummaryMiddleware,
    create_memory_agent,
)
from langchain_agentmem.surfaces.langmem import create_memory_searcher, create_memory_store_manager
from langchain_agentmem.surfaces.nodes import recall_node, remember_node, submit_node
from langchain_agentmem.surfaces.retriever import MemoryRetriever
from tests.unit_tests.scripted import Scripted

FIVE: Any = 5
NOTHING: Any = None
ALL: Any = "all"
A_MODEL = r"model must be a chat model or its name.*not '5' \(int\)"
A_MEMORY = r"memory must be a memory, such as RAGMemory\(\).*, not 'x' \(str\)"


def _queue() -> MemoryQueue:
    return MemoryQueue(store=InMemoryStore())


def _optimizer() -> Any:  # noqa: ANN401 - either optimizer
    return create_prompt_optimizer(Scripted())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (recall_node, A_MEMORY),
        (remember_node, A_MEMORY),
        (submit_node, "queue must be a MemoryQueue.*, not 'x'"),
        (create_consolidation_graph, A_MEMORY),
        (lambda wrong: create_consolidation_graph(RAGMemory(), queue=wrong), "a MemoryQueue"),
        (lambda wrong: LocalConsolidator(_queue(), wrong), "graph must be a graph, such as"),
        (lambda wrong: LocalConsolidator(wrong, RAGMemory().recall_graph()), "a MemoryQueue"),
        (lambda wrong: MemoryQueue(store=wrong), "store must be a LangGraph BaseStore"),
        (lambda wrong: MemoryQueue(after_seconds=wrong), "after_seconds must be 0 or more"),
        (lambda _: MemoryQueue(after_seconds=-1), "after_seconds must be 0 or more, not -1"),
        (lambda _: MemoryQueue(max_attempts=0), "max_attempts must be 1 or more, not 0"),
        (
            lambda wrong: ShortTermMiddleware(BufferMemory(), on_error=wrong),
            r"on_error must be one of \('warn', 'raise'\), not 'x'",
        ),
        (lambda _: Mem0(model=5), A_MODEL),
        (lambda _: SummaryMiddleware(FIVE, trigger=9), A_MODEL),
        (lambda _: SummaryMiddleware(NOTHING, trigger=9), "model must be a chat model or its name"),
        (lambda _: SummaryMiddleware("a:b", trigger=-1), "'?-1'? is not a size in tokens"),
        (lambda _: SummaryMiddleware("a:b", trigger=9, keep=ALL), "'all' is not a size; give"),
        (lambda _: SummarizationNode(model=FIVE, max_tokens=999), A_MODEL),
        (lambda _: SlidingWindowReader(FIVE), A_MODEL),
        (lambda _: create_memory_agent(RAGMemory(), model=FIVE), A_MODEL),
        (lambda _: create_prompt_optimizer(FIVE), A_MODEL),
        (lambda _: create_prompt_optimizer_graph(FIVE, prompts="Be kind."), A_MODEL),
    ],
)
def test_a_wrong_object_is_refused_where_it_is_given(
    make: Callable[[Any], Any], words: str
) -> None:
    """Not at the first turn of a conversation, with an `AttributeError`."""
    with pytest.raises(ConfigurationError, match=words):
        make("x")


@pytest.mark.parametrize(
    ("wrong", "words"), [(5, "prompts must be a text"), ([5], "A prompt must be a text or")]
)
@pytest.mark.parametrize("make", [PromptMemory, create_prompt_optimizer_graph])
def test_prompts_of_another_form_are_refused(
    make: Callable[..., Any],
    wrong: Any,  # noqa: ANN401 - any wrong value
    words: str,
) -> None:
    """A text, a prompt with its name, or a list of either."""
    with pytest.raises(ConfigurationError, match=words):
        make(prompts=wrong)


def test_a_retriever_of_fewer_than_no_documents_is_refused() -> None:
    """By pydantic, which names the field."""
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        MemoryRetriever(memory=RAGMemory(), k=-1)


@pytest.mark.parametrize(
    ("make", "wrong", "words"),
    [
        (lambda: create_memory_store_manager(Scripted()), {}, "no 'messages'; give {'messages'"),
        (lambda: create_memory_store_manager(Scripted()), "x", "a mapping such as {'messages'"),
        (lambda: create_memory_searcher(Scripted(), store=InMemoryStore()), {}, "no 'messages'"),
        (_optimizer, {}, "no 'prompt'; give {'prompt': ..., 'trajectories': ...}"),
        (_optimizer, {"prompt": "Be kind.", "trajectories": 5}, "Trajectories are a list"),
        (lambda: create_multi_prompt_optimizer(Scripted()), "x", "a mapping such as {'prompts'"),
        (
            lambda: create_multi_prompt_optimizer(Scripted()),
            {"prompts": "x", "trajectories": []},
            "prompts must be a list",
        ),
    ],
)
@pytest.mark.parametrize("name", ["invoke", "ainvoke"])
async def test_an_input_of_another_form_is_refused(
    make: Callable[[], Any],
    wrong: Any,  # noqa: ANN401 - any wrong value
    words: str,
    name: str,
) -> None:
    """The message says what the input holds."""
    config = {"configurable": {"langgraph_user_id": "ann"}}

    async def call() -> None:
        result = getattr(make(), name)(wrong, config)
        await result if inspect.isawaitable(result) else None

    with pytest.raises(ConfigurationError, match=words):
        await call()


@pytest.mark.parametrize("wrong", ["ann", ["ann"], {"configurable": "ann"}])
async def test_a_config_that_is_none_is_refused(wrong: Any) -> None:  # noqa: ANN401 - any wrong value
    """The message shows how a config names a user."""
    memory = RAGMemory(store=InMemoryStore())
    with pytest.raises(ConfigurationError, match=r"must be .*'user_id': 'ann'"):
        memory.recall("x", config=wrong)
    with pytest.raises(ConfigurationError, match=r"must be .*'user_id': 'ann'"):
        await memory.aremember("x", config=wrong)


def test_a_middleware_without_a_memory_is_refused() -> None:
    """When the agent is built, not at its first turn."""
    wrong: Any = "x"
    with pytest.raises(ConfigurationError, match=A_MEMORY):
        AgentMemoryMiddleware(wrong)
    longterm: Any = RAGMemory()
    with pytest.raises(ConfigurationError, match=r"a short-term memory.*\(RAGMemory\)"):
        ShortTermMiddleware(longterm)
