"""`@trimtab.tool`: a Python function as a tool."""

from typing import Annotated, Any, Literal

import msgspec
import pytest

import trimtab
from toolkit import Bench
from trimtab.contracts.tool import ToolContext, ToolResult
from trimtab.tools.function import find_tools


class Point(msgspec.Struct):
    x: int
    y: int = 0


@trimtab.tool
async def greet(
    who: str, times: int = 1, style: Literal["plain", "loud"] = "plain", tags: tuple[str, ...] = ()
) -> str:
    """Greets somebody.

    More about it.

    Args:
        who: Whom to greet,
            by first name
        times (int): How often
    """
    text = f"Hello {who}! " * times + ",".join(tags)
    return text.upper() if style == "loud" else text


@trimtab.tool(name="place-of", access="none")
def place(
    point: Point,
    ctx: ToolContext,
    note: Annotated[str | None, msgspec.Meta(description="n")] = None,
) -> Any:
    return {"point": point, "session": ctx.session_id, "note": note}


@pytest.fixture
def tools(bench: Bench) -> Bench:
    bench.tools |= {tool.spec.name: tool for tool in find_tools(globals())}
    return bench


async def test_hints_and_docstring_describe_the_tool(tools: Bench) -> None:
    spec = tools.tools["greet"].spec
    assert spec.description == "Greets somebody.\n\nMore about it."
    assert spec.parameters["required"] == ["who"]
    properties = spec.parameters["properties"]
    assert properties["who"] == {"type": "string", "description": "Whom to greet, by first name"}
    assert properties["times"] == {"type": "integer", "default": 1, "description": "How often"}
    assert properties["style"]["enum"] == ["loud", "plain"]


async def test_it_is_called_with_values_of_the_hinted_types(tools: Bench) -> None:
    assert await tools.text("greet", who="Ada", times="2", style="loud") == "HELLO ADA! HELLO ADA! "
    assert await tools.text("greet", who="Ada", tags=["x"]) == "Hello Ada! x"
    answer = msgspec.json.decode(await tools.text("place-of", point={"x": 3}))
    assert answer == {"point": {"x": 3, "y": 0}, "session": tools.session_id, "note": None}


async def test_wrong_arguments_are_a_failure_that_names_the_field(tools: Bench) -> None:
    result = await tools.call("greet", times=2)
    assert result.kind == "failure"
    assert '"who": Required' in result.text
    assert (await tools.call("place-of", point={"x": "far"})).kind == "failure"


async def test_what_it_may_touch_is_declared(tools: Bench) -> None:
    access = tools.access("greet", who="x")
    assert (access.kind, access.target, access.mutates) == ("custom-tool", "greet", True)
    assert tools.access("place-of", point={"x": 1}).kind == "none"


async def test_a_default_that_can_change_is_made_anew_for_each_call(tools: Bench) -> None:
    def collect(item: str, into: list[str] = []) -> list[str]:  # noqa: B006 - people write this
        into.append(item)
        return into

    trimtab.tool(collect)
    tools.tools |= {tool.spec.name: tool for tool in find_tools({"": collect})}
    assert [await tools.text("collect", item=letter) for letter in "ab"] == ['["a"]', '["b"]']


async def test_the_function_is_still_a_function() -> None:
    assert await greet("Ada") == "Hello Ada! "


async def test_results_of_any_kind_are_taken(tools: Bench) -> None:
    @trimtab.tool
    def nothing() -> None: ...

    @trimtab.tool
    def refusal() -> ToolResult:
        return ToolResult(text="no", kind="failure")

    @trimtab.tool
    def long() -> str:
        return "x" * 50_000

    tools.tools |= {tool.spec.name: tool for tool in find_tools(locals())}
    assert await tools.text("nothing") == "Done."
    assert (await tools.call("refusal")).kind == "failure"
    assert (await tools.text("long")).startswith("Output too large to read at once (48.8 KB)")


def test_what_no_schema_can_say_is_refused_at_once() -> None:
    def untyped(x): ...  # type: ignore[no-untyped-def]
    def anything(*args: int) -> None: ...

    for function in (untyped, anything):
        with pytest.raises(TypeError):
            trimtab.tool(function)
    with pytest.raises(TypeError, match="tool's name"):
        trimtab.tool(name="not a name")(lambda: None)


def test_a_positional_only_parameter_is_refused() -> None:
    def odd(first: int, /) -> str:
        return str(first)

    with pytest.raises(TypeError, match="by position only"):
        trimtab.tool(odd)
