"""Namespace templates: what they accept, how they are filled, and that no two scopes meet."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict

from langchain_agentmem.errors import AgentMemoryError, ConfigurationError
from langchain_agentmem.scopes import (
    NamespaceTemplate,
    Scope,
    closed,
    current_scope,
    escape_label,
    journal,
    reserved,
    running,
    unescape_label,
)

AWKWARD = [
    "u1",
    "u10",
    "*",
    "%",
    "_",
    "a.b",
    "a_b",
    "~",
    "~2E~",
    "2E",
    "1",
    "1 ",
    "a-b",
    "-",
    "\0",
    "\x1f",
]
values = st.sampled_from(AWKWARD) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6
)
crowded = values | st.text("a-~.2D", min_size=1, max_size=6)


def _fill(template: Any, **configurable: object) -> tuple[str, ...]:  # noqa: ANN401 - any template form
    return NamespaceTemplate(template)({"configurable": configurable})


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (("memories", "{user_id}"), ("memories", "ann")),
        (["memories", "{user_id}"], ("memories", "ann")),
        ("{user_id}", ("ann",)),
        ("user-{user_id}", ("user-ann",)),
        (("{org}-{team}", "{user_id}"), ("acme-red", "ann")),
        (("{user_id}", "x", "{user_id}"), ("ann", "x", "ann")),
        (("{{user_id}}", "a}}b"), ("{user_id}", "a}b")),
        (NamespaceTemplate("{user_id}"), ("ann",)),
    ],
    ids=["langmem", "list", "label", "partial", "several", "twice", "braces", "template"],
)
def test_template_is_filled(template: Any, expected: tuple[str, ...]) -> None:  # noqa: ANN401
    """Every form of template gives one label for each of its labels."""
    assert _fill(template, user_id="ann", org="acme", team="red") == expected


@pytest.mark.parametrize(
    "template",
    [
        (),
        "",
        ("memories", ""),
        ("memories", 7),
        "{",
        "a}",
        "{}",
        "{0}",
        "{user.id}",
        "{user[id]}",
        "{user!r}",
        "{user:>9}",
        "{org}{team}",
        "a.b",
        "a*",
        "\0",
        "a\x1fb",
    ],
)
def test_malformed_template_is_refused_at_once(template: Any) -> None:  # noqa: ANN401
    """A template that cannot work raises when it is made, not in the first call."""
    with pytest.raises(ConfigurationError):
        NamespaceTemplate(template)


@pytest.mark.parametrize("root", ["langgraph", "_agentmem"])
def test_reserved_root_is_refused(root: str) -> None:
    """Neither a template nor a value can reach the records of this package or of LangGraph."""
    with pytest.raises(ConfigurationError, match="reserved"):
        NamespaceTemplate((root, "{user_id}"))
    with pytest.raises(ConfigurationError, match="reserved"):
        _fill("{user_id}", user_id=root)
    assert _fill(("x", "{user_id}"), user_id=root) == ("x", root)


def test_reserved_root_made_of_parts_is_refused() -> None:
    """A root that becomes reserved only when it is filled is refused too."""
    with pytest.raises(ConfigurationError, match="reserved"):
        _fill("_{name}", name="agentmem")


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("ann", "ann"),
        ("u_1%", "u_1%"),
        ("안녕 🎉", "안녕 🎉"),
        (7, "7"),
        (-1, "-1"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("a@b.com", "a@b~2E~com"),
        ("*", "~2A~"),
        ("~", "~7E~"),
        ("a\0", "a~00~"),
    ],
)
def test_value_becomes_one_label(value: object, label: str) -> None:
    """Ordinary values stay as they are; what a label cannot hold is escaped."""
    assert _fill(("m", "{user_id}"), user_id=value) == ("m", label)


@pytest.mark.parametrize(
    "value", ["", True, False, 1.0, ["a"], {"a": 1}, ("a",), b"a", "\ud800", object()]
)
def test_value_of_no_identity_is_refused(value: object) -> None:
    """A value that would make two users one, or that no label can hold, raises."""
    with pytest.raises(ConfigurationError, match="user_id"):
        _fill(("m", "{user_id}"), user_id=value)


@given(values, values)
@example("1", "1 ")
@example("u1", "u10")
@example("~2E~", ".")
@example("a.b", "a~2E~b")
def test_two_values_never_share_a_label(one: str, other: str) -> None:
    """Escaping is injective and can be undone."""
    same = _fill(("m", "{user_id}"), user_id=one) == _fill(("m", "{user_id}"), user_id=other)
    assert same == (one == other)
    assert unescape_label(escape_label(one)) == one


@given(values)
def test_a_label_is_acceptable_to_every_store(value: str) -> None:
    """Whatever the value, LangGraph's namespace check passes and nothing reads as a wildcard."""
    (label,) = _fill("{user_id}", user_id=f"u{value}")
    assert not set(label) & {".", "*", "\0", "\x1f"}
    InMemoryStore().put(("m", label), "k", {"x": 1}, index=False)


@given(st.tuples(crowded, crowded), st.tuples(crowded, crowded))
@example(("a-b", "c"), ("a", "b-c"))
@example(("a~2D~", "c"), ("a-", "c"))
def test_two_pairs_never_share_a_label(one: tuple[str, str], other: tuple[str, str]) -> None:
    """A separator inside of a value never moves the border between two variables."""
    for template in ("{org}-{team}", "x{org}--{team}y", "{org}~{team}"):
        first, second = (_fill(("m", template), org=org, team=team) for org, team in (one, other))
        assert (first == second) == (one == other)


@given(values)
def test_value_never_adds_a_level(value: str) -> None:
    """A value always fills exactly its own label."""
    assert len(_fill(("m", "{user_id}", "z"), user_id=value)) == 3


