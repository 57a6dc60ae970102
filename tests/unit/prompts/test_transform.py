"""Attachments as the model sees them in a prompt."""

from pathlib import Path
from typing import Any

import pytest

from trimtab.prompts.transform import render_prompt


def tagged(**attachment: Any) -> str:
    return render_prompt("look", [attachment]).rpartition("<tagged_files>\n")[2].split("\n")[0]


@pytest.mark.parametrize(
    ("content", "lines"), [("", 0), ("one", 1), ("one\n", 2), ("one\ntwo", 2), ("one\n\n", 3)]
)
def test_a_file_is_named_with_its_lines_as_view_numbers_them(
    tmp_path: Path, content: str, lines: int
) -> None:
    path = tmp_path / "a.txt"
    path.write_text(content)
    assert tagged(type="file", path=str(path)) == f"* {path} ({lines} lines)"


def test_a_part_of_a_file_is_named_by_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1\n2\n3")
    for start, end, named in ((2, 2, "line 2"), (1, 3, "lines 1-3")):
        line = tagged(type="file", path=str(path), lineRange={"start": start, "end": end})
        assert line == f"* {path} ({named} of 3 lines)"


def test_a_file_that_is_gone_is_named_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "none"
    line = tagged(type="file", path=str(path))
    assert line == f"* {path} (cannot be read: No such file or directory)"


def test_a_selection_is_named_with_its_lines_if_it_has_any() -> None:
    selection = {"start": {"line": 4, "character": 0}, "end": {"line": 6, "character": 1}}
    about: dict[str, Any] = {"type": "selection", "filePath": "/a.c", "text": "x"}
    for part, named in (({"selection": selection}, " (lines 5-7)"), ({}, "")):
        shown = render_prompt("look", [{**about, **part}])
        assert shown.startswith(f"<ide_selection>\nFile: /a.c{named}\n```\nx\n```\n")
