"""Results of MCP tools as a model reads them."""

from typing import Any

import pytest

from mcpserver import PNG
from trimtab.mcp.result import choose_filter, clean, read_result


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([text("a"), text("b")], "a\nb"),
        ([{"type": "resource", "resource": {"uri": "x:y", "text": "inside"}}], "inside"),
        (
            [{"type": "resource", "resource": {"uri": "x:y", "blob": "AA", "mimeType": "a/b"}}],
            "[x:y: a/b, which is not shown]",
        ),
        ([{"type": "resource_link", "uri": "x:y", "name": "n"}], "x:y n"),
        ([{"type": "audio", "data": "AA"}], "[audio, which is not shown]"),
        ([7, {"type": "new"}, {"type": "text"}], "The tool returned no output."),
        ("plain words", "plain words"),
        (["one", text("two")], "one\ntwo"),
        (7, "The tool returned no output."),
    ],
)
def test_content_becomes_text(content: Any, expected: str) -> None:
    assert read_result({"content": content}, "hidden_characters").text.strip("\n") == expected


def test_what_is_structured_is_shown_where_there_is_no_text() -> None:
    structured = {"structuredContent": {"a": [1, 2]}}
    assert read_result({"content": [], **structured}, "none").text == '{"a":[1,2]}'
    assert read_result({"content": [text("a is 1, 2")], **structured}, "none").text == "a is 1, 2"


def test_an_error_is_a_failure_with_its_reason() -> None:
    result = read_result({"content": [text("why")], "isError": True}, "none")
    assert (result.kind, result.text) == ("failure", "why")


def test_an_image_is_shown_by_what_it_is_not_by_what_it_is_called() -> None:
    image = {"type": "image", "data": PNG, "mimeType": "image/tiff"}
    (shown,) = read_result({"content": [image]}, "none").images
    assert (shown.mime_type, shown.data) == ("image/png", PNG)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("not base64", "[an image in a format that cannot be shown]"),
        ("AAAA", "[an image in a format that cannot be shown]"),
        ("", "[an image without data]"),
        (None, "[an image without data]"),
        ("A" * 8_000_000, "[an image of more than 5 MB, which is not shown]"),
    ],
)
def test_an_image_no_service_takes_is_told_of_and_not_shown(data: Any, told: str) -> None:
    result = read_result({"content": [{"type": "image", "data": data}]}, "none")
    assert result.images == ()
    assert result.text == told


@pytest.mark.proves("MCP-04")
def test_filters_are_chosen_for_a_server_or_a_tool() -> None:
    assert choose_filter(None, "a") == "hidden_characters"
    assert choose_filter("none", "a") == "none"
    assert choose_filter({"a": "markdown"}, "a") == "markdown"
    assert choose_filter({"a": "markdown"}, "b") == "hidden_characters"


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("hidden_characters", "a<!-- b -->cd"),
        ("markdown", "acd"),
        ("none", "a<!-- b -->c\u200b\x1b[2Jd"),
    ],
)
def test_filters_take_out_what_cannot_be_seen(filters: str, expected: str) -> None:
    assert clean("a<!-- b -->c\u200b\x1b[2Jd", filters) == expected
