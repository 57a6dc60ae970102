"""Parameters of tools in headers of HTTP."""

from base64 import b64decode
from typing import Any

import pytest

from trimtab.mcp.parameter_headers import (
    build_headers,
    encode_header,
    find_header_problem,
    find_headers,
)


def schema(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"a": {"type": "string", "x-mcp-header": "Region"}}, ""),
        ({"a": {"type": "string", "x-mcp-header": ""}}, "not a valid name"),
        ({"a": {"type": "string", "x-mcp-header": "My Region"}}, "not a valid name"),
        ({"a": {"type": "string", "x-mcp-header": "R\u00e9gion"}}, "not a valid name"),
        ({"a": {"type": "number", "x-mcp-header": "Score"}}, "is not text"),
        ({"a": {"type": "array", "x-mcp-header": "List"}}, "is not text"),
        (
            {
                "a": {"type": "string", "x-mcp-header": "One"},
                "b": {"type": "string", "x-mcp-header": "one"},
            },
            "two parameters have the header",
        ),
    ],
)
def test_marks_that_no_header_can_follow_are_problems(fields: Any, problem: str) -> None:
    found = find_header_problem(schema(**fields))
    assert (problem in found) if problem else not found


def test_marked_parameters_become_headers_and_others_do_not() -> None:
    inner = schema(deep={"type": "integer", "x-mcp-header": "Deep"})
    marked = find_headers(
        schema(
            region={"type": "string", "x-mcp-header": "Region"},
            flag={"type": "boolean", "x-mcp-header": "Flag"},
            left={"type": "string", "x-mcp-header": "Left"},
            plain={"type": "string"},
            inner=inner,
        )
    )
    arguments = {"region": "eu", "flag": False, "left": None, "plain": "x", "inner": {"deep": 7}}
    assert build_headers(marked, arguments) == {
        "Mcp-Param-Region": "eu",
        "Mcp-Param-Flag": "false",
        "Mcp-Param-Deep": "7",
    }


@pytest.mark.parametrize("text", ["a b", "", "eu-1"])
def test_visible_text_is_sent_as_it_is(text: str) -> None:
    assert encode_header(text) == text


@pytest.mark.parametrize("text", [" a", "a\nb", "\u4e16", "=?base64?QQ==?=", "a\r\nX: y"])
def test_other_text_is_sent_in_base64(text: str) -> None:
    sent = encode_header(text)
    assert sent.startswith("=?base64?")
    assert b64decode(sent[9:-2]).decode() == text
