"""`@path` brings text along, and nothing it should not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from customizekit import write
from trimtab.customize.imports import MAX_DEPTH, find_mentions, resolve_imports
from trimtab.customize.places import Boundary


def imported(folder: Path, text: str) -> tuple[list[str], list[str]]:
    """The names of the files that came along, and the problems."""
    path = write(folder / "AGENTS.md", text)
    found = resolve_imports(text, str(path), Boundary((str(folder.resolve()),), str(folder)))
    return [Path(file).name for file in found.files], [
        problem.message for problem in found.problems
    ]


def test_files_are_appended_in_the_order_they_are_mentioned(tmp_path: Path) -> None:
    write(tmp_path / "b.md", "B, see @docs/c.md")
    write(tmp_path / "a.md", "A")
    write(tmp_path / "docs/c.md", "C, see @d.md")
    write(tmp_path / "docs/d.md", "D")
    assert imported(tmp_path, "First @b.md, then @a.md.") == (["b.md", "c.md", "d.md", "a.md"], [])


@pytest.mark.parametrize(
    "text",
    [
        "mail a@b.md",
        "`@a.md`",
        "```\n@a.md\n```",
        "~~~\n@a.md\n~~~",
        "@someone wrote this",
        "@types/x",
    ],
)
def test_what_is_no_mention_brings_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path / "a.md", "A")
    assert imported(tmp_path, text) == ([], [])


def test_circles_end_and_a_file_comes_once(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "@b.md @AGENTS.md")
    write(tmp_path / "b.md", "@a.md @b.md")
    again = [
        f"@{name}.md is not imported again: it imports this file" for name in ("a", "b", "AGENTS")
    ]
    assert imported(tmp_path, "@a.md @b.md @./a.md") == (["a.md", "b.md"], again)


def test_a_file_that_two_others_import_is_no_circle(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "@c.md")
    write(tmp_path / "b.md", "@c.md")
    write(tmp_path / "c.md", "x")
    assert imported(tmp_path, "@a.md @b.md @c.md") == (["a.md", "c.md", "b.md"], [])


def test_depth_has_a_limit(tmp_path: Path) -> None:
    for number in range(MAX_DEPTH + 3):
        write(tmp_path / f"f{number}.md", f"@f{number + 1}.md")
    files, problems = imported(tmp_path, "@f0.md")
    assert len(files) == MAX_DEPTH
    assert problems == [
        f"@f{MAX_DEPTH}.md is not imported: imports are followed at most {MAX_DEPTH} files deep"
    ]


def test_size_has_a_limit(tmp_path: Path) -> None:
    for name in "abcd":
        write(tmp_path / f"{name}.md", name * 200_000)
    files, problems = imported(tmp_path, "@a.md @b.md @c.md @d.md")
    assert files == ["a.md", "b.md"]
    assert len(problems) == 3


def test_what_lies_outside_is_not_imported(tmp_path: Path) -> None:
    write(tmp_path / "secret.md", "secret")
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "link.md").symlink_to(tmp_path / "secret.md")
    files, problems = imported(repo, f"@../secret.md @link.md @{tmp_path}/secret.md @/etc/passwd")
    assert files == []
    assert all("outside this repository" in problem for problem in problems)
    assert len(problems) == 4


def test_a_missing_file_is_named_with_its_line(tmp_path: Path) -> None:
    text = "one\n\nsee @docs/gone.md\n"
    path = write(tmp_path / "AGENTS.md", text)
    found = resolve_imports(text, str(path), Boundary((str(tmp_path),), ""))
    assert [(problem.line, problem.message) for problem in found.problems] == [
        (3, "@docs/gone.md does not exist")
    ]


@given(st.text(alphabet="@a/.~`\n -*", max_size=80))
def test_no_text_makes_it_fail(text: str) -> None:
    find_mentions(text)
    resolve_imports(text, "/nowhere/at/all/AGENTS.md", Boundary(("/nowhere",), "/nowhere"))
