"""Instruction files that settings of other agents name."""

import json
from pathlib import Path

import pytest

from customizekit import places_in, write
from trimtab.customize.instructions import find_instructions
from trimtab.customize.touched_instructions import TouchedInstructions


@pytest.mark.parametrize(
    "settings",
    [{"contextFileName": "CONTEXT.md"}, {"context": {"fileName": ["CONTEXT.md", "X.md"]}}],
)
def test_geminis_settings_name_more_files(tmp_path: Path, settings: dict[str, object]) -> None:
    write(tmp_path / "home/.gemini/settings.json", json.dumps(settings))
    write(tmp_path / "repo/CONTEXT.md", "named")
    write(tmp_path / "repo/GEMINI.md", "usual")
    found = find_instructions(places_in(tmp_path))
    assert [(instruction.text, instruction.source) for instruction in found.instructions] == [
        ("usual", "gemini"),
        ("named", "gemini"),
    ]


def test_codex_reads_the_first_other_name_where_there_is_no_agents_file(tmp_path: Path) -> None:
    write(
        tmp_path / "home/.codex/config.toml",
        'project_doc_fallback_filenames = ["TEAM.md", "OLD.md"]\n',
    )
    write(tmp_path / "repo/AGENTS.md", "usual")
    write(tmp_path / "repo/TEAM.md", "not read")
    file = write(tmp_path / "repo/src/a.py", "")
    write(tmp_path / "repo/src/TEAM.md", "of the folder")
    write(tmp_path / "repo/src/OLD.md", "old")
    places = places_in(tmp_path)
    found = find_instructions(places)
    assert [instruction.text for instruction in found.instructions] == ["usual"]
    touched = TouchedInstructions(places, found).touch(str(file))
    assert [(instruction.text, instruction.source) for instruction in touched] == [
        ("of the folder", "codex")
    ]


@pytest.mark.parametrize("name", [".env", "id_rsa", "../home/x.md", "/etc/passwd", "a/b.md", ""])
def test_settings_cannot_have_just_any_file_sent(tmp_path: Path, name: str) -> None:
    write(tmp_path / "repo/.gemini/settings.json", json.dumps({"contextFileName": name}))
    write(tmp_path / "repo/.env", "SECRET=1")
    write(tmp_path / "repo/id_rsa", "key")
    write(tmp_path / "repo/a/b.md", "elsewhere")
    write(tmp_path / "home/x.md", "mine")
    found = find_instructions(places_in(tmp_path))
    assert found.instructions == ()
    assert [problem.file for problem in found.problems] == [
        str(tmp_path / "repo/.gemini/settings.json")
    ]


def test_a_repository_nobody_trusts_names_none(tmp_path: Path) -> None:
    write(tmp_path / "repo/.gemini/settings.json", '{"contextFileName": "CONTEXT.md"}')
    write(tmp_path / "repo/CONTEXT.md", "named")
    assert find_instructions(places_in(tmp_path, trusted=False)).instructions == ()
