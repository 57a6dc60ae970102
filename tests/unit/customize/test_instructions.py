"""Instruction files are found in their order, and equal ones are merged."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from customizekit import places_in, write
from trimtab.contracts.customization import Instruction
from trimtab.customize.instructions import (
    MAX_READ_FOLDERS,
    child_folders,
    find_instructions,
    merge,
)
from trimtab.customize.touched_instructions import TouchedInstructions

ROWS = [
    ("home/.copilot/copilot-instructions.md", "user"),
    ("home/.codex/AGENTS.md", "codex"),
    ("home/.claude/CLAUDE.md", "claude"),
    ("home/.gemini/GEMINI.md", "gemini"),
    ("repo/.github/copilot-instructions.md", "repository"),
    ("repo/AGENTS.md", "repository"),
    ("repo/CLAUDE.md", "claude"),
    ("repo/.claude/CLAUDE.md", "claude"),
    ("repo/CLAUDE.local.md", "claude"),
    ("repo/GEMINI.md", "gemini"),
    ("repo/.cursorrules", "cursor"),
    ("repo/.github/instructions/a/b.instructions.md", "repository"),
    ("repo/.claude/rules/deep/c.md", "claude"),
    ("home/.copilot/instructions/d.instructions.md", "user"),
    ("home/.claude/rules/e.md", "claude"),
    ("repo/sub/.github/copilot-instructions.md", "repository"),
    ("repo/sub/AGENTS.md", "repository"),
    ("repo/sub/CLAUDE.md", "claude"),
    ("repo/sub/.claude/CLAUDE.md", "claude"),
    ("repo/sub/GEMINI.md", "gemini"),
]
"""Every place of the table, in the order in which they are merged."""


@pytest.mark.parametrize(("name", "source"), ROWS)
def test_a_file_of_every_row_is_found(tmp_path: Path, name: str, source: str) -> None:
    path = write(tmp_path / name, "Be brief.\n")
    found = find_instructions(places_in(tmp_path, cwd="sub"))
    (instruction,) = found.instructions
    assert (instruction.text, instruction.paths, instruction.source) == (
        "Be brief.",
        (str(path),),
        source,
    )
    assert found.problems == ()


@given(st.sets(st.sampled_from([name for name, _ in ROWS]), min_size=1))
def test_any_of_them_together_keep_the_order(names: set[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            write(Path(folder, name), name)
        found = find_instructions(places_in(Path(folder), cwd="sub"))
    assert [instruction.text for instruction in found.instructions] == [
        row for row, _ in ROWS if row in names
    ]


PIECES = st.builds(
    Instruction,
    text=st.sampled_from(["a", "b", "c"]),
    paths=st.tuples(st.text(alphabet="xyz", min_size=1, max_size=3)),
    source=st.just("repository"),
    location=st.just("repository"),
    globs=st.sampled_from([(), ("*.py",)]),
)


@given(st.lists(PIECES))
def test_merging_keeps_every_text_once_every_path_and_the_order(found: list[Instruction]) -> None:
    merged = merge(found)
    keys = [(instruction.text, instruction.globs) for instruction in merged]
    assert keys == list(
        dict.fromkeys((instruction.text, instruction.globs) for instruction in found)
    )
    for instruction in merged:
        same = [
            other.paths[0]
            for other in found
            if (other.text, other.globs) == (instruction.text, instruction.globs)
        ]
        assert list(instruction.paths) == list(dict.fromkeys(same))
    assert merge(merged) == merged


def test_a_file_limited_by_globs_waits_until_a_matching_file_is_touched(tmp_path: Path) -> None:
    write(tmp_path / "repo/.claude/rules/py.md", '---\npaths: ["src/**/*.{py,pyi}"]\n---\nTypes.\n')
    write(
        tmp_path / "repo/.cursor/rules/ui.mdc",
        "---\nglobs: web/*.ts\nalwaysApply: false\n---\nUI.\n",
    )
    write(tmp_path / "repo/.cursor/rules/all.mdc", "---\nalwaysApply: true\n---\nAll.\n")
    places = places_in(tmp_path)
    found = find_instructions(places)
    assert [instruction.text for instruction in found.always] == ["All."]
    touched = TouchedInstructions(places, found)
    repo = tmp_path / "repo"
    assert touched.touch(str(repo / "src/a.txt")) == []
    assert [instruction.text for instruction in touched.touch(str(repo / "src/deep/a.pyi"))] == [
        "Types."
    ]
    assert touched.touch(str(repo / "src/b.py")) == []
    assert [instruction.text for instruction in touched.touch(str(repo / "web/b.ts"))] == ["UI."]


def test_touching_a_folder_gives_its_files_and_those_above_it_once(tmp_path: Path) -> None:
    for name in ("a", "a/b", "a/b/c/d", "node_modules/x"):
        write(tmp_path / "repo" / name / "AGENTS.md", name)
    places = places_in(tmp_path)
    touched = TouchedInstructions(places, find_instructions(places))
    deep = str(tmp_path / "repo/a/b/c/d/file.py")
    assert [instruction.text for instruction in touched.touch(deep)] == ["a", "a/b", "a/b/c/d"]
    assert touched.touch(deep) == []
    assert touched.touch(str(tmp_path / "repo/node_modules/x/y.js")) == []
    assert touched.touch("/elsewhere/AGENTS.md") == []


def test_the_file_of_one_person_takes_the_place_of_everybodys(tmp_path: Path) -> None:
    write(tmp_path / "repo/AGENTS.md", "all")
    write(tmp_path / "repo/AGENTS.override.md", "mine")
    found = find_instructions(places_in(tmp_path))
    assert [instruction.text for instruction in found.instructions] == ["mine"]
    (left_out,) = found.left_out
    assert left_out.path == str(tmp_path / "repo/AGENTS.md")
    assert left_out.by == str(tmp_path / "repo/AGENTS.override.md")


def test_child_folders_stop_at_two_levels_and_leave_out_what_is_ignored(tmp_path: Path) -> None:
    for name in ("a/b/c", "dist/x", "skip/x", "keep/skip", ".next"):
        (tmp_path / name).mkdir(parents=True)
    write(tmp_path / ".gitignore", "/skip\n# comment\n*.log\n")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    found = [os.path.relpath(folder, tmp_path) for folder in child_folders(str(tmp_path))]
    assert found == ["a", "keep", "a/b", "keep/skip"]


def test_broken_files_are_one_problem_each_and_the_rest_loads(tmp_path: Path) -> None:
    write(tmp_path / "repo/AGENTS.md", b"\0\0binary")
    write(tmp_path / "repo/CLAUDE.md", b"caf\xe9 is Latin-1\n")
    write(tmp_path / "repo/.github/instructions/y.instructions.md", "---\na: [\n---\nkept\n")
    os.mkfifo(tmp_path / "repo/GEMINI.md")
    write(tmp_path / "repo/.cursorrules", "x" * 300_000)
    (tmp_path / "repo/.claude").mkdir()
    (tmp_path / "repo/.claude/CLAUDE.md").symlink_to("CLAUDE.md")
    found = find_instructions(places_in(tmp_path))
    assert [instruction.text[:6] for instruction in found.instructions] == [
        "caf\ufffd i",
        "xxxxxx",
        "kept",
    ]
    by_file = {
        os.path.basename(problem.file) + problem.message[:12]: problem for problem in found.problems
    }
    assert len(found.problems) == len(by_file) == 6, found.problems


def test_folders_that_link_to_themselves_end(tmp_path: Path) -> None:
    folder = tmp_path / "repo/.github/instructions"
    write(folder / "one.instructions.md", "one")
    (folder / "again").symlink_to(folder)
    found = find_instructions(places_in(tmp_path))
    assert [instruction.text for instruction in found.instructions] == ["one"]


def test_an_unreadable_folder_is_a_problem_and_no_end(tmp_path: Path) -> None:
    places = places_in(tmp_path, COPILOT_CUSTOM_INSTRUCTIONS_DIRS=str(tmp_path / "nowhere"))
    write(tmp_path / "repo/AGENTS.md", "here")
    found = find_instructions(places)
    assert [instruction.text for instruction in found.instructions] == ["here"]
    assert "is not a folder" in found.problems[0].message


def test_one_file_under_three_names_is_one_instruction_with_one_problem(tmp_path: Path) -> None:
    write(tmp_path / "repo/AGENTS.md", "See @missing.md")
    for name in ("CLAUDE.md", "GEMINI.md"):
        (tmp_path / "repo" / name).symlink_to("AGENTS.md")
    found = find_instructions(places_in(tmp_path))
    (instruction,) = found.instructions
    assert [os.path.basename(path) for path in instruction.paths] == [
        "AGENTS.md",
        "CLAUDE.md",
        "GEMINI.md",
    ]
    assert [problem.message for problem in found.problems] == ["@missing.md does not exist"]


def test_a_number_of_child_folders_is_read_however_long_it_takes(tmp_path: Path) -> None:
    places = places_in(tmp_path)
    for number in range(MAX_READ_FOLDERS + 1):
        write(Path(places.cwd) / f"{number:04}" / "AGENTS.md", f"rule {number}\n")
    found = find_instructions(places, children=True)
    texts = {instruction.text.strip() for instruction in found.always}
    assert texts == {f"rule {number}" for number in range(MAX_READ_FOLDERS)}
    assert [problem.note for problem in found.problems] == [True]
