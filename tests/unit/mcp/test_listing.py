"""The tools of a server as they are offered to a model."""

from typing import Any

import pytest

from mcpkit import server
from mcpserver import STRANGE, TOOLS
from trimtab.mcp.host import ToolNames, sanitize
from trimtab.mcp.listing import MAX_DESCRIPTION_LENGTH, MAX_TOOLS, read_tools

OBJECT = {"type": "object"}


def names(entries: list[Any], **fields: Any) -> list[str]:
    return [tool.name for tool in read_tools(entries, server(**fields)).tools]


def test_the_tools_of_a_server_keep_their_names_words_and_hints() -> None:
    peek = next(tool for tool in read_tools(TOOLS, server()).tools if tool.name == "peek")
    assert (peek.title, peek.read_only) == ("A look", True)
    assert peek.description == "Says that it only looks."
    assert peek.parameters["required"] == ["path"]


def test_a_schema_without_properties_gets_them_because_services_want_them() -> None:
    (tool,) = read_tools([{"name": "a", "inputSchema": {}}], server()).tools
    assert tool.parameters == {"type": "object", "properties": {}}


def test_what_a_service_would_refuse_is_left_out_and_each_is_told() -> None:
    listing = read_tools(STRANGE, server())
    kept = [tool.name for tool in listing.tools]
    assert kept == ["odd name/with.dots", "odd name/with:dots", "x" * 100, "escape"]
    told = "\n".join(listing.problems)
    for name in ("echo2", "list", "wrong", "far", "large", "deep", "escape is listed twice"):
        assert name in told
    assert "\x1b" not in told


def test_descriptions_are_cut_and_hide_nothing() -> None:
    *_, escape = read_tools(STRANGE, server()).tools
    assert escape.description.startswith("redyyy")
    assert len(escape.description) < MAX_DESCRIPTION_LENGTH + 10


def test_words_inside_a_schema_hide_nothing_and_its_choices_stay() -> None:
    schema = {
        **OBJECT,
        "properties": {"a": {"description": "x\u200by\x1b[1m", "enum": ["p\u200bq"]}},
    }
    (tool,) = read_tools([{"name": "a", "inputSchema": schema}], server()).tools
    assert tool.parameters["properties"] == {"a": {"description": "xy", "enum": ["p\u200bq"]}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "required": [1]},
        {"type": "object", "required": "a"},
        {"type": "object", "properties": {"a": 5}},
        {"type": "object", "properties": {"a": {"type": "strng"}}},
        {"type": "object", "properties": {"a": {"type": "object", "properties": []}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": "string"}}},
        {"type": ["object", "null"]},
    ],
)
def test_a_schema_that_would_spoil_every_request_is_left_out(schema: Any) -> None:
    listing = read_tools([{"name": "a", "inputSchema": schema}], server())
    assert listing.tools == ()
    assert listing.problems[0].startswith("a is left out: its input schema is")


def test_a_schema_is_sent_without_what_services_refuse() -> None:
    schema = {
        **OBJECT,
        "$schema": "http://json-schema.org/draft-07/schema#",
        "oneOf": [{"required": ["a"]}],
        "properties": {"a": {"type": "array"}, "b": {"anyOf": [{"type": "null"}]}},
    }
    (tool,) = read_tools([{"name": "a", "inputSchema": schema}], server()).tools
    assert tool.parameters == {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {}}, "b": {"anyOf": [{"type": "null"}]}},
    }


def test_a_server_with_ten_thousand_tools_gets_the_first_ones() -> None:
    many = [{"name": f"t{count}", "inputSchema": OBJECT} for count in range(10_000)]
    listing = read_tools(many, server())
    assert len(listing.tools) == MAX_TOOLS
    assert listing.problems[-1] == f"only the first {MAX_TOOLS} of 10,000 tools are used"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ["echo", "make"]),
        ({"tools": ("make",)}, ["make"]),
        ({"tools": ()}, []),
        ({"excluded_tools": ("make",)}, ["echo"]),
    ],
)
def test_the_configuration_says_which_tools_are_wanted(
    fields: dict[str, Any], expected: list[str]
) -> None:
    assert names(TOOLS[:2], **fields) == expected


def test_a_name_is_what_every_service_takes() -> None:
    assert sanitize("git.hub-list issues/öffnen") == "git_hub-list_issues__ffnen"
    assert len(sanitize("x" * 100)) == 64


def test_names_that_come_to_the_same_get_numbers_and_keep_them() -> None:
    given = ToolNames()
    first = given.of("a.b", "t"), given.of("a-b", "t"), given.of("a_b", "t")
    assert first == ("a_b-t", "a-b-t", "a_b-t-2")
    assert (given.of("a.b", "t"), given.of("a-b", "t"), given.of("a_b", "t")) == first
    long = [given.of("s", "x" * 90 + str(count)) for count in range(3)]
    assert len(set(long)) == 3
    assert all(len(name) == 64 for name in long)