def test_missing_variable_says_where_it_looked_and_what_to_pass() -> None:
    """The message names the variable, the template, what was there, and an example."""
    with pytest.raises(ConfigurationError) as caught:
        _fill(("memories", "{user_id}"), thread_id="t")
    text = str(caught.value)
    for part in ("'user_id'", "('memories', '{user_id}')", "['thread_id']", "'configurable': {"):
        assert part in text


def test_missing_variable_does_not_list_what_langgraph_adds() -> None:
    """Inside of a run the config has a dozen keys that nobody passed."""
    config = {"configurable": {"thread_id": "1", "__pregel_runtime": None}}
    with pytest.raises(ConfigurationError, match=r"\(there: \['thread_id'\]\)"):
        NamespaceTemplate(("memories", "{user_id}")).resolve(Scope.of(config))


def test_missing_variable_is_an_ordinary_exception() -> None:
    """LangMem raises a BaseException here, which ends worker threads."""
    assert issubclass(ConfigurationError, AgentMemoryError)
    assert issubclass(ConfigurationError, ValueError)


def test_missing_variable_does_not_show_other_values() -> None:
    """The message tells names of what is configured, never the values, which may be secrets."""
    with pytest.raises(ConfigurationError) as caught:
        _fill("{user_id}", api_key="sk-secret")
    assert "sk-secret" not in str(caught.value)


@dataclass
class Context:
    """A user's own context."""

    user_id: str | None = None
    org: str = "acme"


@pytest.mark.parametrize(
    "context",
    [Context("ann"), {"user_id": "ann"}, SimpleNamespace(user_id="ann")],
    ids=["dataclass", "mapping", "object"],
)
def test_context_wins_over_config(context: object) -> None:
    """The runtime context is the stronger source of identity."""
    template = NamespaceTemplate("{user_id}")
    assert template({"configurable": {"user_id": "bob"}}, context=context) == ("ann",)
    assert template(context=context) == ("ann",)


@pytest.mark.parametrize("context", [None, Context(None), {}, {"user_id": None}])
def test_context_without_the_variable_leaves_it_to_the_config(context: object) -> None:
    """None counts as not given."""
    template = NamespaceTemplate("{user_id}")
    assert template({"configurable": {"user_id": "bob"}}, context=context) == ("bob",)


def test_variables_of_context_and_config_meet_in_one_namespace() -> None:
    """Each variable is looked up by itself."""
    template = NamespaceTemplate(("mem", "{org}", "user-{user_id}"))
    config = {"configurable": {"user_id": 7}}
    assert template(config, context={"org": "a.b"}) == ("mem", "a~2E~b", "user-7")
    assert template(config, context={"org": "a_b"}) == ("mem", "a_b", "user-7")


def test_a_mapping_is_read_by_key_only() -> None:
    """A variable named like a method of dict is not found in a mapping context."""
    with pytest.raises(ConfigurationError):
        NamespaceTemplate("{items}")(context={"user_id": "ann"})


def test_templates_are_values() -> None:
    """Equal templates are interchangeable."""
    one, other = NamespaceTemplate(["a", "{b}"]), NamespaceTemplate(("a", "{b}"))
    assert one == other
    assert len({one, other}) == 1
    assert one != ("a", "{b}")
    assert repr(one) == "NamespaceTemplate(('a', '{b}'))"
    assert NamespaceTemplate(("{b}-{a}", "{b}")).variables == ("b", "a")


def test_own_records_lie_below_one_root() -> None:
    """Journal and closed items of a namespace lie apart from it, under its own labels."""
    assert reserved("queue", ["a", "b"]) == ("_agentmem", "queue", "a", "b")
    assert closed(("a",)) == ("_agentmem", "closed", "a")
    assert journal(("a",)) == ("_agentmem", "journal", "a")


def test_scope_resolves_with_a_default_or_says_what_is_missing() -> None:
    """A default is the last place to look; without one the message says what to pass."""
    scope = Scope.of({"configurable": {"x": 1, "none": None}}, {"y": 2})
    assert (scope.resolve("x"), scope.resolve("y"), scope.resolve("z", 3)) == (1, 2, 3)
    assert scope.resolve("none", 4) == 4
    with pytest.raises(ConfigurationError, match=r"context=.*config="):
        scope.resolve("z")


@pytest.mark.parametrize("config", [None, {}, {"configurable": None}])
def test_scope_of_an_empty_config_is_empty(config: dict[str, Any] | None) -> None:
    """LangChain passes configs without `configurable`."""
    assert Scope.of(config) == Scope()


def test_outside_of_a_run_there_is_no_scope() -> None:
    """Without a running graph nothing is taken from anywhere."""
    assert running() is None
    assert current_scope() == Scope()
    with pytest.raises(ConfigurationError):
        NamespaceTemplate("{user_id}")()


class State(TypedDict, total=False):
    """State of a graph with one node."""

    namespace: list[str]


@pytest.mark.parametrize("is_async", [False, True])
async def test_inside_of_a_run_the_graph_gives_the_scope(*, is_async: bool) -> None:
    """A bare call reads the running graph's context first, then its config."""
    template = NamespaceTemplate(("{org}", "{user_id}"))

    def node(state: State, runtime: Runtime[Context]) -> State:  # noqa: ARG001 - LangGraph's signature
        return {"namespace": list(template())}

    graph = StateGraph(State, context_schema=Context)
    graph.add_node("node", node)
    graph.set_entry_point("node")
    compiled = graph.compile()
    config: RunnableConfig = {"configurable": {"user_id": "bob"}}
    context = Context(user_id=None, org="acme")
    if is_async:
        out = await compiled.ainvoke({}, config, context=context)
    else:
        out = compiled.invoke({}, config, context=context)
    assert out["namespace"] == ["acme", "bob"]
