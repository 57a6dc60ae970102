"""Prompts from editors: links, paths and lines."""

from pathlib import Path

import pytest

from trimtab.transports.acp.prompts import find_lines, local_path, read_prompt
from trimtab.transports.acp.schema import ContentBlock


def test_links_become_paths_and_attachments(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("x")
    uri = (tmp_path / "a b.txt").as_uri() + "#L3:5"
    prompt = read_prompt(
        [
            ContentBlock(type="text", text="see "),
            ContentBlock(type="resource_link", uri=uri, name="a b.txt"),
            ContentBlock(type="resource_link", uri="https://example.com/x", name="x"),
        ]
    )
    assert prompt.text == f"see {tmp_path}/a b.txt[x](https://example.com/x)"
    [attached] = prompt.attachments
    assert attached["lineRange"] == {"start": 3, "end": 5}


URIS = [
    ("file:///a%20b", "/a b"),
    ("/plain", "/plain"),
    ("file://elsewhere/a", None),
    ("https://example.com", None),
    ("http://[broken", None),
]


@pytest.mark.parametrize(("uri", "path"), URIS)
def test_only_files_of_this_machine_have_a_path(uri: str, path: str | None) -> None:
    assert local_path(uri) == path


LINES = [("f:///a#L3", (3, 3)), ("f:///a#L3-L9", (3, 9)), ("f:///a#top", None), ("f:///a", None)]


@pytest.mark.parametrize(("uri", "lines"), LINES)
def test_a_fragment_names_lines(uri: str, lines: tuple[int, int] | None) -> None:
    assert find_lines(uri) == lines
